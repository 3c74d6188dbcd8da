"""What is charged before and after running."""

from __future__ import annotations

import json
from dataclasses import asdict
from fractions import Fraction

import mpmath
import pytest

from farthing import compose
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    DiscreteGaussian,
    PureDP,
)
from farthing.mechanisms import (
    Histogram,
    KnownCounts,
    KnownGumbel,
    Release,
    ThresholdedCounts,
    TopKWithCounts,
    UnknownCounts,
    UnknownGumbel,
)
from farthing.mechanisms.protocol import epsilon_less_leak

LIMITS = {"contribution_limit": 3, "per_key_limit": 2}
UNKNOWN = UnknownGumbel(epsilon=0.1, delta=1e-9, k=5, candidates=100, **LIMITS)


def test_known_domain() -> None:
    assert KnownCounts(coordinate=PureDP(0.1), **LIMITS).guarantees == ((PureDP(0.1), 3),)
    assert KnownCounts(coordinate=DiscreteGaussian(13.1, 2), **LIMITS).guarantees == (
        (DiscreteGaussian(13.1, 2), 3),
    )
    assert KnownGumbel(epsilon=0.1, k=7, per_key_limit=2).guarantees == ((BoundedRange(0.1), 7),)


def test_a_domain_smaller_than_the_contribution_limit_costs_less() -> None:
    mechanism = KnownCounts(coordinate=PureDP(0.1), **LIMITS)
    release = mechanism.run(Histogram(["a", "b"], [1, 2]))
    assert mechanism.guarantees_for(release) == ((PureDP(0.1), 2),)


def test_unknown_domain() -> None:
    delta = (ApproximateDP(0.0, 1e-9), 1)
    assert UNKNOWN.guarantees == ((BoundedRange(0.1), 5), delta)
    laplace = UnknownCounts(coordinate=PureDP(0.1), delta=1e-9, candidates=100, **LIMITS)
    assert laplace.guarantees == ((PureDP(0.1), 3), delta)
    thresholded = ThresholdedCounts(coordinate=DiscreteGaussian(5.0, 2), delta=1e-9, **LIMITS)
    assert thresholded.guarantees == ((DiscreteGaussian(5.0, 2), 3), delta)
    limited = UnknownCounts(
        coordinate=DiscreteGaussian(5.0, 2), delta=1e-9, candidates=100, **LIMITS
    )
    assert limited.guarantees == ((DiscreteGaussian(5.0, 2), 3), delta)


@pytest.mark.parametrize(
    ("labels", "stopped", "draws"),
    [((), True, 1), (("a",), True, 2), (tuple("abcd"), True, 5), (tuple("abcde"), False, 5)],
)
def test_pay_what_you_get_pays_for_bottom(
    labels: tuple[str, ...], stopped: bool, draws: int
) -> None:
    price = UNKNOWN.guarantees_for(Release(labels, stopped=stopped))
    assert price == ((BoundedRange(0.1), draws), (ApproximateDP(0.0, 1e-9), 1))


def test_a_release_never_costs_more_than_was_reserved() -> None:
    mechanism = TopKWithCounts(
        selection=UNKNOWN, counting=KnownCounts(coordinate=PureDP(0.2), **LIMITS)
    )
    reserved = dict(mechanism.guarantees)
    for counts in ([0, 0], [400, 3], [900, 800], [700, 650]):
        for _ in range(30):
            release = mechanism.run(Histogram(["a", "b"], counts))
            for guarantee, count in mechanism.guarantees_for(release):
                assert 0 < count <= reserved[guarantee]
    empty = Release((), (), stopped=True)
    assert mechanism.guarantees_for(empty) == (
        (BoundedRange(0.1), 1),
        (ApproximateDP(0.0, 1e-9), 1),
    )


def test_counts_after_selection_cost_at_most_the_contribution_limit() -> None:
    mechanism = TopKWithCounts(
        selection=KnownGumbel(epsilon=0.1, k=5, per_key_limit=2),
        counting=KnownCounts(coordinate=DiscreteGaussian(4.0, 2), **LIMITS),
        use_order=True,
    )
    assert mechanism.guarantees == (
        (BoundedRange(0.1), 5),
        (DiscreteGaussian(4.0, 2), 3),
    )


def test_epsilon_of_the_draws_is_rounded_down() -> None:
    with mpmath.workdps(60):
        for epsilon, delta in ((0.1, 1e-9), (1.0, 0.3), (0.5, 1e-15)):
            exact = mpmath.mpf(epsilon) + mpmath.log(1 - mpmath.mpf(delta))
            assert mpmath.mpf(epsilon_less_leak(epsilon, delta)) <= exact
            assert mpmath.mpf(epsilon_less_leak(epsilon, delta)) > exact - 1e-15


def test_bottom_stands_for_enough_candidates() -> None:
    for delta, keys, expected in ((0.5, 3, 3), (0.25, 3, 9), (1e-9, 3, None)):
        mechanism = UnknownGumbel(
            epsilon=1, delta=delta, k=2, candidates=50, contribution_limit=keys, per_key_limit=1
        )
        exact = keys * (1 - Fraction(delta)) / Fraction(delta)
        assert exact <= mechanism.stop_multiplicity < exact + 1
        if expected is not None:
            assert mechanism.stop_multiplicity == expected
    unrestricted = UnknownGumbel(epsilon=1, delta=0.5, k=2, candidates=50, per_key_limit=1)
    assert unrestricted.stop_multiplicity == 50


def test_parameters_and_releases_are_json() -> None:
    assert json.loads(json.dumps(asdict(UNKNOWN)))["candidates"] == 100
    mechanism = TopKWithCounts(
        selection=KnownGumbel(epsilon=0.1, k=2, per_key_limit=2),
        counting=KnownCounts(coordinate=DiscreteGaussian(4.0, 2), **LIMITS),
        use_order=True,
    )
    release = mechanism.run(Histogram([1, 2, 3], [5, 6, 7]))
    assert json.loads(json.dumps(asdict(release)))["stopped"] is False
    assert json.loads(json.dumps(asdict(mechanism)))["selection"]["k"] == 2


def test_prices_compose() -> None:
    """The items are in the terms of the composition library, and ⊥ early costs less."""
    counting = KnownCounts(coordinate=DiscreteGaussian(13.1, 2), **LIMITS)
    for mechanism in (UNKNOWN, TopKWithCounts(selection=UNKNOWN, counting=counting)):
        full = compose(mechanism.guarantees).epsilon_at(1e-6).upper
        empty = Release((), (), stopped=True)
        used = mechanism.guarantees_for(empty)
        assert compose(used).epsilon_at(1e-6).upper < full


def test_equal_privacy_of_the_macbeth_comparison() -> None:
    """25 counts at ε = 0.1, and σ = 13.1: both within (2.08, 1e-6) [CR22, Figure 6]."""
    limits = {"contribution_limit": 25, "per_key_limit": 1}
    for mechanism in (
        KnownCounts(coordinate=PureDP(0.1), **limits),
        KnownCounts(coordinate=DiscreteGaussian(13.1, 1), **limits),
    ):
        spent = compose(mechanism.guarantees, adaptivity="none").epsilon_at(1e-6)
        assert spent.upper <= 2.0801
