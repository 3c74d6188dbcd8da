"""How well the best adaptive adversary tells two finite systems apart. Exact.

A deterministic adversary picks one question per history, so a sum over transcripts of any function
of (P, Q) is largest when every node picks its own best question: dynamic programming over
transcripts. All functions used here are homogeneous in (P, Q), so a node needs to know only the
likelihood ratio with which it was reached, and equal remainders are worked out once.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb, fmpq

from farthing.errors import InvalidInput, require_count
from farthing.lab.finite.systems import (
    AskingStrategy,
    FiniteSystem,
    Fork,
    History,
    Pair,
    QuestionSymbol,
    align,
)
from farthing.numerics.ball import Ball, in_balls


class Excess:
    """sup over adversaries of Σ [P − factor·Q]₊ for what remains; Lower of [Lyu22, eq. 19].

    `at(pair, factor)` is for P and Q that start at 1 each; reached with weights p and q it is
    p·at(pair, factor·q/p). With `swapped` the two systems change places.
    """

    def __init__(self, *, swapped: bool = False) -> None:
        self._swapped = swapped
        self._known: dict[tuple[Pair, Fraction], tuple[Fraction, QuestionSymbol]] = {}

    def at(self, pair: Pair, factor: Fraction) -> Fraction:
        """The largest excess."""
        if not pair.forks:
            return max(1 - factor, Fraction(0))
        return self._best(pair, factor)[0]

    def weighed(self, pair: Pair, first: Fraction, second: Fraction, factor: Fraction) -> Fraction:
        """The largest excess where the pair is reached with weights `first` and `second`."""
        return first * self.at(pair, factor * second / first) if first > 0 else Fraction(0)

    def question(self, pair: Pair, factor: Fraction) -> QuestionSymbol:
        """A question with which it is attained."""
        return self._best(pair, factor)[1]

    def _best(self, pair: Pair, factor: Fraction) -> tuple[Fraction, QuestionSymbol]:
        key = (pair, factor)
        if key not in self._known:
            values = {
                question: sum(
                    (
                        self.weighed(fork.then, *fork.weights(swapped=self._swapped), factor)
                        for fork in forks.values()
                    ),
                    Fraction(0),
                )
                for question, forks in pair.forks.items()
            }
            best = max(values, key=values.__getitem__)
            self._known[key] = (values[best], best)
        return self._known[key]


def hockey_stick(first: FiniteSystem, second: FiniteSystem, factor: Fraction) -> Fraction:
    """The smallest δ with P(S) ≤ factor·Q(S) + δ for every adversary and event; factor = e^ε."""
    return Excess().at(align(first, second), require_factor(factor))


@dataclass(frozen=True, slots=True)
class Attack:
    """An adversary and a set of transcripts: `first` > factor·`second` + δ shows a broken promise.

    `first` and `second` are the probabilities of the event in the two systems.
    """

    strategy: AskingStrategy
    event: frozenset[History]
    first: Fraction
    second: Fraction


def best_attack(first: FiniteSystem, second: FiniteSystem, factor: Fraction) -> Attack:
    """The adversary and the event for which P − factor·Q is largest."""
    excess, factor = Excess(), require_factor(factor)
    strategy: dict[History, QuestionSymbol] = {}
    event: set[History] = set()

    def visit(pair: Pair, history: History, p: Fraction, q: Fraction) -> tuple[Fraction, Fraction]:
        if not pair.forks:
            if p <= factor * q:
                return Fraction(0), Fraction(0)
            event.add(history)
            return p, q
        question = (
            excess.question(pair, factor * q / p) if p > 0 else next(iter(pair.forks))
        )  # where P is 0 no question gains anything
        strategy[history] = question
        parts = [
            visit(f.then, (*history, (question, answer)), p * f.first, q * f.second)
            for answer, f in pair.forks[question].items()
        ]
        return sum((a for a, _ in parts), Fraction(0)), sum((b for _, b in parts), Fraction(0))

    inside = visit(align(first, second), (), Fraction(1), Fraction(1))
    return Attack(strategy, frozenset(event), *inside)


def renyi_moment(first: FiniteSystem, second: FiniteSystem, order: int) -> Fraction | None:
    """sup over adversaries of Σ P^α·Q^(1−α) = e^((α−1)·D_α), α = order ≥ 2; None: infinite."""
    alpha = require_count("order", order, at_least=2)
    known: dict[Pair, Fraction | None] = {}

    def moment(pair: Pair) -> Fraction | None:
        if pair not in known:
            totals = [_total(list(forks.values())) for forks in pair.forks.values()]
            finite = [total for total in totals if total is not None]
            known[pair] = None if len(finite) < len(totals) else max(finite, default=Fraction(1))
        return known[pair]

    def _total(forks: list[Fork]) -> Fraction | None:
        total = Fraction(0)
        for fork in forks:
            if fork.first == 0:
                continue
            after = moment(fork.then)
            if fork.second == 0 or after is None:
                return None
            total += fork.first**alpha / fork.second ** (alpha - 1) * after
        return total

    return moment(align(first, second))


@in_balls
def renyi_divergence(first: FiniteSystem, second: FiniteSystem, order: int) -> Ball:
    """D_α of the transcripts against the best adversary, enclosed; infinite where it is."""
    moment = renyi_moment(first, second, order)
    if moment is None:
        return arb("inf")
    return arb(fmpq(moment.numerator, moment.denominator)).log() / (order - 1)


def largest_ratio(first: FiniteSystem, second: FiniteSystem) -> Fraction | None:
    """The largest P/Q of any transcript, e^ε of pure DP in this direction; None: infinite."""
    known: dict[Pair, Fraction | None] = {}

    def ratio(pair: Pair) -> Fraction | None:
        if pair not in known:
            largest: Fraction | None = Fraction(1 if not pair.forks else 0)
            for forks in pair.forks.values():
                for fork in forks.values():
                    if fork.first == 0 or largest is None:
                        continue
                    after = ratio(fork.then)
                    unbounded = fork.second == 0 or after is None
                    largest = (
                        None
                        if unbounded or after is None
                        else max(largest, fork.first / fork.second * after)
                    )
            known[pair] = largest
        return known[pair]

    return ratio(align(first, second))


def require_factor(factor: Fraction) -> Fraction:
    """e^ε as an exact number of at least 0; floats are refused because they are rounded."""
    if not isinstance(factor, (Fraction, int)) or isinstance(factor, bool) or factor < 0:
        raise InvalidInput(
            f"the factor e^epsilon must be an exact fraction of at least 0, got {factor!r}"
        )
    return Fraction(factor)
