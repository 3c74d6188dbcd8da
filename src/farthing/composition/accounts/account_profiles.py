"""What accounts reveal: one, several together, at levels of spending, and quickly by moments.

The profile of an account dominates everything that is done inside it, whatever happens before,
after or in between. So accounts compose like mechanisms with a fixed privacy loss
(docs/theory/odometer.md, "Several accounts").

The odometer (ledger/reports/budget.py) reads the profile at levels, which needs a recursion over
all ways to spend. A plan cannot wait for that, so `reading_by_moments` bounds a level by ρ. What is
bought for ℓ farthings has ρ ≤ ℓ·r, where r is the largest ρ per farthing of any item, because each
purchase multiplies the moment of order α by at most e^{(α−1)αρ_i} whatever came before, and
ρ_i ≤ r·c_i. The result is some per cent above the odometer's level. The shares of δ are the same,
the cap is what the certificate states, and the proof is that of docs/theory/odometer.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from farthing.composition.adaptive.operators import loss_distribution_above
from farthing.composition.adaptive.profiles import curves
from farthing.composition.bounds.moments import MomentBound
from farthing.composition.compose import compose
from farthing.composition.items import Items, Losses, losses_of, take_out_leaks
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.tariff import Tariff, tariff_profiles
from farthing.errors import FarthingError, NotCertified, Unattainable
from farthing.guarantees.kinds import Guarantee, ZeroConcentratedDP
from farthing.guarantees.losses import loss_of
from farthing.guarantees.losses.base import Loss
from farthing.numerics.ball import in_balls, up
from farthing.numerics.curves import Chords, Grid
from farthing.numerics.rounding import deflated, inflated

#: Relative width in ε that profiles are computed to, or that of a long tariff with many items.
FINENESS = 4e-3
COARSE = 0.033
#: Computations that take longer than about this many nanoseconds are done coarsely.
LONG = 4e9
#: Relative width of δ in what a plan says of its answers, and how many mechanisms it may have.
QUICK, SEVERAL = 0.05, 200
#: The share of δ of an account that is spent to its cap; what remains is for the levels below it.
CAP_SHARE = 0.99
#: Levels that grow by √2 each; a whole number means that many equal steps instead.
HALVING = "halving"

#: The δ that statements usually use, if the certificate claims something there.
USUAL = 1e-6


@dataclass(frozen=True, slots=True)
class AccountProfile:
    """What one account may have revealed: a profile, and the probability of a full leak."""

    profile: Chords | None
    leak: float

    @property
    def unused(self) -> AccountProfile:
        """The same account with nothing bought; its leak still counts."""
        return AccountProfile(None, self.leak)


@lru_cache(maxsize=64)
def profiles_when_spent(
    tariff: Tariff, farthings: frozenset[int], delta: float
) -> Mapping[int, AccountProfile]:
    """V_b for each of these b, accurate down to about `delta`; 0 has no profile.

    The leak is that of all δ units whatever is spent, so that it is counted once over all levels.
    """
    profiles = {0: AccountProfile(None, tariff.leak)}
    fineness = FINENESS if tariff.budget.work(FINENESS, delta) < LONG else COARSE
    for spent in tariff_profiles(tariff, fineness, delta, lower=False):
        if spent.farthings in farthings and spent.farthings > 0:
            profiles[spent.farthings] = AccountProfile(spent.upper, tariff.leak)
    return MappingProxyType(profiles)


@lru_cache(maxsize=64)
def list_profile(items: Items, adaptivity: str, delta: float) -> AccountProfile:
    """The profile of a list that is fixed in advance, run whole.

    Where its loss differs with the unit and without it, the larger of both at every ε, which
    bounds both directions and so may be composed with other accounts (docs/theory/directions.md).
    """
    accounts = [_one_direction(one, adaptivity, delta) for one in items.directions()]
    profiles = [account.profile for account in accounts if account.profile is not None]
    leak = max(account.leak for account in accounts)
    if len(profiles) < 2:
        return AccountProfile(profiles[0] if profiles else None, leak)
    return AccountProfile(_larger(profiles), leak)


def _larger(profiles: list[Chords]) -> Chords:
    """A profile above all of them, on one grid."""
    step = min(one.grid.step for one in profiles)
    left = min(one.grid.below * one.grid.step for one in profiles)
    right = max(one.grid.above * one.grid.step for one in profiles)
    grid = Grid(step, math.floor(left / step), math.ceil(right / step))
    values = [max(one.at(x) for one in profiles) for x in grid.points().tolist()]
    return Chords(grid, np.array(values))


def _one_direction(items: Losses, adaptivity: str, delta: float) -> AccountProfile:
    leaky = take_out_leaks(items)
    leak = up(leaky.leak) if leaky.sum_of_deltas > 0 else 0.0
    if not leaky.items.pairs:
        return AccountProfile(None, leak)
    profile = curves(leaky.items, adaptivity, FINENESS, delta, whole=True)
    if profile is None:
        raise NotCertified("the registered list is too long for one profile; register it in parts")
    return AccountProfile(profile.upper, leak)


def epsilon_of(accounts: Sequence[AccountProfile], delta: float, *, share: float = 1.0) -> float:
    """ε for all accounts together, with a share of the δ that the leaks leave."""
    inner = deflated(_without_leaks(accounts, delta) * share, 8)
    profiles = [account.profile for account in accounts if account.profile is not None]
    if not profiles:
        return 0.0
    if len(profiles) == 1:
        epsilon = profiles[0].first_below(inner)
        if epsilon is None:
            raise NotCertified(f"no epsilon is proved at delta = {delta:g}")
        return epsilon
    composed = compose(
        [loss_distribution_above(p) for p in profiles], adaptivity="adaptive", tolerance=FINENESS
    )
    return composed.epsilon_at(inner).upper


def guess_of(accounts: Sequence[AccountProfile]) -> float:
    """The largest chance of guessing from all accounts whether a unit is in the data, from even
    odds: (1 + δ(0))/2."""
    profiles = [account.profile for account in accounts if account.profile is not None]
    inner = sum(account.leak for account in accounts)
    if len(profiles) == 1:
        inner += profiles[0].at(0.0)
    elif profiles:
        inner += (
            compose([loss_distribution_above(p) for p in profiles], tolerance=FINENESS)
            .delta_at(0.0)
            .upper
        )
    return min(1.0, inflated((1 + inner) / 2, 8 + 2 * len(accounts)))


@lru_cache(maxsize=256)
def guess_from(items: tuple[tuple[Guarantee, int], ...]) -> float | None:
    """The same from mechanisms, chosen adaptively: quick, and a little too large. None for none,
    or for so many that it would take long."""
    if not 0 < sum(times for _, times in items) <= SEVERAL:
        return None
    return inflated((1 + compose(items, tolerance=QUICK).delta_at(0.0).upper) / 2, 4)


def epsilon_if_opened_by_releases(
    accounts: Sequence[tuple[int, AccountProfile]], delta: float
) -> float:
    """Σ ε_a at each account's share of δ: an ex-post bound whatever led to opening these accounts.

    Each account comes with its index, which was fixed when it was opened.
    """
    shares = shares_of_delta([index for index, _ in accounts], delta)
    parts = (epsilon_of([one], part) for (_, one), part in zip(accounts, shares, strict=True))
    return inflated(sum(parts), 4 + 2 * len(accounts))


def shares_of_delta(indexes: Sequence[int], delta: float) -> list[float]:
    """The share of δ of each account: δ/2^a for index a, times a part for repeated indexes.

    Where no two have one index that part is CAP_SHARE. All other cases share what remains
    (docs/theory/odometer.md, "Accounts that were decided from releases").
    """
    most = max(Counter(indexes).values(), default=1)
    part = CAP_SHARE if most == 1 else (1 - CAP_SHARE) / (most * most * (most - 1))
    return [math.ldexp(deflated(part * delta, 8), -index) for index in indexes]


def levels(farthings: int, spaced: int | str) -> tuple[int, ...]:
    """Levels up to the cap: in this many equal steps, or "halving" with every second one.

    Of halving levels none reads more than 2^¼ of what the exact amount would, down to about a
    thousandth of the cap.
    """
    if isinstance(spaced, int):
        return tuple(sorted({math.ceil(farthings * j / spaced) for j in range(1, spaced + 1)}))
    # the smallest m with m²·2^j ≥ farthings², in whole numbers
    return tuple(sorted({math.isqrt((farthings**2 - 1) >> j) + 1 for j in range(20)}))


def level_reached(steps: Sequence[int], spent: int) -> int:
    """The smallest level that is not below what is spent; 0 if nothing is spent."""
    return next((step for step in (0, *steps) if step >= spent), steps[-1])


def epsilon_at_levels(
    reached: Sequence[AccountProfile], full: Sequence[AccountProfile], cases: int, delta: float
) -> float:
    """The odometer's reading for accounts at the levels they reached.

    `cases` is the number of combinations of levels.

    The full combination has CAP_SHARE of δ, and no reading exceeds it. All others but the empty
    one, which reveals nothing, share the rest.
    """
    epsilon = epsilon_of(reached, delta, share=(1 - CAP_SHARE) / max(cases - 2, 1))
    return min(epsilon, epsilon_of(full, delta, share=CAP_SHARE)) if epsilon > 0 else epsilon


def proved(compute: Callable[[], float]) -> float | None:
    """The result, or None if nothing is proved at this δ."""
    try:
        return float(compute())
    except FarthingError:
        return None


def _without_leaks(accounts: Sequence[AccountProfile], delta: float) -> float:
    """The δ that is left for the profiles, rounded down."""
    leak = inflated(sum(account.leak for account in accounts), 8 * len(accounts))
    if delta <= leak:
        raise Unattainable(
            f"delta must exceed the {leak:g} that the delta units add, got {delta:g}"
        )
    return deflated(delta - leak, 8)


def stated_delta(certificate: Certificate) -> float | None:
    """The δ that readings are stated at: the usual one, or the smallest with a claim."""
    claimed = [delta for delta, _ in certificate.epsilons if delta > certificate.tariff.leak]
    return USUAL if USUAL in claimed else min(claimed, default=None)


@lru_cache(maxsize=256)
def reading_by_moments(certificate: Certificate, spent: int, delta: float) -> float | None:
    """ε of everything released for `spent` farthings; None if nothing is proved."""
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
