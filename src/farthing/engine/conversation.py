"""Conversations: paid for once when they are opened, then asked until they halt or are closed.

To ask, the statement of a query runs with its limits per unit; the exact number goes to the
mechanism in the ledger's transaction and nowhere else, and the answer comes back when it is on
disk. If the engine fails the conversation ends, because that something failed may depend on the
data. No other place opens, asks or closes one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, cast

from farthing.canonical import canonical
from farthing.composition.tariffs.tariff import Tariff
from farthing.engine.context import Context, statement_of
from farthing.engine.conversation_kinds import CONVERSATIONS, ConversationKind, Watcher, kind_run_by
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


class AskedQuestion(Protocol):
    """A question of a session."""

    @property
    def backend(self) -> object:
        """Who would answer it."""

    @property
    def query(self) -> Query:
        """What it asks."""


#: What is asked about: a query, or a question about the data of the conversation.
About: TypeAlias = Query | AskedQuestion


@dataclass(frozen=True, slots=True)
class ConversationAnswer:
    """What a conversation says.

    `positive`: the number reaches its threshold, or the guess is wrong. `value`: the number with
    noise, in the units of the question, where numbers were bought and the answer is positive; for a
    quantile, by how many values it is beyond the threshold.
    """

    positive: bool
    value: int | float | None = None


class OpenConversation(Protocol):
    """A conversation that was opened, as a backend holds it."""

    @property
    def id(self) -> str:
        """By it the same analyst finds the conversation again."""

    def ask(
        self, questions: Sequence[tuple[Query, float]], against: str
    ) -> list[ConversationAnswer]:
        """The answers in order, until it halts. `against` is what each number is compared with."""

    def status(self) -> OpenedConversation:
        """How much was asked, and whether it goes on."""

    def said_after(self, turn: int) -> tuple[list[Answered], int | None]:
        """A page of the transcript after this turn, and the turn after which the next begins."""

    def close(self) -> None:
        """End it. Nothing is paid back."""


class Conversation:
    """A conversation about numbers of a table, until it is closed or has halted."""

    def __init__(self, backend: object, dataset: str, opened: OpenConversation) -> None:
        self._backend = backend
        self._dataset = dataset
        self._opened = opened

    @property
    def id(self) -> str:
        """By it the same analyst finds the conversation again: `session.conversation(id)`."""
        return self._opened.id

    def exceeds(self, query: About, threshold: float) -> ConversationAnswer:
        """Is the number at least `threshold`? `query` is a query, or a question about this data."""
        return self.exceeds_many([(query, threshold)])[0]

    def exceeds_many(self, pairs: Iterable[tuple[About, float]]) -> list[ConversationAnswer]:
        """The same for pairs of a query and a threshold, which are fixed now.

        Each different query is run once. The answers are on disk together, a thousand in a
        transaction; there are fewer answers than questions if it halts on the way.
        """
        return self.ask(pairs, "threshold")

    def check(self, query: About, guess: float) -> ConversationAnswer:
        """Is the guess right within the tolerance? If not, the answer brings a number."""
        return self.check_many([(query, guess)])[0]

    def check_many(self, pairs: Iterable[tuple[About, float]]) -> list[ConversationAnswer]:
        """The same for pairs of a query and a guess, as in `exceeds_many`."""
        return self.ask(pairs, "guess")

    def ask(self, pairs: Iterable[tuple[About, float]], against: str) -> list[ConversationAnswer]:
        """The answers to pairs of a query and what its number is compared with, until it halts."""
        if not isinstance(pairs, Iterable):
            raise InvalidInput(f"questions must be pairs of a query and a {against}")
        return self._opened.ask([self._checked(pair, against) for pair in pairs], against)

    def close(self) -> None:
        """Nothing can be asked any more. Nothing is paid back."""
        self._opened.close()

    def standing(self) -> OpenedConversation:
        """How much was asked, and whether it goes on."""
        return self._opened.status()

    def transcript(self) -> list[Answered]:
        """Everything that was asked and answered, also what a crash kept from being told."""
        said: list[Answered] = []
        after: int | None = 0
        while after is not None:
            page, after = self.said_after(after)
            said += page
        return said

    def said_after(self, turn: int) -> tuple[list[Answered], int | None]:
        """A page of the transcript after this turn, and the turn after which the next begins."""
        return self._opened.said_after(turn)

    def _checked(self, pair: object, against: str) -> tuple[Query, float]:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InvalidInput(f"questions must be pairs of a query and a {against}")
        given, number = pair
        if getattr(given, "backend", self._backend) is not self._backend:
            raise InvalidInput("the question must be asked of the data of the conversation")
        query = getattr(given, "query", given)
        if not isinstance(query, Query):
            raise InvalidInput(f"give a query, or a question about this data; got {given!r:.60}")
        return query, number

    def __repr__(self) -> str:
        return f"<Conversation {self.id} on {self._dataset}>"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that may be asked: its public words, its statement, and what the number is held
    against in units of its last decimal place."""

    query: Query
    words: dict[str, Any]
    statement: Statement
    units: int


class LocalConversation:
    """An `OpenConversation` about numbers of a table on this machine."""

    def __init__(self, context: Context, held: DurableConversation) -> None:
        self._kind = kind_run_by(held.mechanism)
        self._context = context
        self._held = held
        self._mechanism = cast(Watcher, held.mechanism)
        self._declared = context.about
        self._statements: dict[str, Statement] = {}  # by the text of the query

    @property
    def id(self) -> str:
        return self._held.id

    def close(self) -> None:
        self._held.close()

    def status(self) -> OpenedConversation:
        return self._held.standing()

    def said_after(self, turn: int) -> tuple[list[Answered], int | None]:
        return self._held.said_after(turn)

    def ask(
        self, questions: Sequence[tuple[Query, float]], against: str
    ) -> list[ConversationAnswer]:
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
            statement, limited = statement_of(now, query, value=value)
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
                "guarantees": {name: format_guarantee(tariff.items[name][0]) for name in items},
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
