"""One mechanism for each label of a key, on the rows of that label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from farthing.errors import InvalidInput, require_count
from farthing.mechanisms.accuracy import DEFAULT_CONFIDENCE, Expectation
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.protocol import Contribution, Mechanism, Uses, summed_uses
from farthing.mechanisms.release import Release
from farthing.mechanisms.unknown_counts import ThresholdedCounts

Data = TypeVar("Data")


@dataclass(frozen=True, slots=True)
class Groups(Generic[Data]):
    """The data of each label that has any, what a label without any has, and how many units each
    label has where the labels are to be found."""

    of: Mapping[Any, Data]
    without: Data
    counts: Histogram | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PerLabel(Mechanism[Groups[Data]], Generic[Data]):
    """`measure` once for each label: of the `domain`, or of what `finding` releases.

    A unit has at most `contribution_limit` labels and nothing to do with the data of the others, so
    neighbours differ in the inputs of that many independent runs, whatever their number
    (docs/theory/mechanisms.md, Theorem 11). Finding is paid for on top: what it releases is known
    when the measuring begins.
    """

    measure: Mechanism[Data]
    contribution_limit: int
    domain: tuple[Any, ...] | None = None
    finding: ThresholdedCounts | None = None

    def __post_init__(self) -> None:
        require_count("contribution_limit", self.contribution_limit, at_least=1)
        if (self.domain is None) == (self.finding is None):
            raise InvalidInput("the labels are either known or found")
        if self.domain is not None and len(set(self.domain)) != len(self.domain):
            raise InvalidInput("the labels must be different: each is paid for once")
        if self.finding is not None:
            found = self.finding.assumes.contribution_limit
            if found is None or found < self.contribution_limit:
                raise InvalidInput("the labels of a unit must be limited as in what finds them")

    @property
    def assumes(self) -> Contribution:
        """What the measure assumes of a unit, in at most so many labels."""
        one = self.measure.assumes
        counted = () if self.finding is None else (self.finding.assumes.per_key_limit,)
        others = (*one.others, *counted)
        return replace(one, contribution_limit=self.contribution_limit, others=others, total=None)

    @property
    def guarantees(self) -> Uses:
        """The measure once for each label of a unit, and the finding."""
        return self._uses(self.contribution_limit, None)

    def guarantees_for(self, release: Release) -> Uses:
        """No more than there are labels."""
        return self._uses(min(self.contribution_limit, len(release.labels)), release)

    def _uses(self, labels: int, release: Release | None) -> Uses:
        measured = ((guarantee, times * labels) for guarantee, times in self.measure.guarantees)
        if self.finding is None:
            return summed_uses(*measured)
        found = self.finding
        return summed_uses(
            *(found.guarantees if release is None else found.guarantees_for(release)), *measured
        )

    def run(self, groups: Groups[Data]) -> Release:
        """What was measured of each label, in the order of the domain or as found."""
        labels = self.domain
        if labels is None:
            assert self.finding is not None
            assert groups.counts is not None
            labels = self.finding.run(groups.counts).labels
        parts = tuple(self.measure.run(groups.of.get(label, groups.without)) for label in labels)
        return Release(labels, parts=parts)

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """That of the measure, and from where on labels are found."""
        one = self.measure.expect(confidence)
        if self.finding is None:
            return one
        found = self.finding.expect(confidence)
        return replace(one, found_from=found.found_from, threshold=found.threshold)
