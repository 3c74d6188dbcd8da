"""The adaptive and set-wise optimum as a certified bracket.

The recursion of Lemma 6.1 in [DDR20] and Lemma 5.1 in [CR22], solved on a grid by
composition/profiles.py and refined until the bracket is as narrow as was asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from farthing.composition.bound import Bound, Sides, lower_only
from farthing.composition.gaussian import analytic_gaussian
from farthing.composition.items import Items
from farthing.composition.moment_witness import Moments, attained_delta, attained_epsilon
from farthing.composition.moments import MomentBound
from farthing.composition.profiles import KINDS, Curves, curves
from farthing.guarantees.conversions import example, pure_epsilon
from farthing.guarantees.kinds import (
    BoundedRange,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    OneWay,
    PureDP,
    Subsampled,
    SubsampledWithoutReplacement,
)
from farthing.progress import listening, tell_between

#: Every question walks the same grids from the first to finer ones, each this much finer, so that
#: a bracket that stopped early contains those that went on.
COARSEST, RUNG = 8e-3, 4.0
#: Never ask the grid for less: rounding would dominate.
FINEST = 1e-7
#: A δ below this is not worth a grid: floats end near 1e-308.
SMALLEST = 1e-250


def by_operators(items: Items, adaptivity: str, tolerance: float) -> Bound | None:
    """Both sides by operators on profiles, for kinds whose worst case is known.

    Items whose losses leave the range of floats are left out; then only the lower side is stated,
    because an adversary need not use everything.
    """
    kept = Items(tuple((g, count) for g, count in items if in_range(g)))
    if not kept.pairs or not items.only(*KINDS):
        return None
    bound = _on_grids(kept, adaptivity, tolerance)
    return bound if kept == items else lower_only(bound)


def _on_grids(items: Items, adaptivity: str, tolerance: float) -> Bound:
    return Bound(
        name="operators",
        theorem=_theorem(items, adaptivity),
        epsilon_at=lambda delta: _epsilon(items, adaptivity, tolerance, delta),
        delta_at=lambda epsilon: _delta(items, adaptivity, tolerance, epsilon),
        optimal=True,
        on_grid=True,
    )


def by_example(items: Items, adaptivity: str, tolerance: float) -> Bound | None:
    """A lower bound for kinds that only bound moments, from mechanisms that have them.

    Gaussian noise for all of them, or for one of them the mechanism that is worst by itself. The
    upper side of lists of several is loose by some per cent, so the lower one need not be finer.
    """
    tolerance = max(tolerance, 1e-2)
    examples = _examples(items)
    noise = analytic_gaussian(examples) or by_operators(examples, adaptivity, tolerance)
    worst = _heaviest(items)
    if noise is None and worst is None:
        return None

    def epsilon_at(delta: float) -> Sides:
        found = [0.0 if noise is None else noise.epsilon_at(delta)[0]]
        if worst is not None and SMALLEST < delta < 1:
            found += _with_witnesses(items, *worst, adaptivity, delta)
        return max(found), math.inf

    def delta_at(epsilon: float) -> Sides:
        found = [0.0 if noise is None else noise.delta_at(epsilon)[0]]
        if worst is not None and items.total == 1:
            about = MomentBound(items).delta_at(epsilon)
            if SMALLEST < about < 1:
                found.append(attained_delta(worst[1], epsilon, 0.05 * about))
        return max(found), math.inf

    return Bound(
        "example", "attained by an example mechanism", _silent(epsilon_at), _silent(delta_at)
    )


def _silent(read: Callable[[float], Sides]) -> Callable[[float], Sides]:
    """What examples have on both sides is nobody's bracket."""

    def reading(at: float) -> Sides:
        with listening(None):
            return read(at)

    return reading


def _examples(items: Items) -> Items:
    pairs = [(example(guarantee), count) for guarantee, count in items]
    return Items(tuple((guarantee, count) for guarantee, count in pairs if guarantee is not None))


def _heaviest(items: Items) -> tuple[int, Moments] | None:
    """The place of the kind with the largest ρ among those that bound moments only."""
    known = [(i, Moments.of(g)) for i, (g, _) in enumerate(items)]
    found = [(i, moments) for i, moments in known if moments is not None]
    return max(found, key=lambda pair: pair[1].rho, default=None)


def _with_witnesses(
    items: Items, place: int, moments: Moments, adaptivity: str, delta: float
) -> list[float]:
    """What is attained if one use of this kind is the worst by itself, for several losses."""
    if items.total == 1:
        return [attained_epsilon(moments, delta)]
    guarantee, count = items.pairs[place]
    found = []
    for loss in moments.losses_for(delta)[::2]:
        witness = moments.witness(loss)
        if witness is None:
            continue
        rest = ((guarantee, count - 1),) if count > 1 else ()
        pairs = (*items.pairs[:place], (witness, 1), *rest, *items.pairs[place + 1 :])
        bound = by_operators(_examples(Items(pairs)), adaptivity, 1e-2)
        if bound is not None:
            found.append(bound.epsilon_at(delta)[0])
    return found


def in_range(guarantee: Guarantee) -> bool:
    """Whether e^±loss and the grid steps stay well inside the range of floats."""
    match guarantee:
        case Gaussian(noise_multiplier=sigma) | DiscreteGaussian(noise_multiplier=sigma):
            return 1e-2 < sigma < 1e60
        case OneWay(Subsampled(inner, rate)) | SubsampledWithoutReplacement(inner, rate):
            return rate > 1e-60 and in_range(inner)
        case _:
            epsilon = pure_epsilon(guarantee)
            return epsilon is None or 1e-60 < epsilon < 300


def _epsilon(items: Items, adaptivity: str, tolerance: float, delta: float) -> Sides:
    if delta < SMALLEST:
        return 0.0, float("inf")

    def read(found: Curves) -> Sides:
        upper = found.upper.first_below(delta)
        return found.lower.last_above(delta), float("inf") if upper is None else upper

    return _refine(items, adaptivity, tolerance, delta, read)


def _delta(items: Items, adaptivity: str, tolerance: float, epsilon: float) -> Sides:
    at_most = MomentBound(items).delta_at(epsilon)
    if at_most < SMALLEST:
        return 0.0, at_most
    guess = 0.05 * at_most
    return _refine(
        items,
        adaptivity,
        tolerance,
        guess,
        lambda found: (found.lower.at(epsilon), found.upper.at(epsilon)),
        whole=True,
    )


def _refine(
    items: Items,
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
        found = curves(items, adaptivity, fineness, delta, whole=whole)
        if found is None:
            break
        sides = read(found)
        lower, upper = max(lower, sides[0]), min(upper, sides[1])
        tell_between("δ" if whole else "ε", lower, upper)
        width = (upper - lower) / upper if upper > 0 else 0.0
        if width <= tolerance or (fineness <= tolerance and width > 0.8 * previous):
            break
        previous = width
        fineness /= RUNG
    return lower, upper


def _theorem(items: Items, adaptivity: str) -> str:
    if not any(isinstance(g, BoundedRange) for g, _ in items):
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
