"""Open a conversation, ask, close. The only place that does any of them.

Opening pays for everything that will be asked. To ask, the statement of a query runs with its
limits per unit; the exact number goes to the mechanism in the ledger's transaction and nowhere
else, and the answer comes back when it is on disk. If the engine fails the conversation ends,
because that something failed may depend on the data.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

from farthing.canonical import canonical
from farthing.composition.tariffs.tariff import Tariff
from farthing.engine.context import Context, comparison_of, statement_of
from farthing.engine.conversation import ConversationAnswer
from farthing.engine.conversation_kinds import (
    CONVERSATIONS,
    ConversationKind,
    Watcher,
    guarantees_of,
    kind_run_by,
)
from farthing.engine.errors import ChargeMismatch, EngineFailure
from farthing.engine.execute import spent_if_interrupted
from farthing.engine.kinds.base import ROLES, Query
from farthing.engine.sql.bounding import COUNT as NUMBER
from farthing.engine.sql.statement import Statement
from farthing.errors import InvalidInput, require_real
from farthing.guarantees.notation import format_guarantee
from farthing.interactive import cheapest_items
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that may be asked: its public words, its statement, and what the number is held
    against in units of its last decimal place."""

    query: Query
    words: dict[str, Any]
    statement: Statement
    units: int


class LocalConversation:
    """An open conversation about numbers of a table on this machine."""

    def __init__(self, context: Context, held: DurableConversation) -> None:
        self._kind = kind_run_by(held.mechanism)
        self._context = context
        self._held = held
        self._mechanism = cast(Watcher, held.mechanism)
        self._declared = context.about
        self._statements: dict[str, Statement] = {}  # by the text of the query

    @property
    def id(self) -> str:
        """By it the same analyst finds the conversation again."""
        return self._held.id

    def close(self) -> None:
        """End it."""
        self._held.close()

    def status(self) -> OpenedConversation:
        """How much was asked, and whether it goes on."""
        return self._held.standing()

    def said_after(self, turn: int) -> tuple[list[Answered], int | None]:
        """A page of the transcript after this turn, and the turn after which the next begins."""
        return self._held.said_after(turn)

    def ask(
        self, questions: Sequence[tuple[Query, float]], against: str
    ) -> list[ConversationAnswer]:
        """The answers in order, until it halts."""
        if against != self._kind.against:
            raise InvalidInput(
                f"this is a {self._kind.described}; open a {CONVERSATIONS[against].described}"
            )
        now = self._context.now()
        if now.about != self._declared:
            self._declared, self._statements = now.about, {}
        asked = [self._checked(now, query, number) for query, number in questions]
        self._held.require_open(one.words for one in asked)  # what is not paid for is not looked at
        numbers = self._numbers(now, asked)
        told = self._held.ask_many(
            (one.words, self._kind.asked(numbers[id(one.statement)], one.units)) for one in asked
        )
        return [
            ConversationAnswer(
                verdict.positive,
                None if verdict.value is None else one.query.watched_number(verdict.value),
            )
            for one, verdict in zip(asked, told, strict=False)
        ]

    def _checked(self, now: Context, given: Query, number: float) -> _Asked:
        """What may be asked: everything about it that can be refused is refused here."""
        query, against = now.checked(given), self._kind.against
        _require_plain(query)
        self._kind.require_askable(query, self._mechanism)
        real = require_real(against, number)
        number = number if type(number) is int else real
        # a float is read as it is written: 0.1 is a tenth
        units = self._kind.units(Fraction(str(number)) * Fraction(10) ** query.decimal_places)
        words = {"query": query.to_json(), against: number}
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


def open_conversation(context: Context, kind: ConversationKind, terms: Terms) -> LocalConversation:
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
                "watch": kind.record(),
                "guarantees": guarantees_of(tariff, items),
                "unit": context.about.unit,
            },
            under=terms.account,
            use=Use(
                what=kind.described,
                contribution=f"at most {kind.per_unit} of each number",
                guarantees=tuple((format_guarantee(g), n) for g, n in mechanism.guarantees),
            ),
        )
    return LocalConversation(context, held)


def _check_charge(tariff: Tariff, items: Mapping[str, int], mechanism: Watcher) -> None:
    """As many items are bought as the mechanism itself says, by another way to the numbers."""
    counted = sum(cheapest_items(tariff, mechanism.guarantees).values())
    if counted != sum(items.values()):
        raise ChargeMismatch(f"the mechanism takes {counted} items, but {dict(items)} are bought")


def _require_plain(query: Query) -> None:
    """A query in a conversation is about one number, and buys nothing of its own."""
    if not query.single:
        raise InvalidInput(f"a conversation is about one number, and a {query.kind} is not")
    data = query.to_json()
    bought = [name for name in ROLES if data.get(name)]
    if data.get("repeats", 1) != 1:
        bought.append("repeats")
    if bought:
        raise InvalidInput(
            f"everything in a conversation was paid for when it was opened; leave {bought[0]} out"
        )
