"""The privacy loss of mechanisms whose worst pair of neighbours is known and fixed.

A loss distribution is given by its two tails, P[L > x] under one neighbour and Q[L > x]
under the other; the profile is V(x) = P[L > x] − e^x Q[L > x]. Discretised, it is a list of
atoms, on the side of the truth that is asked for.
"""

from __future__ import annotations

import math
from functools import lru_cache, singledispatch
from itertools import pairwise

import numpy as np
from flint import arb

from farthing.errors import Unsupported
from farthing.guarantees.atoms import SLACK, Atoms, merged
from farthing.guarantees.directions import attained_loss, attained_one_way
from farthing.guarantees.kinds import (
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    LossDistribution,
    OneWay,
    PureDP,
    Subsampled,
    SubsampledWithoutReplacement,
    TwoWayLoss,
)
from farthing.guarantees.subsampling import (
    loss_before,
    replaced_above,
    sampled_above,
    sampled_below,
    sampled_losses,
)
from farthing.numerics.ball import Ball, down, in_balls, middle, up
from farthing.numerics.binomial import binomial_masses
from farthing.numerics.bisection import turning_point
from farthing.numerics.rounding import UNIT, inflated

#: Cuts of a loss before it is sampled, on either side of 0, at most.
MOST_CUTS = 4000
#: More outcomes of discrete noise than this are not enumerated.
MOST_OUTCOMES = 2_000_000


@singledispatch
def tails(guarantee: Guarantee, x: Ball) -> tuple[Ball, Ball]:
    """P[L > x] and Q[L > x] of the dominating pair."""
    raise TypeError(f"{guarantee!r} has no fixed privacy loss (at {x})")


@tails.register
def _(guarantee: Gaussian, x: Ball) -> tuple[Ball, Ball]:
    """The loss is normal with variance 1/σ² and mean ±1/(2σ²); [CR22, Lemma 6.1]."""
    sigma = arb(guarantee.noise_multiplier)
    return _normal_above(x * sigma - 1 / (2 * sigma)), _normal_above(x * sigma + 1 / (2 * sigma))


@tails.register
def _(guarantee: Laplace, x: Ball) -> tuple[Ball, Ball]:
    """Atoms at ±ε and a density between them; V(x) = 1 − e^{(x−ε)/2} for |x| ≤ ε."""
    epsilon = arb(guarantee.epsilon)
    if x >= epsilon:
        return arb(0), arb(0)
    if x < -epsilon:
        return arb(1), arb(1)
    return 1 - ((x - epsilon) / 2).exp() / 2, (-(x + epsilon) / 2).exp() / 2


def profile_of_loss(guarantee: Guarantee, x: Ball) -> Ball:
    """V(x) of a mechanism with a fixed loss."""
    if isinstance(guarantee, PureDP):
        epsilon = arb(guarantee.epsilon)
        if x >= epsilon:
            return arb(0)
        if x <= -epsilon:
            return -x.expm1()
        return -(x - epsilon).expm1() / (1 + (-epsilon).exp())
    above, shadow = tails(guarantee, x)
    return above - x.exp() * shadow


def atoms_above(guarantee: Guarantee, step: float, reach: float) -> Atoms:
    """Atoms at multiples of `step`, with a profile nowhere below the true one.

    A loss that is discrete already is returned as it is. Otherwise:
    connects the points of the profile by chords in z; the slope of the polygon changes at
    the grid points only, and by how much is the mass there. Beyond `reach` the remaining
    profile becomes infinite loss. Masses are rounded up.
    """
    if isinstance(guarantee, LossDistribution):
        masses_ = np.array(guarantee.masses) * (1 + SLACK)
        return Atoms(np.array(guarantee.losses), masses_, guarantee.infinity)
    match guarantee:
        case DiscreteGaussian():
            return discrete_gaussian(guarantee, reach)[0]
        case OneWay(Subsampled() as sampled, with_unit):
            before, missing = _before_sampling(sampled, step, reach, upward=True)
            return sampled_above(before, sampled.rate, missing=missing, with_unit=with_unit)
        case OneWay(TwoWayLoss()):
            loss = guarantee.loss.finite_part() if guarantee.leakless else guarantee.loss
            return atoms_above(loss, step, reach)
        case SubsampledWithoutReplacement(rate=rate):
            before, _ = _before_sampling(guarantee, step, reach, upward=True)
            return replaced_above(before, rate)
    last = max(1, int(reach / step) + 1)
    low = -last
    points = range(low, last + 1)
    h = arb(step)
    values = [profile_of_loss(guarantee, j * h) for j in points]
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


