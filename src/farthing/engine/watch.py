"""A conversation that is not open yet: what it will cost, and how accurate it will be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from farthing.composition.tariffs.tariff import Price
from farthing.engine.context import Context
from farthing.engine.converse import WatchConversation, open_watch
from farthing.engine.show.plans import FITS, Line, ShownPlan
from farthing.engine.show.sheet import amount, number, percent
from farthing.engine.watch_kinds import WatchKind
from farthing.interactive import WatchAccuracy
from farthing.ledger import Terms


@dataclass(frozen=True, slots=True)
class Watch:
    """What will be asked about, and how often. Nothing happens until `plan` or `open`."""

    _context: Context = field(repr=False)
    kind: WatchKind

    def plan(self, *, questions: int = 100) -> WatchPlan:
        """Price, what remains, and how far off the answers to so many questions can be."""
        context = self._context.at_this_moment()
        terms = context.snapshot.terms
        items = self.kind.items_for(terms.tariff)
        mechanism = self.kind.mechanism_for(terms.tariff)
        return WatchPlan(
            _context=self._context,
            kind=self.kind,
            terms=terms,
            items=items,
            price=terms.tariff.price_of(items),
            remaining=context.snapshot.remaining,
            questions=questions,
            accuracy=mechanism.accuracy(questions, self._context.confidence),
        )

    def open(self) -> WatchConversation:
        """Pay for all of it, and begin."""
        return self.plan().open()


@dataclass(frozen=True, slots=True, repr=False)
class WatchPlan(ShownPlan):
    """What a conversation costs in full, and its accuracy. `open()` opens exactly this one."""

    _context: Context = field(compare=False)
    kind: WatchKind
    terms: Terms
    items: Mapping[str, int]
    price: Price
    remaining: Price
    questions: int
    accuracy: WatchAccuracy

    @property
    def fits(self) -> bool:
        """Enough remains to open it."""
        return self.price.within(self.remaining)

    def open(self) -> WatchConversation:
        """Pay and begin. Nothing is paid back, whether anything is asked or not."""
        return open_watch(self._context, self.kind, self.terms)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "watch": self.kind.to_json(),
            "items": dict(self.items),
            "price": asdict(self.price),
            "remaining": asdict(self.remaining),
            "fits": self.fits,
            "questions": self.questions,
            "accuracy": asdict(self.accuracy),
        }

    @property
    def caption(self) -> str:
        """The kind of conversation."""
        return self.kind.kind

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
