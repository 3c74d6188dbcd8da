"""Figures 1 and 2 of Dong, Durfee and Rogers [DDR20], and Figure 1 of the lecture [Smith25]."""

from __future__ import annotations

from functools import partial

from farthing.composition.bounds.closed_forms import basic, epsilon_equal
from farthing.composition.bounds.moments import subgaussian_bounds
from farthing.composition.compose import compose
from farthing.composition.items import losses_of
from farthing.guarantees.kinds import BoundedRange, PureDP
from farthing.guarantees.losses import loss_of
from farthing.guarantees.losses.bounded_range import max_kl
from farthing.lab.figures.drawing import Axis, Curve, Panel, curves_of, figure
from farthing.numerics.ball import in_balls, up

DELTA = 1e-6
#: ε of each mechanism → how many of them
COUNTS = {
    0.01: (1, 10, 20, *range(50, 1001, 50), *range(1200, 5001, 200)),
    0.1: (1, 2, 4, 6, 8, *range(10, 61, 5), *range(70, 301, 10)),
    1.0: tuple(range(1, 51)),
}
LAMBDAS = tuple(i / 5 for i in range(51))
#: ε of the lecture, and how many mechanisms
EPSILON = 0.01
STRONG_COUNTS = (*range(1, 41), *range(45, 201, 5))


def six_bounds(epsilon: float, count: int) -> dict[str, float]:
    """ε_g of `count` mechanisms by the six theorems of Figure 1; no bound is above count·ε."""
    bounds = compose([(BoundedRange(epsilon), count)], adaptivity="none").bounds_at(DELTA)
    most = bounds["basic"].upper
    shown = {
        "ε-DP OptComp": bounds["optimal-dp"].upper,
        "DR19": bounds["dr19"].upper,
        "OptKL": bounds["optimal-kl"].upper,
        "MGF": bounds["mgf"].upper,
        "ε/2-DP OptComp": epsilon_equal(DELTA, epsilon=epsilon / 2, count=count).upper,
        "BR OptComp": bounds["optimal-br"].upper,
    }
    return {name: min(most, value) for name, value in shown.items()}


@figure("Bounded range: about four times as many queries for one budget")
def ddr20_1() -> tuple[Panel, ...]:
    """Figure 1 of [DDR20]: k mechanisms, each ε-bounded range, at δ = 10⁻⁶. Read it sideways: at
    one height, the dashed curve (optimal for bounded range, everything fixed in advance) lies about
    four times as far to the right as the red one (optimal for ε-DP): for ε = 0.1 the budget of 100
    ε-DP mechanisms serves 384. For ε = 1 it is three times as far where the panel ends (errata 22).
    The dotted curve is ε/2-DP, which bounded range nearly is, and above which it still lies. At
    ε = 1 the bounds MGF and OptKL, which hold for adaptive choices too, leave DR19 behind."""
    looks = {
        "ε-DP OptComp": ("red", "line"),
        "DR19": ("orange", "line"),
        "OptKL": ("violet", "line"),
        "MGF": ("green", "line"),
        "ε/2-DP OptComp": ("grey", "dots"),
        "BR OptComp": ("blue", "dashes"),
    }
    panels = []
    for epsilon, counts in COUNTS.items():
        curves = curves_of(counts, partial(six_bounds, epsilon), looks)
        highest = 1.02 * max(curve.y[-1] for curve in curves)
        up_axis = Axis("overall ε at δ = 10⁻⁶", limits=(0, highest))
        panels.append(Panel(f"ε = {epsilon:g}", Axis("number of mechanisms k"), up_axis, curves))
    return tuple(panels)


@in_balls
def log_moment_bounds(power: float) -> dict[str, float]:
    """The functions U(λ) of section 7 at ε = 1: bounds on ln E[e^{λL}] of one mechanism."""
    return {
        "Improved DRV10": (power**2 + power) / 2,
        "DR19": (power**2 / 4 + power) / 2,
        "KL-improved DR19": power**2 / 8 + power * up(max_kl(1.0)),
        "General MGF": up(loss_of(BoundedRange(1.0)).log_moment(1 + power)) if power > 0 else 0.0,
    }


@figure("The smaller the moment bound, the tighter the composition")
def ddr20_2() -> tuple[Panel, ...]:
    """Figure 2 of [DDR20] (Figure 1 of its supplement): what each theorem assumes of ln E[e^{λL}]
    of one mechanism with ε = 1. Look at the lowest curve: the exact moment of the worst
    bounded-range mechanism is the only one that bends into a line, because the loss is bounded."""
    looks = {
        "Improved DRV10": ("red", "line"),
        "DR19": ("orange", "line"),
        "KL-improved DR19": ("violet", "line"),
        "General MGF": ("green", "line"),
    }
    curves = curves_of(LAMBDAS, log_moment_bounds, looks)
    return (Panel("", Axis("λ", limits=(0, 10)), Axis("U(λ)", limits=(0, 56)), curves),)


def strong(count: int) -> float:
    """ε̃ of Theorem 1.1, for `count` mechanisms."""
    items = losses_of([(PureDP(EPSILON), count)])
    return next(b.epsilon_at(DELTA)[1] for b in subgaussian_bounds(items) if b.name == "strong")


def _basic(count: int) -> float:
    bound = basic(losses_of([(PureDP(EPSILON), count)]))
    assert bound is not None
    return bound.epsilon_at(DELTA)[1]


@figure("Strong composition grows like √k, basic composition like k")
def smith25_1() -> tuple[Panel, ...]:
    """Figure 1 of the lecture [Smith25]: k mechanisms with ε = 0.01 each, δ′ = 10⁻⁶. Look where the
    red curve crosses the blue line: at k = 28, which is 2·ln(1/δ′); before that, strong composition
    is the worse of the two, and at k = ln(1/δ′) it is larger by two fifths. The dashed curve is
    what nobody can beat; it is never above either of them."""
    curves = (
        Curve.of("basic composition", "blue", STRONG_COUNTS, _basic),
        Curve.of("strong composition; [Thm 1.1]", "red", STRONG_COUNTS, strong),
        Curve.of(
            "the optimum [KOV15]",
            "grey",
            STRONG_COUNTS,
            lambda count: epsilon_equal(DELTA, epsilon=EPSILON, count=count),
            "dashes",
        ),
    )
    across, up_axis = Axis("number of 0.01-DP mechanisms k"), Axis("overall ε at δ = 10⁻⁶")
    return (Panel("", across, up_axis, curves),)
