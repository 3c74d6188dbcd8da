"""Lists with kinds that only bound moments, alone or beside others: three bounds.

*Moments first.* Let V be the profile of the steps that come after, and K(α) a bound on
ln E[e^{(α−1)L}] of the steps before. Then, by Markov's inequality for e^{(α−1)L},

    δ(ε) ≤ E[V(ε − L)] ≤ e^{K(α) − (α−1)ε} · sup_y V(y)e^{(α−1)y}.

With nothing after it V is (1 − e^y)₊ and this is [CKS20, Prop. 12].

*Moments as a loss.* Whatever came before, a run of such mechanisms is (ε, D(ε))-DP for every ε
at once, where D is the tight conversion of its moments. D is the profile of a pair of distributions
that dominates the run, and dominating pairs compose with everything, in any order.

*Moments as noise.* Each mechanism is replaced by the Gaussian noise that it costs with what comes
after it (normal_prices.py), so the whole has the profile of noise. For many small mechanisms.

All are proved in docs/theory/moments.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import groupby

import numpy as np

from farthing.composition.adaptive.normal_prices import climbed, rates_of
from farthing.composition.adaptive.operators import loss_distribution_above
from farthing.composition.adaptive.optimum import by_operators
from farthing.composition.adaptive.profiles import curves
from farthing.composition.bounds import Bound, Sides
from farthing.composition.bounds.closed_forms import analytic_gaussian
from farthing.composition.bounds.moments import MomentBound
from farthing.composition.items import Losses, losses_of
from farthing.errors import Unattainable
from farthing.guarantees.kinds import Gaussian, LossDistribution
from farthing.guarantees.losses import loss_of
from farthing.guarantees.losses.base import Loss
from farthing.numerics.ball import in_balls, up
from farthing.numerics.curves import Chords, Grid
from farthing.numerics.rounding import deflated, float_up, inflated

#: Relative width in ε that the profile of what comes after is computed to.
FINENESS = 2e-3
#: Of the δ that is asked for, where that profile ends: what lies beyond is bounded by moments.
BEYOND = 1e-6
#: Larger orders than that of the peak, for what lies beyond the grid.
HIGHER = (1.5, 2.0, 3.0, 5.0)
#: D is computed at this many points on each side of ε = 0, up to where it is this part of δ.
POINTS, FAR = 400, 1e-4
#: Relative width that the profile of the whole is computed to.
FINE = 2e-3
#: Of δ, what the grids of prices in noise may add; fewer mechanisms than this gain nothing.
ADDED, MANY = 2.0**-10, 12
#: A δ below this is not worth a grid.
SMALLEST = 1e-200


def moments_first(items: Losses, adaptivity: str) -> Bound | None:
    """The bound for lists that have both; None if the order is not known, or it adds nothing."""
    if adaptivity == "none":  # every order is valid
        known = [loss.known for loss, _ in items]
        pairs = [pair for pair, after in zip(items, known, strict=True) if not after]
        before, after = pairs, [pair for pair, later in zip(items, known, strict=True) if later]
    elif adaptivity == "adaptive":
        start = max((i for i, (loss, _) in enumerate(items) if not loss.known), default=-1)
        before, after = list(items.pairs[: start + 1]), list(items.pairs[start + 1 :])
    else:
        return None
    if not before or not after or not all(loss.in_range for loss, _ in after):
        return None
    split = _Split(Losses(tuple(before)), Losses(tuple(after)), adaptivity)
    return Bound(
        "moments-first",
        "Rényi moments, converted beside the profile of what comes after (docs/theory/moments.md)",
        epsilon_at=split.epsilon_at,
        delta_at=split.delta_at,
        on_grid=True,
    )


@dataclass(frozen=True, slots=True)
class _Split:
    """What comes before and after."""

    before: Losses
    after: Losses
    adaptivity: str

    def epsilon_at(self, delta: float) -> Sides:
        bound = self._bound(delta)
        return 0.0, math.inf if bound is None else bound.epsilon_at(delta)

    def delta_at(self, epsilon: float) -> Sides:
        whole = Losses((*self.before.pairs, *self.after.pairs))
        bound = self._bound(0.1 * MomentBound(whole).delta_at(epsilon))
        return 0.0, 1.0 if bound is None else bound.delta_at(epsilon)

    def _bound(self, delta: float) -> MomentBound | None:
        if not SMALLEST < delta < 1:
            return None
        profile = curves(self.after, self.adaptivity, FINENESS, BEYOND * delta, whole=True)
        if profile is None:
            return None
        upper, after = profile.upper, self.after

        def gain(alpha: float) -> float:
            return _log_peak(upper, after, alpha - 1)

        return MomentBound(self.before, gain=gain)


@in_balls
def _log_peak(profile: Chords, after: Losses, power: float) -> float:
    """ln of sup V(y)e^{power·y}, rounded up."""
    end = profile.grid.origin + profile.grid.above * profile.grid.step
    beyond = math.inf
    for factor in HIGHER:
        total = sum(count * up(loss.log_moment(1 + factor * power)) for loss, count in after)
        beyond = min(beyond, total - (factor - 1) * power * end + 1e-9)
    most = after.epsilon_sum()
    if most is not None:
        last = math.log(profile.values[-1]) if profile.values[-1] > 0 else -math.inf
        beyond = min(beyond, last + power * up(most) + 1e-9) if most > end else -math.inf
    return max(profile.log_peak(power), beyond)


def moments_as_loss(items: Losses, adaptivity: str) -> Bound | None:
    """The bound for lists that have both; None if there is nothing to gain.

    If the order is chosen as you go, other items may come between two of a run, so then only a
    single use is replaced.
    """
    uses = sum(count for loss, count in items if not loss.known)
    if uses in (0, items.total) or (adaptivity == "setwise" and uses > 1):
        return None

    def near(delta: float) -> Bound | None:
        listed = _as_losses(items, delta) if SMALLEST < delta < 1 else None
        return None if listed is None else by_operators(listed, adaptivity, FINE)

    def epsilon_at(delta: float) -> Sides:
        bound = near(delta)
        return 0.0, math.inf if bound is None else bound.epsilon_at(delta)[1]

    def delta_at(epsilon: float) -> Sides:
        bound = near(0.1 * MomentBound(items).delta_at(epsilon))
        return 0.0, 1.0 if bound is None else bound.delta_at(epsilon)[1]

    return Bound(
        "moments-as-loss",
        "Rényi moments as one loss beside others (docs/theory/moments.md)",
        epsilon_at=epsilon_at,
        delta_at=delta_at,
        on_grid=True,
    )


def _as_losses(items: Losses, delta: float) -> Losses | None:
    """The list with each run of kinds that only bound moments as one loss."""
    pairs = []
    for known, run in groupby(items, key=lambda pair: pair[0].known):
        if known:
            pairs += list(run)
            continue
        loss = dominating(Losses(tuple(run)), delta)
        if loss is None:
            return None
        pairs.append((loss_of(loss), 1))
    return Losses(tuple(pairs))


@lru_cache(maxsize=16)
def dominating(items: Losses, delta: float) -> LossDistribution | None:
    """A loss whose profile lies above that of every such list, close to it where it is about δ.

    For ε < 0 the profile is 1 − e^ε + e^ε·D(−ε) at most, by the other direction.
    """
    bound = MomentBound(items)
    end = bound.epsilon_at(FAR * delta)
    if not 0 < end < 300:
        return None
    grid = Grid(end / POINTS, POINTS, POINTS)
    values = np.array([bound.delta_at(x) for x in grid.points()[POINTS:].tolist()])
    mirrored = np.exp(grid.points()[:POINTS])
    below = inflated(1 - mirrored + mirrored * values[:0:-1], 16)
    both = np.minimum(np.concatenate((below, values)), 1.0)
    try:
        return loss_distribution_above(Chords(grid, np.minimum.accumulate(both)))
    except Unattainable:
        return None


def moments_as_noise(items: Losses, adaptivity: str) -> Bound | None:
    """The bound for lists with many mechanisms of which only moments are known.

    If all is fixed in advance every order is valid, and Gaussian noise comes last, where it makes
    the others cheaper. If the order is open it comes first, which is worst, and there may be one
    other kind.
    """
    noise = [pair for pair in items if pair[0].gaussian_variance() is not None]
    others = [pair for pair in items if pair[0].gaussian_variance() is None]
    many = sum(count for loss, count in items if not loss.known) >= MANY
    open_order = adaptivity == "setwise" and len({loss for loss, _ in others}) > 1
    if not many or open_order or any(loss.one_way for loss, _ in items):
        return None
    sequence = {"none": [*others, *noise], "setwise": [*noise, *others]}.get(
        adaptivity, list(items.pairs)
    )

    def near(delta: float) -> Bound | None:
        variance = _noise_of(tuple(sequence), delta) if SMALLEST < delta < 1 else None
        if variance is None:
            return None
        sigma = deflated(1 / math.sqrt(variance), 8)
        return analytic_gaussian(losses_of([Gaussian(sigma)]))

    def epsilon_at(delta: float) -> Sides:
        bound = near(delta)
        rest = deflated(delta * (1 - ADDED), 4)
        return 0.0, math.inf if bound is None else bound.epsilon_at(rest)[1]

    def delta_at(epsilon: float) -> Sides:
        about = MomentBound(items).delta_at(epsilon)
        bound = near(about)
        if bound is None:
            return 0.0, 1.0
        return 0.0, min(1.0, inflated(bound.delta_at(epsilon)[1] + ADDED * about, 4))

    return Bound(
        "moments-as-noise",
        "Rényi moments as Gaussian noise (docs/theory/moments.md)",
        epsilon_at=epsilon_at,
        delta_at=delta_at,
        on_grid=True,
    )


@lru_cache(maxsize=16)
def _noise_of(sequence: tuple[tuple[Loss, int], ...], delta: float) -> float | None:
    """A variance whose profile, and ADDED·δ more, lies above that of the list."""
    about = sum(count * up(loss.log_moment(1.5)) for loss, count in sequence)
    if not 0 < about < math.inf:
        return None
    most = 2.0 ** math.ceil(math.log2(16 * about))
    variance = Fraction(0)
    for loss, count in reversed(sequence):
        rates = rates_of((loss,), most, deflated(ADDED * delta / most, 4))
        if not rates:
            return None
        variance = climbed(variance, rates, count)
    return float_up(variance) if variance <= most else None
