"""Several quantiles at once: the law of one draw, the price of a level, order, and ranks."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import BoundedRange
from farthing.mechanisms import Histogram, Quantile, Quantiles
from farthing.mechanisms.noise.exact_sampling import system_bits
from farthing.mechanisms.selection import quantiles
from farthing.mechanisms.selection.quantiles import Part, weights_in

ONE = {"contribution_limit": 1, "per_key_limit": 1}
QUARTERS = (0.25, 0.5, 0.75)


@pytest.fixture
def few_cells(monkeypatch: pytest.MonkeyPatch) -> int:
    """So few cells that laws can be written down."""
    monkeypatch.setattr(quantiles, "CELLS", 4)
    return 4


def part_of(counts: list[int], cells: int, first: int = 0, last: int | None = None) -> Part:
    """The values 0, 1, … with these weights, between two cells."""
    values = np.array([v for v, n in enumerate(counts) if n], dtype=np.int64)
    end = len(counts) * cells - 1 if last is None else last
    return Part(first, end, values, np.array([n for n in counts if n], dtype=np.int64))


def before(counts: list[int], cells: int, first: int, last: int, cell: int) -> int:
    """F by its definition: whole values, and of the value itself an even share."""
    value = cell // cells
    own = [c for c in range(value * cells, (value + 1) * cells) if first <= c <= last]
    share = counts[value] * own.index(cell) // len(own)
    return sum(counts[:value]) + share


class TestPart:
    """One part of the data, its cells, and a draw."""

    @pytest.mark.parametrize("seed", range(30))
    def test_what_lies_before_a_cell(self, few_cells: int, seed: int) -> None:
        draw = random.Random(seed)
        counts = [draw.choice([0, 0, 1, 3, 50]) for _ in range(5)]
        first, last = sorted(draw.sample(range(20), 2))
        counts = [n if first // 4 <= v <= last // 4 else 0 for v, n in enumerate(counts)]
        part = part_of(counts, few_cells, first, last)
        laid = [before(counts, 4, first, last, cell) for cell in range(first, last + 1)]
        assert [part.before(cell) for cell in range(first, last + 1)] == laid
        assert laid == sorted(laid)
        for weight in range(-1, sum(counts) + 2):
            reached = [i for i, n in enumerate(laid) if n >= weight]
            assert part.reach(weight) == first + (reached[0] if reached else len(laid))
        for cell in range(first, last + 1):
            left, right = part.divided(cell)
            assert int(left.counts.sum()) == laid[cell - first]
            assert int(left.counts.sum() + right.counts.sum()) == sum(counts)
            assert (left.first, left.last, right.first, right.last) == (first, cell, cell, last)
            assert all(v <= cell // 4 for v in left.values)
            assert all(v >= cell // 4 for v in right.values)

    @pytest.mark.parametrize("bands", [1, 96])
    @pytest.mark.parametrize("counts", [[3, 0, 9, 1], [0, 0, 0, 0], [40, 0, 0, 0], [1, 1, 0, 2]])
    def test_the_law_of_a_draw(
        self, few_cells: int, monkeypatch: pytest.MonkeyPatch, counts: list[int], bands: int
    ) -> None:
        """Pearson's statistic at 1e-9, however cells are put into bands."""
        monkeypatch.setattr(quantiles, "_BANDS", bands)
        part, rate, trials = part_of(counts, few_cells), Fraction(1, 7), 1500
        probability = Fraction(1, 4)
        off = [
            abs(4 * before(counts, 4, 0, 15, cell) - sum(counts)) for cell in range(few_cells * 4)
        ]
        weights = np.array([math.exp(-n / 7) for n in off])
        drawn = Counter(part.draw(probability, rate, system_bits()) for _ in range(trials))
        expected = trials * weights / weights.sum()
        likely = expected >= 5
        seen = np.array([drawn[cell] for cell in range(16)])
        statistic = float((((seen - expected) ** 2) / expected)[likely].sum())
        assert statistic < 90  # 15 degrees of freedom: 1e-12
        assert seen[~likely].sum() < 60


