"""The theorems of docs/theory/mechanisms.md against enumeration."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import farthing as fa
from farthing.guarantees.kinds import BoundedRange, DiscreteGaussian, PureDP
from farthing.mechanisms import (
    DiscreteLaplaceNoise,
    Histogram,
    Quantile,
    ThresholdedCounts,
    TruncatedGaussianNoise,
    UnknownCounts,
    UnknownGumbel,
)
from farthing.mechanisms.histogram import top_counts
from farthing.mechanisms.selection.quantiles import weights_in

from .fit import fits

Law = dict[Any, float]


def hockey_stick(first: Law, second: Law, epsilon: float) -> float:
    factor = math.exp(epsilon)
    return math.fsum(max(p - factor * second.get(y, 0.0), 0.0) for y, p in first.items())


def composed_pure(epsilon: float, count: int, delta: float, at: float) -> float:
    """δ(at) of `count` randomized responses and one leak: what the items are charged."""
    truth = 1 / (1 + math.exp(-epsilon))
    total = 0.0
    for lies in range(count + 1):
        loss = epsilon * (count - 2 * lies)
        mass = math.comb(count, lies) * truth ** (count - lies) * (1 - truth) ** lies
        total += mass * max(1 - math.exp(at - loss), 0.0)
    return delta + (1 - delta) * total


def pairs(
    labels: int, largest: int, keys: int, limit: int
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All histograms with counts up to `largest` and all ways to add one unit."""
    for counts in itertools.product(range(largest + 1), repeat=labels):
        for raised in itertools.product(range(limit + 1), repeat=labels):
            if 0 < sum(rise > 0 for rise in raised) <= keys:
                yield counts, tuple(c + r for c, r in zip(counts, raised, strict=True))


def seen(counts: tuple[int, ...], candidates: int) -> tuple[set[int], int]:
    top = top_counts(Histogram(list(range(len(counts))), counts), candidates)
    return set(top.positions.tolist()), top.cutoff


class TestLaplace:
    """Theorem 1."""

    @pytest.mark.parametrize("limit", [1, 2, 5])
    def test_losses(self, limit: int) -> None:
        epsilon = 0.7
        a = math.exp(-epsilon / limit)
        losses = [(abs(z - limit) - abs(z)) * -math.log(a) for z in range(-200, 200)]
        assert max(losses) == pytest.approx(epsilon)
        assert min(losses) == pytest.approx(-epsilon)

    def test_one_step_is_exactly_randomized_response(self) -> None:
        epsilon = 0.7
        a = math.exp(-epsilon)
        law = {z: (1 - a) / (1 + a) * a ** abs(z) for z in range(-300, 301)}
        moved = {z + 1: p for z, p in law.items()}
        for at in (-0.5, 0.0, 0.2, 0.6, 0.7):
            assert hockey_stick(law, moved, at) == pytest.approx(composed_pure(epsilon, 1, 0, at))

    def test_the_continuous_laplace_profile_would_be_a_lie(self) -> None:
        epsilon, at = 0.7, 0.3
        continuous = 1 - math.exp((at - epsilon) / 2)
        assert composed_pure(epsilon, 1, 0, at) > 1.1 * continuous


class TestGaussian:
    """Theorem 2."""

    @pytest.mark.parametrize("sigma", [0.4, 1.0, 3.0])
    @pytest.mark.parametrize("alpha", [1.01, 1.5, 2.0, 7.3, 40.0])
    def test_divergence(self, sigma: float, alpha: float) -> None:
        with mpmath.workdps(60):
            s, order = mpmath.mpf(sigma), mpmath.mpf(alpha)
            reach = int((14 + alpha / sigma) * sigma + alpha) + 40
            g = {z: mpmath.exp(-(z**2) / (2 * s**2)) for z in range(-reach, reach + 1)}
            total = mpmath.fsum(g.values())
            moment = mpmath.fsum(
                mpmath.exp(-order * z**2 / (2 * s**2) - (1 - order) * (z - 1) ** 2 / (2 * s**2))
                for z in g
            )
            divergence = mpmath.log(moment / total) / (order - 1)
            assert divergence <= order / (2 * s**2) + mpmath.mpf(10) ** -30

    def test_the_continuous_gaussian_profile_would_be_a_lie(self) -> None:
        g = {z: math.exp(-(z**2) / 2) for z in range(-40, 41)}
        variation = 1 / sum(g.values())
        assert variation > math.erf(0.5 / math.sqrt(2)) + 0.01


