"""Certified profiles of whole lists: operators applied from the last mechanism to the first.

    none      any fixed order bounds it from above; fixed t bounds it from below
    adaptive  the order that was given
    setwise   the worst order, chosen as you go

Mechanisms without a choice commute, and one of them moved in front of a bounded-range step
can only increase the loss: B F V ≤ F B V, since a sup of averages is at most the average of
sups ([CR22, Prop. 1], for any fixed loss). So the set-wise optimum has the fixed steps first
and the bounded-range ones last, several parameters in any order (grid_choice.AnyOrder).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from farthing.composition.adaptive.grid_choice import (
    MOVED,
    ORDERS,
    PLACES,
    WORK_LIMIT,
    Blocks,
    Layout,
    blocks_of,
)
from farthing.composition.adaptive.lattice import Lattice, RepeatedBlock, fixed_curves, sum_of
from farthing.composition.adaptive.operators import (
    BoundedRangeChoice,
    FixedLoss,
    Kernel,
    Operator,
    atoms_of,
    equal_rounds,
    shifted_below,
)
from farthing.composition.bounds.moments import MomentBound
from farthing.composition.items import Losses
from farthing.errors import NotCertified
from farthing.guarantees.losses.base import Atoms, Loss
from farthing.guarantees.losses.randomized_response import binomial_atoms
from farthing.numerics.ball import in_balls
from farthing.numerics.curves import Chords, Grid, Supports

#: So few uses fixed in advance have each t moved twice.
FEW = 20
#: Longer lists of one parameter are left to other bounds: their masses alone fill the memory.
MOST_IN_BLOCKS = 10**8


@dataclass(frozen=True, slots=True)
class Curves:
    """A profile from both sides."""

    upper: Chords
    lower: Supports


@lru_cache(maxsize=64)
@in_balls
def curves(
    items: Losses, adaptivity: str, fineness: float, delta: float, *, whole: bool = False
) -> Curves | None:
    """Both sides of the profile of `items`, accurate where it is about `delta`.

    `fineness` is about the relative width in ε that is aimed at. With `whole` the profile is
    accurate for negative ε too, as a privacy loss distribution needs it. None if it would cost
    more than WORK_LIMIT.
    """
    if any(loss.on_lattice(n) for loss, n in items) and not items.ranges:
        return _by_sums(lambda: fixed_curves(items, fineness, delta, whole=whole))
    layout = Layout.of(items, fineness, delta, whole=whole)
    if _only_blocks(items, adaptivity, layout):
        return _by_sums(lambda: _sum_of_blocks(items, fineness, delta, whole=whole))
    if layout is None or layout.work(items, adaptivity) > WORK_LIMIT:
        return None
    return Curves(_upper(items, adaptivity, layout), _lower(items, adaptivity, layout))


def _by_sums(made: Callable[[], tuple[Chords, Supports] | None]) -> Curves | None:
    """Sums on a lattice; None if their numbers leave the range of floats or memory.

    Other bounds speak then, so that nothing is under-reported.
    """
    try:
        with np.errstate(invalid="raise"):
            sides = made()
    except (FloatingPointError, MemoryError, OverflowError, ValueError):
        return None
    return None if sides is None else Curves(*sides)


def _only_blocks(items: Losses, adaptivity: str, layout: Layout | None) -> bool:
    """Whether every bounded-range group is cut into blocks, which leaves fixed losses only.

    Blocks are rounds one after the other, so the order must be known: each parameter in one group,
    and one parameter only where the order is chosen as you go.
    """
    ranged = items.ranges
    if not ranged or len(set(ranged)) < len(ranged) or (adaptivity == "setwise" and ranged[1:]):
        return False
    return layout is None or layout.blocked >= set(ranged)


def _sum_of_blocks(
    items: Losses, fineness: float, delta: float, *, whole: bool
) -> tuple[Chords, Supports] | None:
    order = MomentBound(items).best_order(delta)
    groups, (_, rest) = items.choices(), items.split()
    beside = []
    for epsilon, count in groups:
        blocks = blocks_of(epsilon, count, fineness, delta)
        if count > MOST_IN_BLOCKS:
            return None
        if blocks is None or blocks.work(epsilon) > WORK_LIMIT / len(groups):
            return None
        t = worst_fixed_t(epsilon, order)
        _, below = binomial_atoms(count=count, epsilon=epsilon, t=t, step=1e-3 * epsilon)
        variance = count * (epsilon**2 / 4)
        beside.append(RepeatedBlock(_block(epsilon, blocks), blocks.number, below, variance))
    fixed = Losses(tuple(rest))
    return fixed_curves(fixed, fineness / 16, delta, whole=whole, beside=tuple(beside))


def _upper(items: Losses, adaptivity: str, layout: Layout) -> Chords:
    profile = Chords.of_nothing(layout.grid)
    merged = items.unordered() if adaptivity != "adaptive" else items
    if (alone := _rounds_alone(merged, layout)) is not None:
        return equal_rounds(*alone)[0]
    choices, fixed = merged.split()
    if adaptivity == "setwise" and len(choices) > 1:
        profile = layout.any_order(merged.choices()).above(profile)
        choices = []
    if adaptivity == "none":
        # every fixed order is valid: bounded range first and from large to small is the least
        sequence = [*reversed(_small_first(choices)), *fixed]
    elif adaptivity == "setwise":
        sequence = [*fixed, *choices]
    else:
        sequence = list(merged)
    for loss, count in reversed(sequence):
        profile = _apply_above(profile, loss, count, layout)
    return profile


def _small_first(choices: list[tuple[Loss, int]]) -> list[tuple[Loss, int]]:
    return sorted(choices, key=lambda pair: pair[0].chosen_range or 0.0)


def _rounds_alone(items: Losses, layout: Layout) -> tuple[float, Grid, int] | None:
    """(ε, grid, count) if one bounded-range parameter that is not cut into blocks is all."""
    (loss, count), *others = items
    epsilon = loss.chosen_range
    if others or epsilon is None or epsilon in layout.blocked:
        return None
    return epsilon, layout.grid, count


def _apply_above(profile: Chords, loss: Loss, count: int, layout: Layout) -> Chords:
    grid, epsilon = layout.grid, loss.chosen_range
    if epsilon is not None:
        if epsilon in layout.blocked:
            return _blocks(epsilon, count, layout).apply(profile)
        operator = BoundedRangeChoice(epsilon)
        for _ in range(count):
            profile = operator.above(profile)
        return profile
    if loss.on_lattice(count):
        return Kernel.of_lattice(_sampled_sum(loss, count, layout)[0], grid).apply(profile)
    atoms, times = loss.total(count, grid.step, layout.delta * 1e-7, upward=True)
    return Kernel.of(atoms, grid).power(times, grid.size).apply(profile)


def _sampled_sum(loss: Loss, count: int, layout: Layout) -> tuple[Lattice, Lattice]:
    sums = sum_of(loss, count, layout.grid.step, layout.delta)
    if sums is None:
        raise NotCertified("the losses of samples spread too far for the grid")
    return sums


def _blocks(epsilon: float, count: int, layout: Layout) -> Kernel:
    """Many equal bounded-range rounds as a power of the profile of one block of them.

    A block's profile is a valid privacy loss for everything that happens inside it, whatever
    comes later, so blocks compose by convolution. What is lost is that the adversary could
    not have been worst at every threshold at once: about 0.4/length relative in ε.
    """
    blocks = blocks_of(epsilon, count, layout.fineness, layout.delta)
    assert blocks is not None  # counted as work that is never begun
    kernel = Kernel.of(_block(epsilon, blocks), layout.grid)
    return kernel.power(blocks.number, layout.grid.size)


@lru_cache(maxsize=32)
def _block(epsilon: float, blocks: Blocks) -> Atoms:
    """The loss of one block."""
    profile = Chords.of_nothing(blocks.inside)
    operator = BoundedRangeChoice(epsilon)
    for _ in range(blocks.length):
        profile = operator.above(profile)
    return atoms_of(profile)


def _lower(items: Losses, adaptivity: str, layout: Layout) -> Supports:
    """The profile that one adversary achieves. Any order and any t are valid; take good ones."""
    if adaptivity == "adaptive":
        sequence = list(items)
    else:
        choices, fixed = items.unordered().split()
        # small before large is the worst order, or nearly (docs/theory/order.md)
        sequence = [*fixed, *_small_first(choices)]
    ranges = set(items.ranges)
    played = set() if adaptivity == "none" else ranges - layout.blocked
    if played and (alone := _rounds_alone(items.unordered(), layout)) is not None:
        return equal_rounds(*alone)[1]
    if played == ranges:
        return _play(sequence, layout, played, {})
    order = MomentBound(items).best_order(layout.delta)
    if adaptivity == "none":
        return _best_fixed_choice(sequence, layout, order)
    return _play(sequence, layout, played, _fixed_choices(sequence, order))


def _play(
    sequence: list[tuple[Loss, int]],
    layout: Layout,
    adaptive: set[float],
    choices: dict[float, float],
) -> Supports:
    profile = Supports.of_nothing(layout.grid)
    for loss, count in reversed(sequence):
        epsilon = loss.chosen_range
        if epsilon is not None and epsilon in adaptive:
            operator = BoundedRangeChoice(epsilon)
            for _ in range(count):
                profile = operator.below(profile)
        else:
            profile = _apply_below(profile, loss, count, layout, choices)
    return profile


def _fixed_choices(sequence: list[tuple[Loss, int]], order: float) -> dict[float, float]:
    ranges = Losses(tuple(sequence)).ranges
    return {epsilon: worst_fixed_t(epsilon, order) for epsilon in ranges}


def _best_fixed_choice(sequence: list[tuple[Loss, int]], layout: Layout, order: float) -> Supports:
    """A good t for every bounded-range parameter, all fixed in advance.

    Equal mechanisms share one t ([CR22, Lemma 4.4]). First a common Rényi order for all of
    them, then shifts of the most frequent ones inside their ripples, twice where uses are few.
    """

    def outcome(choices: dict[float, float]) -> tuple[float, Supports]:
        profile = _play(sequence, layout, set(), choices)
        return profile.last_above(layout.delta), profile

    trials = [_fixed_choices(sequence, 1 + (order - 1) * 1.3**i) for i in _around(ORDERS)]
    best = max(((*outcome(choices), choices) for choices in trials), key=lambda entry: entry[0])
    groups = sorted(
        ((n, epsilon) for epsilon, n in Losses(tuple(sequence)).choices()), reverse=True
    )
    for count, epsilon in groups[:MOVED] * (2 if sum(n for n, _ in groups) <= FEW else 1):
        shifted = [
            {**best[2], epsilon: _inside(best[2][epsilon] + i * epsilon / (12 * count), epsilon)}
            for i in _around(PLACES)
        ]
        outcomes = [(*outcome(choices), choices) for choices in shifted]
        best = max((best, *outcomes), key=lambda entry: entry[0])
    return best[1]


def _around(number: int) -> range:
    return range(-(number // 2), number // 2 + 1)


def _apply_below(
    profile: Supports, loss: Loss, count: int, layout: Layout, choices: dict[float, float]
) -> Supports:
    step, epsilon = layout.grid.step, loss.chosen_range
    if epsilon is not None:
        _, below = binomial_atoms(count=count, epsilon=epsilon, t=choices[epsilon], step=step)
        return _fixed(below).below(profile)
    if loss.on_lattice(count):
        return shifted_below(_sampled_sum(loss, count, layout)[1], profile)
    atoms, times = loss.total(count, step, layout.delta * 1e-7, upward=False)
    for _ in range(times):
        profile = _fixed(atoms).below(profile)
    return profile


def operator_of(loss: Loss, grid: Grid, delta: float) -> Operator:
    """The operator of one application, for profiles on `grid` that matter down to `delta`."""
    if loss.chosen_range is not None:
        return BoundedRangeChoice(loss.chosen_range)
    reach = loss.reach(delta * 1e-7)
    return FixedLoss(loss.atoms_above(grid.step, reach), loss.atoms_below(grid.step, reach))


def worst_fixed_t(epsilon: float, order: float) -> float:
    """The t that maximises the moment of the given Rényi order: a good t to fix in advance."""
    power = order - 1
    slope = -math.expm1(-power * epsilon) / math.expm1(epsilon)
    return _inside(math.log(power * (1 + slope) / ((power + 1) * slope)), epsilon)


def _inside(t: float, epsilon: float) -> float:
    """`t` moved into the open interval (0, ε): at its ends a response reveals nothing."""
    return min(max(t, 1e-6 * epsilon), (1 - 1e-6) * epsilon)


def _fixed(below: Atoms) -> FixedLoss:
    return FixedLoss(upper=below, lower=below)
