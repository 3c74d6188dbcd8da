"""UnkLap: counts above a noisy threshold, for an unknown domain with limited access."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from flint import arb

from farthing.errors import require_count
from farthing.guarantees.kinds import PureDP
from farthing.mechanisms.access import top_counts
from farthing.mechanisms.accuracy import DEFAULT_CONFIDENCE, Accuracy, noise_accuracy
from farthing.mechanisms.discrete_laplace import DiscreteLaplace
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.parameters import check, laplace_scale
from farthing.mechanisms.randomness import open_source
from farthing.mechanisms.release import Items, Release, leak, ranked
from farthing.mechanisms.tails import least_reaching
from farthing.numerics.ball import in_balls, middle


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownLaplace:
    """Noisy counts of the top `candidates` that reach the noisy cutoff plus a threshold.

    Discrete Laplace noise of scale per_key_limit/ε on each count and on the cutoff, the largest
    count left out. contribution_limit coordinates of ε-DP (the cutoff moves only if a label
    outside the common candidates did), plus δ. Theorem 4 of docs/theory/mechanisms.md.
    """

    epsilon: float
    delta: float
    candidates: int
    contribution_limit: int
    per_key_limit: int
    adaptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check(self, "epsilon", "delta", "candidates", "contribution_limit", "per_key_limit")
        _ = self.noise  # the scale is checked when the mechanism is made

    @property
    def noise(self) -> DiscreteLaplace:
        """What is added to each count and to the cutoff."""
        return DiscreteLaplace(laplace_scale(self.epsilon, self.per_key_limit))

    @property
    def threshold(self) -> int:
        """How far above the noisy cutoff a noisy count must lie to be released."""
        limit = min(self.contribution_limit, self.candidates)
        return self.per_key_limit + _margin(self.noise, limit, self.delta)

    @property
    def guarantees(self) -> Items:
        """One coordinate per count that a unit can change, and δ once."""
        return (PureDP(self.epsilon), self.contribution_limit), leak(self.delta)

    def guarantees_for(self, release: Release) -> Items:  # noqa: ARG002 # the price is fixed
        """The same for every outcome."""
        return self.guarantees

    def run(self, histogram: Histogram) -> Release:
        """Labels with noisy counts, highest first."""
        top = top_counts(histogram, self.candidates)
        noise = self.noise.draw(top.counts.size + 1, open_source())
        noisy = top.counts + noise[1:]
        released = np.flatnonzero(noisy - (top.cutoff + noise[0]) >= self.threshold)
        return ranked(histogram, top.positions[released], noisy[released])

    @in_balls
    def accuracy(
        self, *, lead: int | None = None, confidence: float = DEFAULT_CONFIDENCE
    ) -> Accuracy:
        """Of one count; `miss_probability` is for a label `lead` above the cutoff."""
        miss = None
        if lead is not None:
            needed = self.threshold - require_count("lead", lead)
            miss = middle(1 - self.noise.difference_tail(needed))
        return noise_accuracy(self.noise, confidence, miss)


@lru_cache(maxsize=256)
@in_balls
def _margin(noise: DiscreteLaplace, labels: int, delta: float) -> int:
    """The smallest whole x with labels·Pr[Z − Z' ≥ x] ≤ δ: the exact tail of a difference.

    That is the chance that one of so many labels, each at most at the level of the cutoff
    plus per_key_limit, is released.
    """
    return least_reaching(noise.difference_tail, arb(delta) / labels, start=1)
