"""Questions whose answer is one count, of which a unit can add up to a limit: what they share."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from farthing.engine.kinds.base import COUNT, Paid, Query, Result
from farthing.engine.kinds.fields import LARGEST_REPEATS
from farthing.engine.kinds.paid_parameters import counts_with, suits_counts
from farthing.engine.sql.bounding import counts_of
from farthing.guarantees.kinds import Guarantee
from farthing.mechanisms import Expectation, Histogram, Mechanism, Release, Repeated

if TYPE_CHECKING:
    import pyarrow as pa


class SingleCountQuery(Query):
    """A question about one count, drawn `repeats` times. It never falls when a unit is added."""

    __slots__ = ()

    repeats: int

    #: What the count is called in the answer.
    label: ClassVar[str]
    single: ClassVar[bool] = True

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """How much one unit can add."""

    def roles(self) -> dict[str, int]:
        return {COUNT: self.repeats}

    def suits(self, role: str, guarantee: Guarantee) -> bool:
        return role == COUNT and suits_counts(guarantee, self.sensitivity)

    @property
    def most_repeats(self) -> int:
        return LARGEST_REPEATS

    def mechanism_for(self, paid: Paid) -> Mechanism[Any]:
        return Repeated(counts_with(paid, 1, self.sensitivity), self.repeats)

    def data(self, rows: pa.Table) -> Histogram:
        return Histogram([self.label], counts_of(rows))

    @property
    def monotone(self) -> bool:
        return True

    def result(self, release: Release, expectation: Expectation) -> Result:
        assert expectation.counts is not None
        return Result(release.labels, release.counts, expectation.counts.half_width)
