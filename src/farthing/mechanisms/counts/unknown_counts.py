"""Counts of an unknown domain: counts that reach a threshold are released.

A label that only one of two neighbours has, or looks at, must hardly ever be released. With whole
noise the threshold is the smallest that keeps the chance of that at δ, exactly. Truncated
noise spends δ on the ends of its support instead (`truncated_noise`), so none of δ is left
for the threshold, and the threshold is the smallest that such a label *never* reaches.

A noisy count that reached the threshold is likely to have positive noise. Given that n + Z ≥ T, the
released v = n + Z has the law of the noise cut off at T, and its confidence interval holds every
n ≥ 1 that this law does not reject on either side (docs/theory/mechanisms.md, section 11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from flint import arb

from farthing.errors import InvalidInput
from farthing.mechanisms.histogram import Histogram, TopCounts, positive_counts, ranked, top_counts
from farthing.mechanisms.noise.discrete import (
    Coordinate,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Noise,
    TruncatedGaussianNoise,
    at_least_one,
    coordinate_noise,
    require_joint,
    truncated_noise,
)
from farthing.mechanisms.noise.exact_sampling import Integers, system_bits
from farthing.mechanisms.noise.rounded_gaussian import RoundedGaussianNoise
from farthing.mechanisms.protocol import (
    DEFAULT_CONFIDENCE,
    Contribution,
    Errors,
    Expectation,
    Interval,
    Mechanism,
    Release,
    Uses,
    check,
    joint_level,
    leak_once,
    noise_accuracy,
)
from farthing.numerics.ball import in_balls
from farthing.numerics.search import last_whole, least_reaching


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsOfUnknown(Mechanism[Histogram]):
    """Noisy counts of which only large ones are released."""

    coordinate: Coordinate
    delta: float
    contribution_limit: int
    per_key_limit: int

    @property
    def assumes(self) -> Contribution:
        """The two limits."""
        return Contribution(self.contribution_limit, self.per_key_limit)

    @property
    def guarantees(self) -> Uses:
        """One coordinate per count that a unit can change, and δ once."""
        return (self.coordinate, self.contribution_limit), leak_once(self.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdedCounts(CountsOfUnknown):
    """Noisy counts of every label present, where they reach a fixed threshold.

    contribution_limit coordinates, plus δ. Theorem 5 of docs/theory/mechanisms.md; `truncated`,
    for Gaussian coordinates only, Theorem 6. With `in_all` a unit changes all counts together by at
    most per_key_limit: one coordinate, plus δ (Theorem 2b).
    """

    truncated: bool = False
    in_all: bool = False

    def __post_init__(self) -> None:
        check(self, "delta", "contribution_limit", "per_key_limit")
        if self.in_all:
            require_joint(self.coordinate)
        if self.in_all and self.truncated:
            raise InvalidInput("noise without tails is for counts that are limited one by one")
        _ = self.noise  # the scale is checked when the mechanism is made

    @property
    def assumes(self) -> Contribution:
        """The two limits, or one for all counts."""
        total = self.per_key_limit if self.in_all else None
        return Contribution(self.contribution_limit, self.per_key_limit, total=total)

    @property
    def guarantees(self) -> Uses:
        """As of all such counts; with a limit for all counts one coordinate."""
        coordinates = 1 if self.in_all else self.contribution_limit
        return (self.coordinate, coordinates), leak_once(self.delta)

    @property
    def noise(self) -> Noise:
        """What is added to each count."""
        noise = coordinate_noise(self.coordinate, self.per_key_limit)
        if not self.truncated:
            return noise
        if isinstance(noise, DiscreteLaplaceNoise):
            raise InvalidInput("truncated needs a Gaussian coordinate")
        return _truncated(self, noise)

    @property
    def threshold(self) -> int:
        """The smallest noisy count that is released."""
        left = 0.0 if self.truncated else self.delta
        return self.per_key_limit + _fixed_margin(self.noise, self.contribution_limit, left)

    def run(self, histogram: Histogram) -> Release:
        """Labels with noisy counts, highest first."""
        top = positive_counts(histogram)
        noisy = top.counts + self.noise.draw(top.counts.size, system_bits())
        return _reaching(histogram, top, noisy, self.threshold)

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """The error of one count, and the threshold."""
        return Expectation(noise_accuracy(self.noise, confidence), threshold=self.threshold)

    def errors(self, release: Release, confidence: float, *, together: bool = False) -> Errors:
        """Intervals given that a count was released (docs/theory/mechanisms.md, section 11).

        Given which labels were released, their noises are still independent.
        """
        among = release.among or (len(release.labels) if together else 1)
        level, counts = joint_level(confidence, among), release.counts or ()
        return intervals_after(self.noise, self.threshold, counts, level)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownCounts(CountsOfUnknown):
    """Noisy counts of the top `candidates`, where they reach the noisy cutoff plus a threshold.

    The cutoff, the largest count left out, gets noise of its own. contribution_limit
    coordinates (the cutoff moves only if a label outside the common candidates did), plus δ.
    Discrete Laplace noise for PureDP, Theorem 4 of docs/theory/mechanisms.md, whose proof trims
    probabilities that are within e^ε of each other; so Gaussian noise is truncated, Theorem 7.
    """

    candidates: int = field()  # a field, not the protocol's property as its default

    def __post_init__(self) -> None:
        check(self, "delta", "candidates", "contribution_limit", "per_key_limit")
        _ = self.noise  # the scale is checked when the mechanism is made

    @property
    def noise(self) -> DiscreteLaplaceNoise | TruncatedGaussianNoise:
        """What is added to each count and to the cutoff."""
        noise = coordinate_noise(self.coordinate, self.per_key_limit)
        if isinstance(noise, DiscreteLaplaceNoise):
            return noise
        return _truncated(self, noise)

    @property
    def threshold(self) -> int:
        """How far above the noisy cutoff a noisy count must lie to be released."""
        noise, labels = self.noise, min(self.contribution_limit, self.candidates)
        left = self.delta if isinstance(noise, DiscreteLaplaceNoise) else 0.0
        return self.per_key_limit + _noisy_margin(noise, labels, left)

    def run(self, histogram: Histogram) -> Release:
        """Labels with noisy counts, highest first."""
        top = top_counts(histogram, self.candidates)
        noise = self.noise.draw(top.counts.size + 1, system_bits())
        cutoff = top.cutoff + int(noise[0])
        return _reaching(histogram, top, top.counts + noise[1:], cutoff + self.threshold)

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """The error of each count, and the threshold above the noisy cutoff."""
        level = joint_level(confidence, self.candidates)
        counts = replace(noise_accuracy(self.noise, level), confidence=confidence)
        return Expectation(counts, above_cutoff=self.threshold)

    def errors(self, release: Release, confidence: float, *, together: bool = False) -> Errors:
        """The threshold is a noisy count too, so what a release says about one label depends on
        all of them. So the intervals of all candidates hold together, shown or not."""
        return self.noise.half_width(joint_level(confidence, self.candidates))


@lru_cache(maxsize=256)
@in_balls
def _fixed_margin(noise: Noise, labels: int, delta: float) -> int:
    """The smallest x ≥ 1 with 1 − (1 − Pr[Z ≥ x])^labels ≤ δ.

    That is the chance that one of `labels` labels, each at most at per_key_limit, is released.
    """
    return least_reaching(lambda x: at_least_one(noise.tail(x), labels), arb(delta), start=1)


@lru_cache(maxsize=256)
@in_balls
def _noisy_margin(
    noise: DiscreteLaplaceNoise | TruncatedGaussianNoise, labels: int, delta: float
) -> int:
    """The smallest x ≥ 1 with labels·Pr[Z − Z' ≥ x] ≤ δ.

    That is the chance that one of `labels` labels, each at most at the level of the cutoff
    plus per_key_limit, is released.
    """
    return least_reaching(noise.difference_tail, arb(delta) / labels, start=1)


def _reaching(histogram: Histogram, top: TopCounts, noisy: Integers, least: int) -> Release:
    released = np.flatnonzero(noisy >= least)
    return ranked(histogram, top.positions[released], noisy[released])


def _truncated(
    mechanism: ThresholdedCounts | UnknownCounts,
    whole: DiscreteGaussianNoise | RoundedGaussianNoise,
) -> TruncatedGaussianNoise:
    return truncated_noise(
        whole,
        per_key_limit=mechanism.per_key_limit,
        contribution_limit=mechanism.contribution_limit,
        delta=mechanism.delta,
    )


def intervals_after(
    noise: Noise, threshold: int, counts: Sequence[int | float], confidence: float
) -> tuple[Interval, ...]:
    """One interval for each released count, all of which reached the threshold."""
    whole = [int(count) for count in counts]
    offsets = (_offsets(noise, threshold, count - threshold, confidence) for count in whole)
    return tuple((v - down, v + up) for v, (down, up) in zip(whole, offsets, strict=True))


@lru_cache(maxsize=4096)
def _offsets(noise: Noise, threshold: int, above: int, confidence: float) -> tuple[int, int]:
    """How far the interval of a count that is `above` the threshold reaches down and up.

    The further above the threshold, the shorter the interval is downwards and the longer upwards;
    upwards it is never longer than without a threshold. So far above the threshold the lower offset
    is that of a nearer count and the upper one that without a threshold. Neither is too short, and
    many counts share them.
    """
    beyond = _without_threshold(noise, confidence)
    far = 4 * beyond + 4
    if above > far:
        down, _ = _offsets(noise, threshold, far, confidence)
        return min(down, threshold + above - 1), beyond
    return _searched(noise, threshold, above, confidence)


@lru_cache(maxsize=64)
@in_balls
def _without_threshold(noise: Noise, confidence: float) -> int:
    """The largest w with Pr[Z ≥ w] ≥ (1 − confidence)/2, or one more."""
    return least_reaching(noise.tail, (1 - arb(confidence)) / 2, start=0)


@in_balls
def _searched(noise: Noise, threshold: int, above: int, confidence: float) -> tuple[int, int]:
    """The exact ends; numbers that ball arithmetic cannot decide belong to the interval.

    With n = v − down the upper tail of v is tail(down)/tail(down − above), with n = v + up the
    lower one is 1 − tail(1 − up)/tail(−above − up); n beyond where tail is 0 is never released.
    """
    miss = (1 - arb(confidence)) / 2

    def low_enough(down: int) -> bool:
        reached = noise.tail(down - above)
        return reached != 0 and not noise.tail(down) < miss * reached

    def high_enough(up: int) -> bool:
        reached = noise.tail(-above - up)
        return not reached - noise.tail(1 - up) < miss * reached

    furthest = threshold + above  # n = 0, which no released label has
    down = last_whole(low_enough, 0, furthest)
    step = 1
    while high_enough(step):
        step *= 2
    return down, last_whole(high_enough, 0, step)
