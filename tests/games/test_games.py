"""Adversaries attain the lower bounds: summed exactly, simulated, and against real mechanisms."""

from __future__ import annotations

import math

import pytest

import farthing as fa
from tests.games.games import Strategy, adversary, attained, play, simulate

BR, DP = fa.BoundedRange, fa.PureDP
CASES = [
    ([(BR(1.0), 3)], "adaptive", 0.5),
    ([(BR(0.4), 6)], "adaptive", 0.3),
    ([DP(1.0), (BR(1.0), 2)], "adaptive", 0.2),
    ([(BR(1.0), 2), DP(1.0)], "adaptive", 0.2),
    ([(BR(1.0), 2), DP(0.5), (BR(0.5), 2)], "setwise", 0.2),
    ([(BR(0.6), 2), (BR(0.35), 2)], "setwise", -0.1),
]


@pytest.mark.parametrize(("items", "adaptivity", "epsilon_g"), CASES)
def test_the_value_is_what_the_transcripts_sum_to(
    items: list[object], adaptivity: str, epsilon_g: float
) -> None:
    strategy = adversary(items, epsilon_g=epsilon_g, adaptivity=adaptivity, cells=12)
    exact = attained(strategy)
    cells = [loss.pure_epsilon / strategy.grid.step for loss in strategy.losses]
    aligned = all(abs(cell - round(cell)) < 1e-6 for cell in cells)
    # between grid points the table is only a guide
    assert exact.upper == pytest.approx(strategy.value, rel=1e-9 if aligned else 1e-3)


@pytest.mark.parametrize(("items", "adaptivity", "epsilon_g"), CASES[:5])
def test_the_adversary_attains_the_bracket(
    items: list[object], adaptivity: str, epsilon_g: float
) -> None:
    bracket = fa.compose(items, adaptivity=adaptivity, tolerance=1e-2).delta_at(epsilon_g)
    exact = attained(adversary(items, epsilon_g=epsilon_g, adaptivity=adaptivity, cells=40))
    assert exact.lower <= bracket.upper
    assert exact.upper >= 0.99 * bracket.lower


def test_the_closed_forms_of_three_mechanisms() -> None:
    """[CR22, Lemmas 5.3 and 5.4] with the erratum, at ε = 1 and ε_g = 0.2."""
    first = attained(adversary([DP(1.0), (BR(1.0), 2)], epsilon_g=0.2, cells=60))
    last = attained(adversary([(BR(1.0), 2), DP(1.0)], epsilon_g=0.2, cells=60))
    assert first.upper == pytest.approx(0.440662, abs=2e-6)
    assert last.upper == pytest.approx(0.435920, abs=2e-6)


def test_adapting_beats_every_fixed_choice() -> None:
    """The gap of [DDR20, Thm 4] is reached, not only bounded."""
    exact = attained(adversary([(BR(1.0), 5)], epsilon_g=0.6, cells=60))
    fixed = fa.compose([(BR(1.0), 5)], adaptivity="none").delta_at(0.6)
    assert exact.lower > fixed.upper


@pytest.mark.parametrize(("items", "adaptivity", "epsilon_g"), CASES)
def test_simulation_agrees(items: list[object], adaptivity: str, epsilon_g: float) -> None:
    """Error rate: five standard errors, about one in two million per case."""
    strategy = adversary(items, epsilon_g=epsilon_g, adaptivity=adaptivity, cells=12)
    estimate = simulate(strategy, games=100_000, seed=7)
    exact = attained(strategy)
    assert abs(estimate.delta - exact.upper) <= 5 * estimate.standard_error


def test_simulation_of_a_long_game_agrees_with_the_lower_bound() -> None:
    strategy = adversary([(BR(0.1), 60)], epsilon_g=0.8, cells=10)
    estimate = simulate(strategy, games=60_000, seed=3)
    assert abs(estimate.delta - strategy.value) <= 5 * estimate.standard_error
    upper = fa.compose([(BR(0.1), 60)]).delta_at(0.8).upper
    assert strategy.value <= upper
    assert strategy.value >= 0.95 * upper


def test_simulation_notices_a_wrong_strategy() -> None:
    """Played for another ε_g, the same tables do measurably worse."""
    right = adversary([(BR(1.0), 6)], epsilon_g=1.5, cells=10)
    wrong = adversary([(BR(1.0), 6)], epsilon_g=-1.5, cells=10)
    shifted = Strategy(
        right.losses, right.start, right.epsilon_g, right.value, right.grid,
        {left: (items, 1.0 - choices) for left, (items, choices) in wrong.plans.items()},
    )  # fmt: skip
    assert attained(shifted).upper < 0.999 * attained(right).upper


def test_a_game_against_the_real_mechanisms() -> None:
    """The transcripts of 4000 real games have the probabilities that the strategy predicts."""
    strategy = adversary([(BR(1.5), 2)], epsilon_g=0.3, cells=6)
    games = 4000
    seen = sum(play(strategy, 0).answers == (0, 0) for _ in range(games))
    first = strategy.move((2,), 0.3)
    second = strategy.move((1,), 0.3 - first.t)
    q = float(first.mechanism().probability_of_zero(0).mid()) * float(
        second.mechanism().probability_of_zero(0).mid()
    )
    spread = math.sqrt(games * q * (1 - q))
    assert abs(seen - games * q) <= 5.5 * spread
    view = play(strategy, 1)
    assert len(view.moves) == len(view.answers) == 2


def test_bad_games_raise() -> None:
    with pytest.raises(fa.Unsupported, match="dp, br and sampled dp items"):
        adversary([fa.Gaussian(1.0)], epsilon_g=0.1)
    with pytest.raises(fa.InvalidInput, match="adaptivity"):
        adversary([BR(1.0)], epsilon_g=0.1, adaptivity="none")
    with pytest.raises(fa.Unsupported, match="16 rounds"):
        attained(adversary([(BR(0.1), 17)], epsilon_g=0.1, cells=2))


@pytest.mark.parametrize("with_unit", [True, False])
def test_samples_are_played_in_either_direction(with_unit):
    """The strategy attains what one direction proves, and no more than what is charged."""
    items = [(fa.Subsampled(fa.PureDP(0.8), 0.3), 3), (fa.BoundedRange(0.4), 2)]
    for epsilon_g in (0.1, 0.4):
        strategy = adversary(items, epsilon_g=epsilon_g, cells=60, with_unit=with_unit)
        value = attained(strategy)
        charged = fa.compose(items).delta_at(epsilon_g)
        alone = fa.compose(items).directions[0 if with_unit else 1].delta_at(epsilon_g)
        assert value.lower <= alone.upper
        assert value.lower <= charged.upper
        assert value.upper >= alone.lower * (1 - 5e-3)
        estimate = simulate(strategy, games=40_000, seed=1)
        assert abs(estimate.delta - value.lower) <= 6 * estimate.standard_error


def test_the_worse_direction_is_attained():
    items = [(fa.Subsampled(fa.PureDP(0.8), 0.3), 4)]
    values = [
        attained(adversary(items, epsilon_g=0.5, cells=60, with_unit=way)).lower
        for way in (True, False)
    ]
    charged = fa.compose(items).delta_at(0.5)
    assert values[0] != pytest.approx(values[1], rel=0.05)
    assert charged.lower * (1 - 5e-3) <= max(values) <= charged.upper
