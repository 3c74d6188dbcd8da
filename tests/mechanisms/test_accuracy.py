"""Accuracy stated before running holds when run, at the stated rates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from farthing.guarantees.kinds import DiscreteGaussian, PureDP
from farthing.mechanisms import (
    ExponentialMechanism,
    Histogram,
    KnownCounts,
    KnownGumbel,
    Quantile,
    ThresholdedCounts,
    TopKWithCounts,
    UnknownCounts,
    UnknownGumbel,
)
from farthing.numerics.ball import in_balls, middle
from tests.mechanisms.randomized_response import (
    GeneralizedRandomizedResponse,
    LeakyRandomizedResponse,
)

ONE = {"contribution_limit": 1, "per_key_limit": 2}
DELTA = 1e-3


def rate(mechanism: Any, histogram: Histogram, label: str, trials: int) -> float:
    """How often the label is missing."""
    return sum(label not in mechanism.run(histogram).labels for _ in range(trials)) / trials


def spread(probability: float, trials: int) -> float:
    """Four standard deviations: the tests fail once in about 16 000 seeds each."""
    return 4 * math.sqrt(max(probability * (1 - probability), 1 / trials) / trials)


@in_balls
def withheld(mechanism: ThresholdedCounts, count: int) -> float:
    """The chance that a label with this true count is withheld."""
    return middle(1 - mechanism.noise.tail(mechanism.threshold - count))


@in_balls
def below_cutoff(mechanism: UnknownCounts, lead: int) -> float:
    """The chance, or a bound on it, that a label `lead` above the cutoff is withheld."""
    return min(1.0, middle(mechanism.noise.difference_tail(lead - mechanism.threshold + 1)))


def missed(rate: float, weights: dict[float, float]) -> float:
    """X/(1 + X), X = Σ n·e^(−rate·gap): n rivals at least `gap` below come first with that chance.

    It is at most the chance that a candidate comes after one of its rivals.
    """
    total = sum(n * math.exp(-rate * gap) for gap, n in weights.items())
    return total / (1 + total)


def missed_of_known(mechanism: KnownGumbel, *, domain_size: int, gap: float = 0) -> float:
    """At most, for a label that leads the (k+1)-th count by `gap`."""
    return missed(float(mechanism.rate), {gap: domain_size - mechanism.k})


def missed_of_unknown(mechanism: UnknownGumbel, *, lead: float, gap: float = 0) -> float:
    """At most, for a label `lead` above the cutoff and `gap` above the (k+1)-th count."""
    stop, rivals = lead - mechanism.per_key_limit, mechanism.candidates - mechanism.k
    return missed(float(mechanism.rate), {gap: rivals, stop: mechanism.stop_multiplicity})


@pytest.mark.parametrize(
    "mechanism",
    [
        KnownCounts(coordinate=PureDP(0.3), **ONE),
        KnownCounts(coordinate=DiscreteGaussian(3.0, 2), **ONE),
    ],
)
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_counts(mechanism: Any, confidence: float) -> None:
    size = 20_000
    release = mechanism.run(Histogram(np.arange(size), np.full(size, 100)))
    errors = np.abs(np.array(release.counts) - 100)
    stated = mechanism.expect(confidence).counts
    assert stated is not None
    inside = float((errors <= stated.half_width).mean())
    assert inside >= confidence - spread(confidence, size)
    narrower = float((errors <= stated.half_width - 1).mean())
    assert narrower < confidence + spread(confidence, size)
    assert errors.mean() == pytest.approx(stated.expected_error, rel=0.03)


@pytest.mark.parametrize(
    ("mechanism", "count"),
    [
        (ThresholdedCounts(coordinate=PureDP(0.5), delta=DELTA, **ONE), 25),
        (ThresholdedCounts(coordinate=DiscreteGaussian(2.0, 2), delta=DELTA, **ONE), 14),
        (
            ThresholdedCounts(
                coordinate=DiscreteGaussian(2.0, 2), truncated=True, delta=DELTA, **ONE
            ),
            16,
        ),
    ],
)
def test_misses_below_a_fixed_threshold_are_exact(mechanism: Any, count: int) -> None:
    stated = withheld(mechanism, count)
    found = rate(mechanism, Histogram(["a"], [count]), "a", 2000)
    assert 0.05 < stated < 0.95
    assert found == pytest.approx(stated, abs=spread(stated, 2000))


def test_misses_below_a_noisy_threshold() -> None:
    laplace = UnknownCounts(coordinate=PureDP(0.5), delta=DELTA, candidates=1, **ONE)
    lead = laplace.threshold + 3
    stated = below_cutoff(laplace, lead)
    histogram = Histogram(["a", "b"], [lead + 5, 5])
    assert rate(laplace, histogram, "a", 2000) == pytest.approx(stated, abs=spread(stated, 2000))

    limited = UnknownCounts(coordinate=DiscreteGaussian(2.0, 2), delta=DELTA, candidates=1, **ONE)
    for slack in (-3, 0, 8, 18):
        lead = limited.threshold + slack
        bound = below_cutoff(limited, lead)
        found = rate(limited, Histogram(["a", "b"], [lead + 5, 5]), "a", 1000)
        assert found <= bound + spread(bound, 1000)
    assert bound < 0.1


def test_known_selection() -> None:
    mechanism = KnownGumbel(epsilon=0.5, k=1, per_key_limit=2)
    stated = missed_of_known(mechanism, domain_size=4, gap=10)
    histogram = Histogram(list("abcd"), [30, 20, 20, 20])
    found = rate(mechanism, histogram, "a", 3000)
    assert found == pytest.approx(stated, abs=spread(found, 3000))

    deep = KnownGumbel(epsilon=0.5, k=2, per_key_limit=2)
    bound = missed_of_known(deep, domain_size=4, gap=10)
    for label in "ab":
        assert rate(deep, Histogram(list("abcd"), [32, 30, 20, 20]), label, 1000) <= bound + spread(
            bound, 1000
        )
    assert missed_of_known(deep, domain_size=2) == 0.0


@pytest.mark.parametrize("counts", [[30, 20, 20, 20], [30, 29, 28, 27], [90, 0, 0, 0]])
def test_shortfall_of_a_draw(counts: list[int]) -> None:
    mechanism = KnownGumbel(epsilon=0.5, k=1, per_key_limit=2)
    stated = mechanism.expect(0.9, domain_size=4).selection
    assert stated is not None
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
        bound = missed_of_unknown(mechanism, lead=lead, gap=10)
        histogram = Histogram(list("abcd"), [cutoff + lead + 4, cutoff + lead, cutoff, cutoff])
        found = rate(mechanism, histogram, "b", 1000)
        assert found <= bound + spread(bound, 1000)
    assert found < 0.2, "a clear lead is found"


def test_top_k_with_counts_states_both() -> None:
    counting = KnownCounts(coordinate=DiscreteGaussian(3.0, 2), **ONE)
    known = KnownGumbel(epsilon=0.5, k=2, per_key_limit=2)
    discovery = UnknownGumbel(epsilon=0.5, delta=DELTA, k=2, candidates=3, **ONE)
    for selection in (known, discovery):
        both = TopKWithCounts(selection=selection, counting=counting).expect(0.9, domain_size=10)
        assert both.counts == counting.expect(0.9).counts
        alone = selection.expect(0.9, domain_size=10)
        assert (both.selection, both.found_from) == (alone.selection, alone.found_from)
    assert missed_of_known(known, domain_size=10, gap=40) == pytest.approx(
        8 * math.exp(-10), rel=1e-3
    )
    assert missed_of_unknown(discovery, lead=200, gap=40) == pytest.approx(
        math.exp(-20 * discovery.draw_epsilon), rel=1e-3
    )


@pytest.mark.parametrize("confidence", [0.6, 0.95])
def test_found_from(confidence: float) -> None:
    """⊥ alone stands between a label and its place: the chance is exact, up to whole counts."""
    mechanism = UnknownGumbel(epsilon=0.5, delta=DELTA, k=1, candidates=1, **ONE)
    lead = mechanism.expect(confidence).found_from
    assert lead is not None
    assert missed_of_unknown(mechanism, lead=lead) == pytest.approx(1 - confidence)
    found = 1 - rate(mechanism, Histogram(["a", "b"], [math.ceil(lead) + 5, 5]), "a", 2000)
    assert confidence - spread(confidence, 2000) <= found <= confidence + 0.1


GAUSS = DiscreteGaussian(10.0, 1)
EACH = {"contribution_limit": 2, "per_key_limit": 1}
DISCOVERY = UnknownGumbel(epsilon=0.1, delta=1e-6, k=3, candidates=5, **EACH)


@pytest.mark.parametrize(
    "mechanism",
    [
        TopKWithCounts(
            selection=DISCOVERY, counting=KnownCounts(coordinate=GAUSS, **EACH), use_order=True
        ),
        ThresholdedCounts(coordinate=GAUSS, delta=1e-6, **EACH),
        ThresholdedCounts(coordinate=GAUSS, delta=1e-6, truncated=True, **EACH),
        UnknownCounts(coordinate=GAUSS, delta=1e-6, candidates=5, **EACH),
    ],
    ids=["in order", "thresholded", "truncated", "limited"],
)
def test_intervals_of_released_counts_hold_and_are_not_idle(mechanism: Any) -> None:
    counts = {"a": 9000, "b": 8990, "c": 8985, "d": 40, "e": 30, "f": 20}
    histogram = Histogram(list(counts), list(counts.values()))
    stated = mechanism.expect(0.9).counts
    errors = []
    for _ in range(400):
        release = mechanism.run(histogram)
        pairs = list(zip(release.labels, release.counts, strict=True))[:3]
        errors += [abs(count - counts[label]) for label, count in pairs]
    assert np.mean(np.array(errors) <= stated.half_width) >= 0.88
    assert np.mean(np.array(errors) <= 0.4 * stated.half_width) < 0.88


def test_quantile() -> None:
    mechanism = Quantile(
        probability=0.25, epsilon=1.0, lower=0, upper=99, contribution_limit=1, per_key_limit=1
    )
    histogram = Histogram(np.arange(100), np.full(100, 10))
    stated = mechanism.expect(0.9).selection
    assert stated is not None
    short = []
    for _ in range(800):
        (value,) = mechanism.run(histogram).labels
        short.append(abs(0.75 * 10 * value - 0.25 * 10 * (99 - value)))
    best = min(abs(0.75 * 10 * v - 0.25 * 10 * (99 - v)) for v in range(100))
    deficit = np.array(short) - best
    assert deficit.mean() <= stated.expected_error
    assert (deficit <= stated.half_width).mean() >= 0.9 - spread(0.9, 800)
    assert abs(float(np.median([mechanism.run(histogram).labels for _ in range(200)])) - 25) <= 2


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
