"""Figures 4 and 5 of Cesar and Rogers [CR22]: Laplace against Gaussian noise on histograms.

The text does not print how much noise; the captions say what is drawn here.
"""

from __future__ import annotations

import math

from farthing.composition.bounds.closed_forms import laplace_histogram_epsilon
from farthing.composition.bounds.gaussian import gaussian_epsilon, zcdp_epsilon
from farthing.composition.compose import compose
from farthing.figures.points import Axis, Curve, Figure, Panel, bracketed_curve
from farthing.guarantees.bracket import Bracket
from farthing.guarantees.kinds import ApproximateDP, Laplace

DELTA = 1e-6
EPSILONS = (0.01, 0.1, 1.0)
LIMITS = (*range(1, 31), *range(35, 101, 5))
LIMIT, REPEATS = 10, tuple(range(2, 11))
#: parts of δ that one mechanism of Figure 5 may use, of an equal share
SHARES = (0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97)


def equal_noise(epsilon: float) -> float:
    """The noise multiplier of a Gaussian with the standard deviation of Lap(1/ε): √2/ε."""
    return math.sqrt(2) / epsilon


def laplace(epsilon: float, counts: int) -> Bracket:
    """Lap(1/ε) on all counts, of which a unit changes so many by 1 (Lemma 6.2)."""
    return laplace_histogram_epsilon(DELTA, epsilon=epsilon, contribution_limit=counts)


def gaussian(epsilon: float, counts: int) -> Bracket:
    """The same with Gaussian noise of equal standard deviation, exactly (Lemma 6.1)."""
    return gaussian_epsilon(DELTA, noise_multiplier=equal_noise(epsilon), count=counts)


def gaussian_by_zcdp(epsilon: float, counts: int) -> float:
    """The same by Lemma 6.3."""
    sigma = equal_noise(epsilon)
    return zcdp_epsilon(DELTA, noise_multiplier=sigma, contribution_limit=counts)


def one_by_one(epsilon: float, repeats: int) -> float:
    """Lemma 6.1 for each of `repeats` histograms, then the optimal composition of (ε, δ)-DP.

    The smallest over how much of δ each of them uses.
    """
    found = []
    for share in SHARES:
        each = share * DELTA / repeats
        sigma = equal_noise(epsilon)
        one = gaussian_epsilon(each, noise_multiplier=sigma, count=LIMIT).upper
        found.append(compose([(ApproximateDP(one, each), repeats)]).epsilon_at(DELTA).upper)
    return min(found)


def laplace_exactly(epsilon: float, counts: int) -> Bracket:
    """The loss of Laplace noise itself, instead of any ε-DP."""
    return compose([(Laplace(epsilon), counts)]).epsilon_at(DELTA)


def _one_shot() -> tuple[Panel, ...]:
    panels = []
    for epsilon in EPSILONS:
        zcdp = tuple(gaussian_by_zcdp(epsilon, n) for n in LIMITS)
        exact = [gaussian(epsilon, n) for n in LIMITS]
        curves = (
            Curve("Gaussian by zCDP; (Lemma 6.3)", "orange", LIMITS, zcdp),
            bracketed_curve(
                "Laplace (Lemma 6.2)", "red", LIMITS, [laplace(epsilon, n) for n in LIMITS]
            ),
            bracketed_curve("Gaussian; exact (Lemma 6.1)", "blue", LIMITS, exact),
        )
        panels.append(_panel(epsilon, "counts changed by one unit Δ", curves))
    return tuple(panels)


def _composed() -> tuple[Panel, ...]:
    panels = []
    for epsilon in EPSILONS:
        pairs = tuple(one_by_one(epsilon, repeats) for repeats in REPEATS)
        total = [LIMIT * repeats for repeats in REPEATS]
        zcdp = tuple(gaussian_by_zcdp(epsilon, n) for n in total)
        pure = [laplace(epsilon, n) for n in total]
        noise = [laplace_exactly(epsilon, n) for n in total]
        exact = [gaussian(epsilon, n) for n in total]
        curves = (
            Curve("Gaussian one by one; (Lemma 6.1 and [MV16])", "violet", REPEATS, pairs),
            Curve("Gaussian by zCDP", "orange", REPEATS, zcdp),
            bracketed_curve("Laplace as ε-DP", "red", REPEATS, pure),
            bracketed_curve("Laplace exactly", "red", REPEATS, noise, "dots"),
            bracketed_curve("Gaussian exactly", "blue", REPEATS, exact, "dashes"),
        )
        panels.append(_panel(epsilon, "histograms k with Δ = 10 each", curves))
    return tuple(panels)


def _panel(epsilon: float, across: str, curves: tuple[Curve, ...]) -> Panel:
    title = f"Laplace with ε = {epsilon:g}"
    return Panel(title, Axis(across), Axis("overall ε at δ = 10⁻⁶"), curves)


FIGURES = (
    Figure(
        "cr22-4",
        "Few counts: Laplace noise. Many: Gaussian noise",
        "Figure 4 of [CR22]: one histogram of which a unit changes Δ counts by 1 each, with "
        "Laplace noise, or with Gaussian noise of the same standard deviation. Look where red "
        "crosses blue: for ε = 0.1, Laplace noise is better up to Δ = 8, Gaussian noise from 9 "
        "on; by the bound of zCDP, the change seems to come at 15. (The text prints no ε, so "
        "three are drawn.)",
        _one_shot,
    ),
    Figure(
        "cr22-5",
        "Composed exactly, Gaussian noise does not lose what it won",
        "Figure 5 of [CR22]: k such histograms with Δ = 10. The figure in the paper has the "
        "solid curves, and concludes that the best mechanism for one histogram (violet) is bad "
        "for many, and that Laplace noise is better for a reasonable number of them. Look at "
        "the broken curves: both kinds of noise, composed exactly. The Gaussian mechanism is "
        "the best one throughout; what was lost is lost by composing (ε, δ) pairs instead of "
        "profiles.",
        _composed,
    ),
)
