"""Theorem 3 of [Lyu22] as code: an (ε, δ) conversation is one leaky randomized response.

Two systems M⁰, M¹ are (ε, δ)-indistinguishable exactly if there are systems E⁰, E¹, N⁰, N¹ with

    Mᵇ = δ·Eᵇ + (1 − δ)·(z·Nᵇ + N¹⁻ᵇ)/(1 + z),   z = e^ε,

for every adversary. So a conversation can be simulated by somebody who knows the secret bit only
through one leaky randomized response. All numbers are exact fractions: z is e^ε itself if ε is
`LogOf` a fraction, otherwise a fraction just below it for which the identity holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from flint import arb, ctx

from farthing.errors import InvalidInput, NotCertified, require_real
from farthing.lab.finite.divergences import Attack, Excess, best_attack, require_factor
from farthing.lab.finite.systems import (
    AnswerSymbol,
    AskingStrategy,
    Both,
    FiniteSystem,
    History,
    Pair,
    QuestionSymbol,
    Reply,
    align,
    transcripts,
)
from farthing.mechanisms.noise.exact_sampling import BitSource, system_bits
from farthing.mechanisms.randomized_response import LeakyAnswer, require_bit
from farthing.numerics.ball import ends

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

    The construction of [Lyu22, Lemmas 1–3] from the root downwards. The identity is then checked
    for every complete transcript, which is the same as for every adversary: with any adversary a
    transcript has the probability of its answers times a number that does not depend on the
    system [Lyu22, eq. 16].
    """
    delta = _exact("delta", delta, 1)
    pair, whole = align(first, second), (Fraction(1), Fraction(1))
    builder = _builder(pair, epsilon, delta)
    for bit, excess in enumerate(builder.lower(pair, whole)):
        if excess > delta:
            ordered = (first, second) if bit == 0 else (second, first)
            attack = best_attack(*ordered, builder.factor)
            raise Distinguishable(attack, bit, builder.factor, delta)
    leaked, hidden = builder.systems(pair, whole, (delta, delta))
    result = Decomposition(builder.factor, delta, leaked, hidden)
    for history, weights in transcripts(pair):
        for bit in (0, 1):
            if result.weight(bit, history) != weights[bit]:
                raise NotCertified("the decomposition does not add up to the systems given")
    return result


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


class _Builder:
    """The construction for one factor z. Weights are those of whole histories, not conditional."""

    def __init__(self, factor: Fraction) -> None:
        self.factor = self._z = factor
        self._excess = (Excess(), Excess(swapped=True))

    def lower(self, pair: Pair, m: Both) -> Both:
        """Lower of both directions [Lyu22, eq. 19]: what a leak must at least account for."""
        return (
            self._excess[0].weighed(pair, m[0], m[1], self._z),
            self._excess[1].weighed(pair, m[1], m[0], self._z),
        )

    def systems(self, pair: Pair, m: Both, e: Both) -> tuple[Systems, Systems]:
        """((E⁰, E¹), (N⁰, N¹)) below a node that Mᵇ reaches with m[b] and δ·Eᵇ with e[b]."""
        replies: list[dict[QuestionSymbol, dict[AnswerSymbol, Reply]]] = [
            {question: {} for question in pair.forks} for _ in range(4)
        ]
        here = (*e, *self._hidden(m, e))
        for question, forks in pair.forks.items():
            reached = {a: (m[0] * f.first, m[1] * f.second) for a, f in forks.items()}
            leaks = self._leaks({a: (f.then, reached[a]) for a, f in forks.items()}, e)
            for answer, fork in forks.items():
                below = self.systems(fork.then, reached[answer], leaks[answer])
                weights = (*leaks[answer], *self._hidden(reached[answer], leaks[answer]))
                unmet = (fork.first, fork.second) * 2  # what a system does that is never met
                for i, then in enumerate((*below[0], *below[1])):
                    chance = weights[i] / here[i] if here[i] > 0 else unmet[i]
                    replies[i][question][answer] = Reply(chance, then)
        e0, e1, n0, n1 = (FiniteSystem(answers) for answers in replies)
        return (e0, e1), (n0, n1)

    def _leaks(
        self, children: Mapping[AnswerSymbol, tuple[Pair, Both]], e: Both
    ) -> dict[AnswerSymbol, Both]:
        """δ·Eᵇ of every answer: at least Lower, within Upper (eq. 25), adding up to e (eq. 26).

        The adjustment step raises both numbers of one answer after the other as far as possible.
        The pairs (x⁰, x¹) that satisfy eq. (25), x ≤ m and x ≤ cap are closed under taking the
        larger number in each place, so there is a largest one; unrolling the inequalities gives it
        in closed form. x ≤ m follows from eq. (25) if z > 1; at z = 1, where the paper argues by
        continuity, it must be asked for. See docs/theory/concurrency.md.
        """
        leaks = {answer: self.lower(pair, m) for answer, (pair, m) in children.items()}
        gap = [e[b] - sum(leak[b] for leak in leaks.values()) for b in (0, 1)]
        for answer, (_, m) in children.items():
            start = leaks[answer]
            cap = (start[0] + gap[0], start[1] + gap[1])
            upper = (m[0] - m[1] / self._z, m[1] - m[0] / self._z)
            x = (
                min(cap[0], m[0], upper[0] + cap[1] / self._z),
                min(cap[1], m[1], upper[1] + cap[0] / self._z),
            )
            gap = [cap[0] - x[0], cap[1] - x[1]]
            leaks[answer] = x
        return leaks

    def _hidden(self, m: Both, e: Both) -> Both:
        """(1 − δ)·Nᵇ: Lemma 2 takes the leak away, Lemma 3 inverts randomized response."""
        n0, n1, z = m[0] - e[0], m[1] - e[1], self._z
        return (n0, n1) if z == 1 else ((z * n0 - n1) / (z - 1), (z * n1 - n0) / (z - 1))


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


def _builder(pair: Pair, epsilon: Epsilon, delta: Fraction) -> _Builder:
    """For z = e^ε, or a fraction that decides as e^ε does: below it if (ε, δ) holds, else above.

    The excess is piecewise linear in z with rational pieces and, unless ε = 0, e^ε is irrational
    for every rational ε. So either the excess at e^ε is not δ, or it is constant there: some
    enclosure is narrow enough for both ends to say the same.
    """
    if isinstance(epsilon, LogOf):
        return _Builder(epsilon.odds)
    exact = _exact("epsilon", epsilon, _LARGEST)
    precision = _FIRST_PRECISION
    while True:
        low, high = _exponential(exact, precision)
        for factor, holds in ((low, True), (high, False)):
            builder = _Builder(factor)
            excess = max(builder.lower(pair, (Fraction(1), Fraction(1))))
            if (excess <= delta) == holds or low == high:
                return builder
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
