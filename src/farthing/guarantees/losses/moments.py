"""Kinds that only bound moments, for which no worst mechanism is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import (
    ConcentratedDP,
    Gaussian,
    Guarantee,
    RenyiDP,
    TruncatedConcentratedDP,
    ZeroConcentratedDP,
)
from farthing.guarantees.losses.base import Loss
from farthing.guarantees.losses.gaussian import GaussianLoss
from farthing.guarantees.notation import format_guarantee
from farthing.numerics.ball import Ball
from farthing.numerics.rounding import float_up, inflated


class MomentLoss(Loss, known=False):
    """A loss of which only moments are known. An example is Gaussian noise with the largest ρ that
    fits, its noise multiplier rounded up."""

    __slots__ = ()

    @property
    def fitting_rho(self) -> float:
        """The ρ of Gaussian noise that has this guarantee."""
        return 0.0

    def example(self) -> Loss | None:
        if self.fitting_rho <= 0:
            return None
        return GaussianLoss(Gaussian(inflated((0.5 / self.fitting_rho) ** 0.5, 8)))


@dataclass(frozen=True, slots=True)
class ConcentratedLoss(MomentLoss):
    """(μ, τ)-CDP."""

    guarantee: ConcentratedDP

    @property
    def fitting_rho(self) -> float:
        return min(self.guarantee.mu, self.guarantee.tau * self.guarantee.tau / 2)

    def concentrated(self) -> tuple[Ball, Ball]:
        return arb(self.guarantee.mu), arb(self.guarantee.tau) ** 2

    def why_not_concurrent(self) -> str:
        return (
            "concentrated DP (μ, τ) cannot be composed concurrently: the theorem covers "
            "(ε, δ)-DP, Rényi DP, zCDP and tCDP; use zcdp with ρ = τ²/2 and ξ = μ − τ²/2, "
            f"which {format_guarantee(self.guarantee)} implies"
        )


@dataclass(frozen=True, slots=True)
class ZeroConcentratedLoss(MomentLoss):
    """A δ-approximate zCDP mechanism is zCDP outside an event of probability δ by definition."""

    guarantee: ZeroConcentratedDP

    @property
    def leak(self) -> float:
        return self.guarantee.delta

    def without_leak(self) -> Loss:
        return ZeroConcentratedLoss(ZeroConcentratedDP(self.guarantee.rho, self.guarantee.xi))

    @property
    def fitting_rho(self) -> float:
        return min(self.guarantee.rho, self.guarantee.rho + self.guarantee.xi)

    def zero_concentrated(self) -> tuple[Ball, Ball]:
        return arb(self.guarantee.xi), arb(self.guarantee.rho)

    def moment_line(self) -> tuple[float, float, float] | None:
        line = self.guarantee.xi, self.guarantee.rho, math.inf
        return line if self.guarantee.delta == 0 else None

    def for_group(self, units: int) -> Guarantee:
        """(ξk·Σ 1/i, k²ρ) [BS16, Prop. 27]."""
        if self.guarantee.delta > 0:
            return Loss.for_group(self, units)
        harmonic = sum((Fraction(1, i) for i in range(1, units + 1)), Fraction(0))
        offset = float_up(max(Fraction(self.guarantee.xi), Fraction(0)) * units * harmonic)
        return ZeroConcentratedDP(float_up(units * units * Fraction(self.guarantee.rho)), offset)

    def why_not_concurrent(self) -> str | None:
        if self.guarantee.delta == 0:
            return None
        return (
            "δ-approximate zCDP cannot be composed concurrently: the event may depend on the "
            "adversary, and no decomposition is known; where the leak is part of the mechanism "
            f"list adp:0,{self.guarantee.delta!r} and zcdp:{self.guarantee.rho!r} apart"
        )


@dataclass(frozen=True, slots=True)
class TruncatedLoss(MomentLoss):
    """(ρ, ω)-tCDP."""

    guarantee: TruncatedConcentratedDP

    @property
    def fitting_rho(self) -> float:
        return self.guarantee.rho

    @property
    def orders_below(self) -> float:
        return self.guarantee.omega

    def log_moment(self, alpha: float) -> Ball:
        order = arb(alpha)
        return (order - 1) * order * arb(self.guarantee.rho)

    def moment_line(self) -> tuple[float, float, float]:
        return 0.0, self.guarantee.rho, self.guarantee.omega


@dataclass(frozen=True, slots=True)
class RenyiLoss(MomentLoss):
    """A curve of Rényi divergences."""

    guarantee: RenyiDP

    @property
    def orders_below(self) -> float:
        return self.guarantee.orders_below

    def log_moment(self, alpha: float) -> Ball:
        divergence = float(self.guarantee.curve(alpha))
        if math.isnan(divergence) or divergence < 0:
            raise InvalidInput(
                f"the Rényi curve must be at least 0, got {divergence} at α = {alpha}"
            )
        return (arb(alpha) - 1) * arb(divergence)
