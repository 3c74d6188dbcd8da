"""The composition games, played: adversaries that attain the lower bounds.

`adversary` solves the game backwards and keeps the best move in every state: which of the remaining
items, and for a bounded-range item which t. The strategy can then be

    evaluated   `attained` sums over all transcripts in ball arithmetic (few rounds)
    simulated   `simulate` plays many games at once in floats (many rounds)
    played      `play` runs one game with the exact mechanisms, for either dataset

A sample of an ε-DP mechanism is played with the two outcomes it has in one direction of neighbours.

The game is Algorithm 1 (AdComp) of [DDR20] with the order fixed, or the set-wise game of
[CR22, section 3] with the order chosen as you go. The adversary sees bit b through generalized
randomized response; by Lemma 4.3 of [DDR20] it needs no coins of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
from flint import arb

from farthing.composition.adaptive.operators import BoundedRangeChoice, Operator
from farthing.composition.adaptive.profiles import operator_of
from farthing.composition.bounds import Bracket
from farthing.composition.items import items_from
from farthing.errors import Unsupported, require_choice, require_count, require_real
from farthing.guarantees.kinds import Guarantee
from farthing.guarantees.losses.base import Loss
from farthing.guarantees.losses.sampled import SampledResponse
from farthing.numerics.ball import Ball, down, in_balls, up
from farthing.numerics.curves import Grid, Supports
from farthing.numerics.rounding import FloatArray, IntArray
from tests.mechanisms.randomized_response import GeneralizedRandomizedResponse

Left = tuple[int, ...]
#: What to do at each grid point: the item, and the t if there is a choice.
Plan = tuple[IntArray, FloatArray]


@dataclass(frozen=True, slots=True)
class Move:
    """One round: generalized randomized response with losses `t` and `t − spread`."""

    item: int
    t: float
    spread: float

    def mechanism(self) -> GeneralizedRandomizedResponse:
        """The mechanism that the adversary asks for in this round."""
        return GeneralizedRandomizedResponse(epsilon=self.spread, largest_loss=self.t)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A complete strategy: a move for every state (items left, distance x = ε_g − loss so far)."""

    losses: tuple[Loss, ...]
    start: Left
    epsilon_g: float
    value: float
    grid: Grid
    plans: dict[Left, Plan]

    def move(self, left: Left, x: float) -> Move:
        """The move in one state."""
        cells = round((x - self.grid.origin) / self.grid.step)
        place = min(max(cells + self.grid.below, 0), self.grid.size - 1)
        items, choices = self.plans[left]
        item = int(items[place])
        t, spread = _range(self.losses[item])
        return Move(item, float(choices[place]) if t is None else t, spread)


