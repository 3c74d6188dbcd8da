"""CountMLE equals the constrained least squares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.guarantees.kinds import DiscreteGaussian
from farthing.mechanisms import (
    Histogram,
    KnownCounts,
    KnownGumbel,
    TopKWithCounts,
    ordered_counts,
)


def naive(noisy: list[float]) -> list[float]:
    """x_i = min over a ≤ i of max over b ≥ i of the mean of a … b, then at least 0."""
    k = len(noisy)
    return [
        max(
            min(max(float(np.mean(noisy[a : b + 1])) for b in range(i, k)) for a in range(i + 1)),
            0.0,
        )
        for i in range(k)
    ]


@settings(deadline=None)  # a busy machine is not a defect
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=9))
def test_against_the_min_max_formula(noisy: list[int]) -> None:
    assert ordered_counts(noisy).tolist() == pytest.approx(naive([float(v) for v in noisy]))


@settings(deadline=None)  # a busy machine is not a defect
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=30), st.integers(0, 2**32))
def test_no_other_feasible_point_is_nearer(noisy: list[int], seed: int) -> None:
    best = ordered_counts(noisy)
    assert (np.diff(best) <= 1e-9).all()
    assert (best >= 0).all()
    rng = np.random.default_rng(seed)
    target = np.array(noisy, dtype=float)
    for _ in range(20):
        other = np.sort(np.abs(rng.normal(0, 40, len(noisy))))[::-1]
        # first-order optimality over a convex cone: no feasible direction improves
        assert (target - best) @ (other - best) <= 1e-6
    assert (target - best) @ best == pytest.approx(0, abs=1e-6)


def test_examples() -> None:
    assert ordered_counts([5, 3, 1]).tolist() == [5, 3, 1]
    assert ordered_counts([1, 3]).tolist() == [2, 2]
    assert ordered_counts([3, -4, 2, -9]).tolist() == [3, 0, 0, 0]
    assert ordered_counts([-1, -2]).tolist() == [0, 0]


def test_many_counts() -> None:
    """Quadratic time would take hours."""
    ordered = ordered_counts(np.arange(200_000))
    assert np.ptp(ordered) == 0


def test_gumbel_discovery_with_gaussian_counts_in_order() -> None:
    mechanism = TopKWithCounts(
        selection=KnownGumbel(epsilon=1.0, k=4, per_key_limit=1),
        counting=KnownCounts(
            coordinate=DiscreteGaussian(3.0, 1), contribution_limit=2, per_key_limit=1
        ),
        use_order=True,
    )
    release = mechanism.run(Histogram(list("abcdef"), [900, 700, 500, 300, 2, 1]))
    assert release.labels == ("a", "b", "c", "d")
    assert release.counts is not None
    assert list(release.counts) == sorted(release.counts, reverse=True)
    assert np.abs(np.array(release.counts) - [900, 700, 500, 300]).max() < 15
