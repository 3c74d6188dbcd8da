"""Tariffs: price lists under which an analyst may choose everything as they go.

A tariff names guarantees and gives each a whole-number price in farthings. However an analyst
spends b farthings (which item, which mechanism of that guarantee, when to stop, all depending
on earlier answers), the interaction is (ε, V_b(ε))-DP for every ε, where

    V_0(x) = max(1 − e^x, 0),    V_b = max( V_{b−1},  max_i T_i V_{b − price_i} ).

The proof is in docs/theory/tariffs.md. The δ of approximate items is counted in its own whole
units: D units of size u add at most D·u.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from farthing.composition.items import Items
from farthing.composition.moments import MomentBound
from farthing.composition.profiles import operator_of
from farthing.errors import InvalidInput, NotCertified, Unsupported, require_count, require_real
from farthing.guarantees.conversions import leak, pure_epsilon, without_leak, zero_concentrated
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    PureDP,
)
from farthing.guarantees.losses import mean_and_variance
from farthing.guarantees.notation import format_guarantee
from farthing.numerics.ball import in_balls, middle, up
from farthing.numerics.curves import Chords, Grid, Supports

if TYPE_CHECKING:
    from farthing.composition.certificate import Certificate

#: Kinds with a known worst case and a short text that a certificate can carry.
SELLABLE = (PureDP, BoundedRange, ApproximateDP, Laplace, Gaussian, DiscreteGaussian)

#: The size of a δ unit may be off by this much relative, so that decimal fractions divide evenly.
UNIT_SLACK = 1e-9

#: Beyond this ε floats end, and so does privacy.
FARTHEST = 500.0
#: Grid cells times farthings times items: about an hour.
MOST_WORK = 6e9

THEOREM = "tariff filter: supremum over all ways to spend (docs/theory/tariffs.md)"


@dataclass(frozen=True, slots=True)
class Price:
    """What one use of an item costs: farthings, and units of δ."""

    farthings: int
    delta_units: int = 0


@dataclass(frozen=True)
class Tariff:
    """Named guarantees with prices, and how much there is to spend.

    `items` maps a name to (guarantee, price). `delta_units` of size `delta_unit` are granted
    for items with a δ; an item's price in units is its δ divided by the unit, rounded up.
    """

    items: Mapping[str, tuple[Guarantee, int]]
    farthings: int
    delta_units: int = 0
    delta_unit: float = 1e-12

    def __post_init__(self) -> None:
        if not self.items:
            raise InvalidInput("a tariff needs at least one item, got none")
        checked: dict[str, tuple[Guarantee, int]] = {}
        for name, entry in self.items.items():
            if not isinstance(name, str) or not name:
                raise InvalidInput(f"item names must be non-empty text, got {name!r}")
            if not isinstance(entry, tuple) or len(entry) != 2:
                raise InvalidInput(f"item {name} must be (guarantee, price), got {entry!r}")
            guarantee, price = entry
            if not isinstance(guarantee, Guarantee):
                raise InvalidInput(f"item {name} must have a guarantee, got {guarantee!r}")
            if not isinstance(guarantee, SELLABLE):
                raise Unsupported(
                    f"item {name} has {format_guarantee(guarantee)}, whose worst case is not known "
                    "in closed form; a tariff sells dp, br, adp, lap, gauss and dgauss"
                )
            checked[name] = guarantee, require_count(f"price of {name}", price, at_least=1)
        object.__setattr__(self, "items", MappingProxyType(checked))
        object.__setattr__(
            self, "farthings", require_count("farthings", self.farthings, at_least=1)
        )
        object.__setattr__(self, "delta_units", require_count("delta_units", self.delta_units))
        unit = require_real("delta_unit", self.delta_unit, above=0, below=1)
        object.__setattr__(self, "delta_unit", unit)
        if self.delta_units * unit >= 1:
            raise InvalidInput(
                f"delta_units × delta_unit must be less than 1, got {self.delta_units * unit:g}"
            )

    def price(self, name: str, times: int = 1) -> Price:
        """What `times` uses of an item cost."""
        if name not in self.items:
            raise InvalidInput(f"item must be one of {', '.join(self.items)}, got {name!r}")
        times = require_count("times", times, at_least=1)
        guarantee, price = self.items[name]
        units = math.ceil(leak(guarantee) / self.delta_unit * (1 - UNIT_SLACK / 2))
        return Price(times * price, times * units)

    def price_of(self, items: Mapping[str, int]) -> Price:
        """What these items cost together."""
        prices = [self.price(name, times) for name, times in items.items()]
        return Price(sum(p.farthings for p in prices), sum(p.delta_units for p in prices))

    @property
    def leak(self) -> float:
        """What all δ units together add at most, rounded up."""
        return self.delta_units * self.delta_unit * (1 + UNIT_SLACK)

    def certify(self, **options: Any) -> Certificate:
        """Prove what this tariff guarantees; see `farthing.composition.certificate.certify`."""
        from farthing.composition.certificate import certify

        return certify(self, **options)


@dataclass(frozen=True, slots=True)
class Spending:
    """V_b from both sides after b farthings."""

    farthings: int
    upper: Chords
    lower: Supports


@in_balls
def spendings(tariff: Tariff, fineness: float, delta: float) -> Iterator[Spending]:
    """V_0, V_1, V_2, … on one grid, accurate where they are about `delta`; at most `farthings`."""
    priced = [(without_leak(guarantee), price) for guarantee, price in tariff.items.values()]
    grid = _grid(tariff, fineness, delta)
    operators = [(operator_of(guarantee, grid, delta), price) for guarantee, price in priced]
    longest = max(price for _, price in priced)
    upper, lower = Chords.of_nothing(grid), Supports.of_nothing(grid)
    yield Spending(0, upper, lower)
    past: deque[tuple[Chords, Supports]] = deque([(upper, lower)], maxlen=longest)
    for spent in range(1, tariff.farthings + 1):
        for operator, price in operators:
            if price > spent:
                continue
            before_upper, before_lower = past[-price]
            upper = upper.larger(operator.above(before_upper))
            lower = lower.larger(operator.below(before_lower))
        past.append((upper, lower))
        yield Spending(spent, upper, lower)


def cheapest_moments(tariff: Tariff) -> Items:
    """A list whose moments are never below those of any way to spend the tariff, item by item.

    For each order the worst way to spend is one item only; so each item alone, used as often
    as the farthings allow, is one candidate.
    """
    return Items(
        tuple(
            (without_leak(guarantee), max(1, tariff.farthings // price))
            for guarantee, price in tariff.items.values()
        )
    )


def _grid(tariff: Tariff, fineness: float, delta: float) -> Grid:
    """A step fine enough for the items that matter, and a reach beyond which nothing does."""
    alone = [Items((pair,)) for pair in cheapest_moments(tariff)]
    reach = 0.0
    for items in alone:
        far = MomentBound(items).epsilon_at(max(delta * 1e-6, 1e-290))
        everything = items.epsilon_sum()
        reach = max(reach, far if everything is None else min(far, up(everything)))
    totals = [(items.total * _variance(items.pairs[0][0]), items) for items in alone]
    most = max(total for total, _ in totals)
    step = min(
        math.sqrt(fineness * _variance(items.pairs[0][0]) / 0.2)
        for total, items in totals
        if total >= 0.3 * most
    )
    epsilons = [pure_epsilon(items.pairs[0][0]) for items in alone]
    lattice = [epsilon for epsilon in epsilons if epsilon is not None and epsilon > step]
    if lattice:
        step = math.nextafter(min(lattice) / math.ceil(min(lattice) / step), math.inf)
    if reach > FARTHEST:
        raise NotCertified(
            f"this tariff lets an analyst reach an epsilon of {FARTHEST:g} and more, "
            "which protects nobody; give it fewer farthings"
        )
    cells = math.ceil(reach / step) + 2
    if cells * tariff.farthings * len(alone) > MOST_WORK:
        raise NotCertified(
            f"certifying {tariff.farthings} farthings on {2 * cells} grid points would take hours; "
            "sell in larger units (fewer farthings, smaller prices) or ask for a wider tolerance"
        )
    return Grid(step, cells, cells)


def _variance(guarantee: Guarantee) -> float:
    if isinstance(guarantee, BoundedRange):
        return guarantee.epsilon**2 / 4
    return mean_and_variance(guarantee)[1]


@in_balls
def propose_prices(guarantees: Mapping[str, Guarantee], *, finest: int = 1) -> dict[str, int]:
    """Whole-number prices in proportion to ρ, the cheapest item costing `finest` farthings.

    The natural price of a mechanism is its zCDP parameter: ε²/8 for bounded range, ε²/2 for pure
    DP, 1/(2σ²) for Gaussian noise. Prices are rounded up.
    """
    finest = require_count("finest", finest, at_least=1)
    if not guarantees:
        raise InvalidInput("at least one guarantee is needed, got none")
    rho = {name: _rho(name, guarantee) for name, guarantee in guarantees.items()}
    unit = min(rho.values()) / finest
    return {name: max(1, math.ceil(value / unit * (1 - 1e-9))) for name, value in rho.items()}


def _rho(name: str, guarantee: Guarantee) -> float:
    pair = zero_concentrated(without_leak(guarantee))
    if pair is None:
        raise Unsupported(f"item {name} has {format_guarantee(guarantee)}, which has no rho")
    value = middle(pair[1])
    if value <= 0:
        raise InvalidInput(f"item {name} costs nothing; its parameter must be greater than 0")
    return value


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
    search.
    """
    epsilon = require_real("epsilon", epsilon, above=0)
    delta = require_real("delta", delta, above=0, below=1)
    trial = Tariff(items, 1, delta_units, delta_unit)
    inner = (delta - trial.leak) * (1 - 1e-15)
    if inner <= 0:
        raise InvalidInput(
            f"delta must exceed the {trial.leak:g} of the delta units, got {delta:g}"
        )
    limit = _certainly_too_many(trial, epsilon, inner)
    fits = 0
    for spent in spendings(replace(trial, farthings=limit), tolerance, inner):
        if spent.upper.at(epsilon) > inner:
            break
        fits = spent.farthings
    cheapest = min(price for _, price in items.values())
    return fits if fits >= cheapest else 0


def _certainly_too_many(tariff: Tariff, epsilon: float, delta: float) -> int:
    """A number of farthings with which the cheapest way to spend already exceeds (ε, δ)."""
    from farthing.composition.planning import largest_count

    counts = [
        (largest_count(without_leak(g), epsilon=epsilon, delta=delta, adaptivity="none") + 1)
        * price
        for g, price in tariff.items.values()
    ]
    return math.ceil(1.1 * min(counts)) + 1
