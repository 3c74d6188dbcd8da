"""Planning a tariff: natural prices, and how many farthings fit a target (ε, δ)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from farthing.composition.bounds.moments import MomentBound
from farthing.composition.items import Losses
from farthing.composition.tariffs.budget import Budget
from farthing.composition.tariffs.tariff import MOST_FARTHINGS, Tariff
from farthing.errors import InvalidInput, Unattainable, Unsupported, require_count, require_real
from farthing.guarantees.kinds import Guarantee
from farthing.guarantees.losses.registry import loss_of
from farthing.guarantees.notation import format_guarantee
from farthing.numerics.ball import in_balls, middle


@in_balls
def propose_prices(guarantees: Mapping[str, Guarantee], *, finest: int = 1) -> dict[str, int]:
    """Whole-number prices in proportion to ρ, the cheapest item costing `finest` farthings.

    The natural price of a mechanism is its zCDP parameter: ε²/8 for bounded range, ε²/2 for pure
    DP, 1/(2σ²) for Gaussian noise; of a sample half of its mean square loss. Prices are rounded up.
    What has only a δ costs one farthing.
    """
    finest = require_count("finest", finest, at_least=1)
    if not guarantees:
        raise InvalidInput("at least one guarantee is needed, got none")
    rho = {name: _rho(name, guarantee) for name, guarantee in guarantees.items()}
    unit = min((value for value in rho.values() if value > 0), default=1.0) / finest
    if not max(rho.values()) / MOST_FARTHINGS < unit < math.inf:
        raise InvalidInput("the items differ too much in rho to have prices in whole numbers")
    return {name: max(1, math.ceil(value / unit * (1 - 1e-9))) for name, value in rho.items()}


def _rho(name: str, guarantee: Guarantee) -> float:
    rest = loss_of(guarantee).without_leak()
    if rest.whole().one_way:  # half of the square of its loss, as for the others
        return rest.mean_and_variance()[1] / 2
    pair = rest.zero_concentrated()
    if pair is None:
        raise Unsupported(f"item {name} has {format_guarantee(guarantee)}, which has no rho")
    return middle(pair[1])


def largest_farthings(
    items: Mapping[str, tuple[Guarantee, int]],
    *,
    epsilon: float,
    delta: float,
    delta_units: int = 0,
    delta_unit: float = 1e-12,
    tolerance: float = 5e-3,
) -> int:
    """How many farthings these prices allow within (ε, δ); 0 if not even one item fits.

    The certified profile grows with every farthing, so the first one that is too many ends the
    search. It starts a little beyond what the moments of single items allow.
    """
    epsilon = require_real("epsilon", epsilon, above=0)
    delta = require_real("delta", delta, above=0, below=1)
    tariff = Tariff(items, MOST_FARTHINGS, delta_units, delta_unit)
    inner = (delta - tariff.leak) * (1 - 1e-15)
    if inner <= 0:
        raise InvalidInput(
            f"delta must exceed the {tariff.leak:g} of the delta units, got {delta:g}"
        )
    limit = math.ceil(1.3 * _fitting_by_moments(tariff.budget, epsilon, inner)) + 1
    while limit <= MOST_FARTHINGS:
        for profile in replace(tariff, farthings=limit).budget.recursion(tolerance, inner):
            if profile.delta_at_most(epsilon) > inner:
                fits = profile.farthings - 1
                return fits if fits >= min(price for _, price in items.values()) else 0
        limit *= 2
    raise Unattainable(f"more than {MOST_FARTHINGS:g} farthings fit; the number is unlimited")


def _fitting_by_moments(budget: Budget, epsilon: float, delta: float) -> int:
    """About how many farthings each offer alone would allow; the smallest counts."""
    coin = budget.farthing_step

    def fits(farthings: int) -> bool:
        lists = [((o.losses[0], farthings // o.farthings),) for o in budget.offers]
        return all(
            MomentBound(Losses(pairs)).epsilon_at(delta) <= epsilon
            for pairs in lists
            if pairs[0][1] > 0
        )

    low, high = 0, 1
    while fits(high) and high * coin <= MOST_FARTHINGS:
        low, high = high, 2 * high
    while high - low > max(1, low // 100):
        between = (low + high) // 2
        low, high = (between, high) if fits(between) else (low, between)
    return low * coin