class TestAccess:
    """Lemma B, exhaustively."""

    @pytest.mark.parametrize(("keys", "limit"), [(1, 1), (1, 2), (2, 1), (2, 2), (4, 1)])
    @pytest.mark.parametrize("candidates", [1, 2, 3])
    def test_all_small_histograms(self, keys: int, limit: int, candidates: int) -> None:
        for low, high in pairs(4, 2, keys, limit):
            (d, c), (d2, c2) = seen(low, candidates), seen(high, candidates)
            raised = {i for i in range(4) if high[i] > low[i]}
            a, b, common = d - d2, d2 - d, d & d2
            assert c <= c2 <= c + limit
            assert all(low[i] <= c2 for i in a)
            assert all(high[i] <= c + limit for i in b)
            assert b <= raised
            assert len(a) <= len(b) <= min(keys, candidates)
            assert len(raised & common) + (c != c2) <= keys

    def test_ties_follow_the_label_not_the_position(self) -> None:
        forwards = top_counts(Histogram(["b", "c", "a"], [3, 3, 3]), 2)
        backwards = top_counts(Histogram(["a", "c", "b"], [3, 3, 3]), 2)
        assert {["b", "c", "a"][i] for i in forwards.positions} == {"a", "b"}
        assert {["a", "c", "b"][i] for i in backwards.positions} == {"a", "b"}
        objects = np.empty(3, dtype=object)
        objects[:] = [("x", 2), ("x", 3), ("x", 1)]
        tuples = top_counts(Histogram(objects, [3, 3, 3]), 2)
        assert {objects[i] for i in tuples.positions} == {("x", 1), ("x", 2)}

    def test_zero_counts_are_absent(self) -> None:
        top = top_counts(Histogram(["a", "b", "c"], [0, 2, 0]), 2)
        assert top.positions.tolist() == [1]
        assert top.cutoff == 0


def race_law(weights: dict[object, float], k: int) -> Law:
    """The law of the list: labels until k of them or ⊥."""
    law: Law = {}

    def extend(prefix: tuple[object, ...], probability: float) -> None:
        if len(prefix) == k or (prefix and prefix[-1] == "⊥"):
            law[prefix] = law.get(prefix, 0.0) + probability
            return
        left = {y: w for y, w in weights.items() if y not in prefix}
        total = math.fsum(left.values())
        for y, w in left.items():
            extend((*prefix, y), probability * w / total)

    extend((), 1.0)
    return law


def gumbel_weights(mechanism: UnknownGumbel, counts: tuple[int, ...]) -> dict[object, float]:
    visible, cutoff = seen(counts, mechanism.candidates)
    rate = float(mechanism.rate)
    weights: dict[object, float] = {i: math.exp(rate * counts[i]) for i in visible}
    weights["⊥"] = mechanism.stop_multiplicity * math.exp(rate * (cutoff + mechanism.per_key_limit))
    return weights


