"""Mechanisms that see a sample: how sampling changes a loss that is given as atoms.

Without the unit the sampled mechanism has the distribution Q, with it (1 − q)Q + qP. An outcome
with P/Q = r becomes one with the ratio 1 − q + qr in one direction and with its inverse in the
other. In terms of profiles, V becomes q·V((z − 1 + q)/q) from z = 1 − q on, which keeps order:
atoms above a loss give atoms above the sampled one, atoms below give atoms below
(docs/theory/subsampling.md). The sampled mechanism has a `Loss` of its own, `inner`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb

from farthing.guarantees.kinds import Subsampled, SubsampledWithoutReplacement
from farthing.guarantees.losses.base import Atoms, Loss, Sandwich
from farthing.guarantees.losses.randomized_response import TwoOutcomes, binomial_atoms
from farthing.numerics.ball import Ball, in_balls, up
from farthing.numerics.rounding import UNIT, FloatArray, deflated, inflated

#: Cuts of a loss before it is sampled, on either side of 0, at most.
MOST_CUTS = 4000
#: Whole orders of a sampled mechanism are expanded up to this one.
MOST_ORDERS = 64
#: So many samples of lumpy noise are not moved to a lattice.
FEW = 20
#: Relative error that masses of discrete noise, and their sums, stay below.
RELATIVE = 3e-11


@dataclass(frozen=True, slots=True)
class SampledLoss(Loss):
    """Common to both ways to draw a sample. `inner` is the loss of the sampled mechanism."""

    guarantee: Subsampled | SubsampledWithoutReplacement
    inner: Loss = field(kw_only=True)

    def whole(self) -> Loss:
        return self.inner if self.guarantee.rate == 1 else self

    @property
    def leak(self) -> float:
        return inflated(self.guarantee.rate * self.inner.leak, 4)

    @property
    def attained_leak(self) -> float:
        return 0.0

    def without_leak(self) -> Loss:
        """A sample of an (ε, δ)-DP mechanism leaks with q·δ at most, in either direction
        (docs/theory/subsampling.md, "Leaks")."""
        rest = self.inner.without_leak()
        return self if rest == self.inner else self.sampling(rest, self.guarantee.rate)

    def sampling(self, inner: Loss, rate: float) -> Loss:
        """Another loss, sampled in the same way."""
        sampleable: Any = inner.guarantee  # what cannot be sampled is refused by the kind
        guarantee = replace(self.guarantee, guarantee=sampleable, rate=rate)
        return sampled_loss(guarantee, inner, with_unit=self.with_unit)

    @property
    def pure_epsilon(self) -> float | None:
        """ln(1 − q + q·e^ε), rounded up: in both directions."""
        before = self.inner.pure_epsilon
        if before is None:
            return None
        return up((arb(self.guarantee.rate) * arb(before).expm1()).log1p())

    def reach(self, tiny: float) -> float:
        before = self.inner.reach(min(0.1, tiny / self.guarantee.rate))
        return inflated(float(sampled_losses(np.array([before]), self.guarantee.rate)[0]), 64)

    def mean_and_variance(self) -> tuple[float, float]:
        square = _variance_after(self.guarantee.rate, self.inner)
        return square / 2, square

    def number_of_atoms(self, step: float, reach: float) -> float:
        if self.inner.outcomes_apart is not None:
            return 2
        far = loss_before(reach, self.guarantee.rate)
        return 5 * self.inner.number_of_atoms(self._step_before(step, far), far)

    def on_lattice(self, count: int) -> bool:
        return True

    @property
    def ends_apart(self) -> float | None:
        """The distance between both ends after sampling."""
        end = self.inner.heavy_end
        if end is None:
            return None
        ends = sampled_losses(np.array([-end, end]), self.guarantee.rate)
        return float(ends[1] - ends[0])

    @property
    def in_range(self) -> bool:
        return self.guarantee.rate > 1e-60 and self.inner.in_range

    def before(self, step: float, reach: float, *, upward: bool) -> tuple[Atoms, float]:
        """Atoms of what is sampled, fine enough for a step after it, and Q's mass beyond them.

        Sampling narrows a loss, so the step before it may be wider. Lower atoms are finer, because
        those that lie alone in a cell cost the lower side of a lattice most. All kinds that can be
        sampled are symmetric: beyond the list Q has the mass that P has at the other end.
        """
        far = loss_before(reach, self.guarantee.rate)
        listed = self.inner.before_sampling(far)
        if listed is not None:
            return listed[0][0 if upward else 1], listed[1]
        wide = self._step_before(step, far)
        return _cut_atoms(self.inner, wide if upward else 0.25 * wide, far, upward)

    def _step_before(self, step: float, far: float) -> float:
        """How fine a loss is cut before sampling, for a step after it."""
        before = min(1.0, math.sqrt(self.inner.mean_and_variance()[1]))
        square = _variance_after(self.guarantee.rate, self.inner)
        wide = 0.8 * before * min(step / math.sqrt(square), 0.3)
        wide = max(wide, far / MOST_CUTS)
        end = self.inner.heavy_end
        return wide if end is None else end / math.ceil(end / wide)


@dataclass(frozen=True, slots=True)
class PoissonLoss(SampledLoss, sold=True, one_way=True, by_balls=True):
    """A Poisson sample, in one direction."""

    guarantee: Subsampled

    def log_moment(self, alpha: float) -> Ball:
        moment = _sampled_moment if self.with_unit else _unsampled_moment
        return moment(self.inner, self.guarantee.rate, alpha)

    def atoms_above(self, step: float, reach: float) -> Atoms:
        before, missing = self.before(step, reach, upward=True)
        rate, way = self.guarantee.rate, self.with_unit
        return sampled_above(before, rate, missing=missing, with_unit=way)

    def atoms_below(self, step: float, reach: float) -> Atoms:
        before, _ = self.before(step, reach, upward=False)
        return sampled_below(before, self.guarantee.rate, with_unit=self.with_unit)

    def on_lattice(self, count: int) -> bool:
        return count > FEW or not self.inner.lumpy

    def worst_epsilon(self) -> float:
        return self.inner.worst_epsilon()

    def why_not_sold(self) -> str | None:
        return self.inner.why_not_sold()

    def carried(self, negligible: float) -> Loss:
        """A larger rate is a larger loss (docs/theory/tariffs.md, "Samples")."""
        inner = self.inner.carried(negligible)
        return self.sampling(inner, max(self.guarantee.rate, negligible))


@dataclass(frozen=True, slots=True)
class SampledResponse(TwoOutcomes, PoissonLoss):
    """A Poisson sample of randomized response, which still has only two losses."""

    @property
    def outcomes_apart(self) -> float | None:
        return self.inner.outcomes_apart

    def on_lattice(self, count: int) -> bool:
        return False

    def two_losses(self) -> tuple[float, float]:
        """The smaller and the larger one."""
        end = self.inner.heavy_end
        assert end is not None
        low, high = sampled_losses(np.array([-end, end]), self.guarantee.rate).tolist()
        return (low, high) if self.with_unit else (-high, -low)

    def responses(self, count: int, step: float) -> Sandwich:
        """A pair with losses in [t − ε, t] is a post-processing of one with a wider interval, so
        the two losses are rounded outwards above and inwards below."""
        low, high = self.two_losses()
        steep = self.guarantee.rate * math.exp(min(max(-low, high), 600.0))
        error = 1e-14 * (high - low) + 1e-15 * steep
        above, below = (
            binomial_atoms(count=count, epsilon=high - low + 2 * e, t=high + e, step=step)
            for e in (error, -error)
        )
        return above[0], below[1]


@dataclass(frozen=True, slots=True)
class SubsetLoss(SampledLoss, attained=False):
    """A sample of fixed size, for replace-one neighbours."""

    guarantee: SubsampledWithoutReplacement

    def log_moment(self, alpha: float) -> Ball:
        """Both halves of the profile: r ↦ r^α on r ≥ 1 is at most that of one direction, on r ≤ 1
        of the other; so the sum of both, less the 1 that either has at least."""
        rate = self.guarantee.rate
        one = _sampled_moment(self.inner, rate, alpha)
        other = _unsampled_moment(self.inner, rate, alpha)
        return (one.exp() + other.exp() - 1).log()

    def atoms_above(self, step: float, reach: float) -> Atoms:
        before, _ = self.before(step, reach, upward=True)
        return replaced_above(before, self.guarantee.rate)

    def atoms_below(self, step: float, reach: float) -> Atoms:
        """One of the worst known mechanisms attains one direction only."""
        before, _ = self.before(step, reach, upward=False)
        return sampled_below(before, self.guarantee.rate, with_unit=True)

    def total(self, count: int, step: float, tiny: float, *, upward: bool) -> tuple[Atoms, int]:
        """From below, of that mechanism and one that leans to both sides, the one that reaches
        further when there are so many."""
        reach = self.reach(tiny)
        if upward:
            return self.atoms_above(step, reach), count
        both_ways = replaced_below(self.before(step, reach, upward=False)[0], self.guarantee.rate)
        known = (self.atoms_below(step, reach), both_ways)
        return max(known, key=lambda atoms: _about_reached(atoms, count, tiny)), count


def sampled_loss(
    guarantee: Subsampled | SubsampledWithoutReplacement, inner: Loss, *, with_unit: bool
) -> Loss:
    """The loss of a sample of `inner`; two outcomes stay two in a Poisson sample."""
    if isinstance(guarantee, SubsampledWithoutReplacement):
        return SubsetLoss(guarantee, inner=inner)
    made = PoissonLoss if inner.outcomes_apart is None else SampledResponse
    return made(guarantee, with_unit, inner=inner)


@lru_cache(maxsize=32)
@in_balls
def _cut_atoms(inner: Loss, step: float, reach: float, upward: bool) -> tuple[Atoms, float]:
    atoms = (inner.atoms_above if upward else inner.atoms_below)(step, reach)
    return atoms, atoms.infinity


@lru_cache(maxsize=256)
def _variance_after(rate: float, inner: Loss) -> float:
    """About E_P[loss²] after sampling with the unit: for choosing steps, never for a bound."""
    mean, variance = inner.mean_and_variance()
    deviation = math.sqrt(variance)
    losses = mean + deviation * np.linspace(-9.0, 9.0 + 2 * deviation, 2000)
    if inner.heavy_end is not None:
        losses = np.array([-1.0, 1.0]) * inner.heavy_end
        p_masses = 1 / (1 + np.exp(-losses))
    else:
        p_masses = np.exp(-0.5 * ((losses - mean) / deviation) ** 2)
    p_masses /= p_masses.sum()
    masses = (1 - rate) * p_masses * np.exp(-losses) + rate * p_masses
    return float(np.sum(masses * sampled_losses(losses, rate) ** 2))


def _sampled_moment(inner: Loss, rate: float, alpha: float) -> Ball:
    """ln E_Q[(1 − q + qr)^α], r = P/Q, from the moments of `inner`.

    For whole orders the binomial theorem; between them a chord, since it is convex in α. For large
    ones Minkowski's inequality: the α-norm of 1 − q + qr is at most 1 − q + q‖r‖.
    """
    q, order = arb(rate), arb(alpha)
    by_norm = order * (1 - q + q * (inner.log_moment(alpha) / order).exp()).log()
    if alpha > MOST_ORDERS:
        return by_norm
    low = math.floor(alpha)
    share = order - low
    whole = (1 - share) * _binomial_moment(inner, rate, low)
    whole += share * _binomial_moment(inner, rate, low + 1)
    return whole.min(by_norm)


@lru_cache(maxsize=1024)
def _binomial_moment(inner: Loss, rate: float, order: int) -> Ball:
    if order == 1:
        return arb(0)
    q, total = arb(rate), arb(0)
    for i in range(order + 1):
        term = arb.bin_uiui(order, i) * q**i * (1 - q) ** (order - i)
        total += term * (inner.log_moment(float(i)).exp() if i > 1 else 1)
    return total.log()


def _unsampled_moment(inner: Loss, rate: float, alpha: float) -> Ball:
    """ln E_Q[(1 − q + qr)^{1−α}]: no loss exceeds −ln(1 − q), and by Taylor's theorem at r = 1 it
    is at most ln(1 + α(α − 1)/2·q²(1 − q)^{−α−1}(E_Q[r²] − 1))."""
    q, order = arb(rate), arb(alpha)
    top = -(order - 1) * (-q).log1p()
    square = inner.log_moment(2.0).exp() - 1
    bend = order * (order - 1) / 2 * q**2 * (-(order + 1) * (-q).log1p()).exp()
    return (1 + bend * square).log().min(top)


def sampled_above(inner: Atoms, rate: float, *, missing: float, with_unit: bool) -> Atoms:
    """Atoms above the sampled loss, from atoms above `inner`.

    `missing` bounds the mass of Q on outcomes that P does not give, or that are not listed.
    """
    blur = _blur(inner)
    q_masses = inflated(inner.masses * np.exp(blur - inner.losses), 16)
    if with_unit:
        losses = sampled_losses(inner.losses + blur, rate)
        losses += _error(losses, inner.losses, rate)
        masses = inflated((1 - rate) * q_masses + rate * inner.masses, 16)
        masses[0] += missing  # at a smaller loss in truth
        return Atoms(losses, masses, inflated(rate * inner.infinity, 4))
    losses = sampled_losses(inner.losses - blur, rate)
    losses = (_error(losses, inner.losses, rate) - losses)[::-1]
    largest = -math.log1p(-rate) * (1 + 4 * UNIT)
    if missing == 0 or largest > 2 * abs(float(losses[-1])):  # far away it counts as infinite
        return Atoms(losses, q_masses[::-1], missing)
    return Atoms(np.append(losses, largest), np.append(q_masses[::-1], missing))


def sampled_below(inner: Atoms, rate: float, *, with_unit: bool) -> Atoms:
    """Atoms below the sampled loss, from atoms below `inner`."""
    blur = _blur(inner)
    q_masses = deflated(inner.masses * np.exp(-blur - inner.losses), 16)
    if with_unit:
        losses = sampled_losses(inner.losses - blur, rate)
        losses -= _error(losses, inner.losses, rate)
        return Atoms(losses, deflated((1 - rate) * q_masses + rate * inner.masses, 16))
    losses = sampled_losses(inner.losses + blur, rate)
    losses = -losses - _error(losses, inner.losses, rate)
    return Atoms(losses[::-1], q_masses[::-1])


def replaced_above(inner: Atoms, rate: float) -> Atoms:
    """Atoms above the loss of a sample of fixed size under replace-one neighbours.

    From z = 1 on the profile is that of the Poisson sample with the unit, left of it the mirror
    image of that (docs/theory/subsampling.md, "Without replacement"): so every mass at a loss s > 0
    has e^−s times its mass at −s, and what is left lies at 0.
    """
    one = sampled_above(inner, rate, missing=0.0, with_unit=True)
    losses, masses = one.losses[one.losses > 0], one.masses[one.losses > 0]
    mirrored = inflated(masses * np.exp(-losses), 16)
    known = math.fsum(masses) + math.fsum(mirrored) + one.infinity
    at_zero = max(0.0, 1 - known) + RELATIVE
    return Atoms(
        np.concatenate((-losses[::-1], [0.0], losses)),
        np.concatenate((mirrored[::-1], [at_zero], masses)),
        one.infinity,
    )


def replaced_below(inner: Atoms, rate: float) -> Atoms:
    """Atoms of the worst known mechanism under replace-one neighbours that leans to both sides.

    The largest losses of `inner` with masses p under P and q under Q, as many as Σp + 2Σq ≤ 1
    allows, make three distributions any two of which have the profile Σ(p − zq)₊ for z ≥ 1
    (docs/theory/subsampling.md, lemma 3). So a sample gives p and q a loss s > 0 and, mirrored, −s.
    """
    losses, masses = (side[inner.losses > 0][::-1] for side in (inner.losses, inner.masses))
    used = np.cumsum(inflated(masses * (1 + 2 * np.exp(-losses)), 16))
    before = np.concatenate(([0.0], used[:-1]))
    share = np.clip((1 - 1e-9 - before) / np.maximum(used - before, 1e-300), 0.0, 1.0)
    kept = Atoms(losses[::-1], deflated(masses * share, 4)[::-1])
    one = sampled_below(kept, rate, with_unit=True)
    mirror = sampled_above(kept, rate, missing=0.0, with_unit=True)
    mirrored = deflated(kept.masses * np.exp(-_blur(kept) - kept.losses), 16)
    at_zero = 1 - inflated(math.fsum(one.masses) + math.fsum(mirrored), 64)
    return Atoms(
        np.concatenate((-mirror.losses[::-1], [0.0], one.losses)),
        np.concatenate((mirrored[::-1], [max(0.0, at_zero)], one.masses)),
    )


def _about_reached(atoms: Atoms, count: int, tiny: float) -> float:
    """About the ε of so many at a small δ, by their moments."""

    def epsilon(theta: float) -> float:
        moment = float(np.sum(atoms.masses * np.exp(theta * atoms.losses)))
        return (count * math.log(moment) - math.log(tiny * count)) / theta

    steepest = 600 / float(np.abs(atoms.losses).max())
    return min(epsilon(steepest * 1.3**-i) for i in range(40))


def sampled_losses(losses: FloatArray, rate: float) -> FloatArray:
    """ln(1 − q + q·e^l), without overflow for large l."""
    small = np.log1p(rate * np.expm1(np.minimum(losses, 30.0)))
    large = losses + math.log(rate) + np.log1p((1 - rate) / rate * np.exp(-np.maximum(losses, 0)))
    return np.where(losses <= 30, small, large)


def loss_before(loss: float, rate: float) -> float:
    """The l ≥ 0 with ln(1 − q + q·e^l) = `loss`, about: for choosing where to cut."""
    if loss > 30:
        return loss - math.log(rate)
    return math.log1p(math.expm1(loss) / rate)


def _blur(inner: Atoms) -> float:
    """A bound on the error of the losses of `inner`."""
    return 3e-14 * (1 + float(np.abs(inner.losses).max()))


def _error(sampled: FloatArray, losses: FloatArray, rate: float) -> FloatArray:
    """A bound on the rounding error of `sampled_losses`."""
    steep = rate * np.exp(-np.minimum(sampled, 0.0))
    return 8 * UNIT * (np.abs(sampled) + np.abs(losses) + steep)