def atoms_below(guarantee: Guarantee, step: float, reach: float) -> Atoms:
    """Atoms with a profile nowhere above the true one: outcomes of similar loss are merged.

    Merging outcomes is post-processing. A bin that holds P and Q of the two neighbours
    becomes an atom at ln(P/Q), near the multiple of `step` in its middle, where lines are known
    best; losses and masses are rounded down.
    """
    if isinstance(guarantee, LossDistribution):
        return merged(attained_loss(guarantee), step)
    match guarantee:
        case DiscreteGaussian():
            return merged(discrete_gaussian(guarantee, reach)[1], step)
        case OneWay(Subsampled() as sampled, with_unit):
            before, _ = _before_sampling(sampled, step, reach, upward=False)
            return sampled_below(before, sampled.rate, with_unit=with_unit)
        case OneWay(TwoWayLoss()):
            return merged(attained_one_way(guarantee), step)
        case SubsampledWithoutReplacement(rate=rate):  # the worst mechanism faces one way
            before, _ = _before_sampling(guarantee, step, reach, upward=False)
            return sampled_below(before, rate, with_unit=True)
    assert isinstance(guarantee, Gaussian | Laplace)
    return _binned(guarantee, step, reach)


@lru_cache(maxsize=32)
@in_balls
def _binned(guarantee: Gaussian | Laplace, step: float, reach: float) -> Atoms:
    """Kept, because who looks for the best choice of others asks for the same again and again."""
    last = max(1, int(reach / step) + 1)
    h = arb(step)
    edges = [(2 * j + 1) * h / 2 for j in range(-last - 1, last + 1)]
    cut = [(arb(1), arb(1)), *(tails(guarantee, edge) for edge in edges), (arb(0), arb(0))]
    losses, masses = [], []
    for (p0, q0), (p1, q1) in pairwise(cut):
        p, q = p0 - p1, q0 - q1
        if p > 0 and q > 0:
            losses.append(down((p / q).log()))
            masses.append(down(p))
    return Atoms(losses=np.array(losses), masses=np.array(masses))


#: A mechanism that is sampled, by whichever scheme.
Sampled = Subsampled | SubsampledWithoutReplacement


def _before_sampling(
    sampled: Sampled, step: float, reach: float, *, upward: bool
) -> tuple[Atoms, float]:
    """Atoms of what is sampled, fine enough for a step after it, and Q's mass beyond them.

    Sampling narrows a loss, so the step before it may be wider. Lower atoms are finer, because
    those that lie alone in a cell cost the lower side of a lattice most. All kinds that can be
    sampled are symmetric: beyond the list Q has the mass that P has at the other end.
    """
    inner, far = sampled.guarantee, loss_before(reach, sampled.rate)
    match inner:
        case PureDP(epsilon=epsilon):
            pair = responses(count=1, epsilon=epsilon, t=None, step=epsilon / 4)
            return pair[0 if upward else 1], 0.0
        case DiscreteGaussian():
            pair = discrete_gaussian(inner, far)
            spread = inner.noise_multiplier * inner.sensitivity
            last = math.ceil(_farthest_outcome(inner, far)) - inner.sensitivity
            missing = math.exp(-0.5 * (last / spread) ** 2) * (1 + 1e-9) + 1e-300
            return pair[0 if upward else 1], missing
    wide = _step_before(sampled, step, far)
    return _cut_atoms(inner, wide if upward else 0.25 * wide, far, upward)


def _step_before(sampled: Sampled, step: float, far: float) -> float:
    """How fine a loss is cut before sampling, for a step after it."""
    inner = sampled.guarantee
    before = min(1.0, math.sqrt(mean_and_variance(inner)[1]))
    wide = 0.8 * before * min(step / math.sqrt(_variance_after(sampled)), 0.3)
    wide = max(wide, far / MOST_CUTS)
    return inner.epsilon / math.ceil(inner.epsilon / wide) if isinstance(inner, Laplace) else wide


