"""Optimal composition of equal mechanisms that are fixed in advance: bounded range, and ε-DP.

Notation of [DDR20]: k bounded-range mechanisms, ε each, ε_g the overall parameter, and

    F_ℓ(t) = Σ_{i ≤ ℓ} C(k, i) [q_t^{k−i} (1−q_t)^i − e^{ε_g} p_t^{k−i} (1−p_t)^i].

Theorem 3 there: the optimal δ is the largest F_ℓ(t_ℓ), t_ℓ = (ε_g + (ℓ+1)ε)/(k+1). Among the
k candidates the search below keeps a handful and proves the others smaller; the argument is
in docs/theory/candidates.md.

Theorem 3 of [CR22] (`Mix`): m of k mechanisms are ε-DP, the others ε-bounded range, all with the
same ε; the order does not matter (Lemma 4.3 there). The total loss is

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
from farthing.guarantees.losses.bounded_range import max_kl
from farthing.numerics.ball import Ball, down, hull, in_balls, middle, up
from farthing.numerics.binomial import HockeyStick, binomial_hockey_stick, binomial_masses
from farthing.numerics.convolution import convolved
from farthing.numerics.rounding import UNIT
from farthing.numerics.search import invert, last_whole, turning_point, whole_thirds

RANGED = "optimal non-adaptive bounded range [DDR20, Thm 3]"
MIXED = "optimal non-adaptive DP + bounded range [CR22, Thm 3]"


@in_balls
def delta_nonadaptive(epsilon_g: float, *, epsilon: float, count: int) -> Bracket:
    """Optimal δ of `count` ε-bounded-range mechanisms fixed in advance.

    Theorem 3 of [DDR20], for every real ε_g. Both sides are attained; the bracket is the
    rounding of the ball arithmetic. Checked against the subset sum of Lemma 3.1 in
    tests/oracle and against 50-digit sums in tests/property.
    """
    low, high = _optimum(epsilon_g, epsilon, count)
    return Bracket(max(0.0, down(low)), min(1.0, up(high)), RANGED)


@in_balls
def epsilon_nonadaptive(delta: float, *, epsilon: float, count: int) -> Bracket:
    """The smallest ε_g ≥ 0 whose optimal δ is at most `delta`."""
    sides = invert(
        lambda x: _candidate(arb(x), epsilon, count, _likely_candidate(x, epsilon, count)),
        lambda x: _optimum(x, epsilon, count)[1],
        delta,
        total=arb(epsilon) * count,
        mean=count * middle(max_kl(epsilon)),
        deviation=0.5 * epsilon * math.sqrt(count),
    )
    return Bracket(*sides, RANGED)


@in_balls
def adaptivity_is_free(epsilon_g: float, *, epsilon: float, count: int) -> bool | None:
    """Whether the adaptive optimum equals the non-adaptive one at this ε_g.

    True for |ε_g| ≥ (k−1)ε [DDR20, Lemmas 6.7–6.10]; False for |ε_g| ≤ (k−3)ε, k ≥ 4
    [Thm 4, Lemma 6.6], and for k = 2, |ε_g| < ε/2 [Lemma 6.4]; None where nothing is proved
    (docs/errata.md says what Theorem 4 claims too much at k = 3).
    """
    distance, edge = abs(arb(epsilon_g)), (count - 1) * arb(epsilon)
    if count <= 1 or distance >= edge:
        return True
    if (count >= 4 and distance <= (count - 3) * arb(epsilon)) or (
        count == 2 and distance < arb(epsilon) / 2
    ):
        return False
    return None


def _optimum(epsilon_g: float, epsilon: float, count: int) -> tuple[Ball, Ball]:
    """(low, high): a value that is attained, and one that no candidate exceeds."""
    at = arb(epsilon_g)
    trivial = -at.expm1() if epsilon_g < 0 else arb(0)
    if abs(at) >= count * arb(epsilon):
        return trivial, trivial
    low = high = trivial
    for place in _possible_maxima(at, epsilon, count):
        value = _candidate(at, epsilon, count, place).value
        low, high = low.max(value.lower()), high.max(value.upper())
    return low, high


def _candidate(epsilon_g: Ball, epsilon: float, count: int, place: int) -> HockeyStick:
    """F_ℓ(t_ℓ) for ℓ = place; the loss at i = ℓ exceeds ε_g by exactly ε − t_ℓ."""
    each = arb(epsilon)
    t = (epsilon_g + (place + 1) * each) / (count + 1)
    log_odds = ((each - t).expm1() / t.expm1()).log() + t
    return binomial_hockey_stick(
        count=count, log_odds=log_odds, step=each, gap=each - t, last=place
    )


def _number_of_candidates(epsilon_g: Ball, epsilon: float, count: int) -> int:
    """How many ℓ = 0, 1, … have 0 < t_ℓ < ε, for −kε < ε_g < kε; ℓ = k never attains."""
    bound = middle(count - epsilon_g / epsilon)
    places = min(max(int(bound) - 2, 0), count)
    while places < count and epsilon_g + (places + 1) * arb(epsilon) < (count + 1) * arb(epsilon):
        places += 1
    return max(places, 1)


def _likely_candidate(epsilon_g: float, epsilon: float, count: int) -> int:
    """The ℓ that balances ascent and descent of the ripples, by bisection in floats."""
    at = arb(epsilon_g)

    def ascends_before(place: int) -> bool:
        greatest, least = _ripple(at, epsilon, count, place - 1, place - 1)
        return middle(greatest + least) > 0

    first = _first_candidate(epsilon_g, epsilon)
    return last_whole(ascends_before, first, _number_of_candidates(at, epsilon, count))


def _first_candidate(epsilon_g: float, epsilon: float) -> int:
    """The smallest ℓ with t_ℓ > 0."""
    place = max(0, int(-epsilon_g / epsilon) - 2)
    while not arb(epsilon_g) + (place + 1) * arb(epsilon) > 0:
        place += 1
    return place


def _possible_maxima(epsilon_g: Ball, epsilon: float, count: int) -> list[int]:
    """The ℓ among which the largest F_ℓ(t_ℓ) certainly is."""
    start = _first_candidate(middle(epsilon_g), epsilon)
    candidates = _number_of_candidates(epsilon_g, epsilon, count)
    if candidates - start <= 24:
        return list(range(start, candidates))
    maxima: list[int] = []
    summit: int | None = start  # the largest candidate so far, if the last step did not fall
    ranges = [(start, candidates - 2)]
    while ranges:
        first, last = ranges.pop()
        greatest, least = _ripple(epsilon_g, epsilon, count, first, last)
        if least > 0:
            summit = last + 1
        elif greatest < 0:
            maxima += [] if summit is None else [summit]
            summit = None
        elif first == last:
            maxima += [] if summit is None else [summit]
            summit = last + 1
        else:
            between = (first + last) // 2
            ranges += [(between + 1, last), (first, between)]
    return maxima if summit is None else [*maxima, summit]


def _ripple(
    epsilon_g: Ball, epsilon: float, count: int, first: int, last: int
) -> tuple[Ball, Ball]:
    """Bounds on the sign of F_{ℓ+1}(t_{ℓ+1}) − F_ℓ(t_ℓ) for all ℓ in [first, last].

    Returns (greatest, least) possible value of a positive multiple of the difference; NaN
    compares as undecided. See docs/theory/candidates.md for the formula.
    """
    each = arb(epsilon)
    turn_low, turn_high = ((epsilon_g + (i + 1) * each) / count for i in (first, last))
    before = (epsilon_g + (first + 1) * each) / (count + 1)
    after = (epsilon_g + (last + 2) * each) / (count + 1)
    places = hull(arb(first), arb(last))
    ratio = (count - 1 - places) / (places + 1)
    odds_down = _odds_down(turn_low, each), _odds_down(turn_high, each)
    step_ratio = ratio * hull(*odds_down)
    slope_down = _log_slope(before, turn_high, each, count, places)
    slope_up = _log_slope(turn_low, after, each, count, places + 1)
    greatest = (step_ratio * _ascent(each - turn_low, slope_up.upper())).upper() - _descent(
        turn_low, slope_down.upper()
    )
    least = (step_ratio * _ascent(each - turn_high, slope_up.lower())).lower() - _descent(
        turn_high, slope_down.lower()
    )
    return greatest, least


def _odds_down(t: Ball, epsilon: Ball) -> Ball:
    """(1 − p_t)/p_t."""
    return t.expm1() / -(t - epsilon).expm1()


def _log_slope(t_low: Ball, t_high: Ball, epsilon: Ball, count: int, places: Ball) -> Ball:
    """d/dt of ln(p_t^{k−1−ℓ} (1−p_t)^ℓ e^{−t}), divided by k + 1, over a range of t and ℓ."""
    scale = -(-epsilon).expm1()
    p = (
        hull(
            -(t_high - epsilon).expm1() * (-t_high).exp(),
            -(t_low - epsilon).expm1() * (-t_low).exp(),
        )
        / scale
    )
    drift = ((count - 1) * (1 - p) - places) / (p * (1 - p))
    return -(1 + (-hull(t_low, t_high)).exp() / scale * drift) / (count + 1)


def _ascent(length: Ball, slope: Ball) -> Ball:
    """∫_0^s (1 − e^{v−s}) e^{cv} dv, increasing in s and in c."""
    return (slope * length).expm1() / slope - ((slope * length).exp() - (-length).exp()) / (
        1 + slope
    )


def _descent(length: Ball, slope: Ball) -> Ball:
    """∫_0^τ (e^{τ−v} − 1) e^{−cv} dv, increasing in τ, decreasing in c."""
    return (length.exp() - (-slope * length).exp()) / (1 + slope) + (
        -slope * length
    ).expm1() / slope


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
        return Bracket(max(0.0, down(low)), min(1.0, up(high)), MIXED)

    @in_balls
    def epsilon_at(self, delta: float) -> Bracket:
        """The smallest ε_g ≥ 0 whose optimal δ is at most `delta`."""
        variance = self.epsilon**2 * (self.pure + self.ranged / 4)
        sides = invert(
            lambda x: self._value(arb(x), self._place(x)),
            lambda x: self._optimum(x)[1],
            delta,
            total=arb(self.epsilon) * (self.pure + self.ranged),
            mean=variance / 2,
            deviation=math.sqrt(variance),
        )
        return Bracket(*sides, MIXED)

    def _optimum(self, epsilon_g: float) -> tuple[Ball, Ball]:
        """(low, high): a value that is attained, and one that no candidate exceeds."""
        at = arb(epsilon_g)
        trivial = -at.expm1() if epsilon_g < 0 else arb(0)
        if abs(at) >= (self.pure + self.ranged) * arb(self.epsilon):
            return trivial, trivial
        likely = self._place(epsilon_g)
        low = high = trivial.max(self._value(at, likely).value)
        ranges = [self._candidates(at)]
        while ranges:
            first, last = ranges.pop()
            if first == last:
                value = self._value(at, first).value
                low, high = low.max(value.lower()), high.max(value.upper())
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
