"""How well the best adversary tells two finite systems apart, and Theorem 3 of [Lyu22]. Exact.

A deterministic adversary picks one question per history, so a sum over transcripts of any function
of (P, Q) is largest when every node picks its own best question: dynamic programming over
transcripts. All functions used here are homogeneous in (P, Q), so a node needs to know only the
likelihood ratio with which it was reached, and equal remainders are worked out once.

The theorem: an (ε, δ) conversation is one leaky randomized response.

Two systems M⁰, M¹ are (ε, δ)-indistinguishable exactly if there are systems E⁰, E¹, N⁰, N¹ with

    Mᵇ = δ·Eᵇ + (1 − δ)·(z·Nᵇ + N¹⁻ᵇ)/(1 + z),   z = e^ε,

for every adversary. So a conversation can be simulated by somebody who knows the secret bit only
through one leaky randomized response. All numbers are exact fractions: z is e^ε itself if ε is
`LogOf` a fraction, otherwise a fraction just below it for which the identity holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from flint import arb, ctx, fmpq

from farthing.errors import InvalidInput, NotCertified, require_count, require_real
from farthing.mechanisms.noise.exact_sampling import BitSource, system_bits
from farthing.numerics.ball import Ball, ends, in_balls
from tests.interactive.finite.one_draw import ExactProfile, Profiles, one_draw, profile
from tests.interactive.finite.systems import (
    AnswerSymbol,
    AskingStrategy,
    Both,
    FiniteSystem,
    Fork,
    History,
    Pair,
    QuestionSymbol,
    Reply,
    align,
)
from tests.mechanisms.randomized_response import LeakyAnswer, require_bit


def hockey_stick(first: FiniteSystem, second: FiniteSystem, factor: Fraction) -> Fraction:
    """The smallest δ with P(S) ≤ factor·Q(S) + δ for every adversary and event; factor = e^ε."""
    known: dict[tuple[Pair, Fraction], Fraction] = {}

    def excess(pair: Pair, factor: Fraction) -> Fraction:
        """sup Σ [P − factor·Q]₊, for P and Q that start at 1 each; Lower of [Lyu22, eq. 19]."""
        if not pair.forks:
            return max(1 - factor, Fraction(0))
        if (pair, factor) not in known:
            known[pair, factor] = max(asked(forks, factor) for forks in pair.forks.values())
        return known[pair, factor]

    def asked(forks: Mapping[AnswerSymbol, Fork], factor: Fraction) -> Fraction:
        met = (f for f in forks.values() if f.first > 0)
        parts = (f.first * excess(f.then, factor * f.second / f.first) for f in met)
        return sum(parts, Fraction(0))

    return excess(align(first, second), require_factor(factor))


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
    profiles, factor = Profiles(), require_factor(factor)
    strategy: dict[History, QuestionSymbol] = {}
    event: set[History] = set()

    def visit(pair: Pair, history: History, p: Fraction, q: Fraction) -> Both:
        if not pair.forks:
            if p <= factor * q:
                return Fraction(0), Fraction(0)
            event.add(history)
            return p, q
        ratio = factor * q / p if p > 0 else Fraction(0)  # where P is 0 no question gains anything
        question = max(pair.forks, key=lambda asked: profiles.asked(pair.forks[asked]).at(ratio))
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
            asked = [answered(forks.values()) for forks in pair.forks.values()]
            finite = [one for one in asked if one is not None]
            known[pair] = None if len(finite) < len(asked) else max(finite, default=Fraction(1))
        return known[pair]

    def answered(forks: Iterable[Fork]) -> Fraction | None:
        total = Fraction(0)
        for fork in forks:
            if fork.first > 0:
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
    factor, rest = profile(first, second).points[-1]
    return factor if rest == 0 else None


def require_factor(factor: Fraction) -> Fraction:
    """e^ε as an exact number of at least 0; floats are refused because they are rounded."""
    if not isinstance(factor, (Fraction, int)) or isinstance(factor, bool) or factor < 0:
        raise InvalidInput(
            f"the factor e^epsilon must be an exact fraction of at least 0, got {factor!r}"
        )
    return Fraction(factor)


Systems: TypeAlias = tuple[FiniteSystem, FiniteSystem]

#: Bits of the first enclosure of e^ε; each one that leaves the question open is refined.
_FIRST_PRECISION = 64
#: The largest ε that is given as a number; its e^ε still fits a float.
_LARGEST = 700


@dataclass(frozen=True, slots=True)
class LogOf:
    """ε = ln(odds), exactly, for a fraction of at least 1: `LogOf(2)` is ε = ln 2."""

    odds: Fraction

    def __post_init__(self) -> None:
        odds = require_factor(self.odds)
        if odds < 1:
            raise InvalidInput(f"the odds e^epsilon must be at least 1, got {odds}")
        object.__setattr__(self, "odds", odds)


#: ε as a number, or as the logarithm of one. A float is the number it is, not a rounded one.
Epsilon: TypeAlias = float | Fraction | LogOf


class Distinguishable(InvalidInput):
    """The two systems are not (ε, δ)-indistinguishable. `attack` is the adversary that shows it.

    `bit` says which of the two systems gives the event too often.
    """

    def __init__(self, attack: Attack, bit: int, odds: Fraction, delta: Fraction) -> None:
        super().__init__(
            f"the systems are not indistinguishable with e^epsilon = {float(odds):g} and delta = "
            f"{float(delta):g}: an adversary meets one of {len(attack.event)} transcripts with "
            f"probability {float(attack.first):g} in system {bit} and {float(attack.second):g} in "
            "the other"
        )
        self.attack = attack
        self.bit = bit


@dataclass(frozen=True, slots=True)
class Decomposition:
    """E⁰, E¹ (what is shown when the bit leaked) and N⁰, N¹ (what is shown otherwise).

    `factor` is z, at most e^ε: the mixture proves what was asked for, or a little more.
    """

    factor: Fraction
    delta: Fraction
    leaked: Systems
    hidden: Systems

    def weight(self, bit: int, history: History) -> Fraction:
        """The probability of these answers to these questions in the mixture for this bit."""
        honest = self.factor / (1 + self.factor)
        mixed = honest * self.hidden[bit].weight(history)
        mixed += (1 - honest) * self.hidden[1 - bit].weight(history)
        return self.delta * self.leaked[bit].weight(history) + (1 - self.delta) * mixed

    def respond(self, bit: int) -> LeakyAnswer:
        """One leaky randomized response of the secret bit, with exactly this δ and these odds."""
        secret, source = require_bit(bit), system_bits()
        if source.below(self.delta.denominator) < self.delta.numerator:
            return LeakyAnswer(secret, leaked=True)
        z = self.factor
        truthful = source.below(z.numerator + z.denominator) < z.numerator
        return LeakyAnswer(secret if truthful else 1 - secret, leaked=False)


def decompose(
    first: FiniteSystem, second: FiniteSystem, epsilon: Epsilon, delta: float | Fraction
) -> Decomposition:
    """The four systems for M⁰ = first, M¹ = second; raises `Distinguishable`.

    The outcomes of leaky randomized response are easier to tell apart than the two systems, for
    every e^ε [Lyu22, Lower of eq. 19], so `one_draw` has a system for each of them. It checks the
    identity for every complete transcript, which is the same as for every adversary: with any
    adversary a transcript has the probability of its answers times a number that does not depend
    on the system [Lyu22, eq. 16].
    """
    delta = _exact("delta", delta, 1)
    factor, excesses = _decided(profile(first, second), epsilon, delta)
    for bit, excess in enumerate(excesses):
        if excess > delta:
            ordered = (first, second) if bit == 0 else (second, first)
            raise Distinguishable(best_attack(*ordered, factor), bit, factor, delta)
    truth, lie = (1 - delta) * factor / (1 + factor), (1 - delta) / (1 + factor)
    zero = Fraction(0)
    outcomes = ((delta, zero), (truth, lie), (lie, truth), (zero, delta))
    e0, n0, n1, e1 = one_draw(first, second, outcomes).systems
    return Decomposition(factor, delta, (e0, e1), (n0, n1))


def simulate(decomposition: Decomposition, response: LeakyAnswer) -> FiniteSystem:
    """The system to converse with, chosen by one leaky randomized response and nothing else.

    With the response that `Decomposition.respond` draws for the secret bit b, conversing with the
    result is conversing with Mᵇ.
    """
    systems = decomposition.leaked if response.leaked else decomposition.hidden
    return systems[response.bit]


def converse(system: FiniteSystem, strategy: AskingStrategy) -> History:
    """One conversation: answers are drawn exactly, from the operating system's randomness."""
    source = system_bits()
    history: History = ()
    while system.replies:
        question = strategy[history]
        answer, system = _drawn(system.replies[question], source)
        history = (*history, (question, answer))
    return history