@lru_cache(maxsize=32)
@in_balls
def _cut_atoms(
    inner: Gaussian | Laplace, step: float, reach: float, upward: bool
) -> tuple[Atoms, float]:
    atoms = (atoms_above if upward else atoms_below)(inner, step, reach)
    return atoms, atoms.infinity


@lru_cache(maxsize=256)
def _variance_after(sampled: Sampled) -> float:
    """About E_P[loss²] after sampling with the unit: for choosing steps, never for a bound."""
    mean, variance = mean_and_variance(sampled.guarantee)
    deviation = math.sqrt(variance)
    losses = mean + deviation * np.linspace(-9.0, 9.0 + 2 * deviation, 2000)
    if isinstance(sampled.guarantee, PureDP | Laplace):
        losses = np.array([-1.0, 1.0]) * sampled.guarantee.epsilon
        p_masses = 1 / (1 + np.exp(-losses))
    else:
        p_masses = np.exp(-0.5 * ((losses - mean) / deviation) ** 2)
    p_masses /= p_masses.sum()
    masses = (1 - sampled.rate) * p_masses * np.exp(-losses) + sampled.rate * p_masses
    return float(np.sum(masses * sampled_losses(losses, sampled.rate) ** 2))


def discrete_gaussian(guarantee: DiscreteGaussian, reach: float) -> tuple[Atoms, Atoms]:
    """Atoms (above, below) the exact loss of discrete Gaussian noise, up to the loss `reach`.

    The noise is log-concave, so for a shift j the events {y < a} are optimal and
    Pr[Z < a] − e^x Pr[Z + j < a] increases with j: the largest shift, the sensitivity Δ, dominates
    all others. There the loss of the outcome z is (Δ − 2z)Δ/2s². Masses are floats with a relative
    error far below 1e-11; the probability of a loss above `reach`, at most e^{−z²/2s²} by
    [CKS20, Prop. 25], counts as infinite loss on the upper side.
    """
    shift = guarantee.sensitivity
    spread = guarantee.noise_multiplier * shift
    far = math.ceil(_farthest_outcome(guarantee, reach))
    if far > MOST_OUTCOMES:
        raise Unsupported(
            f"discrete Gaussian noise of standard deviation {spread:g} has too many outcomes to "
            "compose exactly; use zcdp, or gauss if the noise is continuous"
        )
    z = np.arange(far, -far - 1, -1, dtype=np.float64)
    weights = np.exp(-0.5 * (z / spread) ** 2)
    masses_ = weights / math.fsum(weights.tolist())
    losses = (1 - 2 * z / shift) / (2 * guarantee.noise_multiplier**2)
    error = 1e-14 * float(np.abs(losses).max())
    beyond = math.exp(-0.5 * (far / spread) ** 2) * (1 + 1e-9) + 1e-300  # and all underflow
    upper = masses_ * (1 + 1e-11)
    upper[0] += beyond
    kept = upper > 0
    above = Atoms(losses[kept] + error, upper[kept], beyond)
    return above, Atoms(losses[kept] - error, masses_[kept] * (1 - 1e-11))


def _farthest_outcome(guarantee: DiscreteGaussian, reach: float) -> float:
    """A value of the noise beyond which losses exceed `reach` or have no noticeable mass."""
    sigma, shift = guarantee.noise_multiplier, guarantee.sensitivity
    return max(reach * sigma**2 * shift, 12 * sigma * shift) + shift + 1


def number_of_atoms(guarantee: Guarantee, step: float, reach: float) -> float:
    """How many atoms a discretisation has at most: what it costs; infinite if it is refused."""
    match guarantee:
        case LossDistribution(losses=losses):
            return len(losses)
        case OneWay(TwoWayLoss(one, other)):
            return len(one.losses) + len(other.losses)
        case OneWay(Subsampled() as sampled) | (SubsampledWithoutReplacement() as sampled):
            if isinstance(sampled.guarantee, PureDP):
                return 2
            far = loss_before(reach, sampled.rate)
            before = _step_before(sampled, step, far)
            return 5 * number_of_atoms(sampled.guarantee, before, far)
        case DiscreteGaussian():
            far = _farthest_outcome(guarantee, reach)
            return 2 * far + 1 if far <= MOST_OUTCOMES else math.inf
        case _:
            return 2 * reach / step + 3


