"""What long computations tell is true, gets narrower, and is about what was asked."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest

import farthing as fa
from farthing.progress import about, tell

BETWEEN = re.compile(r"(.*) (?:between (\S+) and (\S+)|at least (\S+))")
RANGED = [(fa.BoundedRange(0.0913), 60)]
MIXED = [(fa.BoundedRange(0.0913), 20), (fa.Subsampled(fa.Gaussian(2.0), 0.13), 50)]
IN_ADVANCE = [(fa.BoundedRange(0.1113), 5), (fa.BoundedRange(0.31), 3)]
TARGET = {"epsilon": 2.0, "delta": 1e-6}


def told(compute):
    """What is computed, and (words, low, high) of each time an interval was told."""
    news: list[fa.News] = []
    with fa.listening(news.append):
        answer = compute()
    found = [match for one in news if (match := BETWEEN.fullmatch(one.so_far))]
    ends = [(m[1], float(m[2] or m[4]), float(m[3] or math.inf)) for m in found]
    return answer, ends


@pytest.mark.parametrize(
    ("words", "compute"),
    [
        ("ε", lambda: fa.compose(RANGED).epsilon_at(1e-6)),
        ("δ", lambda: fa.compose(RANGED).delta_at(1.3)),
        ("with the unit: ε", lambda: fa.compose(MIXED).epsilon_at(1e-6)),
        ("ε", lambda: fa.compose(IN_ADVANCE, adaptivity="none").epsilon_at(1e-6)),
        ("δ", lambda: fa.compose(IN_ADVANCE, adaptivity="none").delta_at(0.9)),
        ("the count is", lambda: fa.largest_count(fa.BoundedRange(0.0913), **TARGET)),
        ("ε of each is", lambda: fa.largest_epsilon(fa.BoundedRange, count=30, **TARGET)),
        ("the noise is", lambda: fa.noise_for(lambda s: [(fa.Gaussian(s), 9), *RANGED], **TARGET)),
    ],
)
def test_intervals_contain_the_answer(words, compute):
    answer, ends = told(compute)
    lower, upper = (
        (answer.lower, answer.upper) if isinstance(answer, fa.Bracket) else (answer, answer)
    )
    own = [(low, high) for what, low, high in ends if what == words]
    assert len(own) >= 2
    for low, high in own:
        assert low <= upper * (1 + 1e-4)
        assert lower <= high * (1 + 1e-4)
    assert own[-1][1] < math.inf


def test_a_search_tells_only_what_it_knows():
    _, ends = told(lambda: fa.largest_count(fa.BoundedRange(0.0913), **TARGET))
    assert {what for what, _, _ in ends} == {"the count is"}
    for (_, low, high), (_, later_low, later_high) in pairwise(ends):
        assert low <= later_low <= later_high <= high
    _, ends = told(lambda: fa.compose([(fa.ZeroConcentratedDP(0.02), 3)]).epsilon_at(1e-6))
    answer = fa.compose([(fa.ZeroConcentratedDP(0.02), 3)]).epsilon_at(1e-6)
    assert ends
    assert all(low <= answer.upper and high >= answer.lower * 0.9999 for _, low, high in ends)


def test_a_recursion_tells_how_far_it_is():
    news: list[fa.News] = []
    tariff = fa.Tariff({"a": (fa.BoundedRange(0.1), 1), "b": (fa.PureDP(0.2), 8)}, farthings=37)
    with fa.listening(news.append):
        tariff.certify(tolerance=0.2)
    assert [(one.done, one.total) for one in news] == [(n, 37) for n in range(1, 38)]


def test_a_listener_hears_what_is_inside_and_nothing_else():
    heard: list[fa.News] = []
    tell("before")
    with fa.listening(heard.append), about("here"):
        tell("first", 1, 2)
        with fa.listening(None):
            tell("nobody hears this")
    tell("after")
    assert heard == [fa.News("here: first", 1, 2)]


def test_a_listener_can_end_it():
    def enough(_: fa.News) -> None:
        raise TimeoutError

    with fa.listening(enough), pytest.raises(TimeoutError):
        fa.compose([(fa.BoundedRange(0.0917), 61)]).epsilon_at(1e-6)
    fa.compose([(fa.BoundedRange(0.0917), 61)]).epsilon_at(1e-6)
