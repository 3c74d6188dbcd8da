"""Numbers drawn several times: found once, paid every time, as accurate as stated."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import ApproximateDP, BoundedRange, DiscreteGaussian, PureDP
from farthing.lab.audit import audit
from farthing.mechanisms import (
    ClippedSum,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Histogram,
    KnownCounts,
    KnownGumbel,
    Release,
    Repeated,
    TopKWithCounts,
    UnknownGumbel,
)
from farthing.mechanisms.noise import exact_sampling
from farthing.mechanisms.noise.discrete import laplace_sum_tail
from farthing.mechanisms.noise.exact_sampling import BitSource
from farthing.mechanisms.protocol import noise_accuracy

from .fit import fits

LIMITS = {"contribution_limit": 3, "per_key_limit": 1}
LAPLACE = KnownCounts(coordinate=PureDP(0.5), **LIMITS)
GAUSSIAN = KnownCounts(coordinate=DiscreteGaussian(4.0, 1), **LIMITS)
UNKNOWN = UnknownGumbel(epsilon=0.5, delta=1e-6, k=5, candidates=9, **LIMITS)
TOP = TopKWithCounts(selection=UNKNOWN, counting=LAPLACE)
SUM = ClippedSum(coordinate=PureDP(0.5), lower=0, upper=2)


class TestPrices:
    """The first run, and every further draw of the numbers."""

    def test_before_running(self) -> None:
        assert Repeated(LAPLACE, 4).guarantees == ((PureDP(0.5), 12),)
        assert Repeated(SUM, 4).guarantees == ((PureDP(0.5), 4),)
        assert Repeated(TOP, 4).guarantees == (
            (BoundedRange(0.5), 5),
            (ApproximateDP(0.0, 1e-6), 1),
            (PureDP(0.5), 12),
        )

    @pytest.mark.parametrize(("found", "draws", "counts"), [(0, 1, 0), (2, 3, 8), (5, 5, 12)])
    def test_after_running(self, found: int, draws: int, counts: int) -> None:
        release = Release(tuple("abcde"[:found]), tuple(range(found)), stopped=found < 5)
        used = dict(Repeated(TOP, 4).guarantees_for(release))
        assert used[BoundedRange(0.5)] == draws
        assert used.get(PureDP(0.5), 0) == counts

    def test_a_small_domain(self) -> None:
        release = Release(("a", "b"), (1.5, 2.5))
        assert Repeated(LAPLACE, 4).guarantees_for(release) == ((PureDP(0.5), 8),)

    @pytest.mark.parametrize("times", [0, -1, 1.5, True])
    def test_times(self, times: Any) -> None:
        with pytest.raises(InvalidInput, match="times"):
            Repeated(LAPLACE, times)


@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN, TOP, SUM], ids=lambda m: type(m).__name__)
def test_once_is_the_mechanism_itself(mechanism: Any) -> None:
    data = 17 if mechanism is SUM else Histogram(list("abcd"), [70, 50, 3, 1])
    once = Repeated(mechanism, 1)
    assert once.guarantees == mechanism.guarantees
    assert once.expect(0.9) == mechanism.expect(0.9)
    for seed in range(20):
        with exact_sampling._seeded(seed):
            alone = mechanism.run(data)
        with exact_sampling._seeded(seed):
            assert once.run(data) == alone


def test_the_law_of_a_mean_of_two() -> None:
    a = math.exp(-0.5)
    one = {z: (1 - a) / (1 + a) * a ** abs(z) for z in range(-60, 61)}
    law: dict[float, float] = {}
    for x, p in one.items():
        for y, q in one.items():
            law[5 + (x + y) / 2] = law.get(5 + (x + y) / 2, 0.0) + p * q
    histogram = Histogram(np.arange(6000), np.full(6000, 5))
    means = Repeated(LAPLACE, 2).run(histogram).counts
    assert means is not None
    assert fits(means, law)
    repeated_number = LAPLACE.run(histogram).counts  # one draw given out twice
    assert repeated_number is not None
    assert not fits(repeated_number, law)


def test_labels_are_found_once() -> None:
    """Four close counts: asked four times for the best, the answers would differ."""
    top = TopKWithCounts(
        selection=KnownGumbel(epsilon=0.1, k=1, per_key_limit=1), counting=GAUSSIAN
    )
    histogram = Histogram(list("abcd"), [1000, 2000, 3000, 4000])
    flat = Histogram(list("abcd"), [50, 50, 50, 50])
    for _ in range(20):
        release = Repeated(top, 6).run(histogram)
        assert release.labels == ("d",)
        assert abs((release.counts or (0,))[0] - 4000) < 20
    seen = {Repeated(top, 6).run(flat).labels for _ in range(60)}
    assert seen == {("a",), ("b",), ("c",), ("d",)}


def test_an_empty_list_has_no_counts() -> None:
    release = Repeated(TOP, 3).run(Histogram.without_rows())
    assert release == Release((), (), stopped=True)


def test_means_of_ordered_counts_are_ordered() -> None:
    top = TopKWithCounts(
        selection=KnownGumbel(epsilon=5.0, k=4, per_key_limit=1), counting=GAUSSIAN, use_order=True
    )
    for _ in range(20):
        release = Repeated(top, 3).run(Histogram(list("abcd"), [33, 32, 31, 30]))
        assert release.counts == tuple(sorted(release.counts or (), reverse=True))


def test_means_are_exact_before_they_are_rounded() -> None:
    """Sums of counts near 2^62 leave 64 bits; sums of a clipped sum leave floats."""
    largest = 2**62 - 1
    (mean,) = Repeated(LAPLACE, 9).run(Histogram(["a"], [largest])).counts or (0,)
    assert abs(Fraction(mean) - largest) < 2**11
    (total,) = Repeated(SUM, 3).run(10**40).counts or (0,)
    assert total == float(10**40)


def test_an_audit_tells_draws_that_were_not_paid_for() -> None:
    mechanism = Repeated(
        KnownCounts(coordinate=PureDP(0.4), contribution_limit=1, per_key_limit=1), 8
    )
    pair = Histogram(["a"], [20]), Histogram(["a"], [21])
    found = audit(
        mechanism, *pair, trials=4000, confidence=0.999, view=lambda r: r.counts[0]
    ).epsilon
    assert found > 2 * 0.4, "a single draw is not what was given out"
    assert found <= 8 * 0.4


class TestAccuracyOfMeans:
    """The stated half-widths hold at the stated rate, and not much more than that."""

    def test_the_tail_is_that_of_a_sum_of_laplace_numbers(self) -> None:
        draw = np.random.default_rng(7)
        for times in (1, 2, 5, 16):
            sums = np.abs(draw.laplace(size=(200_000, times)).sum(axis=1))
            for at in (0.5, 2.0, 6.0):
                seen = float((sums > at * np.sqrt(times)).mean())
                stated = laplace_sum_tail(times, at * np.sqrt(times))
                assert abs(seen - stated) < 0.005
            assert laplace_sum_tail(times, 1e-9) == pytest.approx(1, abs=1e-6)
        assert laplace_sum_tail(1, 3.0) == pytest.approx(np.exp(-3.0))

    @pytest.mark.parametrize("times", [1, 3, 10])
    def test_coverage(self, times: int, source: BitSource) -> None:
        trials, level, slack = 40_000, 0.9, 0.006
        laplace, gauss = DiscreteLaplaceNoise(Fraction(10)), DiscreteGaussianNoise(Fraction(900))
        for noise, spare in ((laplace, 0.7), (gauss, 0.7 if times == 1 else 0.5)):
            stated = noise_accuracy(noise, level, times)
            drawn = noise.draw(trials * times, source).reshape(trials, times)
            means = np.abs(drawn.mean(axis=1))
            assert float((means <= stated.half_width).mean()) >= level - slack
            assert stated.expected_error == pytest.approx(means.mean(), rel=0.05)
            narrower = spare * stated.half_width  # the subgaussian bound has room to spare
            assert float((means <= narrower).mean()) < level - slack

    def test_many_draws(self) -> None:
        """By the central limit theorem: the mean of n has deviation √(2/n)·scale."""
        stated = DiscreteLaplaceNoise(Fraction(10**6)).half_width(0.95, 500)
        assert stated == pytest.approx(1.96 * math.sqrt(2 / 500) * 10**6, rel=0.02)

    def test_an_expectation_keeps_what_else_was_stated(self) -> None:
        one, mean = TOP.expect(0.9), Repeated(TOP, 7).expect(0.9)
        assert (mean.selection, mean.found_from) == (one.selection, one.found_from)
        assert one.counts is not None
        assert mean.counts is not None
        assert mean.counts.half_width < one.counts.half_width
