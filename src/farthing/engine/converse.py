"""Open a conversation, ask, close. The only place that does any of them.

Opening pays for everything that will be asked. To ask, the statement of a query runs with its
limits per unit; the exact number goes to the mechanism in the ledger's transaction and nowhere
else, and the answer comes back when it is on disk. If the engine fails the conversation ends,
because that something failed may depend on the data.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from farthing.canonical import canonical
from farthing.composition.tariffs.tariff import Tariff
from farthing.engine.any_conversation import (
    GUESS,
    THRESHOLD,
    AnyConversation,
    AskedPair,
    WatchAnswer,
    asked_pairs,
)
from farthing.engine.context import Context
from farthing.engine.errors import ChargeMismatch, EngineFailure
from farthing.engine.kinds.base import ROLES, Query
from farthing.engine.spending import spent_if_interrupted
from farthing.engine.sql.bounding import COUNT as NUMBER
from farthing.engine.sql.statement import Statement
from farthing.engine.translate import comparison_of, statement_of
from farthing.engine.watch_kinds import Watcher, WatchKind, guarantees_of
from farthing.errors import InvalidInput, require_real
from farthing.guarantees.notation import format_guarantee
from farthing.interactive import Exceeds, Guess, GuessAndCheck, SparseVector, cheapest_items
from farthing.ledger import (
    AlreadySettled,
    Answered,
    DurableConversation,
    OpenedConversation,
    Terms,
    Use,
)
from farthing.mechanisms import Contribution

log = logging.getLogger("farthing.engine")

#: Characters of a question as JSON at most: it is kept for ever, and may cost nothing.
LARGEST_QUESTION = 1 << 14
#: What is said to who asks for the other one.
_OTHERWISE = {
    THRESHOLD: "this conversation checks guesses; open a watch for thresholds",
    GUESS: "this conversation compares with thresholds; open one for guesses",
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that may be asked: its public words, its statement, and what the number is held
    against in units of its last decimal place."""

    query: Query
    words: dict[str, Any]
    statement: Statement
    units: int


class WatchConversation(AnyConversation):
    """A conversation about numbers of a table, until it is closed or has halted."""

    def __init__(self, context: Context, held: DurableConversation) -> None:
        mechanism = held.mechanism
        if not isinstance(mechanism, SparseVector | GuessAndCheck):
            raise InvalidInput("this conversation was not opened about numbers of a table")
        self._context = context
        self._held = held
        self._mechanism: Watcher = mechanism
        self._declared = context.about
        self._statements: dict[str, Statement] = {}  # by the text of the query

    @property
    def id(self) -> str:
        """By it the same analyst finds the conversation again: `session.conversation(id)`."""
        return self._held.id

    def close(self) -> None:
        self._held.close()

    def standing(self) -> OpenedConversation:
        return self._held.standing()

    def transcript(self) -> list[Answered]:
        return self._held.transcript()

    def said_after(self, turn: int) -> tuple[list[Answered], int | None]:
        """A page of the transcript after this turn, and the turn after which the next begins."""
        return self._held.said_after(turn)

    def __repr__(self) -> str:
        return f"<WatchConversation {self.id} on {self._context.about.name}: {self._mechanism!r}>"

    def _ask(self, pairs: Iterable[AskedPair], what: str) -> list[WatchAnswer]:
        if (what == THRESHOLD) != isinstance(self._mechanism, SparseVector):
            raise InvalidInput(_OTHERWISE[what])
        now = self._context.now()
        if now.about != self._declared:
            self._declared, self._statements = now.about, {}
        asked = [
            self._checked(now, given, what, against)
            for given, against in asked_pairs(pairs, what, self._context)
        ]
        self._held.require_open(one.words for one in asked)  # what is not paid for is not looked at
        numbers = self._numbers(now, asked)
        told = self._held.ask_many(
            (one.words, _question(what, numbers[id(one.statement)], one.units)) for one in asked
        )
        return [
            WatchAnswer(verdict.positive, _shown(verdict.value, one.query))
            for one, verdict in zip(asked, told, strict=False)
        ]

    def _checked(self, now: Context, given: Query, what: str, against: float) -> _Asked:
        """What may be asked: everything about it that can be refused is refused here."""
        query = now.checked(given)
        _require_plain(query, what)
        number = against if type(against) is int else require_real(what, against)
        units = _units(what, number, query.decimal_places)
        words = {"query": query.to_json(), what: number}
        size = len(canonical(words))
        if size > LARGEST_QUESTION:
            raise InvalidInput(
                f"a question in a conversation must have at most {LARGEST_QUESTION} characters as "
                f"JSON, got {size}"
            )
        if query.in_ranks:  # the statement knows the threshold, and its number is held against 0
            return _Asked(query, words, self._statement(now, query, units), 0)
        return _Asked(query, words, self._statement(now, query), units)

    def _statement(self, now: Context, query: Query, value: int | None = None) -> Statement:
        """Compiled once; refused if a unit may change the number by more than was paid for."""
        key = canonical({"query": query.to_json(), "value": value})
        if key not in self._statements:
            statement, limited = (
                statement_of(now, query) if value is None else comparison_of(now, query, value)
            )
            sensitivity = self._mechanism.sensitivity
            if limited.others:
                raise InvalidInput(
                    f"a conversation is about one number; a {query.kind} is made from several"
                )
            if not limited.within(Contribution(1, sensitivity)):
                raise InvalidInput(
                    f"one unit may change this {query.kind} by {limited.per_key_limit}, but the "
                    f"conversation was opened for numbers that change by {sensitivity} (per_unit)"
                )
            if isinstance(self._mechanism, SparseVector) and self._mechanism.monotone:
                _require_monotone(query)
            self._statements[key] = statement
        return self._statements[key]

    def _numbers(self, now: Context, asked: list[_Asked]) -> dict[int, int]:
        """The exact numbers by statement, each of which is kept once.

        If one cannot be read, or the run is cancelled before the clock strikes, the conversation
        ends: when the clock strikes, whichever it was. Nothing that depends on the data leaves.
        """
        numbers: dict[int, int] = {}
        with now.source.ready():  # a question that could not be asked ends no conversation
            now.begins()
            try:
                for one in asked:
                    if id(one.statement) not in numbers:
                        rows = now.source.run(one.statement)
                        numbers[id(one.statement)] = int(rows.column(NUMBER)[0].as_py())
            except EngineFailure:
                pass
            except Exception:
                log.exception("the number could not be read")  # its words may depend on the rows
        try:
            now.on_the_clock()
        except BaseException:
            self._give_up()
            raise
        if any(id(one.statement) not in numbers for one in asked):
            self._give_up()
            raise EngineFailure
        return numbers

    def _give_up(self) -> None:
        with suppress(AlreadySettled):  # it was over before
            self._held.give_up(EngineFailure.__name__)


