"""Covariance, correlation and linear regression of columns with bounds, from noisy totals of their
products. A row in which one of the columns is missing does not count.

All intervals hold for whatever the totals really are (Theorems 15 and 16 of
docs/theory/mechanisms.md).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from farthing.engine.keys import require_kind
from farthing.engine.kinds import fields
from farthing.engine.kinds.deviations import Drawn
from farthing.engine.kinds.measures import MeasureQuery, bounds_within, kept_bounds
from farthing.engine.kinds.steps import Term, TotalsQuery, name_of, noisy_totals
from farthing.engine.show.captions import Names, Words
from farthing.engine.sql.bounding import Label
from farthing.engine.sql.conditions import Rows, between, fixed_point
from farthing.errors import InvalidInput
from farthing.mechanisms import Mechanism, Release
from farthing.mechanisms.protocol import Interval
from farthing.optional import Later
from farthing.schema import NUMBERS, Bounds, DeclaredValues, Schema

if TYPE_CHECKING:
    import ibis
else:
    ibis = Later("ibis")

#: Columns that a regression may have on its right side: totals are bought for each pair of them.
MOST_PREDICTORS = 6
INTERCEPT = "intercept"
#: Below 1, so that what is computed in floats is safe too.
_SAFE = 0.99
_INCOMPLETE = "a question is completed before it is asked"

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ColumnsQuery(TotalsQuery):
    """A question about a column and others beside it."""

    on: fields.On
    _: KW_ONLY
    on_lower: fields.OnBounds = None
    on_upper: fields.OnBounds = None
    on_places: fields.OnPlaces = None

    #: How many others there may be.
    most_others: ClassVar[int] = 1

    @property
    def others(self) -> tuple[str, ...]:
        """The columns beside the first."""
        assert isinstance(self.on, tuple)
        return self.on

    def check_fields(self) -> None:
        MeasureQuery.check_fields(self)
        if len(self.others) > self.most_others:
            raise InvalidInput(
                f"on of a {self.kind} names at most {self.most_others}, got {len(self.others)}"
            )
        if self.column in self.others:
            raise InvalidInput(f"on must name other columns than {self.column}")
        for name in ("on_lower", "on_upper", "on_places"):
            given = getattr(self, name)
            if given is not None and len(given) != len(self.others):
                raise InvalidInput(f"{name} must have a number for each column in on")
        if None not in (self.on_lower, self.on_upper, self.on_places):
            _ = self._beside

    @property
    def scaled(self) -> tuple[tuple[int, int, int], ...]:
        return (*self.bounds, self.decimals), *self._beside

    @property
    def _beside(self) -> list[tuple[int, int, int]]:
        """Both bounds of each other column in units of its last decimal place, and the places."""
        assert self.on_lower is not None, _INCOMPLETE
        assert self.on_upper is not None, _INCOMPLETE
        assert self.on_places is not None, _INCOMPLETE
        given = zip(self.on_lower, self.on_upper, self.on_places, strict=True)
        return [(*fields.scaled_bounds(low, high, n), n) for low, high, n in given]

    def columns(self) -> frozenset[str]:
        return MeasureQuery.columns(self) | set(self.others)

    def check_columns(self, schema: Schema) -> None:
        MeasureQuery.check_columns(self, schema)
        for name in self.others:
            require_kind(name, schema.kinds[name], NUMBERS, "a column in on")

    def completed(self, schema: Schema) -> Self:
        nothing = (None,) * len(self.others)
        kept = []
        for name, lower, upper, places in zip(
            self.others,
            self.on_lower or nothing,
            self.on_upper or nothing,
            self.on_places or nothing,
            strict=True,
        ):
            column = schema[name]
            bounds = bounds_within(column, name, lower, upper, self.kind, "on_lower and on_upper")
            kept.append(kept_bounds(column, *bounds, places))
        lowers, uppers, all_places = zip(*kept, strict=True)
        whole = self.changed(on_lower=lowers, on_upper=uppers, on_places=all_places)
        return MeasureQuery.completed(whole, schema)

    def clipped(self, declared: DeclaredValues) -> dict[str, Bounds]:
        whole = MeasureQuery.clipped(self, declared)
        if self.on_lower is None or self.on_upper is None:
            return whole
        bounds = zip(self.on_lower, self.on_upper, strict=True)
        return whole | dict(zip(self.others, bounds, strict=True))

    def values_in(self, rows: Rows) -> dict[str, Any]:
        """Every column, or none of them if one is missing."""
        values = [self.value_in(rows)]
        for name, (lower, upper, places) in zip(self.others, self._beside, strict=True):
            units = fixed_point(rows.table[name], rows.kinds[name], places)
            values.append(between(units, lower, upper))
        present = reduce(and_, (value.notnull() for value in values))
        nothing = ibis.null("int64")
        return {
            name_of(i): present.ifelse(value.cast("int64"), nothing)
            for i, value in enumerate(values)
        }

    def words(self, names: Names) -> Words:
        first, *others = map(names.column, (self.column, *self.others))
        each = f" for each {names.labels(self.key).each}" if self.key else ""
        subject = f"The {self.measures} of {first} {self.beside} {' and '.join(others)}{each}"
        return replace(MeasureQuery.words(self, names), subject=subject)

    @property
    @abstractmethod
    def beside(self) -> str:
        """The word between the column and the others."""


@dataclass(frozen=True, slots=True)
class CovarianceQuery(ColumnsQuery):
    """The covariance of two numeric columns, overall or for each label of a key.

    Values are clipped to their bounds. It is that of a sample, as a variance is.
    """

    kind: ClassVar[str] = "covariance"
    number: ClassVar[str] = "covariance"
    beside: ClassVar[str] = "and"
    terms: ClassVar[tuple[Term, ...]] = ((), (0,), (1,), (0, 1))

    def estimates(self, numbers: Sequence[float], _: Sequence[float]) -> tuple[float, ...]:
        rows, first, second, both = numbers
        count = max(rows, 2.0)
        within = (both - first * second / count) / (count - 1)
        return (self._size * min(max(within, -self._largest), self._largest),)

    def intervals(self, drawn: Drawn) -> tuple[Interval, ...]:
        low, high = drawn.covariance(0, 1, self._largest)
        return ((self._size * low, self._size * high),)

    def width_times_rows(self, mechanism: Mechanism[Any], confidence: float) -> float | None:
        """The weights of the totals are (mm′ − c, −m′/R, −m/R′, 1) for the means m and m′ and the
        covariance c, which are largest where all values are at a bound."""
        one, other = (scale.reach for scale in self.scales)
        weights = (one * other, other / one, one / other, 1.0)
        return self._size * noisy_totals(mechanism).half_width(weights, confidence)

    @property
    def _size(self) -> float:
        """A half step of one times a half step of the other."""
        one, other = self.scales
        return one.half * other.half

    @property
    def _largest(self) -> float:
        """In half steps: that of two rows at opposite ends."""
        one, other = self.scales
        return 2.0 * (one.reach + one.rounding) * (other.reach + other.rounding)


@dataclass(frozen=True, slots=True)
class CorrelationQuery(ColumnsQuery):
    """The correlation (Pearson's r) of two numeric columns, overall or for each label of a key.

    Values are clipped to their bounds. Where one of the columns may have no variance at all, the
    interval is from −1 to 1.
    """

    kind: ClassVar[str] = "correlation"
    number: ClassVar[str] = "correlation"
    beside: ClassVar[str] = "and"
    terms: ClassVar[tuple[Term, ...]] = ((), (0,), (1,), (0, 1), (0, 0), (1, 1))

    def estimates(self, numbers: Sequence[float], _: Sequence[float]) -> tuple[float, ...]:
        rows, first, second, both, *squares = numbers
        count = max(rows, 1.0)
        spread = 1.0
        for total, square, scale in zip((first, second), squares, self.scales, strict=True):
            within = (square + scale.reach**2 * count) / 2 - total**2 / count
            spread *= max(within, 1.0) ** 0.5
        return (min(max((both - first * second / count) / spread, -1.0), 1.0),)

    def intervals(self, drawn: Drawn) -> tuple[Interval, ...]:
        return (drawn.correlation(0, 1),)


@dataclass(frozen=True, slots=True)
class RegressionQuery(ColumnsQuery):
    """The linear regression of a numeric column on others, by least squares.

    The answer has the intercept, then the coefficient of each column in `on`. Values are clipped
    to their bounds. Where noise could make the equations singular, a ridge is added to them, and
    the intervals are so wide that they claim nothing.
    """

    kind: ClassVar[str] = "regression"
    number: ClassVar[str] = "coefficient"
    beside: ClassVar[str] = "on"
    measures: ClassVar[str] = "linear regression"
    single: ClassVar[bool] = False
    most_others: ClassVar[int] = MOST_PREDICTORS

    @property
    def terms(self) -> tuple[Term, ...]:
        places = range(len(self.others) + 1)
        products = ((i, j) for i in places for j in places if j >= max(i, 1))
        return ((), *((i,) for i in places), *products)

    def labels_in(self, release: Release) -> tuple[Label, ...]:
        names = (INTERCEPT, *self.others)
        if not self.key:
            return names
        found = (x if isinstance(x, tuple) else (x,) for x in MeasureQuery.labels_in(self, release))
        return tuple((*label, name) for label in found for name in names)

    @property
    def headings(self) -> tuple[str, ...]:
        return (*map(str, self.key), "term")

    def estimates(self, numbers: Sequence[float], widths: Sequence[float]) -> tuple[float, ...]:
        left, right = self._equations()
        matrix, vector = left @ np.array(numbers), right @ np.array(numbers)
        noise = np.abs(left) @ np.array(widths)
        if _safe(matrix, noise) is None:
            values, vectors = np.linalg.eigh(matrix)
            matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
            matrix += (float(noise.sum(axis=1).max()) + 1.0) * np.eye(len(matrix))
        return tuple(map(float, self._start + self._units @ np.linalg.solve(matrix, vector)))

    def intervals(self, drawn: Drawn) -> tuple[Interval, ...]:
        """With A′ and b′ the drawn equations, A and b the true ones, A′ = A + H and b′ = b + η,
        the error of g·β is a(η − Hβ) − aH(β′ − β) for the row a = gA⁻¹.

        The first is a combination of the noises with weights that no noise changes, and its tail is
        exact. Everything else is small, and bounded by where all noises together are.
        """
        left, right = self._equations()
        level, numbers = drawn.rough(len(self.terms) + len(left)), np.array(drawn.numbers)
        rows, moved = drawn.most_rows(level), np.array(drawn.moved)
        noises = zip(drawn.totals.noises, drawn.grains, strict=True)
        box = np.array([n.half_width(level) / grain for n, grain in noises]) + rows * moved
        matrix, noise = left @ numbers, np.abs(left) @ box
        inverse = _safe(matrix, noise)
        if inverse is None:
            return self._widest
        size, one = np.abs(inverse), np.eye(len(matrix))
        beta = inverse @ (right @ numbers)
        residual = right - np.einsum("kli,l->ki", left, beta)
        series = np.linalg.inv(one - noise @ size)

        def wide(units: Floats, off: Floats, confidence: float) -> float:
            """How far this combination of the coefficients may be off, if they are off by `off`."""
            row = units @ inverse
            far = np.abs(row) @ noise @ size @ series
            most = np.abs(row) + far
            weights = np.abs(row @ residual) + far @ np.abs(residual)
            weights += np.einsum("k,kli,l->i", most, np.abs(left), off)
            first = drawn.half_width(weights.tolist(), confidence)
            return float(first + rows * weights @ moved + most @ noise @ off)

        known = np.abs(right) @ box + noise @ np.abs(beta)
        off = np.linalg.solve(one - size @ noise, size @ known)
        off = np.minimum(off, [wide(unit, off, level) for unit in one])
        intervals = []
        for start, units in zip(self._start, self._units, strict=True):
            middle, width = float(start + units @ beta), wide(units, off, 1 - drawn.missed)
            intervals.append((middle - width, middle + width))
        return tuple(intervals)

    def _equations(self) -> tuple[Floats, Floats]:
        """How the matrix XᵀX and the vector Xᵀy depend on the totals, for columns from −1 to 1."""
        terms, reaches = self.terms, [float(scale.reach) for scale in self.scales]
        size = len(self.others) + 1
        left, right = np.zeros((size, size, len(terms))), np.zeros((size, len(terms)))
        left[0, 0, 0] = 1.0
        for place, term in enumerate(terms[1:], start=1):
            product = float(np.prod([reaches[i] for i in term]))
            if term[0] == 0:
                right[term[-1] if len(term) == 2 else 0, place] = 1 / product
            elif len(set(term)) < len(term):
                left[term[0], term[0], [0, place]] = 0.5, 0.5 / product
            else:
                i, j = (0, *term)[-2:]
                left[i, j, place] = left[j, i, place] = 1 / product
        return left, right

    @property
    def _units(self) -> Floats:
        """Intercept and coefficients in the units of the columns, from those of −1 to 1."""
        ranges = np.array([scale.reach * scale.half for scale in self.scales])
        slopes = ranges[0] / ranges[1:]
        units = np.diag([ranges[0], *slopes])
        units[0, 1:] = [-slope * s.middle for slope, s in zip(slopes, self.scales[1:], strict=True)]
        return units

    @property
    def _start(self) -> Floats:
        """What is added to them."""
        return np.array([self.scales[0].middle, *(0.0 for _ in self.others)])

    @property
    def _widest(self) -> tuple[Interval, ...]:
        """As if everything happened within one step of a column."""
        first, *others = self.scales
        steepest = [first.reach * first.half / scale.half for scale in others]
        far = first.reach * first.half
        far += sum(s * abs(scale.middle) for s, scale in zip(steepest, others, strict=True))
        return (first.middle - far, first.middle + far), *((-s, s) for s in steepest)

    def notes(self, intervals: Sequence[Interval] | None) -> tuple[str, ...]:
        """What to know about an answer with these intervals."""
        complete = None not in (self.lower, self.on_lower, self.per_key_limit)
        if not complete or self.automatic or not intervals or self._widest[1] not in intervals:
            return ()
        return (
            "Noise could make the equations singular: a ridge was added, and the widest intervals "
            "claim nothing.",
        )


def _safe(matrix: Floats, noise: Floats) -> Floats | None:
    """The inverse of a matrix, if it and all within this noise of it are positive definite."""
    if float(np.linalg.eigvalsh(matrix).min()) <= 0:
        return None
    inverse: Floats = np.linalg.inv(matrix).astype(np.float64)
    reach = float(np.abs(np.linalg.eigvals(np.abs(inverse) @ noise)).max())
    return inverse if reach < _SAFE else None
