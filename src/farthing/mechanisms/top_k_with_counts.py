"""Discover labels first, then buy their counts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import PureDP
from farthing.mechanisms.accuracy import DEFAULT_CONFIDENCE, Expectation, Interval
from farthing.mechanisms.count_mle import ordered_counts
from farthing.mechanisms.gumbel import KnownGumbel, UnknownGumbel
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.known_counts import KnownCounts
from farthing.mechanisms.noise import Noise
from farthing.mechanisms.protocol import Contribution, Mechanism, Uses, summed_uses
from farthing.mechanisms.release import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKWithCounts(Mechanism[Histogram]):
    """Gumbel discovery, then a noisy count for each label that was found.

    `counting` says which noise and how many of the counts a unit can change: a list of j labels
    costs min(j, contribution_limit) coordinates. With `use_order` the released counts are
    the CountMLE of the noisy ones in the discovered order, which costs nothing more.
    """

    selection: KnownGumbel | UnknownGumbel
    counting: KnownCounts
    use_order: bool = False

    def __post_init__(self) -> None:
        if self.use_order and isinstance(self.counting.coordinate, PureDP):
            raise InvalidInput("use_order needs Gaussian counts: CountMLE is their likeliest value")
        if self.selection.per_key_limit != self.counting.per_key_limit:
            raise InvalidInput(
                "selection and counting must have the same per_key_limit, got "
                f"{self.selection.per_key_limit} and {self.counting.per_key_limit}"
            )

    @property
    def noise(self) -> Noise:
        """What is added to each count."""
        return self.counting.noise

    @property
    def assumes(self) -> Contribution:
        """What the selection assumes; the counts too if they pay for fewer than all k labels."""
        assumed, limit = self.selection.assumes, self.counting.contribution_limit
        if limit >= self.selection.k:
            return assumed
        limits = (limit, assumed.contribution_limit)
        return replace(assumed, contribution_limit=min(n for n in limits if n is not None))

    @property
    def candidates(self) -> int | None:
        """Those of the selection."""
        return self.selection.candidates

    @property
    def guarantees(self) -> Uses:
        """Every draw and every count."""
        return summed_uses(*self.selection.guarantees, *self.recount(None))

    def guarantees_for(self, release: Release) -> Uses:
        """The draws that were made and the counts of the labels that were found."""
        drawn = self.selection.guarantees_for(release)
        return summed_uses(*drawn, *self.recount(len(release.labels)))

    def recount(self, labels: int | None) -> Uses:
        """The price of counting so many of the labels (None: all k) once more."""
        return self.counting.recount(self.selection.k if labels is None else labels)

    def run(self, histogram: Histogram) -> Release:
        """Labels in the discovered order, with counts."""
        return self.mean(histogram, 1)

    def mean(self, histogram: Histogram, times: int) -> Release:
        """Labels discovered once, with the mean of so many noisy counts for each."""
        chosen, stopped = self.selection.choose(histogram)
        if not chosen:
            return Release((), (), stopped)
        found = Histogram(histogram.labels[chosen], histogram.counts[chosen])
        release = self.counting.mean(found, times)
        noisy = release.counts or ()
        if not self.use_order:
            return Release(release.labels, noisy, stopped)
        counts = tuple(ordered_counts(noisy).tolist())
        moved = max(abs(new - old) for new, old in zip(counts, noisy, strict=True))
        return Release(release.labels, counts, stopped, moved)

    def errors(
        self, release: Release, confidence: float, *, together: bool = False
    ) -> float | tuple[Interval, ...] | None:
        """The noise of the counts has no part in which labels were found."""
        return self.counting.errors(release, confidence, together=together)

    def errors_of_mean(
        self, release: Release, confidence: float, times: int, *, together: bool
    ) -> float:
        """The same for the mean of so many draws."""
        return self.counting.errors_of_mean(release, confidence, times, together=together)

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """That of the selection, and the error of one noisy count.

        CountMLE makes the total squared error of the counts smaller where the discovered order
        is right.
        """
        found = self.selection.expect(confidence, domain_size=domain_size)
        return replace(found, counts=self.counting.expect(confidence).counts)
