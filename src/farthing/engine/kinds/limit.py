"""Which contribution limit makes the total error of all numbers least."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from farthing.engine.kinds import fields
from farthing.engine.kinds.base import SELECT, Paid, epsilon_of_selection
from farthing.engine.kinds.labels import KeyQuery
from farthing.engine.show.captions import Names, Words
from farthing.engine.sql.bounding import (
    Bounded,
    labels_and_counts,
    labels_of_units,
    shape_of,
    sizes_of,
)
from farthing.engine.sql.conditions import Rows
from farthing.errors import InvalidInput
from farthing.mechanisms import Expectation, Histogram, LeastTotal, Mechanism
from farthing.wording import many

if TYPE_CHECKING:
    import pyarrow as pa

#: A label of an unknown domain is off by at most its count, and counted as so many times the noise.
_TIMES = 3
#: Totals are whole numbers of this part of a pair, so that rounding adds next to nothing.
PARTS = 1000
#: Errors below the first count as none. Totals stay below the second, where floats are exact to a
#: quarter of a part: whatever noise a question names, a unit moves them by no more than is paid.
_SMALLEST_ERROR, _LARGEST_TOTAL = 1e-6, 1 << 40


@dataclass(frozen=True, slots=True)
class LimitQuery(KeyQuery):
    """Which of some limits on the labels of a unit makes the total error of the counts least.

    `noise` is the expected error of one count at each of the `limits`. The total error at a limit
    is what it leaves out of all units and what noise adds to `labels` numbers (those of
    `categories`, if they are given); without either, to each label no more than its count.
    One draw of a selection (docs/theory/mechanisms.md, section 13).
    """

    by: fields.By
    _: KW_ONLY
    limits: Annotated[tuple[int, ...], "A limit that may be chosen; repeat for several."]
    noise: Annotated[tuple[float, ...], "The expected error of a count at each limit."]
    labels: Annotated[int | None, "How many numbers have that error."] = None
    categories: fields.Categories = None
    select: fields.SelectItem = None
    kind: ClassVar[str] = "limit"
    about_limits: ClassVar[bool] = True
    number: ClassVar[str] = "limit"
    single: ClassVar[bool] = True
    in_ranks: ClassVar[bool] = True
    ranks: ClassVar[str] = "pairs of the least total error"

    def check_fields(self) -> None:
        KeyQuery.check_fields(self)
        if not self.limits or list(self.limits) != sorted(set(self.limits)):
            raise InvalidInput("limits must be whole numbers that grow, at least one of them")
        if len(self.noise) != len(self.limits):
            raise InvalidInput("noise must have one number for each of the limits")
        if max(self.noise) * (self.numbers or 1) > _LARGEST_TOTAL:
            raise InvalidInput(
                f"noise times the number of labels must be at most {_LARGEST_TOTAL}, got more"
            )

    @property
    def numbers(self) -> int | None:
        """How many counts there are, where that is known."""
        return self.size if self.labels is None else self.labels

    @property
    def score_range(self) -> int:
        """Theorem 10, in thousandths of a pair: what one unit can move the totals apart."""
        most = self.limits[-1]
        return PARTS * most if self.numbers is None else PARTS * (most - 1) + 2

    def roles(self) -> dict[str, int]:
        return {SELECT: 1}

    def mechanism_for(self, paid: Paid) -> Mechanism[Any]:
        return LeastTotal(epsilon=epsilon_of_selection(paid), score_range=self.score_range)

    def bounded(self, rows: Rows) -> Bounded:
        """How many units have how many labels; of an unknown domain also the sizes of labels."""
        rows, keys = self.keyed(rows)
        most = self.limits[-1]
        assert rows.owner is not None, "refused where each row is a unit"
        shape = shape_of(labels_of_units(rows.table, rows.owner, keys, most))
        if self.numbers is None:
            counts = rows.histogram(keys, most).expression
            shape = shape.union(sizes_of(counts, max(self._caps)))
        return Bounded(shape, None, self.score_range)

    @property
    def _caps(self) -> tuple[int, ...]:
        """The most that a label of an unknown domain counts at each limit. It never falls."""
        whole = (math.ceil(_TIMES * error) for error in self.noise)
        return tuple(accumulate(whole, max))

    def data(self, rows: pa.Table) -> Histogram:
        """The total error at each limit, in thousandths of a pair."""
        texts, counts = labels_and_counts(rows)
        places = np.array([int(text[1:]) for text in texts], dtype=np.int64)
        of_units = np.array([text[0] == "u" for text in texts], dtype=bool)
        held, units = places[of_units], counts[of_units]
        lost = [int((np.maximum(held - limit, 0) * units).sum()) for limit in self.limits]
        if self.numbers is None:
            sizes, labels = places[~of_units], counts[~of_units]
            noise = [int((np.minimum(sizes, cap) * labels).sum()) for cap in self._caps]
            totals = [PARTS * (bias + error) for bias, error in zip(lost, noise, strict=True)]
        else:
            pairs = zip(lost, self.noise, strict=True)
            totals = [total_error(bias, error, self.numbers) for bias, error in pairs]
        return Histogram(list(self.limits), totals)

    def expect(self, mechanism: Mechanism[Any], confidence: float) -> Expectation:
        """In pairs."""
        expected = mechanism.expect(confidence, domain_size=len(self.limits))
        assert expected.selection is not None
        return replace(expected, selection=expected.selection.divided(PARTS))

    def words(self, names: Names) -> Words:
        unit, labels, most = names.unit.each, names.labels(self.key), self.limits[-1]
        return Words(
            subject=f"The limit on {labels.several} for each {unit} with about the least total "
            "error",
            limit=f"at most {labels.many(most)} of each {unit} are looked at",
            listed=self.listed(names),
            contribution=f"the first {many(most, 'label')}",
            described=self.kind,
        )

    @property
    def headings(self) -> tuple[str, ...]:
        return ("limit",)


def total_error(lost: int, error: float, numbers: int) -> int:
    """The total error of `numbers` counts, in parts, if `lost` is missing from them evenly.

    numbers·E|N(lost/numbers, s²)| with E|N(0, s²)| = error, rounded up: bias hides in noise while
    it is the smaller of the two. It grows with `lost`, by at most 1 pair for 1, and has a value
    for every number of pairs.
    """
    lost = min(lost, _LARGEST_TOTAL)
    if error < _SMALLEST_ERROR:
        return PARTS * lost
    deviation, bias = error * math.sqrt(math.pi / 2), lost / numbers
    ratio = bias / deviation
    folded = error * math.exp(-(ratio**2) / 2) + bias * math.erf(ratio / math.sqrt(2))
    return math.ceil(PARTS * numbers * folded)
