"""The audit is valid, and no mechanism exceeds its claim on pairs chosen to hurt."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import mpmath
import pytest

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import (
    DiscreteGaussian,
    Gaussian,
    PureDP,
)
from farthing.lab.audit import _clopper_pearson_lower, audit, audit_bounded_range
from farthing.mechanisms import (
    ClippedSum,
    ExponentialMechanism,
    Histogram,
    KnownCounts,
    KnownGumbel,
    Largest,
    PermuteAndFlipMechanism,
    Quantile,
    Release,
    Repeated,
    ThresholdedCounts,
    TopKWithCounts,
    UnknownCounts,
    UnknownGumbel,
)
from farthing.mechanisms.noise import exact_sampling
from tests.mechanisms.randomized_response import (
    GeneralizedRandomizedResponse,
    LeakyRandomizedResponse,
)

from .claims import claimed

TRIALS = 2500
CONFIDENCE = 0.999  # per audit: all of them together fail a correct library once in about 20 seeds


def count_of(label: str) -> Callable[[Release], Hashable]:
    """The released count of one label, or nothing."""

    def look(release: Release) -> Hashable:
        assert release.counts is not None
        return release.counts[release.labels.index(label)] if label in release.labels else -(10**9)

    return look


def total(release: Release) -> Hashable:
    return sum(release.counts or ())


def labels(release: Release) -> Hashable:
    return (release.labels, release.stopped)


def histogram(**counts: int) -> Histogram:
    return Histogram(list(counts), list(counts.values()))


def nothing() -> Histogram:
    return Histogram.without_rows()


ONE = {"contribution_limit": 1, "per_key_limit": 1}
TWO = {"contribution_limit": 2, "per_key_limit": 1}
DELTA = 0.01


@dataclass(frozen=True)
class Case:
    mechanism: Any
    pairs: tuple[tuple[Any, Any], ...]
    view: Callable[[Any], Hashable] | None = None


RAISE_ONE = (
    (histogram(a=0, b=0), histogram(a=1, b=0)),
    (histogram(a=50, b=3), histogram(a=51, b=3)),
    (histogram(a=7, b=9), histogram(a=8, b=9)),
)
RAISE_TWO = (
    (histogram(a=0, b=0), histogram(a=1, b=1)),
    (histogram(a=50, b=3), histogram(a=51, b=4)),
    (histogram(a=7, b=9), histogram(a=8, b=10)),
)
ORDER = (
    (histogram(a=0, b=0, c=0), histogram(a=1, b=0, c=0)),
    (histogram(a=0, b=0, c=0), histogram(a=0, b=1, c=1)),
    (histogram(a=3, b=3, c=2), histogram(a=3, b=3, c=3)),
)
#: one new label; a label that takes over the last place; the cutoff rises under it; two at once
HIDDEN = (
    (nothing(), histogram(a=1)),
    (histogram(a=9, b=8), histogram(a=9, b=9)),
    (histogram(a=20, b=20), histogram(a=20, b=21)),
    (histogram(a=7, b=0), histogram(a=8, b=0)),
)

LAPLACE = KnownCounts(coordinate=PureDP(0.8), **ONE)
GAUSS = KnownCounts(coordinate=DiscreteGaussian(1.5, 1), **ONE)
KNOWN = KnownGumbel(epsilon=0.8, k=2, per_key_limit=1)
UNKNOWN = UnknownGumbel(epsilon=0.8, delta=DELTA, k=2, candidates=2, **ONE)

CASES = {
    "KnownCounts, Laplace": Case(LAPLACE, RAISE_ONE, count_of("a")),
    "KnownCounts, Laplace, two keys": Case(
        KnownCounts(coordinate=PureDP(0.4), **TWO), RAISE_TWO, total
    ),
    "KnownCounts, Gaussian": Case(GAUSS, RAISE_ONE, count_of("a")),
    "KnownCounts, rounded": Case(
        KnownCounts(coordinate=Gaussian(1.5), **ONE), RAISE_ONE, count_of("a")
    ),
    "ThresholdedCounts, rounded": Case(
        ThresholdedCounts(coordinate=Gaussian(1.5), delta=DELTA, **ONE), HIDDEN, count_of("a")
    ),
    "UnknownCounts, rounded": Case(
        UnknownCounts(coordinate=Gaussian(1.5), delta=DELTA, candidates=1, **ONE),
        (*HIDDEN[:3], (histogram(a=13, b=0), histogram(a=14, b=0))),
        count_of("a"),
    ),
    "KnownGumbel": Case(KNOWN, ORDER, labels),
    "one draw": Case(KnownGumbel(epsilon=0.8, k=1, per_key_limit=1), ORDER, labels),
    "ExponentialMechanism": Case(
        ExponentialMechanism.from_sensitivity(epsilon=1.0, sensitivity=1.0),
        (([0, 0], [1, -1]), ([0.5, 0.5, 0.5], [1.5, -0.5, -0.5]), ([3, 0, 0], [2, 1, 1])),
        str,
    ),
    "PermuteAndFlipMechanism": Case(
        PermuteAndFlipMechanism(epsilon=1.0, score_range=2.0),
        (([0, 0], [1, -1]), ([0.5, -0.5], [-0.5, 0.5]), ([3, 0, 0], [2, 1, 1])),
        str,
    ),
    "Quantile": Case(
        Quantile(probability=0.5, epsilon=1.0, lower=0, upper=3, **ONE),
        (
            (Histogram([1, 3], [1, 1]), Histogram([0, 1, 3], [1, 1, 1])),
            (Histogram([3], [2]), Histogram([1, 3], [1, 2])),
            (nothing(), Histogram([3], [1])),
        ),
        labels,
    ),
    "UnknownGumbel": Case(UNKNOWN, HIDDEN, labels),
    "UnknownGumbel, one candidate": Case(
        UnknownGumbel(epsilon=0.8, delta=DELTA, k=1, candidates=1, **ONE), HIDDEN, labels
    ),
    "UnknownCounts, Laplace": Case(
        UnknownCounts(coordinate=PureDP(0.8), delta=DELTA, candidates=1, **ONE),
        HIDDEN,
        count_of("a"),
    ),
    "ThresholdedCounts, Laplace": Case(
        ThresholdedCounts(coordinate=PureDP(0.8), delta=DELTA, **ONE), HIDDEN, count_of("a")
    ),
    "ThresholdedCounts, Gaussian": Case(
        ThresholdedCounts(coordinate=DiscreteGaussian(1.5, 1), delta=DELTA, **ONE),
        HIDDEN,
        count_of("a"),
    ),
    "ThresholdedCounts, truncated": Case(
        ThresholdedCounts(coordinate=DiscreteGaussian(1.5, 1), truncated=True, delta=DELTA, **ONE),
        HIDDEN,
        count_of("a"),
    ),
    "UnknownCounts, truncated": Case(
        UnknownCounts(coordinate=DiscreteGaussian(1.5, 1), delta=DELTA, candidates=1, **ONE),
        (*HIDDEN[:3], (histogram(a=13, b=0), histogram(a=14, b=0))),
        count_of("a"),
    ),
    "Gumbel then Laplace": Case(
        TopKWithCounts(selection=KNOWN, counting=LAPLACE), RAISE_ONE, count_of("a")
    ),
    "Gumbel then Gaussian in order": Case(
        TopKWithCounts(selection=UNKNOWN, counting=GAUSS, use_order=True), HIDDEN, count_of("a")
    ),
    "means of two": Case(Repeated(LAPLACE, 2), RAISE_ONE, count_of("a")),
    "Gumbel then means of two": Case(
        Repeated(TopKWithCounts(selection=UNKNOWN, counting=LAPLACE), 2), HIDDEN, count_of("a")
    ),
    "largest": Case(Largest(KnownCounts(coordinate=PureDP(0.4), **TWO), 1), RAISE_TWO, total),
    "ClippedSum": Case(
        ClippedSum(coordinate=PureDP(1.0), lower=-4, upper=3),
        ((0, -4), (10**30, 10**30 + 3), (7, 3)),
        total,
    ),
    "generalized randomized response": Case(
        GeneralizedRandomizedResponse(epsilon=1.0, largest_loss=0.3), ((0, 1), (1, 0), (0, 0))
    ),
    "leaky randomized response": Case(
        LeakyRandomizedResponse(epsilon=1.0, delta=DELTA), ((0, 1), (1, 0), (1, 1))
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_no_mechanism_exceeds_its_claim(name: str) -> None:
    case = CASES[name]
    assert len(case.pairs) >= 3
    epsilon, delta = claimed(case.mechanism.guarantees)
    found = [
        audit(
            case.mechanism,
            low,
            high,
            trials=TRIALS,
            delta=delta,
            confidence=CONFIDENCE,
            view=case.view,
        ).epsilon
        for low, high in case.pairs
    ]
    assert max(found) <= epsilon
    assert max(found) > 0.05 * epsilon, "an audit that sees nothing shows nothing"


@pytest.mark.parametrize(
    "name", ["one draw", "ExponentialMechanism", "Quantile", "generalized randomized response"]
)
def test_single_draws_are_bounded_range(name: str) -> None:
    case = CASES[name]
    epsilon, _ = claimed(case.mechanism.guarantees)
    found = [
        audit_bounded_range(
            case.mechanism, low, high, trials=2 * TRIALS, confidence=CONFIDENCE, view=case.view
        ).epsilon
        for low, high in case.pairs
    ]
    assert max(found) <= epsilon
    assert max(found) > 0.3 * epsilon


@pytest.mark.parametrize(("hits", "trials"), [(1, 10), (5, 50), (49, 50), (50, 50), (300, 1000)])
@pytest.mark.parametrize("risk", [0.05, 0.001])
def test_clopper_pearson_against_the_binomial_tail(hits: int, trials: int, risk: float) -> None:
    low = _clopper_pearson_lower(hits, trials, risk)
    with mpmath.workdps(40):

        def reached(p: float) -> mpmath.mpf:
            q = mpmath.mpf(p)
            return mpmath.fsum(
                mpmath.binomial(trials, i) * q**i * (1 - q) ** (trials - i)
                for i in range(hits, trials + 1)
            )

        assert reached(low) <= risk
        assert reached(low + 1e-7) > risk
    assert _clopper_pearson_lower(0, trials, risk) == 0.0


def test_the_bound_holds_at_the_stated_confidence() -> None:
    """60 audits of a mechanism whose ε is known; at 90 % about 6 may exceed it, 15 may not."""
    mechanism = GeneralizedRandomizedResponse(epsilon=1.0, largest_loss=0.5)
    too_high, reached = 0, []
    for seed in range(60):
        with exact_sampling._seeded(seed):
            result = audit(mechanism, 0, 1, trials=300, confidence=0.9)
        too_high += result.epsilon > 0.5
        reached.append(result.epsilon)
    assert too_high <= 14
    assert sum(reached) / 60 > 0.1


def test_equal_inputs_show_nothing() -> None:
    """However many events are tried, the held-out half keeps the confidence."""
    mechanism = KnownCounts(coordinate=PureDP(1.0), **ONE)
    same = histogram(a=5)
    positive = 0
    for seed in range(30):
        with exact_sampling._seeded(seed):
            positive += (
                audit(mechanism, same, same, trials=200, confidence=0.8, view=count_of("a")).epsilon
                > 0
            )
    assert positive <= 12


def test_delta_is_subtracted() -> None:
    mechanism = LeakyRandomizedResponse(epsilon=0.5, delta=0.3)
    honest = audit(mechanism, 0, 1, trials=2000, delta=0.3)
    assert honest.epsilon <= 0.5
    assert audit(mechanism, 0, 1, trials=2000, delta=0.1).epsilon > 1.5


def test_result_describes_itself() -> None:
    result = audit(LAPLACE, *RAISE_ONE[0], trials=200, view=count_of("a"))
    assert result.trials == 200
    assert result.event.startswith("the view is at")
    assert 0 <= result.first_bounds[0] <= result.first_bounds[1] <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [({"trials": 3}, "trials"), ({"delta": 1.0}, "delta"), ({"confidence": 1.0}, "confidence")],
)
def test_bad_input(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        audit(LAPLACE, *RAISE_ONE[0], **{"trials": 50, "view": count_of("a"), **options})
