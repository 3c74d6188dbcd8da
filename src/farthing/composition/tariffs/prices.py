"""Making a tariff: prices for given items, how many farthings fit (ε, δ), and the ladder.

`ladder` makes a whole tariff from a wanted (ε, δ): items of each kind, from coarse to fine. A rung
is named for its ε, and the same price buys

    count-e     Gaussian noise of multiplier 1/e     ρ = e²/2
    pure-e      e-differential privacy               ρ = e²/2
    select-2e   2e-bounded range                     ρ = (2e)²/8 = e²/2

Prices double from rung to rung, while e grows by 1.4 and then by 2/1.4, so that all parameters are
whole multiples of one step: on a grid of that step the certificate is quick. The rung in the
middle is called by its role alone, and is what a question buys by default.

About 1000 farthings fit: a standard count costs 16, a standard selection 4. So a top-10 without
counts costs 40 and a histogram 16, and a question in which a unit counts for ten labels can still
buy ten counts on the lowest rung for that price.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from farthing.composition.bounds.closed_forms import gaussian_noise_multiplier
from farthing.composition.bounds.moments import MomentBound
from farthing.composition.items import Losses
from farthing.composition.tariffs.budget import Budget
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.tariff import MOST_FARTHINGS, Tariff
from farthing.errors import (
    InvalidInput,
    NotCertified,
    Unattainable,
    Unsupported,
    require_count,
    require_real,
)
from farthing.guarantees.kinds import ApproximateDP, BoundedRange, Gaussian, Guarantee, PureDP
from farthing.guarantees.losses import loss_of
from farthing.guarantees.notation import format_guarantee
from farthing.numerics.ball import in_balls, middle
from farthing.numerics.search import last_whole

#: Prices of the rungs, and of the standard ones.
COUNT_PRICES = tuple(2**k for k in range(10))
SELECT_PRICES = tuple(2**k for k in range(7))
PURE_PRICES = (4, 16, 64, 256)
STANDARD_COUNT, STANDARD_SELECT, STANDARD_PURE = 16, 4, 64
#: About how many farthings a ladder has.
ABOUT = 1000
#: The part of δ that leaks may take together, and how many of them there are.
LEAKED = 0.1
LEAKS = 100
#: Relative width in ε that the certificate aims at; it reaches about a quarter of that.
TOLERANCE = 0.041
#: The farthings that fit with all rungs, as a share of those that fit with some rungs only.
FREEDOM = 0.989
#: The least share of ε that a ladder uses.
CLOSE = 0.985
#: A larger δ is too large a chance of failure.
LARGE_DELTA = 1e-3
#: Smaller and larger budgets than these are not made into a ladder.
SMALLEST, LARGEST = 1e-3, 50.0


@in_balls
def propose_prices(guarantees: Mapping[str, Guarantee], *, finest: int = 1) -> dict[str, int]:
    """Whole-number prices in proportion to ρ, the cheapest item costing `finest` farthings.

    The natural price of a mechanism is its zCDP parameter: ε²/8 for bounded range, ε²/2 for pure
    DP, 1/(2σ²) for Gaussian noise; of a sample half of its mean square loss. Prices are rounded up.
    An item with only a δ costs one farthing.
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
    rest = loss_of(guarantee).without_leak().whole()
    if rest.one_way:  # half of the square of its loss, as for the others
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

    The search starts a little beyond what the moments of single items allow.
    """
    epsilon = require_real("epsilon", epsilon, above=0)
    delta = require_real("delta", delta, above=0, below=1)
    tariff = Tariff(items, MOST_FARTHINGS, delta_units, delta_unit)
    inner = (delta - tariff.leak) * (1 - 1e-15)
    if inner <= 0:
        raise InvalidInput(
            f"delta must exceed the {tariff.leak:g} that the delta units add, got {delta:g}"
        )
    limit = math.ceil(1.3 * _fitting_by_moments(tariff.budget, epsilon, inner)) + 1
    while limit <= MOST_FARTHINGS:
        fits = _within(replace(tariff, farthings=limit), epsilon, inner, tolerance)
        if fits is not None:
            return fits if fits >= min(price for _, price in items.values()) else 0
        limit *= 2
    raise Unattainable(f"more than {MOST_FARTHINGS:g} farthings fit; the number is unlimited")


def _within(tariff: Tariff, epsilon: float, delta: float, fineness: float) -> int | None:
    """How many farthings are within (ε, δ); None if all are. V grows with each farthing, so the
    first too many ends the search."""
    recursion = tariff.budget.recursion(fineness, delta).upper_only()
    too_many = (one.farthings for one in recursion if one.delta_at_most(epsilon) > delta)
    first = next(too_many, None)
    return None if first is None else first - 1


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
    return last_whole(fits, low, high, part=100) * coin


@dataclass(frozen=True, slots=True)
class EpsilonDelta:
    """What all releases together may cost a unit: a ladder of items is made from it and certified.

    δ has no default. It is the chance that the guarantee fails for a unit, so it belongs well
    below one over the number of units, which nobody but the owner knows.
    """

    epsilon: float
    delta: float

    @staticmethod
    def of(epsilon: float | None, delta: float | None) -> EpsilonDelta | None:
        """Both or neither."""
        if epsilon is not None and delta is not None:
            return EpsilonDelta(epsilon, delta)
        if epsilon is None and delta is None:
            return None
        raise InvalidInput(
            "epsilon and delta go together: delta is the chance that the guarantee fails, well "
            "below one over the number of units, such as delta=1e-6"
        )

    def certificate(self) -> Certificate:
        """The ladder, proved."""
        return ladder(epsilon=self.epsilon, delta=self.delta)


def ladder(*, epsilon: float, delta: float) -> Certificate:
    """A certified ladder whose whole number of farthings is within (ε, δ), and close to it."""
    epsilon = require_real("epsilon", epsilon, at_least=SMALLEST)
    delta = require_real("delta", delta, above=1e-200, below=0.1)
    if epsilon > LARGEST:
        raise InvalidInput(
            f"epsilon must be at most {LARGEST:g}, got {epsilon:g}: that protects nobody"
        )
    sold = _rungs(_finest(epsilon, delta), delta)
    farthings = math.floor(_fitting(sold, epsilon, delta) * FREEDOM)
    while farthings > 0:
        made = replace(sold, farthings=farthings).certify(tolerance=TOLERANCE, deltas=(delta,))
        if made.epsilon_at(delta) <= epsilon:
            return made
        farthings -= max(1, farthings // 100)
    raise NotCertified(f"no ladder was found within epsilon = {epsilon:g} at delta = {delta:g}")


def large_delta(signed: Certificate) -> str | None:
    """What an owner should know before they sign; None if every δ is small."""
    delta = min(stated for stated, _ in signed.epsilons)
    if delta <= LARGE_DELTA:
        return None
    return (
        f"δ = {delta:g} is large: with that chance the guarantee may fail for a person. It belongs "
        "well below one over the number of people in the data, such as 1e-6"
    )


def is_ladder_for(signed: Certificate, *, epsilon: float, delta: float) -> bool:
    """Whether `ladder` makes this of (ε, δ): the same rungs, and a claim just within ε."""
    made = _rungs(_finest(epsilon, delta), delta)
    claim = dict(signed.epsilons).get(delta)
    same = replace(made, farthings=signed.tariff.farthings) == signed.tariff
    return same and claim is not None and CLOSE * epsilon <= claim.upper <= epsilon


def _finest(epsilon: float, delta: float) -> float:
    """e of the lowest rung, of two digits: ABOUT Gaussian counts on it make up (ε, δ)."""
    whole = 1 / gaussian_noise_multiplier(epsilon, delta * (1 - LEAKED))
    return float(f"{whole / math.sqrt(ABOUT):.1e}")


def _rungs(finest: float, delta: float) -> Tariff:
    """The items, with more farthings than will fit."""
    items: dict[str, tuple[Guarantee, int]] = {}
    for price in COUNT_PRICES:
        step = finest * _multiple(price)
        items[_name("count", step, price, STANDARD_COUNT)] = Gaussian(1 / step), price
    for price in SELECT_PRICES:
        step = 2 * finest * _multiple(price)
        items[_name("select", step, price, STANDARD_SELECT)] = BoundedRange(step), price
    for price in PURE_PRICES:
        step = finest * _multiple(price)
        items[_name("pure", step, price, STANDARD_PURE)] = PureDP(step), price
    unit = float(f"{delta * LEAKED / LEAKS:.3e}")
    items["leak"] = ApproximateDP(0.0, unit), 1
    return Tariff(items, ABOUT + ABOUT // 4, LEAKS, unit)


def _multiple(price: int) -> float:
    """√price, or a little less: 1, 1.4, 2, 2.8, 4, …"""
    return float(math.isqrt(price)) if _is_square(price) else 1.4 * math.isqrt(price // 2)


def _name(role: str, epsilon: float, price: int, standard: int) -> str:
    return role if price == standard else f"{role}-{epsilon:.3g}"


def _fitting(sold: Tariff, epsilon: float, delta: float) -> int:
    """About how many farthings are within (ε, δ): with every second rung, from the third on.

    That is a budget of a quarter of the steps on half of the grid.
    """
    some = {n: item for n, item in sold.items.items() if item[1] >= 4 and _is_square(item[1])}
    fits = _within(replace(sold, items=some), epsilon, delta - sold.leak, 0.8 * TOLERANCE)
    return sold.farthings if fits is None else fits


def _is_square(price: int) -> bool:
    return math.isqrt(price) ** 2 == price
