"""Counts of a tree: a total, its parts, their parts. All of them are noisy, and they add up.

Every node is counted with noise of its own. What the nodes say about one another is used up by
least squares, so each number is better than the one that was drawn for it, and then rounded so that
the parts add up to the whole. All of this is post-processing of the noisy counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import PureDP
from farthing.mechanisms.counts.known_counts import KnownCounts
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.noise.discrete import Coordinate, coordinate_noise
from farthing.mechanisms.noise.exact_sampling import system_bits
from farthing.mechanisms.protocol import (
    DEFAULT_CONFIDENCE,
    Accuracy,
    Contribution,
    Expectation,
    Interval,
    Mechanism,
    Release,
    Uses,
    check,
    require_confidence,
    summed_uses,
)


class Tree(NamedTuple):
    """The depth of each node, its children, and how many leaves lie below it."""

    depths: tuple[int, ...]
    children: tuple[tuple[int, ...], ...]
    leaves: tuple[int, ...]


@lru_cache(maxsize=32)
def tree_of(parents: tuple[int, ...]) -> Tree:
    """The tree of which these are the parents; the first node is the whole, with −1."""
    if not parents or parents[0] != -1 or any(not 0 <= p < i for i, p in enumerate(parents) if i):
        raise InvalidInput("a tree begins with the whole, and each part comes after its whole")
    children: list[list[int]] = [[] for _ in parents]
    depths = [0] * len(parents)
    for node, parent in enumerate(parents[1:], start=1):
        children[parent].append(node)
        depths[node] = depths[parent] + 1
    leaves = [0] * len(parents)
    for node in reversed(range(len(parents))):
        leaves[node] = sum(leaves[child] for child in children[node]) or 1
    deep = max(depths)
    if any(not below and depth < deep for below, depth in zip(children, depths, strict=True)):
        raise InvalidInput("all leaves of a tree must be equally deep")
    return Tree(tuple(depths), tuple(map(tuple, children)), tuple(leaves))


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedCounts(Mechanism[Histogram]):
    """Consistent counts of every node of a tree, from a histogram of its leaves.

    A unit changes at most `contribution_limit` leaves, each by at most `per_key_limit`. What it
    changes on each level, and the price of that, is in `levels` ("Counts of a tree" in
    docs/theory/mechanisms.md).
    """

    coordinate: Coordinate
    contribution_limit: int
    per_key_limit: int
    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        check(self, "contribution_limit", "per_key_limit")
        _ = self.levels  # the tree and the scales are checked when the mechanism is made

    @property
    def levels(self) -> tuple[KnownCounts, ...]:
        """How the nodes of each depth are counted.

        A unit has at most Δ leaves. So on a level with n nodes of at most m leaves it changes at
        most min(Δ, n) counts, each by at most min(Δ, m)·τ, and all of them together by at most Δτ.
        One coordinate for each, or one for all: what gives less noise for its price.
        """
        tree, most, rows = tree_of(self.parents), self.contribution_limit, self.per_key_limit
        made = []
        for depth in range(max(tree.depths) + 1):
            below = [n for n, d in zip(tree.leaves, tree.depths, strict=True) if d == depth]
            counts, share = min(most, len(below)), min(most, max(below))
            in_all = counts * share**2 > most**2
            limit = (most if in_all else share) * rows
            made.append(
                KnownCounts(
                    coordinate=self.coordinate,
                    contribution_limit=counts,
                    per_key_limit=limit,
                    in_all=in_all,
                )
            )
        return tuple(made)

    @property
    def assumes(self) -> Contribution:
        """The limits on leaves."""
        return Contribution(self.contribution_limit, self.per_key_limit)

    @property
    def guarantees(self) -> Uses:
        """Every level."""
        return summed_uses(*(use for level in self.levels for use in level.guarantees))

    def run(self, histogram: Histogram) -> Release:
        """Counts that add up, in the order of the nodes; the only part has the noisy ones."""
        tree = tree_of(self.parents)
        counts = np.zeros(len(self.parents), dtype=np.int64)
        counts[[i for i, below in enumerate(tree.children) if not below]] = histogram.counts
        for node in range(len(self.parents) - 1, 0, -1):
            counts[self.parents[node]] += counts[node]
        source, depths = system_bits(), np.array(tree.depths)
        for depth, level in enumerate(self.levels):
            at = np.flatnonzero(depths == depth)
            counts[at] += level.noise.draw(at.size, source)
        nodes, drawn = tuple(range(len(self.parents))), tuple(counts.tolist())
        whole = whole_numbers(self.parents, self.fitted(drawn))
        return Release(nodes, whole, parts=(Release(nodes, drawn),))

    @property
    def drawn_variances(self) -> tuple[float, ...]:
        """Of the noise of each node."""
        levels = [
            coordinate_noise(self.coordinate, at.per_key_limit).variance for at in self.levels
        ]
        return tuple(levels[depth] for depth in tree_of(self.parents).depths)

    def fitted(self, drawn: Sequence[float]) -> list[float]:
        """The numbers that add up and are nearest to these in least squares, each weighed by the
        precision of its noise. From the leaves up, what a node and the nodes below say about it;
        then down, what is left of a node is shared out by the variances of its parts."""
        tree, (up, below, shares, _) = tree_of(self.parents), _weights(self)
        numbers = [float(number) for number in drawn]
        sums = [0.0] * len(numbers)
        for node in reversed(range(len(numbers))):
            if tree.children[node]:
                sums[node] = math.fsum(numbers[child] for child in tree.children[node])
                own = below[node] / (below[node] + up[node])
                numbers[node] = own * numbers[node] + (1 - own) * sums[node]
        for node, parent in enumerate(self.parents[1:], start=1):
            numbers[node] += shares[node] * (numbers[parent] - sums[parent])
        return numbers

    @property
    def variances(self) -> tuple[float, ...]:
        """Of each number that adds up."""
        return _weights(self)[3]

    def half_widths(self, confidence: float) -> list[float]:
        """Of each number. A sum of Laplace numbers lies further out than a normal number of the
        same variance, and no further than a single Laplace number, or than the normal one where
        that is wider; and half a step for whole numbers."""
        wide = NormalDist().inv_cdf((1 + require_confidence(confidence)) / 2)
        if isinstance(self.coordinate, PureDP):
            wide = max(wide, -math.log(1 - confidence) / math.sqrt(2))
        return [wide * math.sqrt(variance) + 0.5 for variance in self.variances]

    def errors(
        self, release: Release, confidence: float, *, together: bool = False
    ) -> tuple[Interval, ...]:
        """The whole numbers around what was fitted; what is released and shown is among them."""
        assert release.counts is not None
        (drawn,) = release.parts
        seen = zip(release.counts, above_zero(self.parents, release.counts), strict=True)
        fitted = zip(self.fitted(drawn.counts or ()), self.half_widths(confidence), strict=True)
        return tuple(
            (min(math.ceil(x - wide), *whole), max(math.floor(x + wide), *whole))
            for (x, wide), whole in zip(fitted, seen, strict=True)
        )

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """The error of the number that is least accurate."""
        error = math.sqrt(2 * max(self.variances) / math.pi)
        return Expectation(Accuracy(error, max(self.half_widths(confidence)), confidence))


@lru_cache(maxsize=32)
def _weights(
    mechanism: NestedCounts,
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """For each node the variance of its noise, that of the sum of its parts as known from below,
    its share of what is left of its whole, and the variance of what is fitted.

    With s the variance of a node as known from below, S the sum of those of its siblings and its
    own, and V that of its whole: its share is s/S, and its variance s − (s/S)²·(S − V).
    """
    tree, own = tree_of(mechanism.parents), mechanism.drawn_variances
    known, below = list(own), [0.0] * len(own)
    for node in reversed(range(len(own))):
        if tree.children[node]:
            below[node] = math.fsum(known[child] for child in tree.children[node])
            known[node] = own[node] * below[node] / (own[node] + below[node])
    shares, variances = [1.0] * len(own), [known[0]] * len(own)
    for node, parent in enumerate(mechanism.parents[1:], start=1):
        share = shares[node] = known[node] / below[parent]
        variances[node] = known[node] - share**2 * (below[parent] - variances[parent])
    return own, tuple(below), tuple(shares), tuple(variances)


def whole_numbers(parents: tuple[int, ...], numbers: Sequence[float]) -> tuple[int, ...]:
    """Whole numbers near these, of which the parts of every node add up to it exactly."""
    whole = [math.floor(numbers[0] + 0.5)] * len(numbers)
    for node, children in enumerate(tree_of(parents).children):
        if children:
            wanted = [numbers[child] for child in children]
            moved = (whole[node] - math.fsum(wanted)) / len(wanted)
            parts = [math.floor(number + moved) for number in wanted]
            lost = [number + moved - part for number, part in zip(wanted, parts, strict=True)]
            for child, part in zip(children, _adding_up(whole[node], parts, lost), strict=True):
                whole[child] = part
    return tuple(whole)


def above_zero(parents: tuple[int, ...], counts: Sequence[int | float]) -> tuple[int, ...]:
    """The same for numbers that are at least 0: of the parts of a node the nearest whole ones that
    add up to it. All of them are moved by one amount, and those that are then below 0 are 0."""
    if min(counts) >= 0:
        return tuple(map(int, counts))
    whole = [max(int(counts[0]), 0)] * len(counts)
    for node, children in enumerate(tree_of(parents).children):
        if children:
            numbers = [int(counts[child]) for child in children]
            less, size = _lowered_by(whole[node], numbers)
            parts = [divmod(max(number * size - less, 0), size) for number in numbers]
            down, lost = [part for part, _ in parts], [rest for _, rest in parts]
            for child, part in zip(children, _adding_up(whole[node], down, lost), strict=True):
                whole[child] = part
    return tuple(whole)


def _adding_up(total: int, whole: Sequence[int], lost: Sequence[float]) -> list[int]:
    """These numbers, one more where most was lost by rounding down, so that they add up."""
    every, some = divmod(total - sum(whole), len(whole))
    more = set(sorted(range(len(whole)), key=lambda i: (-lost[i], i))[:some])
    return [number + every + (i in more) for i, number in enumerate(whole)]


def _lowered_by(total: int, numbers: Sequence[int]) -> tuple[int, int]:
    """By how much numbers are lowered, as a fraction, to add up to a total with those below 0
    left out: the projection onto all that are at least 0 and do."""
    ordered = sorted(numbers, reverse=True)
    less, size = ordered[0] - total, 1
    for place, above in enumerate(accumulate(ordered), start=1):
        if ordered[place - 1] * place > above - total:
            less, size = above - total, place
    return less, size
