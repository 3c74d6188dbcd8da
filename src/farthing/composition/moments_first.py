"""Kinds that only bound moments, and after them kinds whose worst case is known.

Let V be the profile of what comes after, and K(α) = ln E[e^{(α−1)L}] at most of what comes before,
whatever it was. Then, by Markov's inequality for e^{(α−1)L},

    δ(ε) ≤ E[V(ε − L)] ≤ e^{K(α) − (α−1)ε} · sup_y V(y)e^{(α−1)y}.

With nothing after it V is (1 − e^y)₊ and this is [CKS20, Prop. 12]. docs/theory/moments.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from farthing.composition.bound import Bound, Sides
from farthing.composition.items import Losses
from farthing.composition.moments import MomentBound
from farthing.composition.profiles import curves
from farthing.numerics.ball import in_balls, up
from farthing.numerics.curves import Chords

#: Relative width in ε that the profile of what comes after is computed to.
FINENESS = 2e-3
#: Of the δ that is asked for, where that profile ends: what lies beyond is bounded by moments.
FAR = 1e-6
#: A δ below this is not worth a grid.
SMALLEST = 1e-200
#: Larger orders than that of the peak, for what lies beyond the grid.
HIGHER = (1.5, 2.0, 3.0, 5.0)


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
        found = curves(self.after, self.adaptivity, FINENESS, FAR * delta, whole=True)
        if found is None:
            return None
        upper, after = found.upper, self.after

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
