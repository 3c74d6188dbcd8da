"""Counts of known labels and of labels that were selected first, and sums of whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Generic

import numpy as np
import numpy.typing as npt

from farthing.errors import InvalidInput, require_count
from farthing.guarantees.kinds import PureDP
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.noise.discrete import (
    Coordinate,
    Noise,
    coordinate_noise,
    require_joint,
)
from farthing.mechanisms.noise.exact_sampling import Integers, system_bits
from farthing.mechanisms.protocol import (
    DEFAULT_CONFIDENCE,
    Around,
    Contribution,
    Data,
    Errors,
    Expectation,
    Interval,
    Mechanism,
    Release,
    Repeatable,
    Uses,
    check,
    noise_accuracy,
    summed_uses,
)
from farthing.mechanisms.selection.gumbel import KnownGumbel, UnknownGumbel

_LARGEST_BOUND = 1 << 62
#: Sums of more draws than this are bounded one by one: the exact law of Laplace sums is long.
_MOST_DRAWS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCounts(Repeatable[Histogram]):
    """Every count of the domain plus the noise that its guarantee asks for.

    A unit changes at most `contribution_limit` counts, each by at most per_key_limit whole
    steps: that many coordinates. One step changes a probability of discrete Laplace noise by a
    factor of at most e^(ε/per_key_limit); with per_key_limit 1 a coordinate is exactly
    randomized response, so nothing better than PureDP holds, in particular not what the
    continuous Laplace mechanism promises. Nor is the continuous Gaussian profile claimed: the
    discrete one exceeds it at some ε (Theorems 1 and 2 of docs/theory/mechanisms.md).

    With `in_all` a unit changes all counts together by at most per_key_limit: one coordinate
    (Theorem 2b there).
    """

    coordinate: Coordinate
    contribution_limit: int
    per_key_limit: int
    in_all: bool = False

    def __post_init__(self) -> None:
        check(self, "contribution_limit", "per_key_limit")
        if self.in_all:
            require_joint(self.coordinate)
        _ = self.noise  # the scale is checked when the mechanism is made

    @property
    def noise(self) -> Noise:
        """What is added to each count."""
        return coordinate_noise(self.coordinate, self.per_key_limit)

    @property
    def assumes(self) -> Contribution:
        """The two limits."""
        total = self.per_key_limit if self.in_all else None
        return Contribution(self.contribution_limit, self.per_key_limit, total=total)

    @property
    def guarantees(self) -> Uses:
        """One coordinate for each count that a unit can change."""
        return self.recount(None)

    def guarantees_for(self, release: Release) -> Uses:
        """No more coordinates than the domain has labels."""
        return self.recount(len(release.labels))

    def recount(self, labels: int | None) -> Uses:
        """The price of counting this many labels (None: any number) once more."""
        limit = 1 if self.in_all else self.contribution_limit
        return ((self.coordinate, limit if labels is None else min(limit, labels)),)

    def mean(self, histogram: Histogram, times: int) -> Release:
        """The mean of `times` noisy counts of each label, in the order of the domain.

        Counts may be negative.
        """
        noise, source = self.noise, system_bits()
        draws = [histogram.counts + noise.draw(len(histogram), source) for _ in range(times)]
        return Release(tuple(histogram.labels.tolist()), exact_means(draws))


def exact_means(draws: Sequence[Integers]) -> tuple[int | float, ...]:
    """The mean of each column as the nearest float; a single draw stays as it is."""
    if len(draws) == 1:
        return tuple(draws[0].tolist())
    columns = zip(*(draw.tolist() for draw in draws), strict=True)
    return tuple(float(Fraction(sum(column), len(draws))) for column in columns)


def ordered_counts(noisy: Sequence[float] | npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
    """The x_1 ≥ x_2 ≥ … ≥ x_k ≥ 0 that is nearest to `noisy` in least squares. O(k).

    Pool adjacent violators, then replace negative values by 0. *The second step is right*: let y
    be the nearest decreasing sequence. Replacing values below 0 by 0 keeps it decreasing, and
    the optimality conditions of y (on each constant block the residuals sum to 0 and their
    partial sums from the left do not exceed 0) turn into those of the problem with x_k ≥ 0,
    where the blocks at 0 may have a negative sum. Post-processing of a release: free.
    """
    values = np.asarray(noisy, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not bool(np.isfinite(values).all()):
        raise InvalidInput(
            "noisy counts must be a non-empty sequence of finite numbers, "
            f"got {int(np.isfinite(values).sum())} finite ones in shape {values.shape}"
        )
    sums: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        total, size = value, 1
        while sums and sums[-1] * size < total * sizes[-1]:
            total += sums.pop()
            size += sizes.pop()
        sums.append(total)
        sizes.append(size)
    means = np.array(sums) / np.array(sizes)
    return np.repeat(np.maximum(means, 0.0), sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKWithCounts(Repeatable[Histogram]):
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
            raise InvalidInput("use_order needs Gaussian counts: CountMLE is for Gaussian noise")
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
    def added(self) -> tuple[Noise, int] | None:
        """The labels were chosen first. CountMLE moves all counts together."""
        return None if self.use_order else (self.noise, 1)

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
        """The price of counting this many of the labels (None: all k) once more."""
        return self.counting.recount(self.selection.k if labels is None else labels)

    def mean(self, histogram: Histogram, times: int) -> Release:
        """Labels discovered once, with the mean of `times` noisy counts for each."""
        chosen, stopped = self.selection.choose(histogram)
        if not chosen:
            return Release((), (), stopped)
        selected = Histogram(histogram.labels[chosen], histogram.counts[chosen])
        release = self.counting.mean(selected, times)
        noisy = release.counts or ()
        if not self.use_order:
            return Release(release.labels, noisy, stopped)
        counts = tuple(ordered_counts(noisy).tolist())
        moved = max(abs(new - old) for new, old in zip(counts, noisy, strict=True))
        return Release(release.labels, counts, stopped, moved)

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """That of the selection, and the error of one noisy count.

        CountMLE makes the total squared error of the counts smaller where the discovered order
        is right.
        """
        expected = self.selection.expect(confidence, domain_size=domain_size)
        return replace(expected, counts=self.counting.expect(confidence).counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedSum(Repeatable[int]):
    """The sum plus the noise that its guarantee asks for, as one count.

    Adding a unit adds a whole number between `lower` and `upper`, so it moves the sum by at most
    the larger bound (docs/theory/mechanisms.md, Theorems 1, 2 and 2a, with τ that bound).
    """

    coordinate: Coordinate
    lower: int
    upper: int

    def __post_init__(self) -> None:
        lower = require_count("lower", self.lower, at_least=-_LARGEST_BOUND)
        upper = require_count("upper", self.upper, at_least=lower)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        if lower == upper == 0:
            raise InvalidInput("lower and upper must not both be 0")
        _ = self.noise  # the scale is checked when the mechanism is made

    @property
    def noise(self) -> Noise:
        """What is added."""
        return coordinate_noise(self.coordinate, self.assumes.per_key_limit)

    @property
    def assumes(self) -> Contribution:
        """One number, changed by at most the larger bound."""
        return Contribution(1, max(abs(self.lower), abs(self.upper)))

    @property
    def guarantees(self) -> Uses:
        """One coordinate."""
        return ((self.coordinate, 1),)

    def recount(self, labels: int | None) -> Uses:
        """The price of drawing the sum once more."""
        return self.guarantees

    def mean(self, total: int, times: int) -> Release:
        """The mean of `times` noisy sums, as the nearest float; a single one stays whole.

        In Python's whole numbers: nothing overflows.
        """
        drawn = times * total + sum(self.noise.draw(times, system_bits()).tolist())
        return Release(("sum",), (drawn if times == 1 else float(Fraction(drawn, times)),))


@dataclass(frozen=True, slots=True)
class Repeated(Around[Data], Generic[Data]):
    """The mean of `times` independent draws of each number, for labels that are found once.

    It costs `times` draws of the numbers and everything else once; taking the mean is free.
    """

    mechanism: Repeatable[Data]
    times: int

    def __post_init__(self) -> None:
        require_count("times", self.times, at_least=1)

    @property
    def guarantees(self) -> Uses:
        """One draw of everything, and further draws of the numbers."""
        return self._with_recounts(self.mechanism.guarantees, None)

    def guarantees_for(self, release: Release) -> Uses:
        """The same for the labels that were found."""
        return self._with_recounts(self.mechanism.guarantees_for(release), len(release.labels))

    def _with_recounts(self, first: Uses, labels: int | None) -> Uses:
        again = self.mechanism.recount(labels)
        return summed_uses(*first, *((guarantee, n * (self.times - 1)) for guarantee, n in again))

    def run(self, data: Data) -> Release:
        """Labels found once, with means."""
        return self.mechanism.mean(data, self.times)

    def errors(self, release: Release, confidence: float, *, together: bool = False) -> Errors:
        """Those of the means."""
        if release.counts is None:
            return None
        errors = self.mechanism.errors_of_mean
        return errors(release, confidence, self.times, together=together)

    @property
    def added(self) -> tuple[Noise, int] | None:
        return None if self.mechanism.added is None else (self.mechanism.noise, self.times)

    def total(self, release: Release, confidence: float) -> Interval | None:
        """Independent noise partly cancels: the sum is a multiple of the mean of all draws."""
        counts, draws = release.counts or (), self.times * len(release.labels)
        if not counts or draws > _MOST_DRAWS:
            return Mechanism.total(self, release, confidence)
        wide = len(counts) * (self.mechanism.noise.half_width(confidence, draws) + release.moved)
        return sum(counts) - wide, sum(counts) + wide

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """That of the mechanism, with the error of the means."""
        expected = self.mechanism.expect(confidence, domain_size=domain_size)
        counts = noise_accuracy(self.mechanism.noise, confidence, self.times)
        return replace(expected, counts=counts)
