"""What a question, or several together, will cost and how accurate they will be.

A plan is plain data. It is made by a backend (a table on this machine, or a service over HTTP) from
the schema and the ledger, never from rows, and the same backend runs it as it is, or not at all
(`TariffChanged`). A single question is a plan with one question, whose name is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Protocol, TypeVar, cast

from farthing.composition.tariffs.tariff import Price
from farthing.engine.answer import Spending
from farthing.engine.answers import Answers
from farthing.engine.conversation import Conversation, OpenConversation
from farthing.engine.conversation_kinds import ConversationKind
from farthing.engine.kinds import BATCH, query_from
from farthing.engine.kinds.base import Query
from farthing.engine.purchase import Aim
from farthing.engine.show.rendering import (
    FITS,
    KNOWN,
    Line,
    ShownPlan,
    expectation_lines,
    limit_lines,
)
from farthing.engine.show.sheet import amount, number, percent
from farthing.engine.view import View
from farthing.interactive import WatchAccuracy
from farthing.ledger import Dataset, OpenedConversation, Purse
from farthing.ledger.declared_data import EACH_ROW
from farthing.mechanisms import Accuracy, Expectation
from farthing.wording import many, percent_up, plain

#: The name of the only question of a plan for one.
ONLY = ""

#: Fields of a planned question that are plain data as they are, and those of its expectation.
_AS_IT_IS = ("caption", "confidence", "known", "limits", "width_times_rows", "loss")
_EXPECTED = ("counts", "selection", "told_apart", "found_from", "threshold", "above_cutoff")
#: What comes of a plan: an Answer for one question, Answers for several.
Told = TypeVar("Told")


@dataclass(frozen=True, slots=True)
class PlannedQuestion:
    """One question of a plan: `query` has its items named, `price` is the most it costs.

    `known`: it was answered before and costs nothing. `limits`: how its contribution limit will be
    chosen, if that is automatic; `query` is then as it was asked. `width_times_rows` is about the
    half-width times the rows that count, of a mean or a variance. `offered` are questions that tell
    how much bounds and limits change. `loss` says how well what a limit drops will be measured.
    """

    query: Query
    caption: str
    price: Price
    items: Mapping[str, int]
    expectation: Expectation
    confidence: float
    known: bool = False
    limits: Mapping[str, Any] | None = None
    width_times_rows: float | None = None
    offered: tuple[str, ...] = ()
    loss: str | None = None

    def lines(self) -> Iterator[Line]:
        """What to expect, in words."""
        if self.limits is not None:
            yield from limit_lines(self.limits)
            return
        yield from expectation_lines(
            self.expectation,
            self.confidence,
            in_ranks=self.query.in_ranks,
            times_rows=self.width_times_rows,
        )
        if self.loss is not None:
            yield "loss", self.loss, ""
        for words in self.offered:
            yield "how much", words, ""

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` reads it back."""
        expected = asdict(self.expectation)
        return {
            "query": self.query.to_json(),
            "price": asdict(self.price),
            "items": dict(self.items),
            "offered": list(self.offered),
            **{name: expected[name] for name in _EXPECTED},
            **{name: getattr(self, name) for name in _AS_IT_IS},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PlannedQuestion:
        """The question that plain data describes."""
        expected = {name: data[name] for name in _EXPECTED}
        for name in ("counts", "selection"):
            if expected[name] is not None:
                expected[name] = Accuracy(**expected[name])
        return cls(
            query=query_from(data["query"]),
            price=Price(**data["price"]),
            items=dict(data["items"]),
            expectation=Expectation(**expected),
            offered=tuple(data["offered"]),
            **{name: data[name] for name in _AS_IT_IS},
        )


@dataclass(frozen=True, slots=True, repr=False)
class Plan(ShownPlan, Generic[Told]):
    """What is asked, what it costs at most, what remains, and what to expect.

    `known` is the earlier release, if everything was asked before; `price_again` is what it costs
    at most to pay for all of it anew. `spending`: the price as a share of the budget, and what is
    proved before and after.
    """

    questions: Mapping[str, PlannedQuestion]
    price: Price
    price_again: Price
    remaining: Price
    spending: Spending
    known: Told | None = field(compare=False)
    #: The largest chance of guessing from what is bought alone whether a unit is in the data,
    #: starting from even odds; computed when somebody looks.
    guess: Callable[[], float | None] = field(compare=False)
    #: Who made it and runs it, with what it needs for that.
    backend: Backend = field(compare=False)
    _details: Any = field(default=None, compare=False)
    #: What is computed from the answers of a batch.
    view: View | None = field(default=None, compare=False)

    def run(self, *, registered: str | None = None, again: bool = False) -> Told:
        """Pay and run. What was asked before is given out again at no cost, unless `again`.

        With `registered`, the list that the owner registered under this name pays for a batch.
        """
        answers = self.backend.run(self, registered=registered, again=again)
        return cast(Told, answers[ONLY] if self.single else Answers(answers, self.view))

    @property
    def caption(self) -> str:
        """What is asked."""
        if self.single:
            return self.questions[ONLY].caption
        return f"{many(len(self.questions), 'question')} together: {', '.join(self.questions)}"

    @property
    def single(self) -> bool:
        """Whether it is a plan for one question that was asked alone."""
        return ONLY in self.questions

    @property
    def fits(self) -> bool:
        """Enough remains to run it."""
        return self.known is not None or self.price.within(self.remaining)

    @property
    def chooses_limits(self) -> bool:
        """Whether a contribution limit is chosen first, so that it may cost less than `price`."""
        return any(one.limits is not None for one in self.questions.values())

    @property
    def _only(self) -> PlannedQuestion:
        if not self.single:
            raise AttributeError("this plan is for several questions; look into plan.questions")
        return self.questions[ONLY]

    @property
    def query(self) -> Query:
        """The only question, with its items named."""
        return self._only.query

    @property
    def expectation(self) -> Expectation:
        """What to expect of the only question before it runs."""
        return self._only.expectation

    @property
    def items(self) -> Mapping[str, int]:
        """What the only question buys at most."""
        return self._only.items

    def lines(self) -> Iterator[Line]:
        paid = f"{amount(self.price)}, {self.spending.of_budget}"
        if self.single:
            bought = ", ".join(f"{times} × {name}" for name, times in self.items.items())
            paid += f"  ({bought})"
        yield "price", paid, ""
        yield "remaining", amount(self.remaining), ""
        if self.spending.before_and_after is not None:
            yield "so far", self.spending.before_and_after, ""
        if (right := self.guess()) is not None:
            about = f"from even odds whether one {self.backend.about.unit} is there"
            yield "a guess", f"{about}: right at most {percent_up(right)}", ""
        yield FITS[self.fits]
        if self.backend.about.rows_are_units:
            yield "protects", f"{EACH_ROW}; no contribution limit is needed", ""
        if self.single:
            yield from self.questions[ONLY].lines()
        else:
            for name, one in self.questions.items():
                paid = "asked before" if one.known else amount(one.price)
                yield name, f"{one.caption}: {paid}", ""
        if self.known is not None:
            yield KNOWN

    def to_json(self) -> dict[str, Any]:
        """Plain data: a single question's fields at the top, several under `queries`."""
        cost = {
            "caption": self.caption,
            "price": asdict(self.price),
            "price_again": asdict(self.price_again),
            "spending": self.spending.to_json(),
            "guess": self.guess(),
            "remaining": asdict(self.remaining),
            "fits": self.fits,
            "known": self.known is not None,
        }
        if self.single:
            return {**self.questions[ONLY].to_json(), **cost}
        return {"queries": {name: one.to_json() for name, one in self.questions.items()}, **cost}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], backend: Backend, known: Told | None) -> Plan[Told]:
        """The plan that plain data describes, made by this backend."""
        queries = data.get("queries", {ONLY: data})
        return cls(
            questions={name: PlannedQuestion.from_json(one) for name, one in queries.items()},
            price=Price(**data["price"]),
            price_again=Price(**data["price_again"]),
            remaining=Price(**data["remaining"]),
            spending=Spending.from_json(data["spending"]),
            known=known,
            guess=lambda: data.get("guess"),
            backend=backend,
        )


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
    backend: Backend = field(compare=False)
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
        return Conversation(self.backend, self.backend.about.name, self.backend.open(self))

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


