"""The interface of a privacy loss: everything that composition asks of a kind of guarantee.

A loss belongs to one guarantee and one direction of neighbours. Most kinds have the same loss in
both directions; then `with_unit` is True for both. Every method is about one application of one
mechanism, except those with a `count`. Values are enclosed in ball arithmetic or rounded to the
safe side; methods that say "about" are for choosing grids and never for a bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar

import numpy as np
from flint import arb

from farthing.errors import InvalidInput, Unsupported
from farthing.guarantees.kinds import Guarantee, Laplace, PermuteAndFlip, PureDP
from farthing.numerics.ball import Ball, down, in_balls, up
from farthing.numerics.rounding import UNIT, FloatArray, deflated, float_up
from farthing.numerics.search import turning_point

#: Relative error that the masses of a given distribution, and their sums, stay far below.
SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Atoms:
    """A discrete privacy loss: mass `masses[i]` at `losses[i]`, `infinity` beyond all of them."""

    losses: FloatArray
    masses: FloatArray
    infinity: float = 0.0


def merged(atoms: Atoms, step: float) -> Atoms:
    """Atoms in bins around multiples of `step`, each one outcome: post-processing, never above."""
    bins = np.floor(atoms.losses / step + 0.5)
    starts = np.flatnonzero(np.concatenate(([True], np.diff(bins) != 0)))
    if len(starts) == len(bins):
        return atoms
    centres = np.repeat(bins[starts], np.diff(np.append(starts, len(bins)))) * step
    p = np.add.reduceat(atoms.masses, starts)
    with np.errstate(over="ignore"):  # a larger Q is a smaller loss, and the edge holds
        q = np.add.reduceat(atoms.masses * np.exp(centres - atoms.losses), starts) + 1e-300
    fine = p > 0
    middles = bins[starts][fine] * step
    losses = middles - np.log(q[fine] / p[fine])
    edges = middles - step / 2  # ln(P/Q) lies between the edges of its bin
    losses = np.maximum(losses - 1e-13 * (1 + np.abs(losses)), edges - 4 * UNIT * np.abs(edges))
    return Atoms(losses, deflated(p[fine], 4 * len(bins)), 0.0)


#: Atoms above and below a loss.
Sandwich = tuple[Atoms, Atoms]


@dataclass(frozen=True, slots=True)
class Loss:
    """The privacy loss of a guarantee, with the unit against without it or the reverse.

    The defaults are those of a kind of which nothing is known.
    """

    guarantee: Guarantee
    with_unit: bool = True

    #: Whether the worst mechanism is known, so that composing it loses nothing.
    known: ClassVar[bool] = True
    #: Whether some mechanism attains its worst case, so that both sides of a bracket meet.
    attained: ClassVar[bool] = True
    #: Whether a tariff may sell it: known, and written in short text.
    sold: ClassVar[bool] = False
    #: Whether the other direction of neighbours has another loss.
    one_way: ClassVar[bool] = False
    #: Whether its atoms are made in ball arithmetic, which takes longer.
    by_balls: ClassVar[bool] = False
    #: Whether much of its mass lies at few places.
    lumpy: ClassVar[bool] = False
    #: How many atoms one application shifts a profile by, if only a few.
    shifts: ClassVar[int | None] = None

    def __init_subclass__(cls, **facts: bool | int) -> None:
        """A kind says these about itself where its class is defined, as keywords."""
        for name, fact in facts.items():
            if name not in Loss.__annotations__:
                raise TypeError(f"a loss has no {name}")
            setattr(cls, name, fact)

    # what it implies

    @property
    def leak(self) -> float:
        """The probability δ with which the mechanism may reveal everything."""
        return 0.0

    @property
    def attained_leak(self) -> float:
        """The probability with which some mechanism of this kind does reveal everything."""
        return self.leak

    def without_leak(self) -> Loss:
        """The loss given that the leak does not happen."""
        return self

    @property
    def pure_epsilon(self) -> float | None:
        """The ε for which the mechanism is ε-DP."""
        return None

    def concentrated(self) -> tuple[Ball, Ball] | None:
        """(μ, τ²): mean loss at most μ, centred loss subgaussian with variance proxy τ²
        [CR22, Lemma 3.2]."""
        return None

    def zero_concentrated(self) -> tuple[Ball, Ball] | None:
        """(ξ, ρ) with D_α ≤ ξ + ρα for every α > 1; (μ, τ)-CDP gives ξ = μ − τ²/2, ρ = τ²/2
        [CR22, Lemma 2.2]."""
        pair = self.concentrated()
        return None if pair is None else (pair[0] - pair[1] / 2, pair[1] / 2)

    @property
    def orders_below(self) -> float:
        """The Rényi orders α that are bounded: 1 < α < this."""
        return math.inf

    def log_moment(self, alpha: float) -> Ball:
        """ln E[e^{(α−1)L}] = (α − 1)·D_α at most, for an order 1 < α < `orders_below`.

        [DDR20, Lemma 7.1]. The default reads the kind as (ξ, ρ)-zCDP.
        """
        pair = self.zero_concentrated()
        if pair is None:
            raise InvalidInput(f"no Rényi divergence is known for {self.guarantee!r}")
        order = arb(alpha)
        return (order - 1) * (pair[0] + pair[1] * order)

    def moment_line(self) -> tuple[float, float, float] | None:
        """(ξ, ρ, orders below) if D_α ≤ ξ + ρα is all that is promised."""
        return None

    def example(self) -> Loss | None:
        """A known loss with this guarantee; None if only mechanisms that reveal nothing have it."""
        return self

    def gaussian_variance(self) -> Ball | None:
        """σ² of Gaussian noise with the same loss, if there is such noise."""
        return None

    # the worst case

    def whole(self) -> Loss:
        """The loss itself; for a sample with rate 1, the loss of what is sampled."""
        return self

    @property
    def chosen_range(self) -> float | None:
        """The ε of bounded range, where the adversary chooses the loss out of [t − ε, t]."""
        return None

    def atoms_above(self, step: float, reach: float) -> Atoms:
        """Atoms at multiples of `step`, or where they are, with a profile nowhere below the true
        one; beyond `reach` the remaining profile becomes infinite loss."""
        raise TypeError(f"{self.guarantee!r} has no fixed privacy loss ({step}, {reach})")

    def atoms_below(self, step: float, reach: float) -> Atoms:
        """Atoms with a profile nowhere above the true one; those closer than `step` are merged."""
        raise TypeError(f"{self.guarantee!r} has no fixed privacy loss ({step}, {reach})")

    def reach(self, tiny: float) -> float:
        """A loss beyond which at most `tiny` of the profile lies."""
        raise TypeError(f"{self.guarantee!r} has no fixed privacy loss (up to {tiny})")

    def total(self, count: int, step: float, tiny: float, *, upward: bool) -> tuple[Atoms, int]:
        """Atoms above or below a sum of some of `count` losses, and the number of such sums."""
        make = self.atoms_above if upward else self.atoms_below
        return make(step, self.reach(tiny)), count

    def before_sampling(self, reach: float) -> tuple[Sandwich, float] | None:
        """Atoms of a loss that is discrete before it is sampled, and Q's mass beyond them."""
        return None

    # about: for grids and costs

    def mean_and_variance(self) -> tuple[float, float]:
        """About the mean and the variance of the loss."""
        raise TypeError(f"{self.guarantee!r} has no fixed privacy loss")

    def tariff_variance(self) -> float:
        """About the variance of the loss, for the grid of a tariff."""
        return self.mean_and_variance()[1]

    def number_of_atoms(self, step: float, reach: float) -> float:
        """How many atoms a discretisation has at most; infinite if it is refused."""
        return 2 * reach / step + 3

    def cells(self, count: int, step: float, tiny: float) -> float:
        """About how many atoms and cells `count` of it have on a lattice."""
        return 2 * self.number_of_atoms(step, self.reach(tiny / count))

    def spread(self, reach: float) -> float:
        """How far its losses are apart."""
        return 2 * reach

    def as_one(self, count: int) -> tuple[Loss, int]:
        """About the same loss as fewer applications, where noise adds up to noise of its kind."""
        return self, count

    @property
    def outcomes_apart(self) -> float | None:
        """How far the two losses are apart, before sampling, if there are only two."""
        return None

    @property
    def heavy_end(self) -> float | None:
        """The ε of a loss with heavy atoms at −ε and ε."""
        return None

    @property
    def ends_apart(self) -> float | None:
        """How far heavy atoms at both ends of the loss are apart."""
        return None if self.heavy_end is None else 2 * self.heavy_end

    def coarsest(self, count: int, step: float) -> float:
        """A step that is fine enough for `count` of it on a lattice of `step`."""
        return step

    def on_lattice(self, count: int) -> bool:
        """Whether `count` copies are added up on a lattice.

        Two losses have sums in closed form; heavy losses far apart are better added where they are
        while they are few.
        """
        return False

    @property
    def in_range(self) -> bool:
        """Whether e^±loss and the grid steps stay well inside the range of floats."""
        return self.pure_epsilon is None or 1e-60 < self.pure_epsilon < 300

    # selling

    def covers(self, used: Guarantee) -> bool:
        """Whether an item with this guarantee pays for a step with the guarantee `used`."""
        return False

    def worst_epsilon(self) -> float:
        """About the ε that one use can reach."""
        return math.inf if self.pure_epsilon is None else self.pure_epsilon

    def why_not_sold(self) -> str | None:
        """Why a tariff may not sell it, although it sells the kind."""
        return None

    def carried(self, negligible: float) -> Loss:
        """The same, or where its loss is below `negligible` a larger loss that floats can hold."""
        return self

    def replaces(self, other: Loss, times: int) -> bool:
        """Whether buying this `times` times makes `other` useless at the same price."""
        return False

    # other neighbours and conversations

    def for_group(self, units: int) -> Guarantee:
        """The guarantee for a group of units together, rounded to the safe side."""
        raise Unsupported(
            f"no theorem gives {self.guarantee!r:.60} for a group; take the guarantee of the "
            "mechanism itself with the sensitivity of the group"
        )

    def why_not_concurrent(self) -> str | None:
        """Why no theorem covers interleaved conversations of this kind."""
        return None


