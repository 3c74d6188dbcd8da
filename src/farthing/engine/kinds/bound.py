"""A power of two that few values of a column lie beyond: how bounds are found automatically."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np

from farthing.engine.kinds import fields
from farthing.engine.kinds.base import SELECT, Paid, epsilon_of_selection
from farthing.engine.kinds.labels import KeyQuery
from farthing.engine.kinds.measures import MeasureQuery, places_of
from farthing.engine.show.captions import Names, Words
from farthing.engine.sql.bounding import Bounded, counts_of
from farthing.engine.sql.conditions import Rows
from farthing.engine.sql.measuring import (
    HEAVIEST,
    VALUE,
    WEIGHT,
    Grouped,
    weighed_sums,
    weighted_values,
)
from farthing.mechanisms import Expectation, Histogram, Mechanism, Quantile, Release
from farthing.mechanisms.combined import Groups
from farthing.schema import REAL, Schema
from farthing.wording import many

if TYPE_CHECKING:
    import pyarrow as pa

#: Values are moved to within ± this, in units of the last decimal place. A value has as many binary
#: digits as the power of two that is larger: from 0 to 53.
_LARGEST, _DIGITS = 1 << 52, 53
#: Decimal places of numbers that have none of their own: up to ± 4.5 billion can be told apart.
_PLACES = 6


@dataclass(frozen=True, slots=True)
class BoundQuery(MeasureQuery):
    """A power of two that only a few rows of a column lie beyond, whatever bounds it has.

    It is counted in units of the last decimal place. There is one answer for all labels of a key.
    With `sums` it bounds what a unit adds up to (for a label), and a few of these sums lie beyond.
    How many follows from the price, and the plan says it. One selection among 107 numbers.
    """

    _: KW_ONLY
    least: Annotated[bool, "The lower bound; else the upper one."] = False
    sums: Annotated[bool, "Of what each unit adds up to, not of its rows."] = False
    select: fields.SelectItem = None
    #: Without declared bounds too, so it takes none.
    lower: ClassVar[None] = None  # type: ignore[misc] # no field here
    upper: ClassVar[None] = None  # type: ignore[misc] # no field here
    kind: ClassVar[str] = "bound"
    number: ClassVar[str] = "bound"
    in_ranks: ClassVar[bool] = True
    single: ClassVar[bool] = True
    finds_labels: ClassVar[bool] = False
    pays: ClassVar[Mapping[str, int]] = {SELECT: 1}

    @property
    def weighs_rows(self) -> bool:  # type: ignore[override] # it depends
        return not self.sums

    @property
    def bounds(self) -> tuple[int, int]:
        return -_LARGEST, _LARGEST

    def completed(self, schema: Schema) -> Self:
        column = schema[self.column]
        places = places_of(column, 0, 1) if column.kind != REAL else _PLACES
        whole = self.changed(places=places if self.places is None else self.places)
        return KeyQuery.completed(whole, schema) if self.key else whole

    def roles(self) -> dict[str, int]:
        return dict(self.pays)

    @property
    def _most(self) -> int:
        """How many rows or sums of a unit count."""
        return self.labels_of_a_unit * (1 if self.sums else self.rows_of_a_unit)

    def measure(self, paid: Paid) -> Mechanism[Any]:
        return Quantile(
            probability=0 if self.least else 1,
            epsilon=epsilon_of_selection(paid),
            lower=-_DIGITS,
            upper=_DIGITS,
            contribution_limit=self._most,
            per_key_limit=WEIGHT,
        )

    def mechanism_for(self, paid: Paid) -> Mechanism[Any]:
        return self.measure(paid)

    def value_in(self, rows: Rows) -> Any:
        return self.worth(rows) if self.sums else MeasureQuery.value_in(self, rows)

    def measured(self, grouped: Grouped) -> Bounded:
        most = WEIGHT * self._most
        if self.sums:
            expression = weighed_sums(grouped, _LARGEST)
        else:
            expression = weighted_values(grouped, self.rows_of_a_unit, units=False)
        return Bounded(expression, None, most, total=most)

    def collected(self, rows: pa.Table) -> Groups[Histogram]:
        """What the values with so many binary digits weigh; below 0, digits are counted down."""
        values, weights = rows.column(VALUE).to_numpy(), counts_of(rows)
        signed = np.sign(values) * np.frexp(np.abs(values).astype(np.float64))[1]
        heavy = np.zeros(2 * _DIGITS + 1, dtype=object)
        np.add.at(heavy, signed.astype(np.int64) + _DIGITS, weights.astype(object))
        digits = np.arange(-_DIGITS, _DIGITS + 1)
        return Groups(
            {"": Histogram(digits, np.minimum(heavy, HEAVIEST))}, Histogram.without_rows()
        )

    def data(self, rows: pa.Table) -> Any:
        return self.collected(rows).of[""]

    def expect(self, mechanism: Mechanism[Any], confidence: float) -> Expectation:
        """In rows, or sums: the mechanism counts what they weigh."""
        expectation = mechanism.expect(confidence)
        assert expectation.selection is not None
        return replace(expectation, selection=expectation.selection.divided(WEIGHT))

    def labels_in(self, release: Release) -> tuple[int | float]:
        sign = -1 if self.least else 1
        digits = sign * int(release.labels[0])  # no value with so many is farther out
        size = 1 << digits if digits > 0 else -(1 << -digits - 1) if digits < 0 else 0
        return (fields.unscaled(sign * size, self.decimals),)

    def numbers_in(self, _: Release) -> None:
        return None

    @property
    def counted(self) -> str | None:
        rows = self.per_key_limit
        return "its sum" if self.sums else None if rows is None else f"at most {many(rows, 'row')}"

    def words(self, names: Names) -> Words:
        words = MeasureQuery.words(self, names)
        side = "below" if self.least else "above"
        what = f"a few sums of {names.column(self.column)}" if self.sums else "a few rows"
        which = "" if self.sums else f" of {names.column(self.column)}"
        return replace(words, subject=f"A power of two that {what}{which} lie {side}")

    @property
    def headings(self) -> tuple[str, ...]:
        return ("bound",)
