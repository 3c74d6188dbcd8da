"""Counts of a tree: least squares against a dense solution, what a unit changes against every
unit, rounding that adds up, and intervals that cover."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farthing as fa
from farthing.errors import InvalidInput
from farthing.mechanisms import Histogram
from farthing.mechanisms.counts.nested_counts import (
    NestedCounts,
    above_zero,
    tree_of,
    whole_numbers,
)
from farthing.mechanisms.noise import exact_sampling
from farthing.mechanisms.noise.discrete import _sum_half_width
from farthing.mechanisms.noise.weighted_sums import laplace_tail
from farthing.mechanisms.protocol import Release

#: A total, three regions, and 2, 1 and 4 wards in them.
WARDS = (-1, 0, 1, 1, 0, 4, 0, 6, 6, 6, 6)
SMALL = (-1, 0, 1, 1, 0, 4, 4)


@st.composite
def trees(draw: Any) -> tuple[int, ...]:
    """Of two or three levels, in depth-first order."""
    parents = [-1]

    def grow(node: int, deep: int) -> None:
        for _ in range(draw(st.integers(1, 3)) if deep else 0):
            parents.append(node)
            grow(len(parents) - 1, deep - 1)

    grow(0, draw(st.integers(1, 3)))
    return tuple(parents)


def nested(parents: tuple[int, ...], limit: int = 1, coordinate: Any = None) -> NestedCounts:
    return NestedCounts(
        coordinate=coordinate or fa.Gaussian(20.0),
        contribution_limit=limit,
        per_key_limit=1,
        parents=parents,
    )


def sums_of_leaves(parents: tuple[int, ...]) -> np.ndarray:
    """Which leaves each node adds up."""
    children = tree_of(parents).children
    leaves = [i for i, below in enumerate(children) if not below]
    matrix = np.zeros((len(parents), len(leaves)))
    for place, leaf in enumerate(leaves):
        node = leaf
        while node >= 0:
            matrix[node, place] = 1
            node = parents[node]
    return matrix


@settings(max_examples=60, deadline=None)
@given(trees(), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_least_squares_are_those_of_a_dense_solution(parents, limit, seed) -> None:
    mechanism = nested(parents, limit)
    drawn = np.random.default_rng(seed).normal(0, 100, len(parents))
    matrix, weights = sums_of_leaves(parents), 1 / np.array(mechanism.drawn_variances)
    inverse = np.linalg.inv(matrix.T @ (weights[:, None] * matrix))
    expected = matrix @ inverse @ matrix.T @ (weights * drawn)
    assert np.allclose(mechanism.fitted(drawn.tolist()), expected, atol=1e-8)
    variances = np.diag(matrix @ inverse @ matrix.T)
    assert np.allclose(mechanism.variances, variances)
    assert all(
        v < own for v, own in zip(mechanism.variances, mechanism.drawn_variances, strict=True)
    )


@settings(max_examples=40, deadline=None)
@given(trees(), st.integers(1, 3), st.integers(1, 2))
def test_no_unit_changes_more_than_is_paid(parents, limit, rows) -> None:
    """Every set of leaves that a unit may have, with the most rows: the worst on every level."""
    mechanism = NestedCounts(
        coordinate=fa.PureDP(1.0), contribution_limit=limit, per_key_limit=rows, parents=parents
    )
    matrix, depths = sums_of_leaves(parents), np.array(tree_of(parents).depths)
    size = min(limit, matrix.shape[1])
    for leaves in combinations(range(matrix.shape[1]), size):
        changed = matrix[:, leaves].sum(axis=1) * rows
        for depth, level in enumerate(mechanism.levels):
            own = changed[depths == depth]
            assumed = level.assumes
            assert (own > 0).sum() <= assumed.contribution_limit
            assert own.max() <= assumed.per_key_limit
            assert assumed.total is None or own.sum() <= assumed.total
    coordinates = sum(times for level in mechanism.levels for _, times in level.guarantees)
    assert mechanism.guarantees == ((fa.PureDP(1.0), coordinates),)


def test_the_price_of_levels() -> None:
    assert nested(WARDS).guarantees == ((fa.Gaussian(20.0), 3),), "one label: one count a level"
    limits = [
        (one.contribution_limit, one.per_key_limit, one.in_all) for one in nested(WARDS, 3).levels
    ]
    assert limits == [(1, 3, False), (3, 3, True), (3, 1, False)]
    assert nested(WARDS, 3).guarantees == ((fa.Gaussian(20.0), 5),)
    assert nested(WARDS, 1, fa.DiscreteGaussian(2.0, 1)).guarantees[0][1] == 3
    with pytest.raises(InvalidInput, match="all counts together"):
        nested(WARDS, 3, fa.DiscreteGaussian(2.0, 3))


def adds_up(parents: tuple[int, ...], numbers: Any) -> bool:
    children = tree_of(parents).children
    return all(
        numbers[node] == sum(numbers[child] for child in below)
        for node, below in enumerate(children)
        if below
    )


@settings(max_examples=100, deadline=None)
@given(trees(), st.data())
def test_whole_numbers_add_up_and_stay_near(parents, data) -> None:
    matrix = sums_of_leaves(parents)
    size = matrix.shape[1]
    leaves = data.draw(st.lists(st.floats(-50, 1e9), min_size=size, max_size=size))
    numbers = (matrix @ np.array(leaves)).tolist()
    whole = whole_numbers(parents, numbers)
    assert adds_up(parents, whole)
    assert all(isinstance(number, int) for number in whole)
    assert all(abs(a - b) < 2 + 1e-6 for a, b in zip(whole, numbers, strict=True))
    shown = above_zero(parents, whole)
    assert adds_up(parents, shown)
    assert min(shown) >= 0
    assert shown == whole or min(whole) < 0


def test_above_zero_is_the_nearest_of_all() -> None:
    """Against every way to share a total out."""
    parents = (-1, 0, 0, 0)
    for total, *parts in [(5, 7, -2, 0), (3, 1, 4, -2), (0, 3, -5, 2), (2, -1, -1, 4)]:
        shown = above_zero(parents, (total, *parts))[1:]

        def far(some: Any, parts: Any = parts) -> int:
            return sum((a - b) ** 2 for a, b in zip(some, parts, strict=True))

        ways = (way for way in product(range(total + 1), repeat=3) if sum(way) == total)
        assert far(shown) == min(map(far, ways))
    assert above_zero(parents, (-4, 3, -9, 2)) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("coordinate", "limit"),
    [(fa.Gaussian(12.0), 1), (fa.Gaussian(12.0), 3), (fa.PureDP(0.1), 1), (fa.PureDP(0.1), 2)],
    ids=str,
)
def test_intervals_cover_and_are_narrower(coordinate, limit) -> None:
    mechanism = nested(WARDS, limit, coordinate)
    matrix = sums_of_leaves(WARDS)
    leaves = np.array([900, 400, 700, 500, 2000, 800, 600])
    truth = matrix @ leaves
    names = [f"ward {i}" for i in range(leaves.size)]
    covered, draws = np.zeros(len(WARDS)), 3000
    with exact_sampling._seeded(5):
        for _ in range(draws):
            release = mechanism.run(Histogram(names, leaves))
            assert adds_up(WARDS, release.counts)
            ends = np.array(mechanism.errors(release, 0.95))
            covered += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    assert covered.mean() / draws >= 0.945
    assert covered.mean() / draws <= 0.975
    assert covered.min() / draws >= 0.94
    alone = [level.noise.half_width(0.95) for level in mechanism.levels]
    for depth, wide in zip(tree_of(WARDS).depths, mechanism.half_widths(0.95), strict=True):
        assert wide < alone[depth] + 0.5


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.92, 0.95, 0.99, 0.9999])
def test_sums_of_laplace_numbers_lie_within_what_is_said(confidence) -> None:
    """Of n equal ones, and of two of any scales: by their exact laws."""
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    wide = max(normal, -math.log(1 - confidence) / math.sqrt(2)) * (1 + 1e-6)
    for times in (1, 2, 3, 5, 9, 30, 100):
        assert _sum_half_width(times, confidence) <= wide * math.sqrt(2 * times)
    for part in (0.01, 0.2, 0.5, 0.7, 0.9, 1.0):
        far = wide * math.sqrt(2 * (1 + part**2))
        assert laplace_tail((1.0, part), far) <= 1 - confidence


def test_what_is_shown_lies_in_its_interval() -> None:
    """Also where nearly everything is 0, and many numbers are drawn below it."""
    parents = (-1, *[0] * 40)
    mechanism = nested(parents)
    nothing = Histogram([str(i) for i in range(40)], [0] * 39 + [90])
    with exact_sampling._seeded(3):
        for _ in range(40):
            release = mechanism.run(nothing)
            counts = release.counts or ()
            shown = above_zero(parents, counts)
            assert adds_up(parents, shown)
            for count, number, (low, high) in zip(
                counts, shown, mechanism.errors(release, 0.95), strict=True
            ):
                assert low <= count <= high
                assert low <= number <= high


@pytest.mark.parametrize("parents", [(), (0,), (-1, 1), (-1, 0, 0, 1), (-1, 2, 0)])
def test_what_is_no_tree(parents) -> None:
    with pytest.raises(InvalidInput, match="tree"):
        nested(parents)


def test_one_label_alone() -> None:
    mechanism = nested((-1, 0))
    assert math.isclose(mechanism.variances[0], mechanism.drawn_variances[0] / 2)
    release = mechanism.run(Histogram(["a"], [10**15]))
    assert release.counts is not None
    assert release.counts[0] == release.counts[1]
    assert abs(release.counts[0] - 10**15) < 400
    assert Fraction(whole_numbers((-1, 0), [2.5, 2.5])[0]) == 3
    assert mechanism.expect(0.95).counts is not None
    drawn = Release((0, 1), (5, 7))
    assert mechanism.errors(Release((0, 1), (6, 6), parts=(drawn,)), 0.95)[0] == (-22, 34)