def _drawn(
    replies: Mapping[AnswerSymbol, Reply], source: BitSource
) -> tuple[AnswerSymbol, FiniteSystem]:
    """One answer with its exact probability."""
    whole = math.lcm(*(reply.probability.denominator for reply in replies.values()))
    left = source.below(whole)
    for answer, reply in replies.items():
        left -= int(reply.probability * whole)
        if left < 0:
            return answer, reply.then
    raise NotCertified("the probabilities of the answers do not add up to 1")


def _decided(curve: ExactProfile, epsilon: Epsilon, delta: Fraction) -> tuple[Fraction, Both]:
    """z = e^ε, or a fraction that decides as e^ε does: below it if (ε, δ) holds, else above; and
    the excess of both directions there.

    The excess is piecewise linear in z with rational pieces and, unless ε = 0, e^ε is irrational
    for every rational ε. So either the excess at e^ε is not δ, or it is constant there: some
    enclosure is narrow enough for both ends to say the same.
    """
    if isinstance(epsilon, LogOf):
        return epsilon.odds, curve.both_ways_at(epsilon.odds)
    exact = _exact("epsilon", epsilon, _LARGEST)
    precision = _FIRST_PRECISION
    while True:
        low, high = _exponential(exact, precision)
        for factor, holds in ((low, True), (high, False)):
            excesses = curve.both_ways_at(factor)
            if (max(excesses) <= delta) == holds or low == high:
                return factor, excesses
        precision *= 2


def _exponential(epsilon: Fraction, precision: int) -> Both:
    """Fractions that enclose e^ε; both are 1 at ε = 0."""
    if epsilon == 0:
        return Fraction(1), Fraction(1)
    with ctx.workprec(precision):
        low, high = ends((arb(epsilon.numerator) / epsilon.denominator).exp())
    return max(low, Fraction(1)), high


def _exact(name: str, value: float | Fraction, most: int) -> Fraction:
    """The number that a float is, or the fraction that was given."""
    exact = value if isinstance(value, Fraction) else Fraction(require_real(name, value))
    if not 0 <= exact <= most:
        raise InvalidInput(f"{name} must be between 0 and {most}, got {value!r}")
    return exact