class HeavyEnds(Loss):
    """A loss with heavy atoms at −ε and ε, and nothing beyond."""

    __slots__ = ()
    guarantee: PureDP | Laplace | PermuteAndFlip

    @property
    def pure_epsilon(self) -> float:
        return self.guarantee.epsilon

    @property
    def heavy_end(self) -> float:
        return self.guarantee.epsilon

    def reach(self, tiny: float) -> float:
        return self.guarantee.epsilon

    def carried(self, negligible: float) -> Loss:
        return type(self)(type(self.guarantee)(max(self.guarantee.epsilon, negligible)))

    def for_group(self, units: int) -> Guarantee:
        return type(self.guarantee)(float_up(units * Fraction(self.guarantee.epsilon)))


@dataclass(frozen=True, slots=True)
class ContinuousLoss(Loss, by_balls=True):
    """A loss with known tails, P[L > x] under one neighbour and Q[L > x] under the other, and the
    profile V(x) = P[L > x] − e^x Q[L > x]; one with only a known profile overrides that and
    `atoms_below`."""

    def tails(self, x: Ball) -> tuple[Ball, Ball]:
        """P[L > x] and Q[L > x] of the dominating pair."""
        raise TypeError(f"{self.guarantee!r} has no tails in closed form (at {x})")

    def profile(self, x: Ball) -> Ball:
        """V(x)."""
        above, shadow = self.tails(x)
        return above - x.exp() * shadow

    def atoms_above(self, step: float, reach: float) -> Atoms:
        """Connects the points of the profile by chords in z; the slope of the polygon changes at
        the grid points only, and by how much is the mass there. Masses are rounded up."""
        last = max(1, int(reach / step) + 1)
        low = -last
        h = arb(step)
        values = [self.profile(j * h) for j in range(low, last + 1)]
        width, growth = h.expm1(), h.exp()
        masses = []
        for i, value in enumerate(values):
            previous = values[i - 1] if i > 0 else None
            after = values[i + 1] if i + 1 < len(values) else value
            if previous is None:
                fall = 1 - value  # the chord from z = 0, V = 1, times the width of a cell
                mass = (after - value) / width + fall
            else:
                mass = (after - value) / width + (previous - value) * growth / width
            masses.append(max(0.0, up(mass)))
        return Atoms(
            losses=np.arange(low, last + 1, dtype=np.float64) * step,
            masses=np.array(masses),
            infinity=up(values[-1]),
        )

    def atoms_below(self, step: float, reach: float) -> Atoms:
        """Merging outcomes is post-processing. A bin that holds P and Q of the two neighbours
        becomes an atom at ln(P/Q), near the multiple of `step` in its middle, where lines are known
        best; losses and masses are rounded down."""
        return _binned(self, step, reach)

    def reach(self, tiny: float) -> float:
        def too_near(x: float) -> bool:
            return up(self.profile(arb(x))) > tiny

        high = 1.0
        while too_near(high):
            high *= 1.5
        return turning_point(too_near, 0.0, high, width=1e-6)[1]


@lru_cache(maxsize=32)
@in_balls
def _binned(loss: ContinuousLoss, step: float, reach: float) -> Atoms:
    """Cached, because a search over the parameters of other items asks for it again and again."""
    last = max(1, int(reach / step) + 1)
    h = arb(step)
    edges = [(2 * j + 1) * h / 2 for j in range(-last - 1, last + 1)]
    cut = [(arb(1), arb(1)), *(loss.tails(edge) for edge in edges), (arb(0), arb(0))]
    losses, masses = [], []
    for (p0, q0), (p1, q1) in pairwise(cut):
        p, q = p0 - p1, q0 - q1
        if p > 0 and q > 0:
            losses.append(down((p / q).log()))
            masses.append(down(p))
    return Atoms(losses=np.array(losses), masses=np.array(masses))
