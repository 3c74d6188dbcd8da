"""Shares, differences, changes and ratios of what was released: free, with joint intervals."""

from __future__ import annotations

import math
import numbers as kinds_of_numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import pairwise
from typing import Any

from farthing.engine.arithmetic import Draw, Number, total
from farthing.engine.show.sheet import label_text
from farthing.engine.show.table import Table, TableColumn
from farthing.engine.sql.bounding import Label
from farthing.errors import InvalidInput
from farthing.mechanisms import Mechanism, ThresholdedCounts
from farthing.mechanisms.combined import PerLabel
from farthing.mechanisms.counts.unknown_counts import intervals_after
from farthing.mechanisms.noise.discrete import CoordinateNoise
from farthing.mechanisms.protocol import Interval

#: Of more computed numbers than this no intervals are looked for: that takes milliseconds each.
MOST_INTERVALS = 20_000
#: The label of an answer that has no keys.
NO_KEY: Label = ()


class Derivable(ABC):
    """Released numbers by label, from which others are computed."""

    __slots__ = ()

    caption: str
    confidence: float

    @property
    @abstractmethod
    def keys(self) -> tuple[str, ...]:
        """What its labels are called; nothing, if it has one number."""

    @property
    @abstractmethod
    def together(self) -> bool:
        """Whether its intervals hold for all numbers together."""

    @property
    @abstractmethod
    def complete(self) -> bool:
        """Whether it has every label that there is."""

    @abstractmethod
    def numbers(self) -> dict[Label, Number]:
        """Its numbers by label, to compute with; InvalidInput if there are none."""

    @property
    @abstractmethod
    def positive(self) -> bool:
        """Whether no true number can be below 0."""

    def shares(self) -> Table:
        """Each number as a part of their sum. The sum is made of the same noisy numbers, so the
        interval of a share is narrower than the two put together."""
        parts = self.numbers()
        whole = parts[NO_KEY] if NO_KEY in parts else total(parts.values())  # of a rollup the first

        def share(part: Number) -> Number | None:
            found = part / whole
            return found.mapped(_within_one) if found is not None and self.positive else found

        notes = () if self.complete else ("Shares are of the labels that are shown.",)
        made = {label: share(part) for label, part in parts.items()}
        return self._table("As a share of the total", "share", made, notes)

    def difference(self, one: Label, other: Label) -> Table:
        """The number of one label minus that of another."""
        parts = self.numbers()
        for label in (one, other):
            if label not in parts:
                raise InvalidInput(f"the answer has no label {label_text(label)}")
        title = f"{label_text(one)} minus {label_text(other)}"
        columns = {"difference": [parts[one] - parts[other]]}
        return table_of(title, (), [NO_KEY], columns, self.confidence, notes=(self.caption,))

    def change(self, *, relative: bool = False) -> Table:
        """From each label to the next: months, ages and numbers in their order, others as they are
        shown. `relative`: as a part of the number before."""
        parts = self.numbers()
        order = sorted(parts, key=_place) if all(map(_is_ordered, parts)) else list(parts)
        changes: dict[Label, Number | None] = {}
        for before, label in pairwise(order):
            changed = parts[label] - parts[before]
            changes[label] = changed / parts[before] if relative else changed
        notes = () if self.complete else ("A label that is not shown is passed over.",)
        name = "rate of change" if relative else "change"
        return self._table("To each label from the one before", name, changes, notes)

    def _table(
        self, title: str, name: str, made: Mapping[Label, Number | None], notes: Iterable[str]
    ) -> Table:
        return table_of(
            title, self.keys, list(made), {name: list(made.values())}, self.confidence,
            together=self.together, notes=(self.caption, *notes),
        )  # fmt: skip # one call


def ratio(top: Derivable, bottom: Derivable) -> Table:
    """One answer over another, label by label; over its one number, if it has no labels."""
    return _paired(top, bottom, "ratio", "Divided by")


