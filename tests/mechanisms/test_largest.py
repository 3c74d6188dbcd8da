"""The largest counts of a release: post-processing that costs neither more nor less."""

from __future__ import annotations

import pytest

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import PureDP
from farthing.mechanisms import Histogram, KnownCounts, Largest
from farthing.mechanisms.noise import exact_sampling

COUNTING = KnownCounts(coordinate=PureDP(0.5), contribution_limit=4, per_key_limit=1)
HISTOGRAM = Histogram(list("abcdef"), [10, 70, 30, 70, 0, 50])


@pytest.mark.parametrize("k", [1, 3, 6, 9])
def test_the_first_k_of_the_noisy_counts(k: int) -> None:
    for seed in range(30):
        with exact_sampling._seeded(seed):
            whole = COUNTING.run(HISTOGRAM)
        with exact_sampling._seeded(seed):
            kept = Largest(COUNTING, k).run(HISTOGRAM)
        pairs = sorted(
            zip(whole.labels, whole.counts or (), strict=True), key=lambda p: (-p[1], p[0])
        )
        assert list(zip(kept.labels, kept.counts or (), strict=True)) == pairs[:k]


def test_what_is_not_shown_was_drawn_and_is_paid_for() -> None:
    """Charged by what is left in the release, one label would cost a quarter of its price."""
    mechanism = Largest(COUNTING, 1)
    release = mechanism.run(HISTOGRAM)
    assert len(release.labels) == 1
    assert COUNTING.guarantees_for(release) == ((PureDP(0.5), 1),)
    assert mechanism.guarantees_for(release) == mechanism.guarantees == ((PureDP(0.5), 4),)


def test_nothing_released_stays_nothing() -> None:
    with pytest.raises(InvalidInput, match="k must be"):
        Largest(COUNTING, 0)
