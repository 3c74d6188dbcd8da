"""The adaptive and set-wise optimum as a certified bracket.

The recursion of Lemma 6.1 in [DDR20] and Lemma 5.1 in [CR22], solved on a grid by
composition/adaptive/profiles.py and refined until the bracket is as narrow as was asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from farthing.composition.adaptive.profiles import Curves, curves
from farthing.composition.bounds import Bound, Sides, lower_only
from farthing.composition.bounds.closed_forms import analytic_gaussian
from farthing.composition.bounds.moment_witness import Moments, attained_delta, attained_epsilon
from farthing.composition.bounds.moments import MomentBound
from farthing.composition.items import Losses
from farthing.guarantees.kinds import BoundedRange, LossDistribution, PureDP
from farthing.guarantees.losses import loss_of
from farthing.guarantees.losses.base import Loss
from farthing.progress import listening, tell_between

#: Every question walks the same grids from the first to finer ones, each this much finer, so that
#: a bracket that stopped early contains those that went on.
COARSEST, RUNG = 8e-3, 4.0
#: Never ask the grid for less: rounding would dominate.
FINEST = 1e-7
#: A δ below this is not worth a grid: floats end near 1e-308.
SMALLEST = 1e-250
#: Around the order that is best for the upper side, the worst mechanisms of several are looked for.
AROUND = (0.8, 0.9, 1.0, 1.1, 1.25, 1.5)


def by_operators(items: Losses, adaptivity: str, tolerance: float) -> Bound | None:
    """Both sides by operators on profiles, for kinds whose worst case is known.

    Items whose losses leave the range of floats are left out; then only the lower side is stated,
    because an adversary need not use everything.
    """
    kept = Losses(tuple((loss, count) for loss, count in items if loss.in_range))
    if not kept.pairs or not items.known:
        return None
    bound = Bound(
        name="operators",
        theorem=_theorem(kept, adaptivity),
        epsilon_at=lambda delta: _epsilon(kept, adaptivity, tolerance, delta),
        delta_at=lambda epsilon: _delta(kept, adaptivity, tolerance, epsilon),
        optimal=True,
        on_grid=True,
    )
    return bound if kept == items else lower_only(bound)


def by_example(
    items: Losses, adaptivity: str, tolerance: float, *, witnesses: bool = True
) -> Bound | None:
    """A lower bound for kinds that only bound moments, from mechanisms that have them.

    Gaussian noise for all of them, or with `witnesses` the mechanisms that are worst at one order.
    The upper side of lists of several may be loose by some per cent, so the lower one need not be
    finer.
    """
    tolerance = max(tolerance, 1e-2)
    examples = _examples(items)
    noise = analytic_gaussian(examples) or by_operators(examples, adaptivity, tolerance)
    worst = _heaviest(items) if witnesses else None
    if noise is None and worst is None:
        return None

    def epsilon_at(delta: float) -> Sides:
        attained = [0.0 if noise is None else noise.epsilon_at(delta)[0]]
        if worst is not None and SMALLEST < delta < 1:
            if items.total == 1:
                attained.append(attained_epsilon(worst, delta))
            else:
                several = _several_witnesses(items, worst, adaptivity, delta)
                attained += [bound.epsilon_at(delta)[0] for bound in several]
        return max(attained), math.inf

    def delta_at(epsilon: float) -> Sides:
        attained = [0.0 if noise is None else noise.delta_at(epsilon)[0]]
        about = MomentBound(items).delta_at(epsilon)
        if worst is not None and SMALLEST < about < 1:
            if items.total == 1:
                attained.append(attained_delta(worst, epsilon, 0.05 * about))
            else:
                several = _several_witnesses(items, worst, adaptivity, about)
                attained += [bound.delta_at(epsilon)[0] for bound in several]
        return max(attained), math.inf

    return Bound(
        "example", "attained by an example mechanism", _silent(epsilon_at), _silent(delta_at)
    )


def _silent(read: Callable[[float], Sides]) -> Callable[[float], Sides]:
    """Without progress reports: brackets of examples are not brackets of the answer."""

    def reading(at: float) -> Sides:
        with listening(None):
            return read(at)

    return reading


def _examples(items: Losses) -> Losses:
    pairs = [(loss.example(), count) for loss, count in items]
    return Losses(tuple((loss, count) for loss, count in pairs if loss is not None))


def _heaviest(items: Losses) -> Moments | None:
    """The moment bound with the largest ρ, among kinds that only bound moments."""
    known = [Moments.of(loss) for loss, _ in items]
    bounded = [moments for moments in known if moments is not None]
    return max(bounded, key=lambda moments: moments.rho, default=None)


def _several_witnesses(
    items: Losses, heaviest: Moments, adaptivity: str, delta: float
) -> Iterator[Bound]:
    """Lists with witnesses that are worst near this δ: for all such kinds, or for the heaviest.

    All witnesses are worst at one common order: the loss of each is the slope of its moments there.
    """
    if (last := _chosen_last(items, adaptivity, delta)) is not None:
        yield last
    known = {loss: Moments.of(loss) for loss, _ in items}
    order = MomentBound(items).best_order(delta)
    for factor in AROUND:
        witnesses = {
            loss: _loss(moments.witness(moments.slope(factor * (order - 1))))
            for loss, moments in known.items()
            if moments is not None
        }
        heavy = {loss: worst for loss, worst in witnesses.items() if known[loss] == heaviest}
        for chosen in (witnesses,) if heavy == witnesses else (witnesses, heavy):
            pairs = tuple((chosen.get(loss) or loss, count) for loss, count in items)
            bound = by_operators(_examples(Losses(pairs)), adaptivity, 1e-2)
            if bound is not None:
                yield bound


def _loss(witness: LossDistribution | None) -> Loss | None:
    return None if witness is None else loss_of(witness)


def _chosen_last(items: Losses, adaptivity: str, delta: float) -> Bound | None:
    """The last use, if it only bounds moments, replaced by the worst choice given the rest."""
    places = range(len(items.pairs)) if adaptivity == "setwise" else [len(items.pairs) - 1]
    place = next((i for i in places if Moments.of(items.pairs[i][0]) is not None), None)
    if place is None or adaptivity == "none":
        return None
    loss, count = items.pairs[place]
    moments = Moments.of(loss)
    worst = None if moments is None else _loss(moments.chosen_last(delta))
    if worst is None:
        return None
    others = [pair for i, pair in enumerate(items) if i != place]
    rest = [(loss, count - 1)] if count > 1 else []
    return by_operators(_examples(Losses((*others, *rest, (worst, 1)))), "adaptive", 1e-3)


def _epsilon(items: Losses, adaptivity: str, tolerance: float, delta: float) -> Sides:
    if delta < SMALLEST:
        return 0.0, float("inf")

    def read(profile: Curves) -> Sides:
        upper = profile.upper.first_below(delta)
        return profile.lower.last_above(delta), float("inf") if upper is None else upper

    return _refine(items, adaptivity, tolerance, delta, read)


def _delta(items: Losses, adaptivity: str, tolerance: float, epsilon: float) -> Sides:
    at_most = MomentBound(items).delta_at(epsilon)
    if at_most < SMALLEST:
        return 0.0, at_most
    guess = 0.05 * at_most
    return _refine(
        items,
        adaptivity,
        tolerance,
        guess,
        lambda profile: (profile.lower.at(epsilon), profile.upper.at(epsilon)),
        whole=True,
    )


def _refine(
    items: Losses,
    adaptivity: str,
    tolerance: float,
    delta: float,
    read: Callable[[Curves], Sides],
    *,
    whole: bool = False,
) -> Sides:
    """Finer and finer grids until the tolerance is met, nothing improves, or it costs too much."""
    lower, upper = 0.0, float("inf")
    fineness, previous = COARSEST, float("inf")
    while fineness >= FINEST:
        profile = curves(items, adaptivity, fineness, delta, whole=whole)
        if profile is None:
            break
        sides = read(profile)
        lower, upper = max(lower, sides[0]), min(upper, sides[1])
        tell_between("δ" if whole else "ε", lower, upper)
        width = (upper - lower) / upper if upper > 0 else 0.0
        if width <= tolerance or (fineness <= tolerance and width > 0.8 * previous):
            break
        previous = width
        fineness /= RUNG
        if whole and adaptivity == "none" and upper > SMALLEST:  # choices are made for this δ
            delta = upper
    return lower, upper


def _theorem(items: Losses, adaptivity: str) -> str:
    if not items.ranges:
        if items.only(PureDP):
            return "optimal composition of unequal ε-DP [MV16, Thm 1.5], on a grid"
        return "dominating pairs composed exactly, on a grid"
    if adaptivity == "none":
        return "non-adaptive optimum [DDR20, Lemma 3.1], bounded by an adaptive one on a grid"
    if adaptivity == "setwise":
        return "set-wise adaptive optimum by operators on profiles [CR22, Lemma 5.1, Prop. 1]"
    if items.only(BoundedRange):
        return "adaptive optimum by operators on profiles [DDR20, Lemma 6.1]"
    return "adaptive optimum by operators on profiles [DDR20, Lemma 6.1; CR22, Lemma 5.1]"