def difference(one: Derivable, other: Derivable) -> Table:
    """One answer minus another, label by label; minus its one number, if it has no labels."""
    return _paired(one, other, "difference", "Minus")


def _paired(one: Derivable, other: Derivable, name: str, word: str) -> Table:
    first, second = one.numbers(), other.numbers()
    if other.keys not in ((), one.keys):
        raise InvalidInput(
            f"two answers are compared label by label, but these have the labels of "
            f"{', '.join(one.keys) or 'nothing'} and of {', '.join(other.keys)}"
        )
    made: dict[Label, Number | None] = {}
    for label, number in first.items():
        compared = second.get(label if other.keys else NO_KEY)
        if compared is not None:
            made[label] = number / compared if name == "ratio" else number - compared
    left = len(first) - len(made)
    notes = [one.caption, f"{word}: {other.caption}"]
    if left:
        notes.append(f"Labels that only one of the two has are left out: {left}.")
    confidence = min(one.confidence, other.confidence)
    columns = {name: list(made.values())}
    return table_of("", one.keys, list(made), columns, confidence, notes=notes)


def table_of(
    title: str,
    keys: tuple[str, ...],
    labels: Sequence[Label],
    columns: Mapping[str, Sequence[Number | None]],
    confidence: float,
    *,
    together: bool = False,
    among: int | None = None,
    notes: Iterable[str] = (),
) -> Table:
    """Numbers as a table. With `together`, the intervals of a column hold all together; with
    `among`, those of so many rows, of which these were chosen by their numbers."""
    rows = (len(labels) if together else 1) if among is None else among
    level = confidence if rows < 2 else 1 - (1 - confidence) / rows  # they may share draws
    told = list(notes)
    few = len(labels) * len(columns) <= MOST_INTERVALS
    if not few:
        told.append(f"More than {MOST_INTERVALS} numbers are computed, so they have no intervals.")

    def column(name: str, numbers: Sequence[Number | None]) -> TableColumn:
        values = tuple(None if number is None else number.value for number in numbers)
        ends = (None if number is None else number.interval(level) for number in numbers)
        return TableColumn(name, values, tuple(ends) if few else None)

    made = tuple(column(name, listed) for name, listed in columns.items())
    return Table(title, keys, tuple(labels), made, confidence, tuple(told))


def numbers_of(
    released: Sequence[tuple[float, Interval]],
    confidence: float,
    mechanism: Mechanism[Any] | None,
    scale: float,
    name: str,
) -> list[Number]:
    """Released numbers, to compute with: noise of a known law as such, multiplied by `scale`.

    Where a label was shown because of its number, the interval given that is all there is. Only of
    thresholds and of one run for each label it is known that labels are independent.
    """
    noise, times = getattr(mechanism, "added", None) or (None, 1)
    if isinstance(noise, CoordinateNoise):
        return [
            Number(float(count), {Draw((name, i), noise, times, scale): 1.0})
            for i, (count, _) in enumerate(released)
        ]

    def interval(count: float, ends: Interval, level: float) -> Interval:
        """At another level; if it is not known, as much wider as Laplace noise asks for, whose
        tails are the heaviest."""
        if level <= confidence:
            return ends
        if isinstance(mechanism, ThresholdedCounts):
            return intervals_after(mechanism.noise, mechanism.threshold, [count], level)[0]
        wider = math.log(1 - level) / math.log(1 - confidence)
        return count - wider * (count - ends[0]), count + wider * (ends[1] - count)

    numbers = []
    apart = isinstance(mechanism, ThresholdedCounts | PerLabel)
    for i, (count, ends) in enumerate(released):
        within = min(max(float(count), ends[0]), ends[1])
        draws = [(name, i if apart else -1)]
        numbers.append(Number.ranged(within, partial(interval, within, ends), draws))
    return numbers


def _within_one(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _is_ordered(label: Any) -> bool:
    return label is None or isinstance(label, date | kinds_of_numbers.Real)


def _place(label: Any) -> tuple[bool, Any]:
    return label is None, 0 if label is None else label
