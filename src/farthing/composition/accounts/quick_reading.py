"""What has been spent so far, read at once: by moments, for a plan that must not wait.

The odometer (ledger/reports/odometer.py) reads V at levels: a recursion over all ways to spend.
Here a level is read from ρ: whatever is bought for ℓ farthings has ρ ≤ ℓ·r, with r the largest ρ
per farthing of any item, because each purchase multiplies the moment of order α by at most
e^{(α−1)αρ_i} whatever came before, and ρ_i ≤ r·c_i. That is an upper bound on the odometer's
level, by some per cent. The shares of δ are the same, the cap is what the certificate states, and
the proof is that of docs/theory/odometer.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

from farthing.composition.accounts.account_profiles import CAP_SHARE, HALVING, level_reached, levels
from farthing.composition.bounds.moments import MomentBound
from farthing.composition.items import losses_of
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.tariff import Tariff
from farthing.errors import FarthingError
from farthing.guarantees.kinds import ZeroConcentratedDP
from farthing.guarantees.losses.base import Loss
from farthing.guarantees.losses.registry import loss_of
from farthing.numerics.ball import in_balls, up
from farthing.numerics.rounding import deflated, inflated

#: The δ that people expect a statement at, if the certificate claims something there.
USUAL = 1e-6


def stated_delta(certificate: Certificate) -> float | None:
    """The δ that readings are stated at: the usual one, or the smallest with a claim."""
    claimed = [delta for delta, _ in certificate.epsilons if delta > certificate.tariff.leak]
    return USUAL if USUAL in claimed else min(claimed, default=None)


@lru_cache(maxsize=256)
def reading_by_moments(certificate: Certificate, spent: int, delta: float) -> float | None:
    """ε of everything that was told for so many farthings; None if nothing is proved."""
    if spent == 0:
        return 0.0
    tariff = certificate.tariff
    try:
        most = certificate.epsilon_at(deflated(delta * CAP_SHARE, 4))
    except FarthingError:
        return None
    steps, rate = levels(tariff.farthings, HALVING), _rho_per_farthing(tariff)
    if rate is not None:
        inner = (delta - tariff.leak) * (1 - CAP_SHARE) / max(len(steps) - 1, 1)
        whole = ZeroConcentratedDP(inflated(rate * level_reached(steps, spent), 4))
        level = MomentBound(losses_of([whole])).epsilon_at(deflated(inner, 16))
        most = min(most, level)
    return min(most, inflated(spent * _pure_per_farthing(tariff), 4))


def whole_by_moments(tariff: Tariff, delta: float) -> float | None:
    """ε of everything that a tariff can ever sell, by ρ alone; None if an item has none."""
    rate, inner = _rho_per_farthing(tariff), deflated(delta - tariff.leak, 16)
    if rate is None or inner <= 0:
        return None
    whole = ZeroConcentratedDP(inflated(rate * tariff.farthings, 4))
    return MomentBound(losses_of([whole])).epsilon_at(inner)


def whole_by_addition(tariff: Tariff) -> float:
    """The same by adding up pure ε's; infinite if an item has none."""
    return inflated(tariff.farthings * _pure_per_farthing(tariff), 4)


def _offers(tariff: Tariff) -> list[tuple[Loss, int]]:
    return [(loss_of(g).without_leak(), price) for g, price in tariff.items.values()]


def _pure_per_farthing(tariff: Tariff) -> float:
    """The largest pure ε that a farthing buys; infinite if some item has none."""
    pairs = [(loss.pure_epsilon, price) for loss, price in _offers(tariff)]
    return max(math.inf if e is None else inflated(e / price, 4) for e, price in pairs)


@lru_cache(maxsize=64)
@in_balls
def _rho_per_farthing(tariff: Tariff) -> float | None:
    """The largest ρ that a farthing buys, D_α ≤ ξ + ρα ≤ (ξ₊ + ρ)α; None if some item has none."""
    pairs = [(loss.zero_concentrated(), price) for loss, price in _offers(tariff)]
    known = [(pair, price) for pair, price in pairs if pair is not None]
    if len(known) < len(pairs):
        return None
    return max(inflated((max(0.0, up(xi)) + up(rho)) / price, 4) for (xi, rho), price in known)
