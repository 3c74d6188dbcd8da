"""Conversations: paid for once when they are opened, then asked until they halt or are closed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, TypeAlias

from farthing.composition.tariffs.tariff import Price
from farthing.engine.conversation_kinds import ConversationKind
from farthing.engine.kinds.base import Query
from farthing.engine.show.rendering import FITS, Line, ShownPlan
from farthing.engine.show.sheet import amount, number, percent
from farthing.errors import InvalidInput
from farthing.interactive import WatchAccuracy
from farthing.ledger import Answered, Dataset, OpenedConversation


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


class Opener(Protocol):
    """Who opens conversations: a backend."""

    @property
    def about(self) -> Dataset:
        """The data."""

    def open(self, plan: ConversationPlan) -> OpenConversation:
        """Pay for a conversation and open it."""


class Conversation:
    """A conversation about numbers of a table, until it is closed or has halted."""

    def __init__(self, backend: Opener, opened: OpenConversation) -> None:
        self._backend = backend
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
        return f"<Conversation {self.id} on {self._backend.about.name}>"


@dataclass(frozen=True, slots=True, repr=False)
class ConversationPlan(ShownPlan):
    """What a conversation costs in full, and its accuracy. `open()` opens exactly this one."""

    kind: ConversationKind
    items: Mapping[str, int]
    price: Price
    remaining: Price
    questions: int
    accuracy: WatchAccuracy
    #: Who made it and opens it, with what it needs for that.
    backend: Opener = field(compare=False)
    _details: Any = field(default=None, compare=False)

    @property
    def caption(self) -> str:
        """The kind of conversation."""
        return self.kind.described

    @property
    def fits(self) -> bool:
        """Enough remains to open it."""
        return self.price.within(self.remaining)

    def open(self) -> Conversation:
        """Pay and begin. Nothing is paid back, whether anything is asked or not."""
        return Conversation(self.backend, self.backend.open(self))

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "watch": self.kind.record(),
            "items": dict(self.items),
            "price": asdict(self.price),
            "remaining": asdict(self.remaining),
            "fits": self.fits,
            "questions": self.questions,
            "accuracy": asdict(self.accuracy),
        }

    def lines(self) -> Iterator[Line]:
        bought = ", ".join(f"{times} × {name}" for name, times in self.items.items())
        yield "price", f"{amount(self.price)}  ({bought}), paid when it is opened", ""
        yield "remaining", amount(self.remaining), ""
        yield FITS[self.fits]
        yield "each unit", f"changes a number by at most {self.kind.per_unit}", ""
        sure = f"at {percent(self.accuracy.confidence)} for {self.questions} questions together"
        yield "each answer", f"right beyond ± {number(self.accuracy.threshold_error)} {sure}", ""
        if self.accuracy.value_error is not None:
            yield "each number", f"± {number(self.accuracy.value_error)} {sure}", ""
