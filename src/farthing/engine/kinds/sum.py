"""The sum of a numeric column."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from farthing.engine.kinds.base import COUNT, Paid, Result, Rows
from farthing.engine.kinds.fields import (
    LARGEST_REPEATS,
    ColumnName,
    CountItem,
    NumberBound,
    Places,
    Repeats,
    Where,
    unscaled,
)
from farthing.engine.kinds.numbers import NumberQuery
from farthing.engine.sql.bounding import COUNT as NUMBER
from farthing.engine.sql.bounding import Bounded, clipped_sums
from farthing.errors import InvalidInput
from farthing.guarantees.kinds import PureDP
from farthing.mechanisms import ClippedSum, Expectation, Mechanism, Release, Repeated

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class SumQuery(NumberQuery):
    """The sum of a numeric column, to `places` decimals.

    The values of a unit are added up and the sum is moved to the nearest of `lower` and `upper`;
    the answer is about the sum of these.
    """

    column: ColumnName
    _: KW_ONLY
    lower: Annotated[NumberBound, "The smallest sum of one unit."]
    upper: Annotated[NumberBound, "The largest sum of one unit."]
    places: Places = 0
    where: Where = None
    count: CountItem = None
    repeats: Repeats = 1
    kind: ClassVar[str] = "sum"
    number: ClassVar[str] = "sum"
    single: ClassVar[bool] = True

    def check_fields(self) -> None:
        if self.bounds == (0, 0):
            raise InvalidInput("lower and upper must not both be 0: the sum would always be 0")

    def roles(self) -> dict[str, int]:
        return {COUNT: self.repeats}

    @property
    def most_repeats(self) -> int:
        return LARGEST_REPEATS

    def mechanism_for(self, paid: Paid) -> Mechanism[Any]:
        guarantee = paid[COUNT]
        assert isinstance(guarantee, PureDP)
        lower, upper = self.bounds
        once = ClippedSum(epsilon=guarantee.epsilon, lower=lower, upper=upper)
        return Repeated(once, self.repeats)

    def bounded(self, rows: Rows) -> Bounded:
        return clipped_sums(rows.table, rows.owner, self.worth(rows), *self.bounds)

    def data(self, rows: pa.Table) -> int:
        return int(rows.column(NUMBER)[0].as_py())

    @property
    def monotone(self) -> bool:
        return self.bounds[0] >= 0

    @property
    def decimal_places(self) -> int:
        return self.places

    def expect(self, mechanism: Mechanism[Any], confidence: float) -> Expectation:
        """In the units of the column."""
        expectation = mechanism.expect(confidence)
        counts = expectation.counts
        assert counts is not None
        width, error = (x / 10**self.places for x in (counts.half_width, counts.expected_error))
        return replace(expectation, counts=replace(counts, half_width=width, expected_error=error))

    def result(self, release: Release, expectation: Expectation) -> Result:
        assert release.counts is not None
        assert expectation.counts is not None
        sums = tuple(unscaled(total, self.places) for total in release.counts)
        return Result(release.labels, sums, expectation.counts.half_width)

    @property
    def counted(self) -> str | None:
        return self.contribution

    @property
    def contribution(self) -> str:
        return f"a sum from {self.lower} to {self.upper}"