class TestUnknownGumbel:
    """Theorem 3: each step of the proof, and its conclusion for one draw."""

    CASES = ((1, 1, 1), (1, 2, 2), (2, 1, 2), (2, 2, 1), (3, 2, 2))

    @pytest.mark.parametrize(("keys", "limit", "candidates"), CASES)
    @pytest.mark.parametrize("delta", [0.2, 0.01])
    def test_proof(self, keys: int, limit: int, candidates: int, delta: float) -> None:
        mechanism = UnknownGumbel(
            epsilon=0.8,
            delta=delta,
            k=candidates,
            candidates=candidates,
            per_key_limit=limit,
            contribution_limit=keys,
        )
        for low, high in pairs(3, 3, keys, limit):
            sides = gumbel_weights(mechanism, low), gumbel_weights(mechanism, high)
            common = set(sides[0]) & set(sides[1])
            merged = []
            for weights in sides:
                law = race_law(weights, mechanism.k)
                foreign = math.fsum(w for y, w in weights.items() if y not in common)
                bad = foreign / (foreign + weights["⊥"])
                assert bad <= delta * (1 + 1e-12)
                race = {y: w for y, w in weights.items() if y in common}
                race["⊥"] += foreign
                merged.append(race)
                good = race_law(race, mechanism.k)
                for y, p in good.items():
                    assert law[y] >= (1 - bad) * p * (1 - 1e-9)
            changes = [math.log(merged[1][y] / merged[0][y]) for y in common]
            assert max(changes) - min(changes) <= mechanism.epsilon + 1e-12

    @pytest.mark.parametrize(("keys", "limit", "candidates"), CASES)
    def test_one_draw_is_within_its_items(self, keys: int, limit: int, candidates: int) -> None:
        epsilon, delta = 0.8, 0.05
        mechanism = UnknownGumbel(
            epsilon=epsilon,
            delta=delta,
            k=1,
            candidates=candidates,
            per_key_limit=limit,
            contribution_limit=keys,
        )
        assert mechanism.guarantees[0] == (BoundedRange(epsilon), 1)
        worst = 0.0
        for low, high in pairs(3, 3, keys, limit):
            laws = [race_law(gumbel_weights(mechanism, counts), 1) for counts in (low, high)]
            for p, q in (laws, laws[::-1]):
                for at in (0.0, 0.1, 0.4, 0.79):
                    range_part = (1 - math.exp((at - epsilon) / 2)) ** 2 / -math.expm1(-epsilon)
                    allowed = delta + (1 - delta) * range_part
                    found = hockey_stick(p, q, at)
                    assert found <= allowed + 1e-12
                    worst = max(worst, found / allowed)
        assert worst > 0.3, "the bound should be within reach of some pair"

    def test_what_runs_is_what_was_proved(self) -> None:
        mechanism = UnknownGumbel(epsilon=0.5, delta=0.2, k=2, candidates=2, per_key_limit=1)
        counts = (9, 8, 6)
        drawn = []
        for _ in range(4000):
            release = mechanism.run(Histogram([0, 1, 2], counts))
            drawn.append(release.labels + (("⊥",) if release.stopped else ()))
        weights = gumbel_weights(mechanism, counts)
        assert fits(drawn, race_law(weights, 2))
        wrong = {y: w**1.3 for y, w in weights.items()}
        assert not fits(drawn, race_law(wrong, 2))

    def test_ties_by_label_keep_the_candidates(self) -> None:
        """Ties broken at random could replace all three: the example in the text."""
        low, high = (5, 5, 5, 1), (5, 5, 5, 5)
        assert seen(low, 3)[0] == seen(high, 3)[0] == {0, 1, 2}


