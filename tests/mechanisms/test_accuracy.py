"""Accuracy stated before running holds when run, at the stated rates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from farthing.mechanisms import (
    Argmax,
    ExponentialMechanism,
    GeneralizedRandomizedResponse,
    Histogram,
    KnownGaussian,
    KnownGumbel,
    KnownLaplace,
    LeakyRandomizedResponse,
    Quantile,
    ThresholdedGaussian,
    ThresholdedLaplace,
    TopKWithCounts,
    TruncatedGaussian,
    TruncatedGaussianLimited,
    UnknownGumbel,
    UnknownLaplace,
)

ONE = {"contribution_limit": 1, "per_key_limit": 2}
DELTA = 1e-3


def rate(mechanism: Any, histogram: Histogram, label: str, trials: int) -> float:
    """How often the label is missing."""
    return sum(label not in mechanism.run(histogram).labels for _ in range(trials)) / trials


def spread(probability: float, trials: int) -> float:
    """Four standard deviations: the tests fail once in about 16 000 seeds each."""
    return 4 * math.sqrt(max(probability * (1 - probability), 1 / trials) / trials)


@pytest.mark.parametrize(
    "mechanism", [KnownLaplace(epsilon=0.3, **ONE), KnownGaussian(noise_multiplier=3.0, **ONE)]
)
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_counts(mechanism: Any, confidence: float) -> None:
    size = 20_000
    release = mechanism.run(Histogram(np.arange(size), np.full(size, 100)))
    errors = np.abs(np.array(release.counts) - 100)
    stated = mechanism.accuracy(confidence=confidence)
    inside = float((errors <= stated.half_width).mean())
    assert inside >= confidence - spread(confidence, size)
    narrower = float((errors <= stated.half_width - 1).mean())
    assert narrower < confidence + spread(confidence, size)
    assert errors.mean() == pytest.approx(stated.expected_error, rel=0.03)


@pytest.mark.parametrize(
    ("mechanism", "count"),
    [
        (ThresholdedLaplace(epsilon=0.5, delta=DELTA, **ONE), 25),
        (ThresholdedGaussian(noise_multiplier=2.0, delta=DELTA, **ONE), 14),
        (TruncatedGaussian(noise_multiplier=2.0, delta=DELTA, **ONE), 16),
    ],
)
def test_misses_below_a_fixed_threshold_are_exact(mechanism: Any, count: int) -> None:
    stated = mechanism.accuracy(count=count).miss_probability
    found = rate(mechanism, Histogram(["a"], [count]), "a", 2000)
    assert 0.05 < stated < 0.95
    assert found == pytest.approx(stated, abs=spread(stated, 2000))


def test_misses_below_a_noisy_threshold() -> None:
    laplace = UnknownLaplace(epsilon=0.5, delta=DELTA, candidates=1, **ONE)
    lead = laplace.threshold + 3
    stated = laplace.accuracy(lead=lead).miss_probability
    histogram = Histogram(["a", "b"], [lead + 5, 5])
    assert stated is not None
    assert rate(laplace, histogram, "a", 2000) == pytest.approx(stated, abs=spread(stated, 2000))

    limited = TruncatedGaussianLimited(noise_multiplier=2.0, delta=DELTA, candidates=1, **ONE)
    for slack in (-3, 0, 8, 18):
        lead = limited.threshold + slack
        bound = limited.accuracy(lead=lead).miss_probability
        assert bound is not None
        found = rate(limited, Histogram(["a", "b"], [lead + 5, 5]), "a", 1000)
        assert found <= bound + spread(bound, 1000)
    assert bound < 0.1
    assert limited.accuracy().miss_probability is None


def test_known_selection() -> None:
    mechanism = KnownGumbel(epsilon=0.5, k=1, per_key_limit=2)
    stated = mechanism.accuracy(domain_size=4, gap=10)
    histogram = Histogram(list("abcd"), [30, 20, 20, 20])
    found = rate(mechanism, histogram, "a", 3000)
    assert stated.miss_probability is not None
    assert found == pytest.approx(stated.miss_probability, abs=spread(found, 3000))

    deep = KnownGumbel(epsilon=0.5, k=2, per_key_limit=2)
    bound = deep.accuracy(domain_size=4, gap=10).miss_probability
    assert bound is not None
    for label in "ab":
        assert rate(deep, Histogram(list("abcd"), [32, 30, 20, 20]), label, 1000) <= bound + spread(
            bound, 1000
        )
    assert deep.accuracy(domain_size=2).miss_probability == 0.0


@pytest.mark.parametrize("counts", [[30, 20, 20, 20], [30, 29, 28, 27], [90, 0, 0, 0]])
def test_shortfall_of_a_draw(counts: list[int]) -> None:
    mechanism = Argmax(epsilon=0.5, per_key_limit=2)
    stated = mechanism.accuracy(domain_size=4, confidence=0.9)
    histogram = Histogram(range(4), counts)
    short = np.array(
        [max(counts) - counts[mechanism.run(histogram).labels[0]] for _ in range(2000)]
    )
    assert short.mean() <= stated.expected_error + 0.5
    assert (short <= stated.half_width).mean() >= 0.9 - spread(0.9, 2000)


def test_unknown_selection() -> None:
    mechanism = UnknownGumbel(epsilon=0.5, delta=DELTA, k=2, candidates=3, **ONE)
    cutoff, found = 5, 0.0
    for lead in (25, 32, 45):
        bound = mechanism.accuracy(lead=lead, gap=10).miss_probability
        histogram = Histogram(list("abcd"), [cutoff + lead + 4, cutoff + lead, cutoff, cutoff])
        found = rate(mechanism, histogram, "b", 1000)
        assert bound is not None
        assert found <= bound + spread(bound, 1000)
    assert found < 0.2, "a clear lead is found"


def test_top_k_with_counts_states_both() -> None:
    counting = KnownGaussian(noise_multiplier=3.0, **ONE)
    known = TopKWithCounts(
        selection=KnownGumbel(epsilon=0.5, k=2, per_key_limit=2), counting=counting
    )
    stated = known.accuracy(domain_size=10, gap=40)
    assert stated.half_width == counting.accuracy().half_width
    assert stated.miss_probability == pytest.approx(8 * math.exp(-10), rel=1e-3)
    discovery = UnknownGumbel(epsilon=0.5, delta=DELTA, k=2, candidates=3, **ONE)
    unknown = TopKWithCounts(selection=discovery, counting=counting)
    assert unknown.accuracy(lead=200, gap=40).miss_probability == pytest.approx(
        math.exp(-20 * discovery.draw_epsilon), rel=1e-3
    )


def test_quantile() -> None:
    mechanism = Quantile(
        probability=0.25, epsilon=1.0, lower=0, upper=99, contribution_limit=1, per_key_limit=1
    )
    histogram = Histogram(np.arange(100), np.full(100, 10))
    stated = mechanism.accuracy(confidence=0.9)
    short = []
    for _ in range(800):
        value = mechanism.run(histogram)
        short.append(abs(0.75 * 10 * value - 0.25 * 10 * (99 - value)))
    best = min(abs(0.75 * 10 * v - 0.25 * 10 * (99 - v)) for v in range(100))
    deficit = np.array(short) - best
    assert deficit.mean() <= stated.expected_error
    assert (deficit <= stated.half_width).mean() >= 0.9 - spread(0.9, 800)
    assert abs(float(np.median([mechanism.run(histogram) for _ in range(200)])) - 25) <= 2


def test_exponential_mechanism_by_range_and_by_sensitivity() -> None:
    by_range = ExponentialMechanism(epsilon=1.0, score_range=2.0)
    assert ExponentialMechanism.from_sensitivity(epsilon=1.0, sensitivity=1.0) == by_range
    monotone = ExponentialMechanism.from_sensitivity(epsilon=1.0, sensitivity=2.0, monotone=True)
    assert monotone == by_range
    assert by_range.accuracy(domain_size=1).half_width == 0.0


@pytest.mark.parametrize("bit", [0, 1])
def test_randomized_response(bit: int) -> None:
    for loss in (0.0, 0.4, 1.0, 1.5):
        mechanism = GeneralizedRandomizedResponse(epsilon=1.5, largest_loss=loss)
        wrong = sum(mechanism.run(bit) != bit for _ in range(3000)) / 3000
        stated = mechanism.accuracy(bit)
        q = -math.expm1(loss - 1.5) / -math.expm1(-1.5)
        p = (math.exp(-loss) - math.exp(-1.5)) / -math.expm1(-1.5)
        assert stated == pytest.approx(p if bit else 1 - q)
        assert wrong == pytest.approx(stated, abs=spread(stated, 3000))
    leaky = LeakyRandomizedResponse(epsilon=1.0, delta=0.2)
    answers = [leaky.run(bit) for _ in range(3000)]
    leaked = [answer for answer in answers if answer.leaked]
    assert all(answer.bit == bit for answer in leaked)
    assert len(leaked) / 3000 == pytest.approx(0.2, abs=spread(0.2, 3000))
    wrong = sum(answer.bit != bit for answer in answers) / 3000
    assert wrong == pytest.approx(leaky.accuracy(), abs=spread(leaky.accuracy(), 3000))
