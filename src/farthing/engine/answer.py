"""Answers: a release with its price and what remains."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rich.console import RenderableType

from farthing.canonical import digest
from farthing.composition.accounts.account_profiles import reading_by_moments, stated_delta
from farthing.composition.tariffs.tariff import Price
from farthing.engine.arithmetic import Number
from farthing.engine.derived import NO_KEY, Derivable, numbers_of
from farthing.engine.kinds.base import NoisyUnits, Query, Result
from farthing.engine.kinds.fields import label_from_json, label_to_json
from farthing.engine.loss import Loss
from farthing.engine.show import rendering, sheet
from farthing.engine.show.captions import Names
from farthing.engine.show.sheet import Sheet, amount, label_text, one_number, percent
from farthing.engine.show.table import Records, Tabular
from farthing.engine.sql.bounding import Label
from farthing.errors import InvalidInput
from farthing.guarantees.notation import parse_guarantee
from farthing.ledger import Snapshot
from farthing.mechanisms import Mechanism
from farthing.mechanisms.protocol import Interval
from farthing.numerics.rounding import shown_up
from farthing.schema import DeclaredValues
from farthing.wording import many, plain

#: The note on an automatic limit if a larger one might have been better.
LARGEST_TRIED = (
    "The largest contribution limit that was tried was chosen: more is lost than the interval says."
)


#: An interval that is this part of what is possible says next to nothing; and so many labels with
#: such intervals are named.
_NEARLY, _NAMED = 0.9, 10
#: Fields of an answer that are plain data as they are; those that were added later have defaults.
_AS_IT_IS = (
    *("unit", "caption", "half_width", "confidence", "stopped", "shown_from", "largest_tried"),
    *("guarantees", "drawn"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Spending:
    """A price as a share of all farthings of the dataset, and ε before and after at some δ.

    ε is what the analyst has been told so far under the tariff in force, upper bounds that hold
    at any moment (docs/theory/odometer.md); None where that depends on others, or on accounts
    besides it: the owner's statement says it then. `proved` computes both, and their δ, when
    somebody looks: no run waits for it.
    """

    share: float
    proved: Callable[[], tuple[float | None, float | None, float | None]] = field(repr=False)

    @property
    def epsilon_before(self) -> float | None:
        """What was proved before it was paid."""
        return self.proved()[0]

    @property
    def epsilon_after(self) -> float | None:
        """What is proved once it is paid."""
        return self.proved()[1]

    @property
    def delta(self) -> float | None:
        """The δ of both."""
        return self.proved()[2]

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` reads it back."""
        told = zip(("epsilon_before", "epsilon_after", "delta"), self.proved(), strict=True)
        return {"share": self.share, **dict(told)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spending) and self.to_json() == other.to_json()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Spending:
        """What plain data says."""
        proved = data["epsilon_before"], data["epsilon_after"], data["delta"]
        return cls(data["share"], lambda: proved)

    def of_part(self, price: Price, whole: Price) -> Spending:
        """The share of one of several questions that were paid for together."""
        return replace(self, share=self.share * price.farthings / max(whole.farthings, 1))

    def following(self, first: Spending) -> Spending:
        """Both together, where `first` was paid just before."""
        return Spending(first.share + self.share, lambda: (first.proved()[0], *self.proved()[1:]))

    @property
    def of_budget(self) -> str:
        """The share in words."""
        share = 100 * self.share
        return f"{share:.0f}% of the budget" if share >= 9.95 else f"{share:.2g}% of the budget"

    @property
    def so_far(self) -> str | None:
        """What is proved once it is paid, in words."""
        _, after, delta = self.proved()
        if after is None:
            return None
        return f"everything so far within ε = {_shown(after)} at δ = {delta:g}"

    @property
    def before_and_after(self) -> str | None:
        """What is proved, before and after, in words."""
        before, after, delta = self.proved()
        if before is None or after is None:
            return None
        return f"ε ≤ {_shown(before)}, afterwards ε ≤ {_shown(after)}, at δ = {delta:g}"


def spending_of(snapshot: Snapshot, price: Price, *, paid: bool) -> Spending:
    """What this price means at this moment, before it is paid or (`paid`) just after."""
    certificate, spent = snapshot.certificate, snapshot.spent_alone
    whole = certificate.tariff.farthings

    def proved() -> tuple[float | None, float | None, float | None]:
        delta = stated_delta(certificate)
        if spent is None or delta is None:
            return None, None, None
        start = spent - price.farthings if paid else spent
        ends = [min(start + more, whole) for more in (0, price.farthings)]
        before, after = (reading_by_moments(certificate, at, delta) for at in ends)
        return before, after, delta

    return Spending(price.farthings / whole, proved)


def _shown(epsilon: float) -> str:
    return shown_up(epsilon, digits=2)


