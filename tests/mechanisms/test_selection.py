"""Exponential draws without replacement against enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.mechanisms.noise import exact_sampling
from farthing.mechanisms.noise.exact_sampling import BitSource
from farthing.mechanisms.selection.exponential import STOP, Selection

from .fit import fits


def sequence_law(weights: list[float], draws: int) -> dict[tuple[int, ...], float]:
    law = {}
    for sequence in itertools.permutations(range(len(weights)), draws):
        left, probability = list(weights), 1.0
        for index in sequence:
            probability *= weights[index] / math.fsum(left)
            left[index] = 0.0
        law[sequence] = probability
    return law


def sequences(
    scores: np.ndarray, rate: Fraction, draws: int, trials: int, source: BitSource
) -> list:
    def one() -> tuple[int, ...]:
        race = Selection(scores, rate, source)
        return tuple(race.draw() for _ in range(draws))

    return [one() for _ in range(trials)]


@pytest.mark.parametrize(
    "scores",
    [[5, 5, 5, 5], [9, 8, 6, 3, 1], [100, 3, 2, 1], [7, 7, 2, 2, 2]],
    ids=["flat", "spread", "one far ahead", "ties"],
)
def test_whole_scores(scores: list[int], source: BitSource) -> None:
    rate = Fraction(0.4)
    drawn = sequences(np.array(scores), rate, 3, 4000, source)
    law = sequence_law([math.exp(0.4 * (s - 9)) for s in scores], 3)
    assert fits(drawn, law)
    if scores not in ([5, 5, 5, 5], [100, 3, 2, 1]):
        wrong = sequence_law([math.exp(0.4 * 1.3 * (s - 9)) for s in scores], 3)
        assert not fits(drawn, wrong)


def test_a_wide_bucket_rejects_inside_it(source: BitSource) -> None:
    """Rate so small that all scores share a bucket: the acceptance step does the work."""
    scores = np.array([0, 20, 40, 60])
    drawn = sequences(scores, Fraction(1, 100), 2, 6000, source)
    assert fits(drawn, sequence_law([math.exp(s / 100) for s in scores], 2))
    assert not fits(drawn, sequence_law([math.exp(s / 70) for s in scores], 2))


def test_float_scores(source: BitSource) -> None:
    scores = np.array([0.1, -2.5, 1e-3, 1.7])
    drawn = sequences(scores, Fraction(1.1), 2, 4000, source)
    assert fits(drawn, sequence_law(np.exp(1.1 * scores).tolist(), 2))
    assert not fits(drawn, sequence_law(np.exp(1.43 * scores).tolist(), 2))


def test_stop_candidate_with_multiplicity(source: BitSource) -> None:
    scores, rate = np.array([4, 1]), Fraction(0.5)

    def one() -> tuple[int, ...]:
        race = Selection(scores, rate, source, stop=(2, 3))
        first = race.draw()
        return (first,) if first == STOP else (first, race.draw())

    a, b, stop = math.exp(2.0), math.exp(0.5), 3 * math.exp(1.0)
    total = a + b + stop
    law = {
        (STOP,): stop / total,
        (0, STOP): a / total * stop / (b + stop),
        (0, 1): a / total * b / (b + stop),
        (1, STOP): b / total * stop / (a + stop),
        (1, 0): b / total * a / (a + stop),
    }
    assert fits([one() for _ in range(6000)], law)


def test_only_the_stop_candidate(source: BitSource) -> None:
    race = Selection(np.zeros(0, dtype=np.int64), Fraction(1), source, stop=(0, 5))
    assert race.draw() == STOP


def test_sizes_count_as_equal_candidates(source: BitSource) -> None:
    scores, sizes = np.array([0, 1, 3]), np.array([50, 20, 1])
    drawn = [Selection(scores, Fraction(1), source, sizes=sizes).draw() for _ in range(5000)]
    weights = sizes * np.exp(scores)
    assert fits(drawn, dict(enumerate((weights / weights.sum()).tolist())))


def test_far_scores_do_not_underflow(source: BitSource) -> None:
    """e^−(10^15) is never rounded to 0: the rest is still drawn when its turn comes."""
    scores = np.array([10**15, 0, 2 * 10**15])
    race = Selection(scores, Fraction(1), source)
    assert [race.draw() for _ in range(3)] == [2, 0, 1]


def test_undecided_bucket_is_refined() -> None:
    """Two equal buckets part at 1/2; a word that sits on the border needs the next one."""
    scores = np.array([0, 1_000])

    class Fixed:
        def __init__(self, words: list[int]) -> None:
            self.words = words

        def read(self, size: int) -> bytes:
            taken = (self.words + [0] * (size // 8))[: size // 8]
            self.words = self.words[size // 8 :]
            return np.array(taken, dtype=np.uint64).tobytes()

    ones = 2**64 - 1
    # the top candidate has all but e^−1000 ≈ 2^−1443 of the weight: 22 words of ones stay below
    high = Selection(scores, Fraction(1), BitSource(Fixed([ones] * 22 + [0]).read))
    assert high.draw() == 1
    low = Selection(scores, Fraction(1), BitSource(Fixed([ones] * 40).read))
    assert low.draw() == 0


@settings(deadline=None)  # a busy machine is not a defect
@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=40),
    st.floats(1e-6, 50),
    st.integers(0, 2**32),
)
def test_every_candidate_comes_exactly_once(scores: list[int], rate: float, seed: int) -> None:
    with exact_sampling._seeded(seed) as source:
        race = Selection(np.array(scores), Fraction(rate), source)
        assert sorted(race.draw() for _ in scores) == list(range(len(scores)))


def test_input_is_not_changed(source: BitSource) -> None:
    scores = np.array([3, 1, 2])
    race = Selection(scores, Fraction(1, 10), source)
    [race.draw() for _ in range(3)]
    assert scores.tolist() == [3, 1, 2]


@pytest.mark.parametrize("shape", ["flat", "separated", "distinct"])
def test_a_million_categories(shape: str, source: BitSource) -> None:
    size = 10**6
    counts = {
        "flat": np.full(size, 1000),
        "separated": np.arange(size) * 1000,
        "distinct": np.arange(size),
    }[shape]
    race = Selection(counts, Fraction(0.1), source)
    chosen = {race.draw() for _ in range(100)}
    assert len(chosen) == 100