def law(mechanism: Quantiles, counts: tuple[int, ...], cells: int) -> dict[Any, Any]:
    """The probabilities of every cell of the median, and then of both quartiles together."""
    rate = mechanism.epsilon / (2 * mechanism.per_key_limit)  # of 1/2 in every part: a = b − a = 1

    def likely(scores: dict[int, float]) -> dict[int, float]:
        weights = {one: math.exp(rate * score) for one, score in scores.items()}
        return {one: weight / math.fsum(weights.values()) for one, weight in weights.items()}

    def halves(part: Part) -> dict[int, float]:
        total, chosen = int(part.counts.sum()), range(part.first, part.last + 1)
        return likely({cell: -abs(2 * part.before(cell) - total) for cell in chosen})

    def medians(part: Part) -> dict[int, float]:
        one = mechanism._one((0, 1, 2), part.first // cells, part.last // cells)
        runs = zip(*one.runs(part.values, part.counts), strict=True)
        return likely({v: n for first, last, n in runs for v in range(int(first), int(last) + 1)})

    found = {}
    whole = part_of(list(counts), cells)
    for middle, p in halves(whole).items():
        left, right = map(medians, whole.divided(middle))
        for low, high in itertools.product(left, right):
            found[low, middle, high] = p, left[low] * right[high]
    return found


@pytest.mark.parametrize("weight", [1, 3])
@pytest.mark.parametrize(("counts", "values"), [((0, 1, 4), 3), ((0, 4), 4)])
def test_each_level_is_one_bounded_range_draw(
    few_cells: int, weight: int, counts: tuple[int, ...], values: int
) -> None:
    """Theorem 18 by brute force: every pair of small tables, every draw of the first level."""
    worst = 0.0
    mechanism = Quantiles(
        probabilities=QUARTERS,
        epsilon=1.0,
        lower=0,
        upper=values - 1,
        contribution_limit=1,
        per_key_limit=weight,
    )
    for less in itertools.product(counts, repeat=values):
        laws = law(mechanism, less, few_cells)
        for value in range(values):
            more = tuple(n + weight * (v == value) for v, n in enumerate(less))
            others = law(mechanism, more, few_cells)
            first: dict[int, float] = {}
            second: dict[int, list[float]] = {}
            for drawn, (p, q) in laws.items():
                p_more, q_more = others[drawn]
                first[drawn[1]] = math.log(p_more / p)
                second.setdefault(drawn[1], []).append(math.log(q_more / q))
            assert max(first.values()) - min(first.values()) <= 1 + 1e-9
            for losses in second.values():
                worst = max(worst, max(losses) - min(losses))
    assert 0.5 < worst <= 1 + 1e-9


def test_parts_that_keep_all_of_the_data_are_caught(
    few_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit whose weight is not divided makes a level cost two selections."""

    def moved(part: Part, first: int, last: int) -> Part:
        inside = np.clip(part.values, first // few_cells, last // few_cells)
        values, places = np.unique(inside, return_inverse=True)
        return Part(first, last, values, np.bincount(places, part.counts).astype(np.int64))

    def both(part: Part, cell: int) -> tuple[Part, Part]:
        return moved(part, part.first, cell), moved(part, cell, part.last)

    monkeypatch.setattr(Part, "divided", both)
    with pytest.raises(AssertionError):
        test_each_level_is_one_bounded_range_draw(few_cells, 3, (0, 4), 4)


def ranks_off(data: np.ndarray, value: int, probability: float) -> float:
    """How far a value is from a quantile, ties in its favour."""
    wanted = probability * data.size
    low, high = (int(np.searchsorted(data, value, side)) for side in ("left", "right"))
    return max(low - wanted, wanted - high, 0.0)


TABLES: dict[str, Any] = {
    "even": lambda n: np.arange(n) * (10_000 // n),
    "ties": lambda n: np.repeat([3, 5000, 5001], (n // 5, n // 2, n - n // 5 - n // 2)),
    "one value": lambda n: np.full(n, 77),
    "skewed": lambda n: np.sort((np.exp(np.linspace(0, 9, n))).astype(np.int64)),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    "probabilities", [QUARTERS, (0.1, 0.9), tuple(i / 10 for i in range(1, 10))]
)
def test_ranks_are_as_stated_and_in_order(name: str, probabilities: tuple[float, ...]) -> None:
    """Every value is within the stated ranks as often as stated, and far more often in practice."""
    data = np.sort(TABLES[name](2000))
    values, counts = np.unique(data, return_counts=True)
    mechanism = Quantiles(probabilities=probabilities, epsilon=0.5, lower=0, upper=10_000, **ONE)
    expected = mechanism.expect(0.95).selection
    assert expected is not None
    runs = [mechanism.run(Histogram(values, counts)).labels for _ in range(60)]
    assert all(list(drawn) == sorted(drawn) for drawn in runs)
    off = [
        [ranks_off(data, value, p) for value, p in zip(drawn, probabilities, strict=True)]
        for drawn in runs
    ]
    assert np.mean(off, axis=0).max() <= expected.expected_error
    assert np.mean(np.array(off) <= expected.half_width) > 0.85


def test_better_than_one_each_at_the_same_price() -> None:
    """Prices go by ε²: 3 single draws of √(2/3)·ε cost as much as 2 levels of ε, 9 of √(4/9)·ε
    as much as 4. Mean errors in ranks, five standard errors apart and more."""
    data = np.sort(np.random.default_rng(5).normal(5000, 900, 4000).astype(np.int64))
    values, counts = np.unique(data, return_counts=True)
    histogram = Histogram(values, counts)
    common: dict[str, Any] = {"lower": 0, "upper": 10_000, **ONE}
    for probabilities, runs in ((QUARTERS, 600), (tuple(i / 10 for i in range(1, 10)), 150)):
        together = Quantiles(probabilities=probabilities, epsilon=0.2, **common)
        share = (together.levels / len(probabilities)) ** 0.5
        alone = [Quantile(probability=p, epsilon=0.2 * share, **common) for p in probabilities]
        several, single = [], []
        for _ in range(runs):
            drawn = together.run(histogram).labels
            one_each = [one.run(histogram).labels[0] for one in alone]
            several.append(np.mean([*map(ranks_off, [data] * 9, drawn, probabilities)]))
            single.append(np.mean([*map(ranks_off, [data] * 9, one_each, probabilities)]))
        assert np.mean(several) < np.mean(single)


def test_price_and_limits() -> None:
    for count, levels in ((1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (15, 4)):
        mechanism = Quantiles(
            probabilities=tuple((i + 1) / (count + 1) for i in range(count)),
            epsilon=0.5,
            lower=0,
            upper=9,
            **ONE,
        )
        assert mechanism.guarantees == ((BoundedRange(0.5), levels),)
        assert len(mechanism.run(Histogram.without_rows()).labels) == count
    with pytest.raises(InvalidInput, match="common denominator"):
        Quantiles(probabilities=(0.123, 1 / 3), epsilon=1, lower=0, upper=9, **ONE)
    for wrong in ((), (0.5, 0.25), (0.5, 0.5), (0, 0.5), (0.5, 1)):
        with pytest.raises(InvalidInput, match="must grow"):
            Quantiles(probabilities=wrong, epsilon=1, lower=0, upper=9, **ONE)


@pytest.mark.parametrize("total", [1, 2**40, 2**62 - 1])
@pytest.mark.parametrize("ends", [(0, 0), (-(2**40), 2**40), (-3, 7)])
def test_no_size_fails(total: int, ends: tuple[int, int]) -> None:
    limit = {"contribution_limit": 10**9, "per_key_limit": 1 << 20}
    for epsilon, limits in ((1e-6, limit), (20.0, ONE)):
        mechanism = Quantiles(
            probabilities=(0.001, 0.5, 0.999),
            epsilon=epsilon,
            lower=ends[0],
            upper=ends[1],
            **limits,
        )
        drawn = mechanism.run(Histogram([-(2**50), 0, 5], [total, 1, total])).labels
        assert all(ends[0] <= value <= ends[1] for value in drawn)


class TestExtremes:
    """The least and the largest value: about so much lies beyond."""

    @pytest.mark.parametrize("probability", [0, 1])
    def test_range(self, probability: int) -> None:
        mechanism = Quantile(probability=probability, epsilon=40.0, lower=0, upper=4, **ONE)
        assert mechanism.score_range == 2
        assert mechanism.beyond == 1
        worst = 0
        for counts in itertools.product((0, 1, 2), repeat=5):
            if not any(counts):
                continue
            for value in range(5):
                more = [n + (v == value) for v, n in enumerate(counts)]
                moved = [
                    after - before
                    for before, after in zip(
                        self.scores(mechanism, list(counts)),
                        self.scores(mechanism, more),
                        strict=True,
                    )
                ]
                worst = max(worst, max(moved) - min(moved))
        assert worst == mechanism.score_range

    @staticmethod
    def scores(mechanism: Quantile, counts: list[int]) -> list[int]:
        out = {}
        weights = weights_in(Histogram(list(range(5)), counts), 0, 4)
        for start, end, score in zip(*mechanism.runs(*weights), strict=True):
            out.update(dict.fromkeys(range(int(start), int(end) + 1), int(score)))
        stated = []
        for v in range(5):
            low, high = sum(counts[:v]), sum(counts[v + 1 :])
            near, own = (low, counts[v]) if mechanism.probability == 0 else (high, counts[v])
            stated.append(-max(0, near - mechanism.beyond, mechanism.beyond - near - own))
        assert [out[v] for v in range(5)] == stated
        return stated

    @pytest.mark.parametrize("size", [500, 20_000])
    def test_few_lie_beyond(self, size: int) -> None:
        data = np.sort(np.random.default_rng(size).integers(2000, 3000, size))
        values, counts = np.unique(data, return_counts=True)
        for probability in (0, 1):
            mechanism = Quantile(
                probability=probability, epsilon=0.5, lower=0, upper=1_000_000, **ONE
            )
            expected = mechanism.expect(0.95).selection
            assert expected is not None
            drawn = [mechanism.run(Histogram(values, counts)).labels[0] for _ in range(60)]
            inside = [data[0] <= value <= data[-1] for value in drawn]
            beyond = [
                np.searchsorted(data, v) if probability == 0 else (data > v).sum() for v in drawn
            ]
            assert np.mean(inside) > 0.7
            assert np.mean(np.array(beyond) <= expected.half_width) > 0.7

    def test_no_size_fails(self) -> None:
        limits = {"contribution_limit": 10**9, "per_key_limit": 1 << 20}
        for probability, epsilon in itertools.product((0, 1), (1e-9, 30.0)):
            mechanism = Quantile(
                probability=probability, epsilon=epsilon, lower=-(2**40), upper=2**40, **limits
            )
            for histogram in (Histogram.without_rows(), Histogram([0, 5], [2**62 - 1, 1])):
                assert abs(mechanism.run(histogram).labels[0]) <= 2**40
