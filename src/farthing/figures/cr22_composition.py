"""Figures 1–3 of Cesar and Rogers [CR22]: pure DP and bounded range in one list.

The text does not print the parameters of Figures 1 and 2; ours are in the captions.
"""

from __future__ import annotations

from farthing.composition.bounds.closed_forms import epsilon_equal
from farthing.composition.bounds.moments import subgaussian_bounds
from farthing.composition.bounds.pure_dp_and_bounded_range import Mix
from farthing.composition.compose import compose
from farthing.composition.items import losses_of
from farthing.figures.points import Axis, Curve, Figure, Panel, bracketed_curve
from farthing.guarantees.bracket import Bracket
from farthing.guarantees.kinds import BoundedRange, Guarantee, PureDP

EPSILON, DELTA = 0.1, 1e-6
COUNTS = (4, 8, 12, 16, *range(20, 201, 4))
#: parts of the mechanisms that are DP, with a colour each from none to all
PARTS = {0.0: "blue", 0.25: "teal", 0.5: "green", 0.75: "orange", 1.0: "red"}
MECHANISMS = 100
GLOBALS = tuple(i / 10 for i in range(35))
#: ε_g of Figure 3, where ε = 1
UP_TO_ONE = tuple(i / 25 for i in range(26))

_PURE, _RANGED = PureDP(1.0), BoundedRange(1.0)


def setwise(pure: int, ranged: int) -> float:
    """ε_g of equation (3), for `pure` ε-DP and `ranged` ε-bounded-range mechanisms."""
    pairs = ((PureDP(EPSILON), pure), (BoundedRange(EPSILON), ranged))
    items = losses_of([(guarantee, count) for guarantee, count in pairs if count > 0])
    return next(b.epsilon_at(DELTA)[1] for b in subgaussian_bounds(items) if b.name == "cdp")


def _family(part: float) -> str:
    return {0.0: "m = 0: all BR", 1.0: "m = k: all DP"}.get(part, f"m = {part:g}·k")


def _equation_3() -> tuple[Panel, ...]:
    curves = [
        Curve(
            _family(part),
            ink,
            COUNTS,
            tuple(setwise(round(part * k), k - round(part * k)) for k in COUNTS),
        )
        for part, ink in PARTS.items()
    ]
    best = [epsilon_equal(DELTA, epsilon=EPSILON, count=k) for k in COUNTS]
    curves.append(bracketed_curve("optimal DP", "grey", COUNTS, best, "dashes"))
    return (Panel("", Axis("number of mechanisms k"), Axis("overall ε at δ = 10⁻⁶"), (*curves,)),)


def mixture(pure: int, epsilon_g: float) -> Bracket:
    """δ_OPT of Theorem 3 for 100 mechanisms with ε = 0.1, of which `pure` are DP."""
    return Mix(EPSILON, pure, MECHANISMS - pure).delta_at(epsilon_g)


def _theorem_3() -> tuple[Panel, ...]:
    curves = tuple(
        bracketed_curve(
            f"m = {round(part * MECHANISMS)}",
            ink,
            GLOBALS,
            [mixture(round(part * MECHANISMS), at) for at in GLOBALS],
        )
        for part, ink in PARTS.items()
    )
    return (Panel("", Axis("ε_g"), Axis("δ_OPT", log=True, limits=(1e-12, 1.5)), curves),)


def two_orders(epsilon_g: float) -> tuple[Bracket, Bracket]:
    """δ_OPT with the DP mechanism first, and with it between the two of bounded range; ε = 1."""

    def delta(*order: Guarantee) -> Bracket:
        return compose(order, tolerance=1e-6).delta_at(epsilon_g)

    return delta(_PURE, _RANGED, _RANGED), delta(_RANGED, _PURE, _RANGED)


def _orders() -> tuple[Panel, ...]:
    pairs = [two_orders(at) for at in UP_TO_ONE]
    difference = Curve(
        "difference",
        "blue",
        UP_TO_ONE,
        tuple(first.upper - between.upper for first, between in pairs),
        tuple(first.lower - between.upper for first, between in pairs),
        tuple(first.upper - between.lower for first, between in pairs),
    )
    ratio = Curve(
        "ratio",
        "blue",
        UP_TO_ONE,
        tuple(between.upper / first.upper for first, between in pairs),
        tuple(between.lower / first.upper for first, between in pairs),
        tuple(between.upper / first.lower for first, between in pairs),
    )
    return (
        Panel("DP · BR · BR minus BR · DP · BR", _ACROSS, Axis("difference of δ"), (difference,)),
        Panel("BR · DP · BR over DP · BR · BR", _ACROSS, Axis("ratio of δ"), (ratio,)),
    )


_ACROSS = Axis("ε_g, with ε = 1", limits=(0, 1))

FIGURES = (
    Figure(
        "cr22-1",
        "Every DP mechanism that is bounded range instead lowers the bill",
        "Figure 1 of [CR22]: equation (3), which holds set-wise, for k mechanisms with ε = 0.1, "
        "of which m are ε-DP and the others ε-bounded range. Look at the dashed curve, the "
        "optimum for ε-DP: between k = 16 and k = 200 it stays within 11 % of the simple "
        "formula for m = k/2, so the formula wastes about as much as half of the mechanisms "
        "save by being bounded range. (The text prints no ε; δ = 10⁻⁶ as elsewhere.)",
        _equation_3,
    ),
    Figure(
        "cr22-2",
        "The optimum moves smoothly from bounded range to DP",
        "Figure 2 of [CR22]: the optimal δ of 100 mechanisms with ε = 0.1, of which m are ε-DP "
        "and the others ε-bounded range, all fixed in advance (Theorem 3). Look at one δ from "
        "left to right: every quarter of the mechanisms that is DP instead of bounded range "
        "costs less than the quarter before. (The text prints neither k nor ε.)",
        _theorem_3,
    ),
    Figure(
        "cr22-3",
        "DP first is the worse order, by a little",
        "Figure 3 of [CR22]: two mechanisms of bounded range and one of DP, ε = 1, chosen "
        "adaptively. Left, how much larger δ is with DP first than with DP in the middle; "
        "right, the ratio. Look at the end: at ε_g = ε the two orders agree, and from there on "
        "they always do (Lemma 5.3). Drawn from certified brackets of the recursion, whose "
        "width is below the width of the line.",
        _orders,
        columns=2,
    ),
)