class Backend(Protocol):
    """Plans and runs the questions of one analyst about one dataset."""

    @property
    def about(self) -> Dataset:
        """The data, as its owner declared it when this was opened."""

    @property
    def analyst_name(self) -> str:
        """Whose purse pays."""

    @property
    def place(self) -> str | None:
        """Where the budget is kept: the path of a ledger, or the address of a service."""

    def plan(self, queries: Mapping[str, Query], aim: Aim | None = None) -> Plan[Any]:
        """The plan for questions by name; with an aim, the cheapest way of one to it. Looks at the
        schema and the ledger, never at rows."""

    def run(self, plan: Plan[Any], *, registered: str | None, again: bool) -> Answers:
        """Pay for a plan and run it: every answer, by name."""

    def plan_conversation(self, kind: ConversationKind, questions: int) -> ConversationPlan:
        """The plan for a conversation, with its accuracy for so many questions."""

    def open(self, plan: ConversationPlan) -> OpenConversation:
        """Pay for a conversation and open it."""

    def conversation(self, identity: str) -> OpenConversation:
        """A conversation that this analyst opened; NotInLedger if there is none."""

    def conversations(self) -> list[OpenedConversation]:
        """Every conversation that this analyst opened about this data."""

    def history(self) -> list[PastRelease]:
        """Everything that was released to this analyst about this data, the latest first."""

    def purse(self) -> Purse:
        """What was granted, and what is spent of it."""

    def remaining(self) -> Price:
        """Farthings and δ units that are left."""

    def shut(self) -> None:
        """Give back what is held open."""


@dataclass(frozen=True, slots=True, repr=False)
class PastRelease:
    """One release: when it was made, what was asked in words and as plain data, and its price.

    `data.ask(past.query).run()` shows it again, at no cost while the rows are in the same version.
    """

    time: str
    asked: str
    price: Price
    query: Mapping[str, Any] = field(hash=False)

    @classmethod
    def of(
        cls, time: str, asked: str, price: Price, queries: Mapping[str, Mapping[str, Any]]
    ) -> PastRelease:
        """From queries by name, of which one without a name was asked alone."""
        alone = queries.get("")
        query = {"kind": BATCH, "queries": dict(queries)} if alone is None else alone
        return cls(time, asked, price, query)

    def __repr__(self) -> str:
        paid = many(self.price.farthings, "farthing")
        return plain(f"<Release of {self.time[:16].replace('T', ' ')}: {self.asked}, {paid}>")