class TestUnknownCounts:
    """Theorem 4: the whole law, enumerated."""

    @staticmethod
    def law(mechanism: UnknownCounts, counts: tuple[int, ...], reach: int) -> Law:
        visible, cutoff = seen(counts, mechanism.candidates)
        assert isinstance(mechanism.noise, DiscreteLaplaceNoise)
        a = math.exp(-1 / float(mechanism.noise.scale))
        noise = {z: (1 - a) / (1 + a) * a ** abs(z) for z in range(-reach, reach + 1)}
        law: Law = {}
        for z, mass in noise.items():
            least = cutoff + z + mechanism.threshold
            partial: Law = {(): mass}
            for label in sorted(visible):
                step: Law = {}
                hidden = math.fsum(p for y, p in noise.items() if counts[label] + y < least)
                for done, p in partial.items():
                    step[done] = step.get(done, 0.0) + p * hidden
                    for y, q in noise.items():
                        value = counts[label] + y
                        if value >= least:
                            key = (*done, (label, value))
                            step[key] = step.get(key, 0.0) + p * q
                partial = step
            for released, p in partial.items():
                law[released] = law.get(released, 0.0) + p
        return law

    @pytest.mark.parametrize(
        ("keys", "limit", "candidates", "low", "high"),
        [
            (1, 1, 1, (4, 0), (5, 0)),
            (1, 1, 1, (0, 3), (1, 3)),
            (1, 1, 1, (3, 3), (3, 4)),
            (1, 2, 1, (11, 10), (11, 12)),
            (1, 1, 1, (0, 0), (1, 0)),
            (2, 1, 1, (4, 4), (5, 5)),
            (2, 1, 2, (3, 3, 3), (3, 4, 4)),
            (2, 1, 2, (5, 1, 0), (6, 2, 0)),
        ],
    )
    def test_within_its_items(
        self, keys: int, limit: int, candidates: int, low: tuple[int, ...], high: tuple[int, ...]
    ) -> None:
        mechanism = UnknownCounts(
            coordinate=PureDP(1.0),
            delta=0.05,
            candidates=candidates,
            contribution_limit=keys,
            per_key_limit=limit,
        )
        reach = 24 if candidates == 1 else 13
        laws = [self.law(mechanism, counts, reach) for counts in (low, high)]
        lost = max(1 - math.fsum(law.values()) for law in laws)
        for p, q in (laws, laws[::-1]):
            for at in (0.0, 0.3, 1.0, 1.5, 2.0, 3.0):
                allowed = composed_pure(1.0, keys, 0.05, at)
                assert hockey_stick(p, q, at) <= allowed + 2 * math.exp(at) * lost

    def test_what_runs_is_what_was_proved(self) -> None:
        mechanism = UnknownCounts(
            coordinate=PureDP(1.0), delta=0.05, candidates=1, contribution_limit=1, per_key_limit=1
        )
        counts = (mechanism.threshold + 2, 1)
        drawn = []
        for _ in range(6000):
            release = mechanism.run(Histogram([0, 1], counts))
            drawn.append(tuple(zip(release.labels, release.counts or (), strict=True)))
        assert fits(drawn, self.law(mechanism, counts, 30))
        steeper = replace(mechanism, coordinate=PureDP(1.3))
        assert not fits(drawn, self.law(steeper, counts, 30))

    def test_threshold_is_the_smallest_that_the_tail_allows(self) -> None:
        mechanism = UnknownCounts(
            coordinate=PureDP(0.1), delta=1e-9, candidates=50, contribution_limit=3, per_key_limit=2
        )
        noise, margin = mechanism.noise, mechanism.threshold - 2
        assert 3 * float(noise.difference_tail(margin).mid()) <= 1e-9
        assert 3 * float(noise.difference_tail(margin - 1).mid()) > 1e-9

    @pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
    def test_textbook_threshold_leaks_more_than_delta(self, delta: float) -> None:
        """The exact chance that a label only one side has is released, with x = ln(Δ/δ)·τ/ε."""
        for epsilon, keys in ((1.0, 1), (0.1, 1), (0.1, 10)):
            noise = DiscreteLaplaceNoise(1 / Fraction(epsilon))
            textbook = math.ceil(math.log(keys / delta) / epsilon)
            leaked = keys * float(noise.difference_tail(textbook).mid())
            assert leaked > 1.5 * delta


class TestThresholded:
    """Theorem 5: δ is exact for Δ labels that only one side has."""

    @pytest.mark.parametrize("keys", [1, 3])
    def test_delta_is_met_and_nearly_used(self, keys: int) -> None:
        mechanism = ThresholdedCounts(
            coordinate=PureDP(0.5), delta=1e-4, contribution_limit=keys, per_key_limit=2
        )
        a = math.exp(-0.25)

        def released(threshold: int) -> float:
            one = a ** (threshold - 2) / (1 + a)
            return 1 - (1 - one) ** keys

        assert released(mechanism.threshold) <= 1e-4 < released(mechanism.threshold - 1)


