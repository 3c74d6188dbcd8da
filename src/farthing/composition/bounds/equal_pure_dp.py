"""Optimal composition of equal ε-DP mechanisms [KOV15].

The worst ε-DP mechanism is randomized response, whatever the adaptivity: the losses of k of
them are (k − 2i)ε with i binomial. The δ of (ε, δ)-DP items is handled where leaks are
(`composition/compose.py`); unequal ε are composed on a grid (`composition/adaptive/profiles.py`).
"""

from __future__ import annotations

import math
from dataclasses import replace

from flint import arb

from farthing.errors import require_count, require_real
from farthing.guarantees.bracket import Bracket
from farthing.numerics.ball import down, in_balls, middle, up
from farthing.numerics.binomial import HockeyStick, binomial_hockey_stick
from farthing.numerics.search import invert

THEOREM = "optimal composition of equal ε-DP mechanisms [KOV15; CR22, Thm 1]"
HISTOGRAM = "Laplace histogram as Δ mechanisms of ε-DP [CR22, Lemma 6.2]"


@in_balls
def delta_equal(epsilon_g: float, *, epsilon: float, count: int) -> Bracket:
    """Optimal δ of `count` ε-DP mechanisms, for every real ε_g.

    Theorem 1 of [CR22], due to [KOV15]; exact, both sides attained, valid for adaptive,
    set-wise and concurrent composition. Checked against the subset sum in tests/oracle.
    """
    at = arb(epsilon_g)
    if abs(at) >= count * arb(epsilon):
        value = -at.expm1() if epsilon_g < 0 else arb(0)
    else:
        value = _stick(epsilon_g, epsilon, count).value
    return Bracket(max(0.0, down(value)), min(1.0, up(value)), THEOREM)


@in_balls
def epsilon_equal(delta: float, *, epsilon: float, count: int) -> Bracket:
    """The smallest ε_g ≥ 0 whose optimal δ is at most `delta`; relative width about 1e-9."""
    total = arb(epsilon) * count
    limit = up(total)
    if delta == 0 or limit == 0:
        return Bracket(down(total), limit, THEOREM)
    mean, spread = count * epsilon * math.tanh(epsilon / 2), epsilon * math.sqrt(count)
    lower, upper = invert(
        lambda x: _stick(x, epsilon, count),
        lambda x: _stick(x, epsilon, count).value.upper(),
        delta,
        start=mean + spread * math.sqrt(-2 * math.log(delta)),
        limit=limit,
    )
    return Bracket(lower, upper, THEOREM)


def _stick(epsilon_g: float, epsilon: float, count: int) -> HockeyStick:
    each = arb(epsilon)
    last = min(max(math.floor(middle((count - arb(epsilon_g) / each) / 2)) + 1, 0), count)
    while (gap := (count - 2 * last) * each - arb(epsilon_g)) < 0:
        last -= 1
    return binomial_hockey_stick(count=count, log_odds=each, step=2 * each, gap=gap, last=last)


def laplace_histogram_epsilon(delta: float, *, epsilon: float, contribution_limit: int) -> Bracket:
    """ε_g at `delta` of a histogram with Lap(τ/ε) noise, by Lemma 6.2 of [CR22].

    A unit that changes at most Δ counts by at most τ each meets Δ mechanisms of ε-DP and nothing
    else: the other counts are the same on both datasets. The bracket is the optimum for any Δ
    mechanisms of ε-DP. For continuous Laplace noise
    `compose([(Laplace(epsilon), contribution_limit)])` is smaller still.
    """
    delta = require_real("delta", delta, at_least=0, below=1)
    epsilon = require_real("epsilon", epsilon, at_least=0)
    count = require_count("contribution_limit", contribution_limit, at_least=1)
    return replace(epsilon_equal(delta, epsilon=epsilon, count=count), theorem=HISTOGRAM)
