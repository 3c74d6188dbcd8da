"""The supremum over all ways to spend a budget: V over what is left of it.

With b farthings and d units of δ left, whatever is bought next and whatever follows,

    V_{0,d}(x) = max(1 − e^x, 0),    V_{b,d} = max( V_{b−1,d},  max_i T_i V_{b−c_i, d−d_i} )

over the offers i that cost c_i ≤ b farthings and d_i ≤ d units (docs/theory/tariffs.md). The δ of
an offer is taken out before: T_i is what the rest of it does. Both sides are computed:

    units    counted in steps of some g units. Rounding prices down allows every purchase that
             fits, which is the upper side; rounding them up allows only purchases that fit.
    Σε       if everything that can be bought is pure, V_{b,d} is 0 from the largest Σε on, which
             is a knapsack in whole numbers.

Samples have one loss with the unit and another without it. The two neighbours are fixed for the
whole interaction, so each direction has its own recursion and the larger profile counts
(docs/theory/tariffs.md, "Samples").
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

import numpy as np

from farthing.composition.items import Items
from farthing.composition.layout import aligned, variance_of
from farthing.composition.moments import MomentBound
from farthing.composition.operators import Operator
from farthing.composition.profiles import operator_of
from farthing.errors import NotCertified, Unsupported
from farthing.guarantees.conversions import pure_epsilon
from farthing.guarantees.directions import facing, has_two_losses
from farthing.guarantees.kinds import (
    BoundedRange,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    PureDP,
    Subsampled,
)
from farthing.guarantees.losses import reach_of
from farthing.guarantees.notation import format_guarantee
from farthing.numerics.ball import in_balls
from farthing.numerics.curves import Chords, Grid, Supports
from farthing.numerics.rounding import float_up, inflated

#: Beyond this ε floats end, and so does privacy.
FARTHEST = 500.0
#: Losses below this one are counted as this one; grids are not finer than a tenth of it.
NEGLIGIBLE = 1e-7
#: Profiles are not followed below this value.
SMALLEST_DELTA = 1e-280
#: Cells between 0 and the right end of a grid.
MOST_CELLS = 50_000
#: Noise with a wider spread than this has too many outcomes.
WIDEST_DISCRETE_NOISE = 1e5
#: About nanoseconds: ten minutes for the whole, seconds for units as a coordinate.
MOST_WORK = 6e11
CHEAP_WORK = 2e9
#: Bytes of profiles that are kept while the dearest offer can still be bought from them.
MOST_MEMORY = 1e9


@dataclass(frozen=True, slots=True)
class Offer:
    """What one purchase does, its δ taken out, and what it takes from the budget."""

    guarantee: Guarantee
    farthings: int
    delta_units: int

    @property
    def epsilon(self) -> float | None:
        return pure_epsilon(self.guarantee)


@dataclass(frozen=True, slots=True)
class TariffProfile:
    """V from both sides once this many farthings, and all units of δ, may be spent.

    From `most_epsilon` on V is 0: the largest Σε that can be bought, None if that is unbounded.
    """

    farthings: int
    upper: Chords
    lower: Supports
    most_epsilon: Fraction | None

    def delta_at_most(self, epsilon: float) -> float:
        """An upper bound on V(ε)."""
        if self.most_epsilon is not None and self.most_epsilon <= epsilon:
            return 0.0
        return self.upper.at(epsilon)

    def epsilon_at_most(self, delta: float) -> float | None:
        """An ε ≥ 0, near the smallest, with V(ε) ≤ `delta`; None if there is none on the grid."""
        found = self.upper.first_below(delta) if delta > 0 else None
        if self.most_epsilon is None:
            return found
        most = float_up(self.most_epsilon)
        return most if found is None else min(found, most)

    def larger(self, other: TariffProfile) -> TariffProfile:
        """The larger of both, once the same may be spent."""
        return replace(
            self, upper=self.upper.larger(other.upper), lower=self.lower.larger(other.lower)
        )


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
        """Without what nobody can buy and what does nothing; in units of what prices share."""
        useful = {
            offer
            for offer in offers
            if offer.farthings <= farthings
            and offer.delta_units <= delta_units
            and offer.epsilon != 0
        }
        for offer in useful:
            _require_sane(offer.guarantee)
        needed = [o for o in useful if not any(_replaces(other, o) for other in useful - {o})]
        ordered = sorted(
            needed, key=lambda o: (format_guarantee(o.guarantee), o.farthings, o.delta_units)
        )
        coin = math.gcd(*(offer.farthings for offer in ordered)) or farthings
        unit = math.gcd(*(offer.delta_units for offer in ordered))
        if all(o.delta_units * farthings <= delta_units * o.farthings for o in ordered):
            unit = 0  # the farthings end before the units do
        return Budget(
            offers=tuple(
                Offer(o.guarantee, o.farthings // coin, o.delta_units // unit if unit else 0)
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
        return self.farthings * sum(_cost(o.guarantee, grid, delta) for o in self.offers)

    def _most(self, offer: Offer) -> int:
        """How often one offer can be bought."""
        times = self.farthings // offer.farthings
        return min(times, self.delta_units // offer.delta_units) if offer.delta_units else times

    def _variances_that_matter(self) -> list[float]:
        """Of one purchase, for offers that can make up much of the variance of the whole."""
        whole = {offer: self._most(offer) * _variance(offer.guarantee) for offer in self.offers}
        kept = []
        for group in self._groups():
            most = max((whole[offer] for offer in group), default=0.0)
            if most >= 0.02 * max(whole.values()):
                kept += [_variance(o.guarantee) for o in group if whole[o] >= 0.3 * most]
        return kept

    def _far(self, delta: float) -> float:
        """About where the profile falls below `delta`.

        For moments the worst way to spend one currency is one offer only; so of those without
        units and of those with units the one that reaches furthest, and both together.
        """
        furthest = []
        for group in self._groups():
            bounds = [MomentBound(Items(((_loss(o.guarantee), self._most(o)),))) for o in group]
            furthest += sorted(bounds, key=lambda bound: bound.epsilon_at(delta))[-1:]
        together = MomentBound(Items(tuple(bound.items.pairs[0] for bound in furthest)))
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
        dear = min((o.farthings / o.delta_units for o in paid), default=1.0)
        reached = min(top, self.farthings / dear)
        states = self.farthings * (1 + reached) - reached * reached * dear / 2
        if top < most_levels and states <= most_states:
            return 1
        levels = max(1, min(most_levels, most_states // self.farthings))
        return top // levels + 1

    def either_way(self, grid: Grid, delta: float) -> EitherWay:
        """The recursion of each direction in which something on sale differs, on this grid."""
        differ = any(has_two_losses(offer.guarantee) for offer in self.offers)
        ways = (True, False) if differ else (True,)
        return EitherWay(tuple(self.start(grid, delta, with_unit=way) for way in ways))

    @in_balls
    def start(self, grid: Grid, delta: float, *, with_unit: bool = True) -> Recursion:
        """Everything that the recursion needs, on this grid, or NotCertified if that is too much.

        Profiles matter down to about `delta`. All offers face one way.
        """
        delta = max(delta, SMALLEST_DELTA)
        cost = sum((_cost(offer.guarantee, grid, delta) for offer in self.offers), 1.0)
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
            sane = _sane(offer.guarantee)
            operator = operator_of(facing(sane, with_unit=with_unit), grid, delta)
            epsilon = beyond if offer.epsilon is None else int(Fraction(offer.epsilon) * whole)
            units = offer.delta_units
            upper.append(_Move(operator, offer.farthings, units // coarse, epsilon))
            if sane == offer.guarantee:  # else it does less than its operator
                lower.append(_Move(operator, offer.farthings, -(-units // coarse), epsilon))
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


@dataclass(frozen=True, slots=True)
class _Move:
    """One offer in the recursion: its operator, its price in steps of both currencies, its ε."""

    operator: Operator
    farthings: int
    level: int
    epsilon: int


@dataclass(frozen=True, slots=True)
class _State:
    """V_{b,d} from both sides, and the largest Σε as a whole number."""

    upper: Chords
    lower: Supports
    epsilon: int


@dataclass(frozen=True, slots=True)
class Recursion:
    """V_{0,·}, V_{1,·}, … one after the other: a state for every number of unit steps.

    Each ε is a whole number of 1/`whole`; from `beyond` on it means that Σε is unbounded.
    """

    grid: Grid
    upper: tuple[_Move, ...]
    lower: tuple[_Move, ...]
    farthings: int
    farthing_step: int
    highest_level: int
    unit_step: int
    whole: int
    beyond: int

    def __iter__(self) -> Iterator[TariffProfile]:
        """V_{b,d} with all the units, for every b at which it can change."""
        nothing = _State(Chords.of_nothing(self.grid), Supports.of_nothing(self.grid), 0)
        states = [nothing] * (self.highest_level + 1)
        longest = max((move.farthings for move in self.upper), default=1)
        past: deque[list[_State]] = deque([states], maxlen=longest)
        yield self._profile(0, states[-1])
        rate = self._levels_per_farthing()
        for spent in range(1, self.farthings + 1):
            usable = math.floor(spent * rate)
            later = [self._next(states[d], d, past) for d in range(min(usable + 1, len(states)))]
            states = later + later[-1:] * (len(states) - len(later))
            past.append(states)
            yield self._profile(spent, states[-1])

    def last(self) -> TariffProfile:
        """V with everything to spend."""
        return deque(self, maxlen=1)[0]

    def _levels_per_farthing(self) -> Fraction:
        """With more units than this for each farthing, some are left over."""
        moves = (*self.upper, *self.lower)
        return max((Fraction(m.level, m.farthings) for m in moves), default=Fraction(0))

    def _next(self, state: _State, level: int, past: deque[list[_State]]) -> _State:
        """One farthing more than `state`: the best of not needing it and of every purchase."""
        upper, lower, epsilon = state.upper, state.lower, state.epsilon
        for move in self.upper:
            if move.farthings <= len(past) and move.level <= level:
                before = past[-move.farthings][level - move.level]
                upper = upper.larger(move.operator.above(before.upper))
                epsilon = max(epsilon, before.epsilon + move.epsilon)
        for move in self.lower:
            if move.farthings <= len(past) and move.level <= level:
                before = past[-move.farthings][level - move.level]
                lower = lower.larger(move.operator.below(before.lower))
        return _State(self._ended(upper, epsilon), lower, epsilon)

    def _ended(self, curve: Chords, epsilon: int) -> Chords:
        """The chords, 0 from Σε on; left of that the tangent from there, where it is lower.

        V is convex in z, so the greatest convex function below the values still lies above it.
        """
        if epsilon >= self.beyond:
            return curve
        step, scale = self.grid.step.as_integer_ratio()
        first = self.grid.below - (-epsilon * scale) // (self.whole * step)
        if first >= self.grid.size or not curve.values[first:].any():
            return curve
        values = curve.values.copy()
        values[first:] = 0.0
        gaps = -np.expm1(np.arange(-first, 0) * self.grid.step)  # 1 − z_j/z_first
        slopes = values[:first] / gaps
        touching = int(np.argmin(slopes))
        tangent = inflated(slopes[touching] * gaps[touching + 1 :], 8)
        values[touching + 1 : first] = np.minimum(values[touching + 1 : first], tangent)
        return Chords(self.grid, values)

    def _profile(self, spent: int, state: _State) -> TariffProfile:
        pure = state.epsilon < self.beyond
        most = Fraction(state.epsilon, self.whole) if pure else None
        return TariffProfile(spent * self.farthing_step, state.upper, state.lower, most)


@dataclass(frozen=True, slots=True)
class EitherWay:
    """One recursion for each direction of neighbours, side by side: the larger profile counts."""

    directions: tuple[Recursion, ...]

    @property
    def farthing_step(self) -> int:
        return self.directions[0].farthing_step

    @property
    def unit_step(self) -> int:
        return self.directions[0].unit_step

    def __iter__(self) -> Iterator[TariffProfile]:
        """As of one recursion."""
        for profiles in zip(*self.directions, strict=True):
            yield reduce(TariffProfile.larger, profiles)

    def last(self) -> TariffProfile:
        """V with everything to spend."""
        return deque(self, maxlen=1)[0]

    def upper_only(self) -> EitherWay:
        """Without lower sides, which take time."""
        return EitherWay(tuple(replace(one, lower=()) for one in self.directions))


def _replaces(one: Offer, other: Offer) -> bool:
    """Whoever may buy `one`, some number of times, gains nothing by `other` for the same price.

    n Gaussians of σ are one of σ/√n. Randomized response with ε is the bounded-range choice t = ε
    of 2ε. In both cases V stays the same supremum (docs/theory/tariffs.md). Neither relation goes
    round in a circle, so leaving out all that is replaced loses nothing.
    """
    if one.delta_units > 0:
        return False
    times = other.farthings // one.farthings
    match one.guarantee, other.guarantee:
        case Gaussian(fine), Gaussian(coarse):
            return Fraction(coarse) ** 2 * times >= Fraction(fine) ** 2
        case BoundedRange(wide), PureDP(epsilon):
            return times >= 1 and wide >= 2 * epsilon
    return False


def _epsilon(offer: Offer) -> float:
    return math.inf if offer.epsilon is None else offer.epsilon


def _require_sane(guarantee: Guarantee) -> None:
    """Refuse at once what protects nobody, and noise that cannot be enumerated."""
    match guarantee:
        case Subsampled(inner):
            _require_sane(inner)
            return
        case PureDP(epsilon) | BoundedRange(epsilon) | Laplace(epsilon):
            hopeless = epsilon > FARTHEST
        case Gaussian(sigma) | DiscreteGaussian(sigma):
            hopeless = sigma < math.sqrt(0.5 / FARTHEST)
        case _:
            raise Unsupported(f"{format_guarantee(guarantee)} has no known worst case")
    if hopeless:
        raise NotCertified(
            f"one {format_guarantee(guarantee)} lets an analyst reach an epsilon of {FARTHEST:g} "
            "and more, which protects nobody; sell something smaller"
        )
    if isinstance(guarantee, DiscreteGaussian):
        spread = Fraction(guarantee.noise_multiplier) * guarantee.sensitivity
        if spread > WIDEST_DISCRETE_NOISE:
            raise Unsupported(
                f"{format_guarantee(guarantee)} has too many outcomes to compose exactly; its "
                f"standard deviation must be at most {WIDEST_DISCRETE_NOISE:g}"
            )


def _sane(guarantee: Guarantee) -> Guarantee:
    """The same, or if its loss is negligible one with a larger loss that floats can carry.

    A larger rate is a larger loss (docs/theory/tariffs.md, "Samples").
    """
    match guarantee:
        case PureDP(epsilon) | BoundedRange(epsilon) | Laplace(epsilon) if epsilon < NEGLIGIBLE:
            return type(guarantee)(NEGLIGIBLE)
        case Gaussian(sigma) if sigma > 1 / NEGLIGIBLE:
            return Gaussian(1 / NEGLIGIBLE)
        case Subsampled(inner, rate):
            sane = _sane(inner)
            assert isinstance(sane, PureDP | Laplace | Gaussian | DiscreteGaussian)
            return Subsampled(sane, max(rate, NEGLIGIBLE))
        case _:
            return guarantee


def _loss(guarantee: Guarantee) -> Guarantee:
    """What floats can carry, with the unit if it is a sample: for grids and costs."""
    return facing(_sane(guarantee), with_unit=True)


def _variance(guarantee: Guarantee) -> float:
    """About the variance of the loss, for the choice of a grid."""
    sane = _loss(guarantee)
    if isinstance(sane, PureDP):  # a large ε is an atom near ±ε, for which no grid need be fine
        return (sane.epsilon / math.cosh(min(sane.epsilon, 10.0) / 2)) ** 2
    return variance_of(sane)


def _cost(guarantee: Guarantee, grid: Grid, delta: float) -> float:
    """About how many nanoseconds one application takes, on both sides."""
    sane = _loss(guarantee)
    match sane:
        case BoundedRange(epsilon):
            return 2e5 + 6 * grid.size * epsilon / grid.step
        case PureDP():
            return 3e5 + 30 * grid.size
        case _:
            atoms = 2 * reach_of(sane, delta * 1e-7) / grid.step
            return 3e5 + atoms * (1e4 + 6 * grid.size)
