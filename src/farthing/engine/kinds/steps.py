"""Columns in whole steps, and noisy totals of their products: what means, variances, covariances
and regressions are computed from.

Values x between lower and upper are counted in steps from lower, rounded to the nearest:
a = ⌊(x − lower)·finer/coarser + ½⌋, where one of the two is 1 and the other makes the number R of
steps from lower to upper as large as stays exact. d = 2a − R counts half steps from the middle. A
unit with w rows for a label (more than τ count as τ with its own averages) changes

    the number of rows               by w ≤ τ
    the sum of dᵢ·gᵢ                 by at most Rᵢ·gᵢ·w
    the sum of 2·dᵢ² − Rᵢ²           by at most Rᵢ²·w
    the sum of dᵢ·dⱼ                 by at most Rᵢ·Rⱼ·w

One coordinate each. gᵢ is Rᵢ beside products and 1 otherwise: it makes what is rounded of a unit's
average small. Measuring from the middle halves what a unit can change (Theorem 13 of
docs/theory/mechanisms.md). One vector of all of them would cost as much: a row with every value at
a bound changes each of them by its limit.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from farthing.engine.kinds.base import COUNT, Paid, Result, coordinate_of
from farthing.engine.kinds.deviations import Drawn
from farthing.engine.kinds.measures import MeasureQuery, bounded_totals, groups_of
from farthing.engine.sql.bounding import Bounded
from farthing.engine.sql.measuring import (
    VALUE,
    WHOLE,
    Grouped,
    rounded_quotient,
    scaled_to,
    total_name,
)
from farthing.errors import InvalidInput
from farthing.mechanisms import Expectation, Mechanism, Release
from farthing.mechanisms.combined import Groups, PerLabel
from farthing.mechanisms.counts.noisy_totals import NoisyTotals
from farthing.mechanisms.protocol import Interval
from farthing.optional import Later

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa
else:
    ibis = Later("ibis")

#: The most that a unit may change the sum of the highest power by: engines divide and add it up
#: exactly, noise for ε of 1/256 and more can be drawn, and steps stay finer than what noise hides.
LARGEST_CHANGE = {1: 1 << 30, 2: 1 << 32}
#: There are at least about this many steps.
_COARSEST = 1 << 10

#: The columns whose product is summed, by their places; none for the number of rows.
Term: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """A column between two bounds, in units of its last decimal place, as `most` steps or fewer."""

    lower: int
    upper: int
    places: int
    most: int

    @property
    def sizes(self) -> tuple[int, int]:
        """(finer, coarser): a step is coarser/finer units of the last decimal place."""
        wide = self.upper - self.lower
        return max(self.most // wide, 1), -(-wide // self.most)

    @property
    def reach(self) -> int:
        """R: how many steps it is from lower to upper."""
        finer, coarser = self.sizes
        return (2 * (self.upper - self.lower) * finer + coarser) // (2 * coarser)

    @property
    def rounding(self) -> int:
        """How far a value may be from its step, in half steps."""
        return 0 if self.sizes[1] == 1 else 1

    @property
    def half(self) -> float:
        """Half a step in the units of the column."""
        finer, coarser = self.sizes
        return coarser / finer / 2 / float(10**self.places)

    @property
    def middle(self) -> float:
        """The value that half steps are counted from."""
        return self.lower / float(10**self.places) + self.reach * self.half

    def counted(self, units: Any) -> Any:
        """Twice the steps from the lower bound, of a column in units of the last place."""
        finer, coarser = self.sizes
        above = units - self.lower
        above = rounded_quotient(above, coarser).cast("int64") if coarser > 1 else above * finer
        return 2 * above


def noisy_totals(mechanism: Mechanism[Any]) -> NoisyTotals:
    """What draws the totals of one label."""
    totals = mechanism.measure if isinstance(mechanism, PerLabel) else mechanism
    assert isinstance(totals, NoisyTotals)
    return totals


def name_of(place: int) -> str:
    """What the column in this place is called in a statement."""
    return VALUE if place == 0 else f"{VALUE}{place}"


@dataclass(frozen=True, slots=True)
class TotalsQuery(MeasureQuery):
    """A question whose numbers are computed from noisy totals of products of columns."""

    @property
    @abstractmethod
    def terms(self) -> tuple[Term, ...]:
        """The totals; the first is the number of rows."""

    @property
    def scaled(self) -> tuple[tuple[int, int, int], ...]:
        """Both bounds of each column in units of its last decimal place, and the places."""
        return ((*self.bounds, self.decimals),)

    @property
    def pays(self) -> Mapping[str, int]:
        """A coordinate for each total."""
        return {COUNT: len(self.terms)}

    @property
    def scales(self) -> tuple[Steps, ...]:
        """Each column in steps."""
        power = max(map(len, self.terms))
        largest, rows = LARGEST_CHANGE[power], self.rows_of_a_unit
        most = largest // rows if power == 1 else math.isqrt(largest // rows)
        if most < _COARSEST:
            raise InvalidInput(
                f"per_key_limit of a {self.measures} must be at most "
                f"{largest // _COARSEST**power}, got {self.per_key_limit}"
            )
        for lower, upper, places in self.scaled:
            if lower == upper:
                bound = lower / 10**places if places else lower
                raise InvalidInput(f"lower and upper must differ, got {bound} twice")
        return tuple(Steps(*one, most) for one in self.scaled)

    def _grains(self) -> tuple[int, ...]:
        """How many times each total is taken."""
        fine = max(map(len, self.terms)) > 1
        return tuple(self.scales[t[0]].reach if fine and len(t) == 1 else 1 for t in self.terms)

    def _sizes(self) -> tuple[int, ...]:
        """What a row can change each total by."""
        reaches, terms = [scale.reach for scale in self.scales], self.terms
        grains = zip(self._grains(), terms, strict=True)
        return tuple(grain * math.prod(reaches[i] for i in term) for grain, term in grains)

    @property
    def limits(self) -> tuple[int, ...]:
        """What a unit can change each total by."""
        return tuple(self.rows_of_a_unit * size for size in self._sizes())

    def measure(self, paid: Paid) -> Mechanism[Any]:
        return NoisyTotals(coordinate=coordinate_of(paid), limits=self.limits)

    def measured(self, grouped: Grouped) -> Bounded:
        """What is summed of a row is moved by its limit, so that it is at least 0."""
        scales = self.scales
        twice = [s.counted(grouped.table[name_of(i)]) for i, s in enumerate(scales)]
        sums = {}
        grains, sizes = self._grains(), self._sizes()
        for place, (term, size) in enumerate(zip(self.terms, sizes, strict=True)):
            if len(term) == 1:
                sums[f"sum{place}"] = (twice[term[0]] * grains[place]).cast(WHOLE).sum()
            elif term:
                one, other = (twice[i] - scales[i].reach for i in term)
                moved = 2 * one * one if len(set(term)) == 1 else one * other + size
                sums[f"sum{place}"] = moved.cast(WHOLE).sum()
        pairs = grouped.pairs(rows=grouped.table.count(), **sums)
        most = self.rows_of_a_unit
        rows = ibis.least(pairs.rows, most).cast(WHOLE)
        amounts = [rows] + [
            scaled_to(pairs[f"sum{place}"], pairs.rows, most) - size * rows
            for place, size in enumerate(sizes)
            if place
        ]
        return bounded_totals(self, grouped, pairs, zip(amounts, self.limits, strict=True))

    def collected(self, rows: pa.Table) -> Groups[tuple[int, ...]]:
        size = len(self.terms)
        columns = (map(int, rows.column(total_name(i)).to_pylist()) for i in range(size))
        return groups_of(self, rows, zip(*columns, strict=True), (0,) * size, size)

    def drawn(self, mechanism: Mechanism[Any], release: Release, confidence: float) -> list[Drawn]:
        """What was drawn for each label, with what can be said about it."""
        totals, grains, moved = noisy_totals(mechanism), self._grains(), self._moved()
        reaches = [scale.reach for scale in self.scales]
        return [
            Drawn(self.terms, numbers, totals, grains, confidence, reaches, moved)
            for numbers in self.totals_in(release)
        ]

    def totals_in(self, release: Release) -> list[tuple[float, ...]]:
        """The noisy totals of each label, each taken once."""
        parts = (part.counts for part in self.parts_of(release))
        return [self._once(counts) for counts in parts if counts is not None]

    def _once(self, totals: Sequence[float]) -> tuple[float, ...]:
        return tuple(n / grain for n, grain in zip(totals, self._grains(), strict=True))

    def _moved(self) -> tuple[float, ...]:
        """How far rounding can have moved each total, for each row.

        A value is at most so many half steps from its step. A unit with more than τ rows counts as
        τ, with sums that are rounded to the nearest whole number.
        """
        columns = [(scale.reach, scale.rounding) for scale in self.scales]

        def moved(term: Term, grain: int) -> float:
            if not term:
                return 0.0
            averages = 1 / (2 * self.rows_of_a_unit * grain)
            (far, off), *others = (columns[i] for i in term)
            if not others:
                return off + averages
            if len(set(term)) == 1:
                return 2 * off * (2 * far + off) + averages
            ((other_far, other_off),) = others
            return off * (other_far + other_off) + far * other_off + averages

        return tuple(map(moved, self.terms, self._grains()))

    @abstractmethod
    def estimates(self, numbers: Sequence[float], widths: Sequence[float]) -> tuple[float, ...]:
        """What the noisy totals of one label stand for; `widths` is how far off they may be."""

    @abstractmethod
    def intervals(self, drawn: Drawn) -> tuple[Interval, ...]:
        """Where the true numbers lie, for each that is estimated."""

    def result(self, release: Release, expectation: Expectation) -> Result:
        widths = self._once(expectation.totals or (0.0,) * len(self.terms))
        numbers = (self.estimates(numbers, widths) for numbers in self.totals_in(release))
        return Result(self.labels_in(release), tuple(n for each in numbers for n in each), None)

    def errors(
        self, mechanism: Mechanism[Any], release: Release, confidence: float
    ) -> tuple[Interval, ...]:
        """By the noise of all totals together, which is less than that of each by itself."""
        drawn = self.drawn(mechanism, release, confidence)
        return tuple(interval for one in drawn for interval in self.intervals(one))