@dataclass(frozen=True, slots=True)
class View:
    """What the adversary saw: its moves and the answers."""

    moves: tuple[Move, ...]
    answers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A simulated δ with its standard error."""

    delta: float
    standard_error: float
    games: int


def adversary(
    items: Iterable[Guarantee | tuple[Guarantee, int]],
    *,
    epsilon_g: float,
    adaptivity: str = "adaptive",
    cells: int = 20,
    with_unit: bool = True,
) -> Strategy:
    """The best strategy against this list at ε_g, with t a multiple of (smallest ε)/cells.

    `adaptive` keeps the order that was given, `setwise` chooses it in every state. If every ε
    is a multiple of that step all states are grid points and `value` is what the strategy
    attains; otherwise states are rounded to the nearest one. `with_unit` is the direction that
    samples face.
    """
    require_choice("adaptivity", adaptivity, ("adaptive", "setwise"))
    epsilon_g = require_real("epsilon_g", epsilon_g)
    cells = require_count("cells", cells, at_least=1)
    ways = items_from(items).directions()
    pairs = ways[0 if with_unit else -1]
    pairs = pairs.unordered() if adaptivity == "setwise" else pairs
    losses = [_playable(loss) for loss, _ in pairs]
    start = tuple(count for _, count in pairs)
    epsilons = [loss.pure_epsilon or 0.0 for loss in losses]
    total = sum(epsilon * count for epsilon, count in zip(epsilons, start, strict=True))
    step = min(epsilons) / cells
    reach = math.ceil(total / step) + 2
    grid = Grid(step, reach, reach, origin=epsilon_g)
    profiles: dict[Left, Supports] = {}
    plans: dict[Left, Plan] = {}
    operators = [operator_of(loss, grid, 1e-12) for loss in losses]
    for left in _states(start, adaptivity):
        if not any(left):
            profiles[left] = Supports.of_nothing(grid)
            continue
        profiles[left], plans[left] = _best(left, operators, profiles, grid, adaptivity)
    return Strategy(tuple(losses), start, epsilon_g, profiles[start].at(epsilon_g), grid, plans)


@in_balls
def attained(strategy: Strategy) -> Bracket:
    """The δ that the strategy reaches, summed over all transcripts in ball arithmetic."""
    if sum(strategy.start) > 16:
        raise Unsupported("all transcripts are summed up to 16 rounds; simulate longer games")

    def value(left: Left, loss: Ball) -> Ball:
        if not any(left):
            gain = -(arb(strategy.epsilon_g) - loss).expm1()
            return gain if gain > 0 else arb(0)
        move = strategy.move(left, float((arb(strategy.epsilon_g) - loss).mid()))
        after = _without(left, move.item)
        mechanism = move.mechanism()
        stay = mechanism.probability_of_zero(0)
        total = arb(0)
        if move.t < move.spread:
            total += stay * value(after, loss + arb(move.t))
        if move.t > 0:
            total += (1 - stay) * value(after, loss + arb(move.t) - arb(move.spread))
        return total

    total = value(strategy.start, arb(0))
    return Bracket(max(0.0, down(total)), up(total), "attained by this strategy")


def simulate(strategy: Strategy, *, games: int, seed: int | None = None) -> Estimate:
    """Play `games` games at once in floats: the mean of (1 − e^{ε_g − L})₊ under bit 0."""
    games = require_count("games", games, at_least=2)
    source = np.random.default_rng(seed)
    grid, rounds = strategy.grid, sum(strategy.start)
    left = np.tile(np.array(strategy.start), (games, 1))
    x = np.full(games, strategy.epsilon_g)
    ranges = [_range(kind) for kind in strategy.losses]
    spreads = np.array([spread for _, spread in ranges])
    fixed = np.array([math.nan if t is None else t for t, _ in ranges])
    for _ in range(rounds):
        cells = np.rint((x - grid.origin) / grid.step).astype(np.int64)
        places = np.clip(cells + grid.below, 0, grid.size - 1)
        items, t = np.empty(games, np.int64), np.empty(games)
        for state in {tuple(row) for row in np.unique(left, axis=0).tolist()}:
            here = np.all(left == np.array(state), axis=1)
            items[here], t[here] = (known[places[here]] for known in strategy.plans[state])
        t = np.where(np.isnan(fixed[items]), t, fixed[items])
        spread = spreads[items]
        stays = source.random(games) < np.expm1(t - spread) / np.expm1(-spread)
        x -= np.where(stays, t, t - spread)
        left[np.arange(games), items] -= 1
    gains = np.maximum(-np.expm1(np.minimum(x, 0.0)), 0.0)
    error = float(np.std(gains, ddof=1)) / math.sqrt(games)
    return Estimate(float(np.mean(gains)), error, games)


def play(strategy: Strategy, bit: int) -> View:
    """One game against the exact mechanisms, holding the dataset that `bit` names."""
    left, loss = strategy.start, 0.0
    moves: list[Move] = []
    answers: list[int] = []
    while any(left):
        move = strategy.move(left, strategy.epsilon_g - loss)
        answer = move.mechanism().run(bit)
        loss += move.t - move.spread if answer else move.t
        left = _without(left, move.item)
        moves.append(move)
        answers.append(answer)
    return View(tuple(moves), tuple(answers))


def _states(start: Left, adaptivity: str) -> Iterable[Left]:
    """Every state that can be left over, those with fewer items first."""
    if adaptivity == "setwise":
        yield from product(*(range(count + 1) for count in start))
        return
    left = (0,) * len(start)
    yield left
    for item in reversed(range(len(start))):
        for count in range(1, start[item] + 1):
            yield (*left[:item], count, *start[item + 1 :])


def _best(
    left: Left,
    operators: list[Operator],
    profiles: dict[Left, Supports],
    grid: Grid,
    adaptivity: str,
) -> tuple[Supports, Plan]:
    profile: Supports | None = None
    items, choices = np.zeros(grid.size, np.int64), np.zeros(grid.size)
    available = [item for item, count in enumerate(left) if count > 0]
    for item in available if adaptivity == "setwise" else available[:1]:
        later, operator = profiles[_without(left, item)], operators[item]
        if isinstance(operator, BoundedRangeChoice):
            value, chosen = operator.play(later)
        else:
            value, chosen = operator.below(later), np.zeros(grid.size)
        if profile is None:
            profile, better = value, np.ones(grid.size, np.bool_)
        else:
            better = value.values > profile.values
            profile = profile.larger(value)
        items, choices = np.where(better, item, items), np.where(better, chosen, choices)
    assert profile is not None
    return profile, (items, choices)


def _playable(loss: Loss) -> Loss:
    two = loss.outcomes_apart is not None or loss.chosen_range is not None
    if not two or loss.pure_epsilon == 0:
        raise Unsupported(
            "games are played with dp, br and sampled dp items of positive epsilon, got "
            f"{loss.guarantee!r}"
        )
    return loss


def _range(kind: Loss) -> tuple[float | None, float]:
    """The largest loss, None if it is chosen in every state, and how far the losses are apart."""
    if kind.chosen_range is not None:
        return None, kind.chosen_range
    if isinstance(kind, SampledResponse):
        low, high = kind.two_losses()
        return high, high - low
    assert kind.pure_epsilon is not None
    return kind.pure_epsilon, 2 * kind.pure_epsilon


def _without(left: Left, item: int) -> Left:
    return (*left[:item], left[item] - 1, *left[item + 1 :])
