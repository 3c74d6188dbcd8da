"""Broken variants, each of which the audit must catch. They exist nowhere else."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from farthing.guarantees.kinds import DiscreteGaussian, PureDP
from farthing.lab.audit import audit, audit_bounded_range
from farthing.mechanisms import (
    Histogram,
    KnownCounts,
    KnownGumbel,
    Release,
    TruncatedGaussianNoise,
    UnknownCounts,
    UnknownGumbel,
)
from farthing.mechanisms.histogram import ranked, top_counts
from farthing.mechanisms.noise.exact_sampling import Acceptance, system_bits

ONE = {"contribution_limit": 1, "per_key_limit": 1}


def outcome(release: Release) -> tuple[object, ...]:
    return (release.labels, release.counts)


@dataclass(frozen=True)
class PrintedTruncGauss:
    """Algorithm 2 of [CR22] as printed: the cutoff enters the threshold without noise."""

    sound: UnknownCounts

    def run(self, histogram: Histogram) -> Release:
        top = top_counts(histogram, self.sound.candidates)
        noise = self.sound.noise
        assert isinstance(noise, TruncatedGaussianNoise)
        noisy = top.counts + noise.draw(top.counts.size, system_bits())
        least = top.cutoff + self.sound.per_key_limit + noise.bound
        released = np.flatnonzero(noisy > least)
        return ranked(histogram, top.positions[released], noisy[released])


def test_truncgauss_as_printed() -> None:
    """σ = 13.1, δ = 1e-10: a release of probability 0.03 becomes impossible."""
    sound = UnknownCounts(coordinate=DiscreteGaussian(13.1, 1), delta=1e-10, candidates=1, **ONE)
    half_way = 10 + 1 + sound.noise.bound + 1
    pair = Histogram(["a", "b"], [half_way, 10]), Histogram(["a", "b"], [half_way, 11])
    rho, slack = 1 / (2 * 13.1**2), 1e-6
    claim = rho + 2 * math.sqrt(rho * math.log(1 / slack))
    broken = audit(
        PrintedTruncGauss(sound), *pair, trials=8000, delta=slack, confidence=0.999, view=outcome
    )
    assert broken.epsilon > 1.5 > claim
    fixed = audit(sound, *pair, trials=2000, delta=slack, confidence=0.999, view=outcome)
    assert fixed.epsilon <= claim


@dataclass(frozen=True)
class FreeBottom:
    """Asks again as long as ⊥ comes, because ⊥ is not charged; it says it paid for one draw."""

    question: UnknownGumbel
    patience: int

    def run(self, histogram: Histogram) -> int:
        for asked in range(self.patience):
            if self.question.run(histogram).labels:
                return asked
        return self.patience


def test_free_bottom() -> None:
    question = UnknownGumbel(epsilon=1.0, delta=1e-4, k=1, candidates=5, **ONE)
    # a label that is found with probability of about 0.3, and 0.55 with one more unit
    count = 1 + round(math.log(question.stop_multiplicity * 0.3 / 0.7))
    pair = Histogram(["a"], [count]), Histogram(["a"], [count + 1])
    greedy = FreeBottom(question, 6)
    result = audit(greedy, *pair, trials=3000, delta=6 * 1e-4, confidence=0.999)
    assert result.epsilon > 1.2 * question.epsilon
    once = audit(
        question, *pair, trials=1500, delta=1e-4, confidence=0.999, view=lambda r: r.labels
    )
    assert once.epsilon <= question.epsilon


@dataclass(frozen=True)
class TextbookUnkLap:
    """UnkLap with the margin τ·ln(Δ/δ)/ε."""

    sound: UnknownCounts
    epsilon: float

    def run(self, histogram: Histogram) -> Release:
        margin = math.ceil(math.log(1 / self.sound.delta) / self.epsilon)
        top = top_counts(histogram, self.sound.candidates)
        noise = self.sound.noise.draw(top.counts.size + 1, system_bits())
        noisy = top.counts + noise[1:]
        released = np.flatnonzero(noisy - top.cutoff - noise[0] >= 1 + margin)
        return ranked(histogram, top.positions[released], noisy[released])


def test_textbook_unklap() -> None:
    """At δ = 0.01 trials resolve it; smaller δ by exact computation in test_theorems.py."""
    sound = UnknownCounts(coordinate=PureDP(1.0), delta=0.01, candidates=3, **ONE)
    pair = Histogram.without_rows(), Histogram(["new"], [1])
    options = {"trials": 24_000, "delta": 0.01, "confidence": 0.99}
    broken = audit(TextbookUnkLap(sound, 1.0), *pair, view=lambda r: r.labels, **options)
    assert broken.epsilon > 1.0
    fixed = audit(sound, *pair, view=lambda r: r.labels, **options)
    assert fixed.epsilon <= 1.0


def test_laplace_with_a_scale_thirty_per_cent_too_small() -> None:
    claimed = KnownCounts(coordinate=PureDP(1.0), **ONE)
    broken = replace(claimed, coordinate=PureDP(1.0 / 0.7))
    pair = Histogram(["a"], [20]), Histogram(["a"], [21])
    options = {"trials": 10_000, "confidence": 0.999, "view": lambda r: r.counts[0]}
    assert audit(broken, *pair, **options).epsilon > 1.1
    assert 0.8 < audit(claimed, *pair, **options).epsilon <= 1.0


@dataclass(frozen=True)
class PermuteAndFlip:
    """In random order, keep a candidate with probability e^(−ε(best − score)/τ)."""

    epsilon: float

    def run(self, histogram: Histogram) -> Release:
        source = system_bits()
        coins = Acceptance(Fraction(self.epsilon))
        best = int(histogram.counts.max())
        left = list(range(len(histogram)))
        while True:
            index = left.pop(source.below(len(left)))
            if coins.accepts(best - int(histogram.counts[index]), source):
                return Release((histogram.labels[index].item(),))


def test_permute_and_flip_is_not_bounded_range() -> None:
    """It is ε-DP, so only the audit of the range sees it: the losses span ε + ln(2 − e^−ε)."""
    pair = Histogram([0, 1], [0, 0]), Histogram([0, 1], [1, 0])
    options = {"trials": 8000, "confidence": 0.999, "view": lambda r: r.labels[0]}
    broken = audit_bounded_range(PermuteAndFlip(1.0), *pair, **options)
    assert broken.epsilon > 1.15
    assert audit(PermuteAndFlip(1.0), *pair, **options).epsilon <= 1.0
    honest = audit_bounded_range(KnownGumbel(epsilon=1.0, k=1, per_key_limit=1), *pair, **options)
    assert 0.7 < honest.epsilon <= 1.0
