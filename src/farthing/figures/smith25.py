"""Figure 1 of the lecture on advanced composition [Smith25]."""

from __future__ import annotations

from farthing.composition.bounds.closed_forms import basic, epsilon_equal
from farthing.composition.bounds.moments import subgaussian_bounds
from farthing.composition.items import losses_of
from farthing.figures.points import Axis, Curve, Figure, Panel, bracketed_curve
from farthing.guarantees.kinds import PureDP

EPSILON, DELTA = 0.01, 1e-6
COUNTS = (*range(1, 41), *range(45, 201, 5))


def strong(count: int) -> float:
    """ε̃ of Theorem 1.1, for `count` mechanisms."""
    items = losses_of([(PureDP(EPSILON), count)])
    return next(b.epsilon_at(DELTA)[1] for b in subgaussian_bounds(items) if b.name == "strong")


def _panels() -> tuple[Panel, ...]:
    simple = [basic(losses_of([(PureDP(EPSILON), count)])) for count in COUNTS]
    curves = (
        Curve(
            "basic composition",
            "blue",
            COUNTS,
            tuple(bound.epsilon_at(DELTA)[1] for bound in simple if bound is not None),
        ),
        Curve("strong composition; [Thm 1.1]", "red", COUNTS, tuple(map(strong, COUNTS))),
        bracketed_curve(
            "the optimum [KOV15]",
            "grey",
            COUNTS,
            [epsilon_equal(DELTA, epsilon=EPSILON, count=count) for count in COUNTS],
            "dashes",
        ),
    )
    return (
        Panel(
            "",
            Axis("number of 0.01-DP mechanisms k"),
            Axis("overall ε at δ = 10⁻⁶"),
            curves,
        ),
    )


FIGURES = (
    Figure(
        "smith25-1",
        "Strong composition grows like √k, basic composition like k",
        "Figure 1 of the lecture [Smith25]: k mechanisms with ε = 0.01 each, δ′ = 10⁻⁶. Look "
        "where the red curve crosses the blue line: at k = 28, which is 2·ln(1/δ′); before "
        "that, strong composition is the worse of the two, and at k = ln(1/δ′) it is larger by "
        "two fifths. The dashed curve is what nobody can beat; it is never above either of "
        "them.",
        _panels,
    ),
)
