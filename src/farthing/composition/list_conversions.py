"""What a whole list is in the words of concentrated and of Gaussian differential privacy."""

from __future__ import annotations

from flint import arb

from farthing.composition.items import Losses
from farthing.errors import Unsupported
from farthing.guarantees.notation import format_guarantee
from farthing.numerics.ball import Ball, in_balls, larger, up


@in_balls
def total_rho(items: Losses) -> float:
    """The whole list is ρ-zCDP for this ρ: Σρ, and Σξ if that is positive, as D_α ≤ ξ + ρα."""
    rho, xi = arb(0), arb(0)
    for loss, count in items:
        pair = loss.zero_concentrated() if loss.leak == 0 else None
        if pair is None:
            raise Unsupported(f"{format_guarantee(loss.guarantee):.60} is not rho-zCDP for any rho")
        xi += count * pair[0]
        rho += count * pair[1]
    return up(rho + larger(xi, arb(0)))


@in_balls
def total_mu(items: Losses) -> float:
    """The whole list is μ-GDP for this μ: μ² adds up [DRS22, Cor. 3.3]."""
    square = arb(0)
    for loss, count in items:
        if (variance := loss.gaussian_variance()) is not None:
            square += count / variance
        elif loss.pure_epsilon is not None:
            square += count * _mu_of_pure(loss.pure_epsilon) ** 2
        else:
            text = format_guarantee(loss.guarantee)
            raise Unsupported(f"{text:.60} is not mu-GDP for a known mu")
    return up(square.sqrt())


def _mu_of_pure(epsilon: float) -> Ball:
    """ε-DP is μ-GDP exactly from −2Φ⁻¹(1/(1 + e^ε)) on.

    The trade-off curve of randomized response has its one corner at type I = type II =
    1/(1 + e^ε), and a convex curve through the same ends lies below it if it does there; that of
    two normals at distance μ has equal errors Φ(−μ/2).
    """
    return 2 * arb(2).sqrt() * (2 / (1 + arb(epsilon).exp())).erfcinv()  # Φ⁻¹(p) = −√2·erfc⁻¹(2p)