class TestTruncated:
    """Lemma C, Theorems 6 and 7."""

    @pytest.mark.parametrize(
        ("s", "bound", "shift"), [(3.0, 9, 1), (3.0, 9, 3), (0.6, 4, 2), (0.3, 2, 1)]
    )
    def test_the_common_support_is_no_worse_than_the_whole_noise(
        self, s: float, bound: int, shift: int
    ) -> None:
        """Lemma C: profiles given the common support against those of untruncated noise."""
        with mpmath.workdps(50):
            scale = 2 * mpmath.mpf(s) ** 2

            def pair(outcomes: range) -> tuple[dict[int, Any], dict[int, Any]]:
                first = {y: mpmath.exp(-(y**2) / scale) for y in outcomes}
                second = {y: mpmath.exp(-((y - shift) ** 2) / scale) for y in outcomes}
                return tuple(
                    {y: w / mpmath.fsum(law.values()) for y, w in law.items()}
                    for law in (first, second)
                )

            inside, whole = pair(range(shift - bound, bound + 1)), pair(range(-120, 121))
            for x in [mpmath.mpf(n) / 8 for n in range(-40, 200)]:
                mine, all_ = (
                    mpmath.fsum(max(0, p[y] - mpmath.exp(x) * q[y]) for y in p)
                    for p, q in (inside, whole)
                )
                assert mine <= all_ + mpmath.mpf(10) ** -40

    def test_the_sum_over_an_interval_is_not_unimodal(self) -> None:
        """Why the continuous argument of [CR22] is not reused for whole numbers."""
        total = lambda c: sum(math.exp(-((z - c) ** 2) / (2 * 0.3**2)) for z in range(-3, 4))
        assert total(0.5) < total(1.0) > total(1.5) < total(2.0)

    @pytest.mark.parametrize(("keys", "limit", "candidates"), [(1, 1, 1), (1, 2, 1), (2, 2, 2)])
    def test_labels_seen_on_one_side_are_never_released(
        self, keys: int, limit: int, candidates: int
    ) -> None:
        mechanism = UnknownCounts(
            coordinate=DiscreteGaussian(2.0, limit),
            delta=1e-3,
            candidates=candidates,
            contribution_limit=keys,
            per_key_limit=limit,
        )
        assert isinstance(mechanism.noise, TruncatedGaussianNoise)
        bound = mechanism.noise.bound
        without_limit = 0
        for low, high in pairs(4, 3, keys, limit):
            for counts, other in ((low, high), (high, low)):
                (visible, cutoff), (others, _) = seen(counts, candidates), seen(other, candidates)
                for label in visible - others:
                    excess = counts[label] + bound - (cutoff - bound)
                    assert not excess >= mechanism.threshold
                    without_limit += excess > 2 * bound
        assert without_limit > 0, "2T alone, without per_key_limit, releases some of them"

    def test_new_labels_never_exceed_the_fixed_threshold(self) -> None:
        mechanism = ThresholdedCounts(
            coordinate=DiscreteGaussian(2.0, 3),
            truncated=True,
            delta=1e-3,
            contribution_limit=2,
            per_key_limit=3,
        )
        assert 3 + mechanism.noise.bound == mechanism.threshold - 1

    @pytest.mark.parametrize("keys", [1, 2])
    def test_profile_is_within_the_price(self, keys: int) -> None:
        """Exact hockey stick of the product law against the composition of what is charged."""
        mechanism = ThresholdedCounts(
            coordinate=DiscreteGaussian(2.0, 1),
            truncated=True,
            delta=0.01,
            contribution_limit=keys,
            per_key_limit=1,
        )
        assert isinstance(mechanism.noise, TruncatedGaussianNoise)
        bound = mechanism.noise.bound
        g = {z: math.exp(-(z**2) / 8) for z in range(-bound, bound + 1)}
        total = sum(g.values())
        p = {z: w / total for z, w in g.items()}
        q = {z + 1: w for z, w in p.items()}
        first = {ys: math.prod(p[y] for y in ys) for ys in itertools.product(p, repeat=keys)}
        second = {ys: math.prod(q[y] for y in ys) for ys in itertools.product(q, repeat=keys)}
        price = fa.compose(mechanism.guarantees)
        for at in (0.0, 0.5, 1.0, 2.0):
            charged = price.delta_at(at).upper
            for x, y in ((first, second), (second, first)):
                assert hockey_stick(x, y, at) <= charged


def runs_of(mechanism: Quantile, histogram: Histogram) -> tuple[np.ndarray, ...]:
    """Runs of values with one score."""
    return mechanism.runs(*weights_in(histogram, mechanism.lower, mechanism.upper))


