"""Certified profiles of whole lists: operators applied from the last mechanism to the first.

    none      any fixed order bounds it from above; fixed t bounds it from below
    adaptive  the order that was given
    setwise   the worst order, chosen as you go

Mechanisms without a choice commute, and one of them moved in front of a bounded-range step
can only increase the loss: B F V ≤ F B V, since a sup of averages is at most the average of
sups ([CR22, Prop. 1], for any fixed loss). So the set-wise optimum has the fixed steps first
and the bounded-range ones last; among several bounded-range parameters a table over what is
left takes the larger of the operators at every point (docs/theory/order.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from farthing.composition.items import Items
from farthing.composition.moments import MomentBound
from farthing.composition.operators import (
    BoundedRangeChoice,
    FixedLoss,
    Kernel,
    Operator,
    atoms_of,
)
from farthing.guarantees.kinds import (
    BoundedRange,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    LossDistribution,
    PureDP,
)
from farthing.guarantees.losses import (
    Atoms,
    atoms_above,
    atoms_below,
    mean_and_variance,
    reach_of,
    responses,
)
from farthing.numerics.ball import in_balls, up
from farthing.numerics.curves import Chords, Grid, Supports

#: Kinds with a known worst case, which the engine composes without losing anything.
KINDS = (PureDP, BoundedRange, Laplace, Gaussian, DiscreteGaussian, LossDistribution)

#: Cell evaluations that a bounded-range group may cost before it is cut into blocks.
DIRECT_WORK = 6e8
#: Steps that a grid may have between 0 and its right end, and points in all.
FINEST_GRID = 50_000
MOST_POINTS = 1_000_000
#: Cell evaluations that a whole answer may cost; about a minute on one core.
WORK_LIMIT = 1e10


@dataclass(frozen=True, slots=True)
class Curves:
    """A profile from both sides."""

    upper: Chords
    lower: Supports


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
    layout = _Layout.of(items, fineness, delta, whole=whole)
    if layout is None or layout.work(items, adaptivity) > WORK_LIMIT:
        return None
    return Curves(_upper(items, adaptivity, layout), _lower(items, adaptivity, layout))


@dataclass(frozen=True, slots=True)
class _Layout:
    """The grid, and the bounded-range parameters whose groups are cut into blocks."""

    grid: Grid
    blocked: frozenset[float]
    fineness: float
    delta: float

    @staticmethod
    def of(items: Items, fineness: float, delta: float, *, whole: bool) -> _Layout | None:
        """Direct if that is cheap enough, else with the long groups in blocks.

        None if e^x would leave the range of floats, or for more points than MOST_POINTS.
        """
        grid = _grid(items, fineness, delta, frozenset(), whole=whole)
        if grid.size > MOST_POINTS or grid.above * grid.step > 650:
            return None
        layout = _Layout(grid, frozenset(), fineness, delta)
        long = frozenset(
            g.epsilon
            for g, count in items
            if isinstance(g, BoundedRange)
            and count > 2 * _block_length(fineness)
            and layout.cost(g.epsilon, count) > DIRECT_WORK
        )
        if not long:
            return layout
        return _Layout(_grid(items, fineness, delta, long, whole=whole), long, fineness, delta)

    def cost(self, epsilon: float, count: int) -> float:
        return count * self.grid.size * (epsilon / self.grid.step + 1)

    def _atoms(self, guarantee: Guarantee) -> float:
        return min(2 * reach_of(guarantee, 1e-12) / self.grid.step, self.grid.size)

    def work(self, items: Items, adaptivity: str) -> float:
        """About how many cell evaluations the whole answer takes."""
        points = self.grid.size
        fixed = sum(
            20 * (1 if isinstance(g, Gaussian) else count) * points * self._atoms(g)
            for g, count in items
            if isinstance(g, Gaussian | Laplace | DiscreteGaussian | LossDistribution)
        )
        choices = [(g.epsilon, n) for g, n in items.unordered() if isinstance(g, BoundedRange)]
        if adaptivity == "setwise" and len(choices) > 1:
            states = math.prod(n + 1 for _, n in choices)
            return fixed + sum(self.cost(epsilon, states) for epsilon, _ in choices)
        return fixed + sum(
            self.cost(epsilon, 1 if epsilon in self.blocked else count)
            for epsilon, count in choices
        )


def _grid(
    items: Items, fineness: float, delta: float, blocked: frozenset[float], *, whole: bool
) -> Grid:
    """The step makes the variance that interpolation adds a `fineness` of the whole.

    To the right the grid ends where the profile is negligible beside `delta`, at some R. The
    value at ε depends on points left of ε − R only through losses above R, so unless the whole
    profile is wanted it starts there.
    """
    variance = sum(count * _variance(guarantee) for guarantee, count in items)
    steps = sum(_interpolations(g, count, blocked, fineness) for g, count in items)
    moments, everything = MomentBound(items), items.epsilon_sum()
    reach = moments.epsilon_at(max(delta * 1e-5, 1e-290))
    reach = reach if everything is None else min(reach, up(everything))
    step = math.sqrt(fineness * variance / (0.2 * steps))
    step = min(max(step, reach / FINEST_GRID), reach / 400)
    lattice = [g.epsilon for g, _ in items if isinstance(g, BoundedRange | PureDP | Laplace)]
    if lattice and min(lattice) > step:
        step = math.nextafter(min(lattice) / math.ceil(min(lattice) / step), math.inf)
    left = reach if whole else reach - 0.7 * min(moments.epsilon_at(delta), reach)
    return Grid(step, math.ceil(left / step) + 2, math.ceil(reach / step) + 2)


def _upper(items: Items, adaptivity: str, layout: _Layout) -> Chords:
    profile = Chords.of_nothing(layout.grid)
    merged = items.unordered() if adaptivity != "adaptive" else items
    choices = [(g, n) for g, n in merged if isinstance(g, BoundedRange)]
    fixed = [(g, n) for g, n in merged if not isinstance(g, BoundedRange)]
    if adaptivity == "setwise" and len(choices) > 1:
        profile = _worst_order(profile, [(g.epsilon, n) for g, n in choices])
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


def _apply_above(profile: Chords, guarantee: Guarantee, count: int, layout: _Layout) -> Chords:
    if isinstance(guarantee, BoundedRange):
        if guarantee.epsilon in layout.blocked:
            return _blocks(guarantee, count, layout).apply(profile)
        operator = BoundedRangeChoice(guarantee.epsilon)
        for _ in range(count):
            profile = operator.above(profile)
        return profile
    grid = layout.grid
    tiny = layout.delta * 1e-7
    if isinstance(guarantee, PureDP):
        above, _ = responses(count=count, epsilon=guarantee.epsilon, t=None, step=grid.step)
        return Kernel.of(above, grid).apply(profile)
    if isinstance(guarantee, Gaussian):
        one = Gaussian(guarantee.noise_multiplier / math.sqrt(count) * (1 - 1e-15))
        atoms = atoms_above(one, grid.step, reach_of(one, tiny))
        return Kernel.of(atoms, grid).apply(profile)
    atoms = atoms_above(guarantee, grid.step, reach_of(guarantee, tiny))
    return Kernel.of(atoms, grid).power(count, grid.size).apply(profile)


def _blocks(guarantee: BoundedRange, count: int, layout: _Layout) -> Kernel:
    """Many equal bounded-range rounds as a power of the profile of one block of them.

    A block's profile is a valid privacy loss for everything that happens inside it, whatever
    comes later, so blocks compose by convolution. What is lost is that the adversary could
    not have been worst at every threshold at once: about 0.4/length relative in ε.
    """
    blocks = max(1, count // _block_length(layout.fineness))
    length = math.ceil(count / blocks)
    inside = _grid(
        Items(((guarantee, length),)),
        layout.fineness / 2,
        layout.delta * 1e-3 / blocks,
        frozenset(),
        whole=True,
    )
    profile = Chords.of_nothing(inside)
    operator = BoundedRangeChoice(guarantee.epsilon)
    for _ in range(length):
        profile = operator.above(profile)
    return Kernel.of(atoms_of(profile), layout.grid).power(blocks, layout.grid.size)


def _worst_order(profile: Chords, choices: list[tuple[float, int]]) -> Chords:
    """V[left] = max over the parameters that are left of T_ε V[left without it]."""
    operators = [BoundedRangeChoice(epsilon) for epsilon, _ in choices]
    table: dict[tuple[int, ...], Chords] = {}
    for left in product(*(range(count + 1) for _, count in choices)):
        best: Chords | None = None
        for i, operator in enumerate(operators):
            if left[i] == 0:
                continue
            fewer = (*left[:i], left[i] - 1, *left[i + 1 :])
            value = operator.above(table[fewer])
            best = value if best is None else best.larger(value)
        table[left] = profile if best is None else best
        if left[0] > 0 and all(
            n == count for n, (_, count) in zip(left[1:], choices[1:], strict=True)
        ):
            table = {key: value for key, value in table.items() if key[0] == left[0]}
    return table[tuple(count for _, count in choices)]


def _lower(items: Items, adaptivity: str, layout: _Layout) -> Supports:
    """The profile that one adversary achieves: any order and any t will do, so take good ones."""
    if adaptivity == "adaptive":
        sequence = list(items)
    else:
        merged = items.unordered()
        choices = [(g, n) for g, n in merged if isinstance(g, BoundedRange)]
        fixed = [(g, n) for g, n in merged if not isinstance(g, BoundedRange)]
        # small before large was the worst order in every case tried
        sequence = [*fixed, *sorted(choices, key=lambda pair: pair[0].epsilon)]
    ranges = {g.epsilon for g, _ in sequence if isinstance(g, BoundedRange)}
    played = set() if adaptivity == "none" else ranges - layout.blocked
    if played == ranges:
        return _play(sequence, layout, played, {})
    order = MomentBound(items).best_order(layout.delta)
    if adaptivity == "none":
        return _best_fixed_choice(sequence, layout, order)
    return _play(sequence, layout, played, _fixed_choices(sequence, order))


def _play(
    sequence: list[tuple[Guarantee, int]],
    layout: _Layout,
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
    sequence: list[tuple[Guarantee, int]], layout: _Layout, order: float
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
    layout: _Layout,
    choices: dict[float, float],
) -> Supports:
    step = layout.grid.step
    if isinstance(guarantee, BoundedRange):
        epsilon = guarantee.epsilon
        _, below = responses(count=count, epsilon=epsilon, t=choices[epsilon], step=step)
        return _fixed(below).below(profile)
    if isinstance(guarantee, PureDP):
        _, below = responses(count=count, epsilon=guarantee.epsilon, t=None, step=step)
        return _fixed(below).below(profile)
    tiny = layout.delta * 1e-7
    if isinstance(guarantee, Gaussian):
        one = Gaussian(guarantee.noise_multiplier / math.sqrt(count) * (1 + 1e-15))
        return _fixed(atoms_below(one, step, reach_of(one, tiny))).below(profile)
    operator = _fixed(atoms_below(guarantee, step, reach_of(guarantee, tiny)))
    for _ in range(count):
        profile = operator.below(profile)
    return profile


def operator_of(guarantee: Guarantee, grid: Grid, delta: float) -> Operator:
    """The operator of one application, for profiles on `grid` that matter down to `delta`."""
    if isinstance(guarantee, BoundedRange):
        return BoundedRangeChoice(guarantee.epsilon)
    if isinstance(guarantee, PureDP):
        above, below = responses(count=1, epsilon=guarantee.epsilon, t=None, step=grid.step)
        return FixedLoss(above, below)
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


def _block_length(fineness: float) -> int:
    return max(32, math.ceil(1.7 / fineness))


def _interpolations(
    guarantee: Guarantee, count: int, blocked: frozenset[float], fineness: float
) -> int:
    """How often the profile is interpolated for this group."""
    match guarantee:
        case BoundedRange(epsilon=epsilon) if epsilon in blocked:
            return count // _block_length(fineness)
        case BoundedRange() | Laplace() | DiscreteGaussian() | LossDistribution():
            return count
        case _:
            return 1


def _variance(guarantee: Guarantee) -> float:
    if isinstance(guarantee, BoundedRange):
        return guarantee.epsilon**2 / 4
    return mean_and_variance(guarantee)[1]