def reach_of(guarantee: Guarantee, tiny: float) -> float:
    """A loss beyond which at most `tiny` of the profile lies."""
    if isinstance(guarantee, LossDistribution):
        return max(guarantee.losses[-1], 0.0)
    match guarantee:
        case OneWay(Subsampled() as sampled) | (SubsampledWithoutReplacement() as sampled):
            before = reach_of(sampled.guarantee, min(0.1, tiny / sampled.rate))
            return inflated(float(sampled_losses(np.array([before]), sampled.rate)[0]), 64)
        case OneWay(TwoWayLoss()):
            return reach_of(guarantee.loss, tiny)
    if isinstance(guarantee, PureDP | Laplace):
        return guarantee.epsilon
    if isinstance(guarantee, DiscreteGaussian):
        sigma, steps = guarantee.noise_multiplier, guarantee.sensitivity
        return (0.5 + math.sqrt(-2 * math.log(tiny)) * sigma + 1 / steps) / sigma**2
    high = 1.0
    while up(profile_of_loss(guarantee, arb(high))) > tiny:
        high *= 1.5

    def too_near(x: float) -> bool:
        return up(profile_of_loss(guarantee, arb(x))) > tiny

    return turning_point(too_near, 0.0, high, width=1e-6)[1]


def _normal_above(x: Ball) -> Ball:
    """P[N(0, 1) > x]."""
    return (x / arb(2).sqrt()).erfc() / 2


def mean_and_variance(guarantee: Guarantee) -> tuple[float, float]:
    """About where the loss lies: for choosing grids, never for a bound."""
    match guarantee:
        case Gaussian(noise_multiplier=sigma) | DiscreteGaussian(noise_multiplier=sigma):
            return 0.5 / sigma**2, 1 / sigma**2
        case PureDP(epsilon=epsilon):
            return epsilon * math.tanh(epsilon / 2), (
                epsilon / math.cosh(min(epsilon, 500) / 2)
            ) ** 2
        case Laplace(epsilon=epsilon):
            return middle(arb(epsilon) + (-arb(epsilon)).expm1()), min(epsilon, 2.0) ** 2
        case LossDistribution(losses=losses, masses=masses):
            mean = float(np.dot(losses, masses))
            return mean, float(np.dot(np.square(losses), masses)) - mean**2
        case OneWay(Subsampled() as sampled) | (SubsampledWithoutReplacement() as sampled):
            square = _variance_after(sampled)
            return square / 2, square
        case OneWay(TwoWayLoss()):
            return mean_and_variance(guarantee.loss)
        case _:
            raise TypeError(f"{guarantee!r} has no fixed privacy loss")


def responses(*, count: int, epsilon: float, t: float | None, step: float) -> tuple[Atoms, Atoms]:
    """`count` randomized responses at once: atoms (above, below) the exact binomial loss.

    With `t` they are generalized ones, RR_{ε,t} [DDR20, Def. 2.4], with losses t and t − ε;
    without it the ordinary ones, with losses ±ε. Masses left out above the list count as
    infinite loss for the upper side and are dropped for the lower one; what is left out
    below joins the smallest loss. On the lower side atoms closer than `step` are merged.
    """
    if t is None:
        top, spacing, log_odds = count * arb(epsilon), 2 * arb(epsilon), arb(epsilon)
    else:
        top, spacing = count * arb(t), arb(epsilon)
        log_odds = ((arb(epsilon) - t).expm1() / arb(t).expm1()).log() + t
    known = binomial_masses(count=count, log_odds=log_odds)
    places = np.arange(known.first, known.first + len(known.pmf), dtype=np.float64)
    losses = middle(top) - places * middle(spacing)
    error = 8 * UNIT * (abs(middle(top)) + count * middle(spacing))
    upper = known.pmf * (1 + known.relative)
    upper[-1] += known.above_last
    above = Atoms(losses[::-1] + error, upper[::-1], known.below_first)
    below = merged(Atoms(losses[::-1] - error, (known.pmf * (1 - known.relative))[::-1]), step)
    return above, below
