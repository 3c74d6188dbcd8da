"""The figure of the lecture, and what the lecture says about it."""

import math

from farthing.lab.figures.ddr20_smith25 import DELTA, EPSILON, STRONG_COUNTS, smith25_1, strong


def test_the_two_curves() -> None:
    panel = smith25_1.panels()[0]
    for count in (1, 40, 200):
        formula = EPSILON * math.sqrt(2 * count * math.log(1 / DELTA))
        formula += count * EPSILON * math.expm1(EPSILON) / (math.exp(EPSILON) + 1)
        assert math.isclose(
            panel.curve("strong composition; [Thm 1.1]").at(count), formula, rel_tol=1e-12
        )
        assert math.isclose(
            panel.curve("basic composition").at(count), count * EPSILON, rel_tol=1e-12
        )


def test_strong_composition_begins_to_win_at_twice_the_logarithm() -> None:
    """Errata: it is said to be much tighter from k > ln(1/δ) on; it crosses at k = 28."""
    crossing = next(count for count in STRONG_COUNTS if strong(count) < count * EPSILON)
    assert crossing == 28 == math.ceil(2 * math.log(1 / DELTA))
    after = math.ceil(math.log(1 / DELTA))
    assert after == 14
    assert strong(after) > 1.4 * after * EPSILON


def test_the_optimum_is_never_above_either() -> None:
    simple, bound, best = smith25_1.panels()[0].curves
    for count in STRONG_COUNTS:
        assert best.at(count) <= min(simple.at(count), bound.at(count)) * (1 + 1e-12)
