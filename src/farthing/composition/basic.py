"""Basic composition: losses add up."""

from __future__ import annotations

from farthing.composition.bound import Bound
from farthing.composition.items import Losses
from farthing.numerics.ball import in_balls, up


@in_balls
def basic(items: Losses) -> Bound | None:
    """Σ ε_i at δ = 0, for any adaptivity [Smith25, Exercise 3.5]; needs ε-DP mechanisms."""
    total = items.epsilon_sum()
    if total is None:
        return None
    limit = up(total)
    return Bound(
        name="basic",
        theorem="basic composition [Smith25, Exercise 3.5]",
        epsilon_at=lambda _: (0.0, limit),
        delta_at=lambda epsilon: (0.0, 0.0 if epsilon >= limit else 1.0),
    )