class TestQuantile:
    """Theorem 8: the range by brute force, and it is attained."""

    @pytest.mark.parametrize("probability", [0.5, 0.25, 0.9, 1 / 3])
    def test_range(self, probability: float) -> None:
        mechanism = Quantile(
            probability=probability,
            epsilon=1.0,
            lower=0,
            upper=4,
            contribution_limit=1,
            per_key_limit=1,
        )

        def scores(counts: tuple[int, ...]) -> np.ndarray:
            histogram = Histogram(list(range(5)), counts)
            first, last, values = runs_of(mechanism, histogram)
            out = np.zeros(5, dtype=np.int64)
            for start, end, value in zip(first, last, values, strict=True):
                out[start : end + 1] = value
            return out

        worst = 0
        for low, high in pairs(5, 2, 1, 1):
            change = scores(high) - scores(low)
            worst = max(worst, int(change.max() - change.min()))
        assert worst <= mechanism.score_range
        if probability == 0.5:
            assert worst == mechanism.score_range

    def test_scores_are_the_stated_ones(self) -> None:
        mechanism = Quantile(
            probability=0.25, epsilon=1, lower=-2, upper=9, contribution_limit=1, per_key_limit=1
        )
        values = [-5, 0, 0, 3, 4, 4, 4, 12]
        labels, counts = np.unique(values, return_counts=True)
        first, last, scores = runs_of(mechanism, Histogram(labels, counts))
        clipped = [min(max(v, -2), 9) for v in values]
        covered = []
        for start, end, score in zip(first, last, scores, strict=True):
            for v in range(start, end + 1):
                below, above = sum(x < v for x in clipped), sum(x > v for x in clipped)
                count = len(clipped)
                assert score == -max(0, 3 * below - (count - below), above - 3 * (count - above))
                covered.append(v)
        assert sorted(covered) == list(range(-2, 10))

    @pytest.mark.parametrize("total", [4_398_046_511 << 20, 4_398_046_512 << 20, 2**62, 2**63 - 7])
    def test_no_size_fails(self, total: int) -> None:
        """One row more than 4 398 046 511, each of weight 2^20, failed at 0.999: δ = 1 there."""
        mechanism = Quantile(
            probability=0.999,
            epsilon=1,
            lower=0,
            upper=9,
            contribution_limit=1,
            per_key_limit=1 << 20,
        )
        tail = total // 1000
        counts = [total // 3, total // 3, total - 2 * (total // 3) - tail, tail]
        labels = [1, 4, 6, 8]
        found = runs_of(mechanism, Histogram(labels, counts))
        exact = dict(zip(labels, counts, strict=True))
        for start, end, score in zip(*found, strict=True):
            for v in range(int(start), int(end) + 1):
                below = sum(n for x, n in exact.items() if x < v)
                above = sum(n for x, n in exact.items() if x > v)
                f, g = below - 999 * (total - below), 999 * above - (total - above)
                assert score == max(-max(0, f, g), -(2**62))
        assert mechanism.run(Histogram(labels, counts)).labels[0] in (6, 7, 8)

    @pytest.mark.parametrize("probability", [0.5, 0.999, 0.001])
    @pytest.mark.parametrize("total", [2**62 // 1000, 2**62 // 2, 2**62, 3 * 2**62])
    def test_moved_scores_keep_the_range(self, probability: float, total: int) -> None:
        """Neighbours on both sides of every edge: where 64 bits end, and where scores are moved."""
        mechanism = Quantile(
            probability=probability,
            epsilon=1,
            lower=0,
            upper=9,
            contribution_limit=1,
            per_key_limit=5,
        )

        def scores(counts: list[int]) -> list[int]:
            out = {}
            for start, end, score in zip(
                *runs_of(mechanism, Histogram(list(range(10)), counts)), strict=True
            ):
                out.update(dict.fromkeys(range(int(start), int(end) + 1), int(score)))
            return [out[v] for v in range(10)]

        for seed in range(40):
            draw = random.Random(seed)
            counts = [draw.choice([0, 1, total // 10, total // 4]) for _ in range(10)]
            counts[draw.randrange(10)] = min(total // 3 + draw.randrange(-9, 9), 2**62 - 9)
            more = list(counts)
            more[draw.randrange(10)] += 5
            moved = [
                after - before for before, after in zip(scores(counts), scores(more), strict=True)
            ]
            assert max(moved) - min(moved) <= mechanism.score_range

    def test_ties_are_in_favour_of_the_quantile(self) -> None:
        """A third of all values each at 10, 20 and 30: the 0.9 quantile is 30."""
        mechanism = Quantile(
            probability=0.9, epsilon=1, lower=0, upper=100, contribution_limit=1, per_key_limit=1
        )
        histogram = Histogram([10, 20, 30], [300, 300, 300])
        drawn = [mechanism.run(histogram).labels for _ in range(50)]
        assert drawn.count((30,)) >= 45
