"""A budget as the recursion needs it: offers in whole numbers, a grid, and how long it takes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from farthing.composition.adaptive.grid_choice import aligned
from farthing.composition.adaptive.profiles import operator_of
from farthing.composition.bounds.moments import MomentBound
from farthing.composition.items import Losses
from farthing.composition.tariffs.tariff_recursion import EitherWay, PricedOperator, Recursion
from farthing.errors import NotCertified, Unsupported
from farthing.guarantees.kinds import Guarantee
from farthing.guarantees.losses import loss_of
from farthing.guarantees.losses.base import Loss
from farthing.guarantees.notation import format_guarantee
from farthing.numerics.ball import in_balls
from farthing.numerics.curves import Grid
from farthing.numerics.rounding import inflated

#: Beyond this ε floats end, and so does privacy.
FARTHEST = 500.0
#: Losses below this one are counted as this one; grids are not finer than a tenth of it.
NEGLIGIBLE = 1e-7


@dataclass(frozen=True, slots=True)
class Offer:
    """The losses of one purchase without its δ, and its price.

    `losses` are the loss with the unit and the loss without it.
    """

    losses: tuple[Loss, Loss]
    farthings: int
    delta_units: int

    @staticmethod
    def of(guarantee: Guarantee, farthings: int, delta_units: int) -> Offer:
        """What a guarantee does for this price."""
        with_unit, without_unit = (
            loss_of(guarantee, with_unit=way).whole().without_leak() for way in (True, False)
        )
        return Offer((with_unit, without_unit), farthings, delta_units)

    @property
    def text(self) -> str:
        """The short text of what is bought."""
        return format_guarantee(self.losses[0].guarantee)

    @property
    def epsilon(self) -> float | None:
        """The ε of ε-DP, if it has one."""
        return self.losses[0].pure_epsilon

    @property
    def carried(self) -> Loss:
        """The loss with the unit, large enough for floats: for grids and costs."""
        return self.losses[0].carried(NEGLIGIBLE)

    def replaces(self, other: Offer) -> bool:
        """Whether buying this, perhaps several times, makes `other` useless at the same price.

        V stays the same supremum (docs/theory/tariffs.md). The relation has no cycles, so all
        offers that are replaced can be left out.
        """
        times = other.farthings // self.farthings
        return self.delta_units == 0 and self.losses[0].replaces(other.losses[0], times)

    def require_useful(self) -> None:
        """Refuse offers that protect nobody, and noise that cannot be enumerated."""
        if self.losses[0].worst_epsilon() > FARTHEST:
            raise NotCertified(
                f"one {self.text} lets an analyst reach an epsilon of {FARTHEST:g} "
                "and more, which protects nobody; sell something smaller"
            )
        if (why := self.losses[0].why_not_sold()) is not None:
            raise Unsupported(why)

    def nanoseconds(self, grid: Grid, delta: float) -> float:
        """About how many nanoseconds one application takes, on both sides."""
        loss = self.carried
        if loss.chosen_range is not None:
            return 2e5 + 6 * grid.size * loss.chosen_range / grid.step
        if loss.shifts is not None:
            return 3e5 + 15 * loss.shifts * grid.size
        atoms = 2 * loss.reach(delta * 1e-7) / grid.step
        return 3e5 + atoms * (1e4 + 6 * grid.size)


#: Profiles are not followed below this value.
SMALLEST_DELTA = 1e-280
#: Cells between 0 and the right end of a grid.
MOST_CELLS = 50_000
#: About nanoseconds: ten minutes for the whole, seconds for units as a coordinate.
MOST_WORK = 6e11
CHEAP_WORK = 2e9
#: Bytes of profiles that are kept while the most expensive offer can still be bought from them.
MOST_MEMORY = 1e9


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget and what can be bought from it, in the smallest whole numbers that do.

    One of `farthings` here stands for `farthing_step` of the tariff, one of `delta_units` for
    `unit_step`.
    """

    offers: tuple[Offer, ...]
    farthings: int
    delta_units: int
    farthing_step: int
    unit_step: int = 1

    @staticmethod
    def of(offers: Iterable[Offer], farthings: int, delta_units: int) -> Budget:
        """Without offers that cost too much or have no effect, in the largest common unit."""
        useful = {
            offer
            for offer in offers
            if offer.farthings <= farthings
            and offer.delta_units <= delta_units
            and offer.epsilon != 0
        }
        for offer in useful:
            offer.require_useful()
        needed = [o for o in useful if not any(other.replaces(o) for other in useful - {o})]
        ordered = sorted(needed, key=lambda o: (o.text, o.farthings, o.delta_units))
        coin = math.gcd(*(offer.farthings for offer in ordered)) or farthings
        unit = math.gcd(*(offer.delta_units for offer in ordered))
        if all(o.delta_units * farthings <= delta_units * o.farthings for o in ordered):
            unit = 0  # the farthings end before the units do
        return Budget(
            offers=tuple(
                Offer(o.losses, o.farthings // coin, o.delta_units // unit if unit else 0)
                for o in ordered
            ),
            farthings=farthings // coin,
            delta_units=delta_units // unit if unit else 0,
            farthing_step=coin,
            unit_step=unit or delta_units + 1,
        )

    def grid(self, fineness: float, delta: float) -> Grid:
        """A step fine enough for the offers that matter, and a reach beyond which nothing does."""
        if not self.offers:
            return Grid(1.0, 2, 2)
        reach = min(self._far(max(delta * 1e-6, SMALLEST_DELTA)), self._epsilon_at_most())
        if reach > FARTHEST:
            raise NotCertified(
                f"this tariff lets an analyst reach an epsilon of {FARTHEST:g} and more, "
                "which protects nobody; give it fewer farthings"
            )
        step = math.sqrt(fineness * min(self._variances_that_matter()) / 0.2)
        step = max(step, reach / MOST_CELLS, NEGLIGIBLE / 10)
        epsilons = [offer.epsilon for offer in self.offers]
        step = aligned(step, [e for e in epsilons if e is not None and e > step])
        cells = math.ceil(reach / step) + 2
        return Grid(step, cells, cells)

    def work(self, fineness: float, delta: float) -> float:
        """About how many nanoseconds the recursion takes on the grid for this."""
        grid = self.grid(fineness, delta)
        return self.farthings * sum(o.nanoseconds(grid, delta) for o in self.offers)

    def _most(self, offer: Offer) -> int:
        """How often one offer can be bought."""
        times = self.farthings // offer.farthings
        return min(times, self.delta_units // offer.delta_units) if offer.delta_units else times

    def _variances_that_matter(self) -> list[float]:
        """Of one purchase, for offers that can make up much of the variance of the whole."""
        each = {offer: offer.carried.tariff_variance() for offer in self.offers}
        whole = {offer: self._most(offer) * variance for offer, variance in each.items()}
        kept = []
        for group in self._groups():
            most = max((whole[offer] for offer in group), default=0.0)
            if most >= 0.02 * max(whole.values()):
                kept += [each[o] for o in group if whole[o] >= 0.3 * most]
        return kept

    def _far(self, delta: float) -> float:
        """About where the profile falls below `delta`.

        For moments the worst way to spend one currency is one offer only; so of those without
        units and of those with units the one that reaches furthest, and both together.
        """
        furthest = []
        for group in self._groups():
            bounds = [MomentBound(Losses(((o.carried, self._most(o)),))) for o in group]
            furthest += sorted(bounds, key=lambda bound: bound.epsilon_at(delta))[-1:]
        together = MomentBound(Losses(tuple(bound.items.pairs[0] for bound in furthest)))
        return max(bound.epsilon_at(delta) for bound in (*furthest, together))

    def _epsilon_at_most(self) -> float:
        """No smaller than the largest Σε."""
        free, paid = self._groups()
        total = self.farthings * max((_epsilon(o) / o.farthings for o in free), default=0.0)
        total += min(
            self.farthings * max((_epsilon(o) / o.farthings for o in paid), default=0.0),
            self.delta_units * max((_epsilon(o) / o.delta_units for o in paid), default=0.0),
        )
        return inflated(total, 8)

    def _groups(self) -> tuple[list[Offer], list[Offer]]:
        """The offers without units, and those with."""
        return (
            [offer for offer in self.offers if offer.delta_units == 0],
            [offer for offer in self.offers if offer.delta_units > 0],
        )

    def _coarse(self, most_states: int, most_levels: int) -> int:
        """In steps of how many units they are counted: 1 if there is time and room for that.

        Level d differs from level d − 1 only once the farthings for d units have been spent.
        """
        top, (_, paid) = self.delta_units, self._groups()
        cheapest = min((o.farthings / o.delta_units for o in paid), default=1.0)
        reached = min(top, self.farthings / cheapest)
        states = self.farthings * (1 + reached) - reached * reached * cheapest / 2
        if top < most_levels and states <= most_states:
            return 1
        levels = max(1, min(most_levels, most_states // self.farthings))
        return top // levels + 1

    def recursion(self, fineness: float, delta: float) -> EitherWay:
        """Over all ways to spend, on a grid that is accurate where V is about `delta`."""
        grid, differ = self.grid(fineness, delta), any(o.losses[0].one_way for o in self.offers)
        ways = (True, False) if differ else (True,)
        return EitherWay(tuple(self.start(grid, delta, with_unit=way) for way in ways))

    @in_balls
    def start(self, grid: Grid, delta: float, *, with_unit: bool = True) -> Recursion:
        """Everything that the recursion needs, on this grid, or NotCertified if that is too much.

        Profiles matter down to about `delta`. All offers face one way.
        """
        delta = max(delta, SMALLEST_DELTA)
        cost = sum((offer.nanoseconds(grid, delta) for offer in self.offers), 1.0)
        longest = max((offer.farthings for offer in self.offers), default=1)
        memory = 24.0 * grid.size * longest
        if self.farthings * cost > MOST_WORK or memory > MOST_MEMORY:
            raise NotCertified(
                f"certifying {self.farthings} farthings on {grid.size} grid points would take "
                "hours, or more memory than there is; sell in larger units (fewer farthings, "
                "smaller prices) or ask for a wider tolerance"
            )
        coarse = self._coarse(int(CHEAP_WORK / cost), int(MOST_MEMORY / memory))
        epsilons = [offer.epsilon for offer in self.offers]
        whole = math.lcm(*(Fraction(e).denominator for e in epsilons if e is not None))
        beyond = whole * (self.farthings + 1) * math.ceil(FARTHEST)
        upper, lower = [], []
        for offer in self.offers:
            loss = offer.losses[0 if with_unit else 1]
            carried = loss.carried(NEGLIGIBLE)
            operator = operator_of(carried, grid, delta)
            epsilon = beyond if offer.epsilon is None else int(Fraction(offer.epsilon) * whole)
            units = offer.delta_units
            upper.append(PricedOperator(operator, offer.farthings, units // coarse, epsilon))
            if carried == loss:  # otherwise its loss is smaller than that of its operator
                lower.append(
                    PricedOperator(operator, offer.farthings, -(-units // coarse), epsilon)
                )
        return Recursion(
            grid=grid,
            upper=tuple(upper),
            lower=tuple(lower),
            farthings=self.farthings,
            farthing_step=self.farthing_step,
            highest_level=self.delta_units // coarse,
            unit_step=self.unit_step * coarse,
            whole=whole,
            beyond=beyond,
        )


def _epsilon(offer: Offer) -> float:
    return math.inf if offer.epsilon is None else offer.epsilon