def open_watch(context: Context, kind: WatchKind, terms: Terms) -> WatchConversation:
    """Pay for the conversation under the terms that it was planned with, and open it."""
    tariff, mechanism = terms.tariff, kind.mechanism_for(terms.tariff)
    items = kind.items_for(tariff)
    _check_charge(tariff, items, mechanism)
    context.require_payable()
    context.require_open()
    with spent_if_interrupted(tariff.price_of(items), at_most=True):
        held = context.analyst.open_conversation(
            mechanism,
            items=items,
            question={
                "watch": kind.to_json(),
                "guarantees": guarantees_of(tariff, items),
                "unit": context.about.unit,
            },
            under=terms.account,
            use=Use(
                what=kind.kind,
                contribution=f"at most {kind.per_unit} of each number",
                guarantees=tuple((format_guarantee(g), n) for g, n in mechanism.guarantees),
            ),
        )
    return WatchConversation(context, held)


def _check_charge(tariff: Tariff, items: Mapping[str, int], mechanism: Watcher) -> None:
    """As many items are bought as the mechanism itself says, by another way to the numbers."""
    counted = sum(cheapest_items(tariff, mechanism.guarantees).values())
    if counted != sum(items.values()):
        raise ChargeMismatch(f"the mechanism takes {counted} items, but {dict(items)} are bought")


def _require_plain(query: Query, what: str) -> None:
    """A query in a conversation is about one number, and buys nothing of its own."""
    if not query.single:
        raise InvalidInput(f"a conversation is about one number, and a {query.kind} is not")
    if query.in_ranks and what == GUESS:
        raise InvalidInput(f"a {query.kind} is watched over thresholds; a guess of it has no error")
    bought = [name for name in ROLES if name in query.field_names() and _field(query, name)]
    if "repeats" in query.field_names() and _field(query, "repeats") != 1:
        bought.append("repeats")
    if bought:
        raise InvalidInput(
            f"everything in a conversation was paid for when it was opened; leave {bought[0]} out"
        )


def _field(query: Query, name: str) -> Any:
    return query.to_json()[name]


def _require_monotone(query: Query) -> None:
    if not query.monotone:
        raise InvalidInput(
            f"this {query.kind} may fall when a unit is added; open the watch with monotone=False"
        )


def _units(what: str, number: float, places: int) -> int:
    """A threshold or a guess in units of the last decimal place; thresholds are reached from it.

    A float is read as it is written: 0.1 is a tenth.
    """
    require_real(what, number)
    exact = Fraction(str(number)) * Fraction(10) ** places
    return math.ceil(exact) if what == THRESHOLD else round(exact)


def _question(what: str, number: int, units: int) -> Exceeds | Guess:
    return Exceeds(number, units) if what == THRESHOLD else Guess(number, units)


def _shown(value: int | None, query: Query) -> int | float | None:
    return None if value is None else query.watched_number(value)