@dataclass(frozen=True, slots=True)
class Answer(Derivable, Tabular):
    """A release, with everything needed to read it.

    `counts` are as they were drawn, so that they can be added up without a bias, and None for a
    top-k without counts. Each of the `intervals` holds the number it is about with probability
    `confidence`: one by one, given that it was released, or all together where the question says
    `simultaneous`. They are cut to what is possible: a count of −31 ± 54 has the interval 0 to 23,
    and is `shown` as 0. `half_width` is None where what was drawn is not off by the same number
    everywhere. A quantile has no intervals, and its `half_width` is in ranks: how many values may
    lie between it and the quantile; without a key its one label is the value. `stopped`: a top-k
    ended early because no further label stood out. `units`: how many units each label has, where
    finding the labels paid for that: a noisy number, and its interval. `loss`: what the limit left
    out, if that was measured. `shown_from`: labels with about this many members or more are shown,
    others withheld. `largest_tried`: the automatic contribution limit is the largest that was
    tried. `spending`: what the price means, if it was paid just now. `caption`: what was counted,
    of which rows, and every bound and limit that was applied. `guarantees`:
    what each role was paid with, from which the law of the noise follows, and `drawn` a name for
    these draws alone; an old release has neither.
    """

    query: Query
    labels: tuple[Label, ...]
    counts: tuple[int | float, ...] | None
    half_width: float | None
    confidence: float
    stopped: bool
    price: Price
    used: Mapping[str, int]
    remaining: Price
    cached: bool = False
    intervals: tuple[Interval, ...] | None = None
    units: tuple[NoisyUnits, ...] | None = None
    unit: str = "unit"
    loss: Loss | None = None
    shown_from: int | None = None
    largest_tried: bool = False
    spending: Spending | None = None
    caption: str = ""
    guarantees: Mapping[str, str] | None = None
    drawn: str | None = None
    #: The ledger entry that keeps the release, if one does. It is never shown.
    entry: int | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.caption:
            object.__setattr__(self, "caption", self.query.caption(self.unit, DeclaredValues()))
        intervals = self._drawn_intervals if self.intervals is None else self.intervals
        if intervals is not None:
            least, most = self.query.possible
            cut = (tuple(min(max(end, least), most) for end in ends) for ends in intervals)
            object.__setattr__(self, "intervals", tuple(cut))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def _drawn_intervals(self) -> tuple[Interval, ...] | None:
        """Each number ± the half-width, possible or not."""
        wide, counts = self.half_width, self.counts
        if counts is None or wide is None or self.query.in_ranks:
            return None
        return tuple((c - wide, c + wide) for c in counts)

    @property
    def shown(self) -> tuple[int | float, ...] | None:
        """The numbers that people see, each within its interval."""
        if self.counts is None or self.intervals is None:
            return self.counts
        return self.query.shown(Result(self.labels, self.counts, None, self.intervals))

    @property
    def folded(self) -> tuple[int, ...]:
        """The places of labels whose numbers say next to nothing: their intervals are nearly all
        that is possible."""
        least, most = self.query.possible
        if self.intervals is None or self.query.single or math.isinf(most - least):
            return ()
        nearly = _NEARLY * (most - least)
        return tuple(i for i, (low, high) in enumerate(self.intervals) if high - low >= nearly)

    @property
    def value(self) -> Any:
        """The one number of a count, a sum or a quantile."""
        if self.query.in_ranks and self.counts is None:
            return self.labels[0]
        if self.counts is None or len(self.counts) != 1:
            raise ValueError(f"this answer has {len(self)} labels; read labels and counts")
        return self.counts[0]

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` reads it back."""
        return {
            "query": self.query.to_json(),
            **{name: getattr(self, name) for name in _AS_IT_IS},
            "labels": list(map(label_to_json, self.labels)),
            "counts": None if self.counts is None else list(self.counts),
            "intervals": None if self.intervals is None else list(map(list, self.intervals)),
            "units": None if self.units is None else list(map(list, self.units)),
            "loss": None if self.loss is None else self.loss.to_json(),
            "price": asdict(self.price),
            "used": dict(self.used),
        }

    @classmethod
    def from_json(
        cls, data: Mapping[str, Any], query: Query, *, remaining: Price, entry: int | None = None
    ) -> Answer:
        """An answer that was kept as plain data, with or without intervals."""
        kept, loss, units = data.get("intervals"), data.get("loss"), data.get("units")
        return cls(
            query=query,
            labels=tuple(map(label_from_json, data["labels"])),
            counts=None if data["counts"] is None else tuple(data["counts"]),
            price=Price(**data["price"]),
            used=dict(data["used"]),
            remaining=remaining,
            cached=True,
            loss=None if loss is None else Loss.from_json(loss),
            intervals=None if kept is None else tuple((low, high) for low, high in kept),
            units=None if units is None else tuple((n, low, high) for n, low, high in units),
            entry=entry,
            **{name: data[name] for name in _AS_IT_IS if name in data},
        )

    def told(self) -> dict[str, Any]:
        """Plain data for whoever shows it: also what people see of it, and what it cost."""
        return {
            **self.to_json(),
            "shown": None if self.shown is None else list(self.shown),
            "folded": list(self.folded),
            "notes": list(self.sheet.notes),
            "paid": self.paid,
            "cached": self.cached,
            "remaining": asdict(self.remaining),
            "spending": None if self.spending is None else self.spending.to_json(),
        }

    @property
    def sheet(self) -> Sheet:
        """What is shown in terminals and notebooks: labels that say nothing are one line."""
        whole, folded = self.whole_sheet, set(self.folded)
        if not folded:
            return whole
        names = [label_text(self.labels[i]) for i in self.folded]
        more = [f"and {len(names) - _NAMED} more"] if len(names) > _NAMED else []
        told = f"{many(len(names), 'label')} with too few rows to say: "
        kept = [i for i in range(len(self)) if i not in folded]
        note = told + ", ".join([*names[:_NAMED], *more])
        return whole.picked(kept, f"{note}.")

    @property
    def whole_sheet(self) -> Sheet:
        """The same with every label, for tables."""
        notes = []
        if self.stopped:
            notes.append("The list ended early: no further label stood out.")
        if self.shown_from is not None:
            things = self.query.words(Names()).things
            notes.append(f"Labels with fewer than about {self.shown_from} {things} are not shown.")
        if self.largest_tried:
            notes.append(LARGEST_TRIED)
        if self.query.together and self.intervals:
            notes.append("The intervals hold for all numbers together.")
        notes += self.query.notes(self.intervals)
        if self.loss is not None:
            notes.append(self.loss.in_words(percent(self.confidence)))
        return Sheet(
            title=self.caption,
            headings=self.query.headings,
            number=self.query.number,
            labels=self.labels,
            numbers=self.shown,
            drawn=self.counts,
            half_width=self.half_width if self._plain_widths else None,
            intervals=self._error_bars,
            units=self.units,
            confidence=self.confidence,
            single=self.query.single,
            in_ranks=self.query.in_ranks,
            ranks=self.query.ranks,
            notes=tuple(notes),
            paid=self.paid,
        )

    @property
    def _plain_widths(self) -> bool:
        """Whether all intervals are number ± half-width."""
        return self.query.in_ranks or self.intervals in (None, self._drawn_intervals)

    @property
    def _error_bars(self) -> tuple[Interval, ...] | None:
        """The intervals to draw. An error in ranks gives none."""
        if not self.query.in_ranks or self.counts is None:
            return self.intervals
        return tuple((value, value) for value in self.counts)

    @property
    def paid(self) -> str:
        """The last line: price and what remains."""
        left = f"{amount(self.remaining)} remaining"
        if self.cached:
            return f"asked before: the earlier release, at no cost; {left}"
        if self.spending is None:
            return f"paid {amount(self.price)}; {left}"
        parts = [f"paid {amount(self.price)}, {self.spending.of_budget}", left]
        if self.spending.so_far is not None:
            parts.append(self.spending.so_far)
        return "; ".join(parts)

    @property
    def records(self) -> Records:
        return self.whole_sheet.records

    @property
    def keys(self) -> tuple[str, ...]:
        return () if self.query.single else self.query.headings

    @property
    def together(self) -> bool:
        return self.query.together

    @property
    def complete(self) -> bool:
        return not self.keys or getattr(self.query, "size", None) == len(self)

    @property
    def positive(self) -> bool:
        return self.query.possible[0] >= 0

    def numbers(self) -> dict[Label, Number]:
        if self.counts is None or self.intervals is None or self.query.in_ranks:
            raise InvalidInput("there is nothing to compute with: these are labels or ranks")
        released = list(zip(self.counts, self.intervals, strict=True))
        scale, name = 1 / 10**self.query.decimal_places, self.drawn or digest(self.to_json())
        numbers = numbers_of(released, self.confidence, self._mechanism, scale, name)
        return dict(zip(self.labels if self.keys else (NO_KEY,), numbers, strict=True))

    @property
    def _mechanism(self) -> Mechanism[Any] | None:
        """What ran; None if it is not known any more."""
        if self.guarantees is None:
            return None
        paid = {role: parse_guarantee(text) for role, text in self.guarantees.items()}
        return self.query.mechanism_for(paid)

    def plot(self, ax: Any = None) -> Any:
        """Bars with error bars on Matplotlib axes, which are returned."""
        return sheet.plot(self.sheet, ax)

    def __rich__(self) -> RenderableType:
        return rendering.answer_table(self.sheet)

    def __str__(self) -> str:
        return rendering.as_text(rendering.answer_table(self.sheet))

    def _repr_html_(self) -> str:
        return rendering.answer_html(self.sheet)

    def __repr__(self) -> str:
        told = many(len(self), "label") if not self.query.single else " ".join(
            one_number(self.sheet)
        )  # fmt: skip # one choice
        return plain(f"<Answer: {self.caption}: {told}>")
