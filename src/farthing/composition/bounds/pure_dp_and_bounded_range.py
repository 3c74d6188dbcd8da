"""Optimal composition of ε-DP and ε-bounded-range mechanisms fixed in advance.

Theorem 3 of [CR22]: m of k mechanisms are ε-DP, the others ε-bounded range, all with the same
ε; the order does not matter (Lemma 4.3 there). The total loss is

    (k − m)·t + m·ε − n·ε,    n = i + 2j,    i ~ Bin(k − m, 1 − q_{ε,t}),   j ~ Bin(m, 1/(1 + e^ε)),

and the optimal δ is the largest value over the k + m candidates
t_ℓ = (ε_g + (ℓ + 1 − m)ε)/(k − m + 1). One value costs one convolution instead of a double sum,
and whole ranges of candidates are discarded together: if t ∈ [a, b], then RR_{ε,t} has its
losses in [b − ε′, b] with ε′ = ε + b − a, so it is a post-processing of RR_{ε′,b}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from flint import arb

from farthing.composition.bounds import Bracket
from farthing.numerics.ball import Ball, down, in_balls, larger, middle, up
from farthing.numerics.binomial import HockeyStick, binomial_masses
from farthing.numerics.convolution import convolved
from farthing.numerics.rounding import UNIT
from farthing.numerics.search import invert, turning_point, whole_thirds

THEOREM = "optimal non-adaptive DP + bounded range [CR22, Thm 3]"


@dataclass(frozen=True, slots=True)
class Mix:
    """`pure` ε-DP and `ranged` ε-bounded-range mechanisms with one common ε."""

    epsilon: float
    pure: int
    ranged: int

    @in_balls
    def delta_at(self, epsilon_g: float) -> Bracket:
        """Optimal δ for every real ε_g. Checked against the double sum in tests/oracle."""
        low, high = self._optimum(epsilon_g)
        return Bracket(max(0.0, down(low)), min(1.0, up(high)), THEOREM)

    @in_balls
    def epsilon_at(self, delta: float) -> Bracket:
        """The smallest ε_g ≥ 0 whose optimal δ is at most `delta`."""
        total = arb(self.epsilon) * (self.pure + self.ranged)
        limit = up(total)
        if delta == 0:
            return Bracket(down(total), limit, THEOREM)
        variance = self.epsilon**2 * (self.pure + self.ranged / 4)
        lower, upper = invert(
            lambda x: self._value(arb(x), self._place(x)),
            lambda x: self._optimum(x)[1],
            delta,
            start=variance / 2 + math.sqrt(-2 * variance * math.log(delta)),
            limit=limit,
        )
        return Bracket(lower, upper, THEOREM)

    def _optimum(self, epsilon_g: float) -> tuple[Ball, Ball]:
        """(low, high): a value that is attained, and one that no candidate exceeds."""
        at = arb(epsilon_g)
        trivial = -at.expm1() if epsilon_g < 0 else arb(0)
        if abs(at) >= (self.pure + self.ranged) * arb(self.epsilon):
            return trivial, trivial
        likely = self._place(epsilon_g)
        low = high = larger(trivial, self._value(at, likely).value)
        ranges = [self._candidates(at)]
        while ranges:
            first, last = ranges.pop()
            if first == last:
                value = self._value(at, first).value
                low, high = larger(low, value.lower()), larger(high, value.upper())
                continue
            ceiling = self._ceiling(at, first, last)
            if ceiling is not None and not ceiling > low:
                continue
            between = (first + last) // 2
            ranges += [(first, between), (between + 1, last)]
        return low, high

    def _place(self, epsilon_g: float) -> int:
        """The candidate that is probably best, by a search over the values themselves."""
        at = arb(epsilon_g)
        best = whole_thirds(lambda i: middle(self._value(at, i).value.log()), *self._candidates(at))
        return max(best, key=lambda i: middle(self._value(at, i).value))

    def _candidates(self, epsilon_g: Ball) -> tuple[int, int]:
        """The first and last ℓ worth trying: 0 < t_ℓ < ε, and one on either side of that."""
        zero = middle(self.pure - 1 - epsilon_g / self.epsilon)
        first, last = math.floor(zero), math.ceil(zero + self.ranged + 1)
        return max(first, 0), max(min(last, 2 * self.pure + self.ranged), first, 0)

    def _choice(self, epsilon_g: Ball, place: int) -> Ball:
        """t_ℓ, moved into [0, ε]."""
        t = (epsilon_g + (place + 1 - self.pure) * arb(self.epsilon)) / (self.ranged + 1)
        return arb(0).max(t).min(arb(self.epsilon))

    def _value(self, epsilon_g: Ball, place: int) -> HockeyStick:
        return self._stick(epsilon_g, self._choice(epsilon_g, place), arb(self.epsilon))

    def _ceiling(self, epsilon_g: Ball, first: int, last: int) -> Ball | None:
        low, high = self._choice(epsilon_g, first), self._choice(epsilon_g, last)
        return self._stick(epsilon_g, high, arb(self.epsilon) + (high - low)).value.upper()

    def _stick(self, epsilon_g: Ball, t: Ball, step: Ball) -> HockeyStick:
        """The hockey stick of RR_{step,t} and RR_{2·step,ε}, on the lattice of `step`.

        Both binomials are tilted so that their sum lies where the loss crosses ε_g; their
        masses are floats with stated relative error, and what they leave out is added.
        """
        each = arb(self.epsilon)
        top = self.ranged * t + self.pure * each
        last = min(math.floor(middle((top - epsilon_g) / step)) + 1, self.ranged + 2 * self.pure)
        while last >= 0 and (gap := top - last * step - epsilon_g) < 0:
            last -= 1
        if last < 0:
            return HockeyStick(arb(0), arb(0))
        odds = [(self.ranged, 1, _log_odds(t, step)), (self.pure, 2, _log_odds(each, 2 * step))]
        odds = [(count, size, lo) for count, size, lo in odds if count > 0]
        tilt = _tilt([(count, size, middle(lo)) for count, size, lo in odds], last)
        weights, first, relative, missing = np.ones(1), 0, 0.0, 0.0
        log_scale = arb(0)
        for count, size, log_odds in odds:
            tilted = log_odds + size * arb(tilt)
            known = binomial_masses(count=count, log_odds=tilted, tiny=1e-40)
            log_scale += count * ((1 + (-tilted).exp()).log() - (1 + (-log_odds).exp()).log())
            spread = np.zeros((len(known.pmf) - 1) * size + 1)
            spread[::size] = known.pmf
            weights = convolved(weights, spread)
            first += known.first * size
            relative += known.relative + (2 * len(spread) + 8) * UNIT
            missing += known.below_first + known.above_last
        steps = last - (first + np.arange(len(weights), dtype=np.float64))
        used = steps >= 0
        steps, weights = steps[used], weights[used] * np.exp(-tilt * steps[used])
        value = float(np.sum(weights * -np.expm1(-(middle(gap) + steps * middle(step)))))
        tail = float(np.sum(weights))
        relative = (
            relative + 2 * (len(weights) + 64 + 2 * tilt * float(steps.max(initial=0))) * UNIT
        )
        scale = (log_scale + arb(tilt) * last).exp()
        inexact = arb(0, missing + tail * float((gap.rad() + last * step.rad()).upper()) * 2)
        return HockeyStick(
            value=scale * (arb(value, value * relative) + inexact),
            tail=scale * (arb(tail, tail * relative) + inexact),
        )


def _log_odds(t: Ball, epsilon: Ball) -> Ball:
    """ln(q/(1 − q)) of RR_{ε,t}."""
    tiny = arb(2) ** -100
    t = tiny.max(t).min(epsilon - tiny)
    return ((epsilon - t).expm1() / t.expm1()).log() + t


def _tilt(groups: list[tuple[int, int, float]], last: int) -> float:
    """θ ≥ 0 for which the tilted mean of Σ size·i is about `last`; 0 if it lies below already."""

    def mean(theta: float) -> float:
        return sum(
            count * size / (1 + math.exp(min(log_odds + size * theta, 700.0)))
            for count, size, log_odds in groups
        )

    low, high = 0.0, 1.0
    if mean(low) <= last:
        return 0.0
    while mean(high) > last and high < 600:
        high *= 2
    return turning_point(lambda theta: mean(theta) > last, low, high, width=1e-12)[0]
