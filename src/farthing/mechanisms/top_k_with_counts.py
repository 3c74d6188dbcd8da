"""Discover labels first, then buy their counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from farthing.errors import InvalidInput, require_count
from farthing.guarantees.kinds import Guarantee
from farthing.mechanisms.accuracy import DEFAULT_CONFIDENCE, Accuracy
from farthing.mechanisms.counts import ordered_counts
from farthing.mechanisms.gumbel import KnownGumbel, UnknownGumbel
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.known import KnownGaussian, KnownLaplace
from farthing.mechanisms.release import Items, Release, items


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKWithCounts:
    """Gumbel discovery, then a noisy count for each label that was found.

    `counting` says which noise and how many of the counts a unit can change: a list of j labels
    costs min(j, contribution_limit) coordinates. With `use_order` the released counts are
    the CountMLE of the noisy ones in the discovered order, which costs nothing more.
    """

    selection: KnownGumbel | UnknownGumbel
    counting: KnownLaplace | KnownGaussian
    use_order: bool = False
    adaptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.use_order and not isinstance(self.counting, KnownGaussian):
            raise InvalidInput("use_order needs Gaussian counts: CountMLE is their likeliest value")
        if self.selection.per_key_limit != self.counting.per_key_limit:
            raise InvalidInput(
                "selection and counting must have the same per_key_limit, got "
                f"{self.selection.per_key_limit} and {self.counting.per_key_limit}"
            )

    @property
    def guarantees(self) -> Items:
        """Every draw and every count."""
        return items(*self.selection.guarantees, self._counts(self.selection.k))

    def guarantees_for(self, release: Release) -> Items:
        """The draws that were made and the counts of the labels that were found."""
        drawn = self.selection.guarantees_for(release)
        return items(*drawn, self._counts(len(release.labels)))

    def _counts(self, found: int) -> tuple[Guarantee, int]:
        return self.counting.coordinate, min(found, self.counting.contribution_limit)

    def run(self, histogram: Histogram) -> Release:
        """Labels in the discovered order, with counts."""
        chosen, stopped = self.selection.choose(histogram)
        if not chosen:
            return Release((), (), stopped)
        found = Histogram(histogram.labels[chosen], histogram.counts[chosen])
        release = self.counting.run(found)
        noisy = release.counts or ()
        if not self.use_order:
            return Release(release.labels, noisy, stopped)
        counts = tuple(ordered_counts(noisy).tolist())
        moved = max(abs(new - old) for new, old in zip(counts, noisy, strict=True))
        return Release(release.labels, counts, stopped, moved)

    def accuracy(
        self,
        *,
        domain_size: int | None = None,
        lead: float = 0,
        gap: float = 0,
        confidence: float = DEFAULT_CONFIDENCE,
    ) -> Accuracy:
        """The error of one count, and the chance of missing a label as the selection states it.

        `domain_size` is needed for a known domain, `lead` for an unknown one. The error is that
        of the noisy counts; CountMLE makes their total squared error smaller where the
        discovered order is right.
        """
        if isinstance(self.selection, UnknownGumbel):
            found = self.selection.accuracy(lead=lead, gap=gap, confidence=confidence)
        else:
            size = require_count("domain_size", domain_size, at_least=1)
            found = self.selection.accuracy(domain_size=size, gap=gap, confidence=confidence)
        return replace(
            self.counting.accuracy(confidence=confidence),
            miss_probability=found.miss_probability,
        )
