"""Certified profiles of whole lists: operators applied from the last mechanism to the first.

    none      any fixed order bounds it from above; fixed t bounds it from below
    adaptive  the order that was given
    setwise   the worst order, chosen as you go

Mechanisms without a choice commute, and one of them moved in front of a bounded-range step
can only increase the loss: B F V ≤ F B V, since a sup of averages is at most the average of
sups ([CR22, Prop. 1], for any fixed loss). So the set-wise optimum has the fixed steps first
and the bounded-range ones last, several parameters in any order (composition/setwise.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from farthing.composition.equal_rounds import rounds_above, rounds_below
from farthing.composition.fixed_sums import (
    RepeatedBlock,
    added_on_lattice,
    fixed_curves,
    responses_of,
    sum_of,
)
from farthing.composition.grid_choice import WORK_LIMIT, Blocks, Layout, blocks_of, variance_of
from farthing.composition.items import Items
from farthing.composition.lattice import Lattice
from farthing.composition.moments import MomentBound
from farthing.composition.operators import (
    BoundedRangeChoice,
    FixedLoss,
    Kernel,
    Operator,
    atoms_of,
    shifted_below,
)
from farthing.errors import NotCertified
from farthing.guarantees.atoms import Atoms
from farthing.guarantees.kinds import (
    BoundedRange,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    LossDistribution,
    OneWay,
    PureDP,
    SubsampledWithoutReplacement,
)
from farthing.guarantees.losses import (
    atoms_above,
    atoms_below,
    reach_of,
    responses,
)
from farthing.numerics.ball import in_balls
from farthing.numerics.curves import Chords, Grid, Supports
from farthing.numerics.rounding import deflated, inflated

#: Kinds with a known worst case, which the engine composes without losing anything.
KINDS = (
    PureDP,
    BoundedRange,
    Laplace,
    Gaussian,
    DiscreteGaussian,
    LossDistribution,
    OneWay,
    SubsampledWithoutReplacement,
)


@dataclass(frozen=True, slots=True)
class Curves:
    """A profile from both sides."""

    upper: Chords
    lower: Supports


#: Longer lists of one parameter are left to other bounds: their masses alone fill the memory.
MOST_IN_BLOCKS = 10**8


@lru_cache(maxsize=64)
@in_balls
def curves(
    items: Items, adaptivity: str, fineness: float, delta: float, *, whole: bool = False
) -> Curves | None:
    """Both sides of the profile of `items`, accurate where it is about `delta`.

    `fineness` is about the relative width in ε that is aimed at. With `whole` the profile is
    accurate for negative ε too, as a privacy loss distribution needs it. None if it would cost
    more than WORK_LIMIT.
    """
    if any(added_on_lattice(g, n) for g, n in items) and BoundedRange not in items.kinds:
        return _by_sums(lambda: fixed_curves(items, fineness, delta, whole=whole))
    layout = Layout.of(items, fineness, delta, whole=whole)
    if _only_blocks(items, adaptivity, layout):
        return _by_sums(lambda: _sum_of_blocks(items, fineness, delta, whole=whole))
    if layout is None or layout.work(items, adaptivity) > WORK_LIMIT:
        return None
    return Curves(_upper(items, adaptivity, layout), _lower(items, adaptivity, layout))


def _by_sums(made: Callable[[], tuple[Chords, Supports] | None]) -> Curves | None:
    """Sums on a lattice; None where their numbers leave what floats and memory hold.

    Other bounds speak then, so that nothing is under-reported.
    """
    try:
        with np.errstate(invalid="raise"):
            found = made()
    except (FloatingPointError, MemoryError, OverflowError, ValueError):
        return None
    return None if found is None else Curves(*found)


def _only_blocks(items: Items, adaptivity: str, layout: Layout | None) -> bool:
    """Whether every bounded-range group is cut into blocks, which leaves fixed losses only.

    Blocks are rounds one after the other, so the order must be known: each parameter in one group,
    and one parameter only where the order is chosen as you go.
    """
    ranged = [g.epsilon for g, _ in items if isinstance(g, BoundedRange)]
    if not ranged or len(set(ranged)) < len(ranged) or (adaptivity == "setwise" and ranged[1:]):
        return False
    return layout is None or layout.blocked >= set(ranged)


def _sum_of_blocks(
    items: Items, fineness: float, delta: float, *, whole: bool
) -> tuple[Chords, Supports] | None:
    order = MomentBound(items).best_order(delta)
    groups = [(g, n) for g, n in items if isinstance(g, BoundedRange)]
    beside = []
    for guarantee, count in groups:
        blocks = blocks_of(guarantee, count, fineness, delta)
        if count > MOST_IN_BLOCKS:
            return None
        if blocks is None or blocks.work(guarantee.epsilon) > WORK_LIMIT / len(groups):
            return None
        t = worst_fixed_t(guarantee.epsilon, order)
        _, below = responses(
            count=count, epsilon=guarantee.epsilon, t=t, step=1e-3 * guarantee.epsilon
        )
        variance = count * variance_of(guarantee)
        beside.append(RepeatedBlock(_block(guarantee, blocks), blocks.number, below, variance))
    rest = Items(tuple((g, n) for g, n in items if not isinstance(g, BoundedRange)))
    return fixed_curves(rest, fineness / 16, delta, whole=whole, beside=tuple(beside))


def _upper(items: Items, adaptivity: str, layout: Layout) -> Chords:
    profile = Chords.of_nothing(layout.grid)
    merged = items.unordered() if adaptivity != "adaptive" else items
    if (alone := _rounds_alone(merged, layout)) is not None:
        return rounds_above(*alone)
    choices = [(g, n) for g, n in merged if isinstance(g, BoundedRange)]
    fixed = [(g, n) for g, n in merged if not isinstance(g, BoundedRange)]
    if adaptivity == "setwise" and len(choices) > 1:
        profile = layout.any_order(choices).above(profile)
        choices = []
    if adaptivity == "none":
        # every fixed order is valid: bounded range first and from large to small is the least
        sequence = [*sorted(choices, key=lambda pair: -pair[0].epsilon), *fixed]
    elif adaptivity == "setwise":
        sequence = [*fixed, *choices]
    else:
        sequence = list(merged)
    for guarantee, count in reversed(sequence):
        profile = _apply_above(profile, guarantee, count, layout)
    return profile


def _rounds_alone(items: Items, layout: Layout) -> tuple[float, Grid, int] | None:
    """(ε, grid, count) if one bounded-range parameter that is not cut into blocks is all."""
    (guarantee, count), *others = items
    if others or not isinstance(guarantee, BoundedRange) or guarantee.epsilon in layout.blocked:
        return None
    return guarantee.epsilon, layout.grid, count


def _apply_above(profile: Chords, guarantee: Guarantee, count: int, layout: Layout) -> Chords:
    if isinstance(guarantee, BoundedRange):
        if guarantee.epsilon in layout.blocked:
            return _blocks(guarantee, count, layout).apply(profile)
        operator = BoundedRangeChoice(guarantee.epsilon)
        for _ in range(count):
            profile = operator.above(profile)
        return profile
    grid = layout.grid
    tiny = layout.delta * 1e-7
    if (known := responses_of(guarantee, count, grid.step)) is not None:
        return Kernel.of(known[0], grid).apply(profile)
    if isinstance(guarantee, Gaussian):
        one = Gaussian(deflated(guarantee.noise_multiplier / math.sqrt(count), 8))
        atoms = atoms_above(one, grid.step, reach_of(one, tiny))
        return Kernel.of(atoms, grid).apply(profile)
    if added_on_lattice(guarantee, count):
        return Kernel.of_lattice(_sampled_sum(guarantee, count, layout)[0], grid).apply(profile)
    atoms = atoms_above(guarantee, grid.step, reach_of(guarantee, tiny))
    return Kernel.of(atoms, grid).power(count, grid.size).apply(profile)


def _sampled_sum(guarantee: Guarantee, count: int, layout: Layout) -> tuple[Lattice, Lattice]:
    found = sum_of(guarantee, count, layout.grid.step, layout.delta)
    if found is None:
        raise NotCertified("the losses of samples spread too far for the grid")
    return found


def _blocks(guarantee: BoundedRange, count: int, layout: Layout) -> Kernel:
    """Many equal bounded-range rounds as a power of the profile of one block of them.

    A block's profile is a valid privacy loss for everything that happens inside it, whatever
    comes later, so blocks compose by convolution. What is lost is that the adversary could
    not have been worst at every threshold at once: about 0.4/length relative in ε.
    """
    blocks = blocks_of(guarantee, count, layout.fineness, layout.delta)
    assert blocks is not None  # counted as work that is never begun
    kernel = Kernel.of(_block(guarantee, blocks), layout.grid)
    return kernel.power(blocks.number, layout.grid.size)


@lru_cache(maxsize=32)
def _block(guarantee: BoundedRange, blocks: Blocks) -> Atoms:
    """The loss of one block."""
    profile = Chords.of_nothing(blocks.inside)
    operator = BoundedRangeChoice(guarantee.epsilon)
    for _ in range(blocks.length):
        profile = operator.above(profile)
    return atoms_of(profile)


def _lower(items: Items, adaptivity: str, layout: Layout) -> Supports:
    """The profile that one adversary achieves: any order and any t will do, so take good ones."""
    if adaptivity == "adaptive":
        sequence = list(items)
    else:
        merged = items.unordered()
        choices = [(g, n) for g, n in merged if isinstance(g, BoundedRange)]
        fixed = [(g, n) for g, n in merged if not isinstance(g, BoundedRange)]
        # small before large is the worst order, or nearly (docs/theory/order.md)
        sequence = [*fixed, *sorted(choices, key=lambda pair: pair[0].epsilon)]
    ranges = {g.epsilon for g, _ in sequence if isinstance(g, BoundedRange)}
    played = set() if adaptivity == "none" else ranges - layout.blocked
    if played and (alone := _rounds_alone(items.unordered(), layout)) is not None:
        return rounds_below(*alone)
    if played == ranges:
        return _play(sequence, layout, played, {})
    order = MomentBound(items).best_order(layout.delta)
    if adaptivity == "none":
        return _best_fixed_choice(sequence, layout, order)
    return _play(sequence, layout, played, _fixed_choices(sequence, order))


def _play(
    sequence: list[tuple[Guarantee, int]],
    layout: Layout,
    adaptive: set[float],
    choices: dict[float, float],
) -> Supports:
    profile = Supports.of_nothing(layout.grid)
    for guarantee, count in reversed(sequence):
        if isinstance(guarantee, BoundedRange) and guarantee.epsilon in adaptive:
            operator = BoundedRangeChoice(guarantee.epsilon)
            for _ in range(count):
                profile = operator.below(profile)
        else:
            profile = _apply_below(profile, guarantee, count, layout, choices)
    return profile


def _fixed_choices(sequence: list[tuple[Guarantee, int]], order: float) -> dict[float, float]:
    return {
        g.epsilon: worst_fixed_t(g.epsilon, order)
        for g, _ in sequence
        if isinstance(g, BoundedRange)
    }


def _best_fixed_choice(
    sequence: list[tuple[Guarantee, int]], layout: Layout, order: float
) -> Supports:
    """A good t for every bounded-range parameter, all fixed in advance.

    Equal mechanisms share one t ([CR22, Lemma 4.4]). First a common Rényi order for all of
    them, then a shift of the most frequent one inside its ripple.
    """

    def outcome(choices: dict[float, float]) -> tuple[float, Supports]:
        profile = _play(sequence, layout, set(), choices)
        return profile.last_above(layout.delta), profile

    trials = [_fixed_choices(sequence, 1 + (order - 1) * 1.3**i) for i in range(-4, 5)]
    scored = [(*outcome(choices), choices) for choices in trials]
    best = max(scored, key=lambda entry: entry[0])
    groups = [(n, g.epsilon) for g, n in sequence if isinstance(g, BoundedRange)]
    if groups:
        count, epsilon = max(groups)
        for i in range(-6, 7):
            t = _inside(best[2][epsilon] + i * epsilon / (12 * count), epsilon)
            choices = {**best[2], epsilon: t}
            scored.append((*outcome(choices), choices))
    return max(scored, key=lambda entry: entry[0])[1]


def _apply_below(
    profile: Supports,
    guarantee: Guarantee,
    count: int,
    layout: Layout,
    choices: dict[float, float],
) -> Supports:
    step = layout.grid.step
    if isinstance(guarantee, BoundedRange):
        epsilon = guarantee.epsilon
        _, below = responses(count=count, epsilon=epsilon, t=choices[epsilon], step=step)
        return _fixed(below).below(profile)
    if (known := responses_of(guarantee, count, step)) is not None:
        return _fixed(known[1]).below(profile)
    tiny = layout.delta * 1e-7
    if isinstance(guarantee, Gaussian):
        one = Gaussian(inflated(guarantee.noise_multiplier / math.sqrt(count), 8))
        return _fixed(atoms_below(one, step, reach_of(one, tiny))).below(profile)
    if added_on_lattice(guarantee, count):
        return shifted_below(_sampled_sum(guarantee, count, layout)[1], profile)
    operator = _fixed(atoms_below(guarantee, step, reach_of(guarantee, tiny)))
    for _ in range(count):
        profile = operator.below(profile)
    return profile


def operator_of(guarantee: Guarantee, grid: Grid, delta: float) -> Operator:
    """The operator of one application, for profiles on `grid` that matter down to `delta`."""
    if isinstance(guarantee, BoundedRange):
        return BoundedRangeChoice(guarantee.epsilon)
    if (known := responses_of(guarantee, 1, grid.step)) is not None:
        return FixedLoss(*known)
    reach = reach_of(guarantee, delta * 1e-7)
    return FixedLoss(
        atoms_above(guarantee, grid.step, reach), atoms_below(guarantee, grid.step, reach)
    )


def worst_fixed_t(epsilon: float, order: float) -> float:
    """The t that maximises the moment of the given Rényi order: a good t to fix in advance."""
    power = order - 1
    slope = -math.expm1(-power * epsilon) / math.expm1(epsilon)
    return _inside(math.log(power * (1 + slope) / ((power + 1) * slope)), epsilon)


def _inside(t: float, epsilon: float) -> float:
    """`t` moved into the open interval (0, ε): at its ends a response says nothing."""
    return min(max(t, 1e-6 * epsilon), (1 - 1e-6) * epsilon)


def _fixed(below: Atoms) -> FixedLoss:
    return FixedLoss(upper=below, lower=below)
