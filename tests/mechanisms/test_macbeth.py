"""The counts that Figure 6 of [CR22] is about."""

from __future__ import annotations

import numpy as np

from farthing.guarantees.kinds import DiscreteGaussian, PureDP
from farthing.lab.example_data import macbeth_word_counts
from farthing.mechanisms import (
    Histogram,
    KnownCounts,
    KnownGumbel,
    UnknownGumbel,
    ordered_counts,
)


def test_the_counts_are_there() -> None:
    words, counts = macbeth_word_counts()
    assert words[:3] == ["the", "and", "to"]
    assert counts == sorted(counts, reverse=True)
    Histogram(words, counts)


def test_count_mle_beats_laplace_at_equal_privacy() -> None:
    """(2.08, 1e-6): ε = 0.1 per Laplace count, σ = 13.1. Over 100 trials, by at least a fifth."""
    words, counts = macbeth_word_counts()
    histogram, truth = Histogram(words[:25], counts[:25]), np.array(counts[:25])
    limits = {"contribution_limit": 25, "per_key_limit": 1}
    laplace = KnownCounts(coordinate=PureDP(0.1), **limits)
    gauss = KnownCounts(coordinate=DiscreteGaussian(13.1, 1), **limits)
    errors = np.zeros(2)
    for _ in range(100):
        ordered = ordered_counts(np.array(gauss.run(histogram).counts))
        plain = np.array(laplace.run(histogram).counts)
        errors += ((ordered - truth) ** 2).mean(), ((plain - truth) ** 2).mean()
    assert errors[0] < 0.8 * errors[1]


def test_top_words_are_found() -> None:
    words, counts = macbeth_word_counts()
    histogram = Histogram(words, counts)
    known = KnownGumbel(epsilon=0.5, k=5, per_key_limit=1).run(histogram)
    assert known.labels == tuple(words[:5])
    unknown = UnknownGumbel(epsilon=0.5, delta=1e-9, k=5, candidates=200, per_key_limit=1)
    found = unknown.run(histogram)
    assert found.labels == tuple(words[:5])
    assert not found.stopped
