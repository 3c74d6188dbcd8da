"""Hockey-stick sums over a binomial distribution, enclosed.

The privacy loss of k independent randomized responses is `top − i·step` with i binomial, so
the profile of their composition is a sum of positive terms that falls off geometrically.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from flint import arb

from farthing.errors import NotCertified
from farthing.numerics.ball import Ball, middle
from farthing.numerics.rounding import UNIT, FloatArray

#: More trials than this are not summed: about √count terms are needed.
MOST_TRIALS = 10**10


@dataclass(frozen=True, slots=True)
class HockeyStick:
    """`value` = Σ pmf(i)·(1 − e^{−excess(i)}) and `tail` = Σ pmf(i), both over i ≤ last."""

    value: Ball
    tail: Ball


def binomial_hockey_stick(
    *, count: int, log_odds: Ball, step: Ball, gap: Ball, last: int
) -> HockeyStick:
    """Σ_{i ≤ last} C(count, i) q^{count−i} (1−q)^i (1 − e^{−(gap + (last−i)·step)}).

    `log_odds` is ln(q/(1−q)); `gap` ≥ 0 is how far the loss at i = last exceeds the ε asked
    for. The largest pmf among i ≤ last is a ball. The sum relative to it is taken in float64,
    from there downwards and upwards: all terms are positive, each weight is a product of at
    most n ratios with relative error below 4u, the expm1 factor errs by at most 12u and the
    sum by n·u, so 6n + 32 units of rounding bound the whole. What is cut off is below a
    geometric series, because the ratios decrease away from the mode. Checked against 50-digit
    sums in tests/oracle.
    """
    odds = middle(log_odds.exp())
    anchor = min(last, max(0, int((count + 1) / (1 + odds))))
    pmf = _pmf(count, anchor, log_odds)
    excess = middle(gap + (last - anchor) * step)
    down = _run(
        lambda m: (anchor - m) / (count - anchor + m + 1) * odds,
        lambda m: excess + m * middle(step),
        terms=anchor + 1,
        guess=count,
    )
    above = _run(
        lambda m: (count - anchor - 1 - m) / (anchor + 2 + m) / odds,
        lambda m: np.maximum(middle(gap) + (last - anchor - 1 - m) * middle(step), 0.0),
        terms=last - anchor,
        guess=count,
    )
    first_above = (count - anchor) / (anchor + 1) / odds
    value = down.value + first_above * above.value
    tail = down.tail + first_above * above.tail
    inexact = arb(0, 2 * (gap.rad() + last * step.rad()).upper()) * tail
    return HockeyStick(value=pmf * (value + inexact), tail=pmf * tail)


def _pmf(count: int, place: int, log_odds: Ball) -> Ball:
    """C(count, i) q^{count−i} (1−q)^i for i = place."""
    log_pmf = (
        arb(count + 1).lgamma()
        - arb(place + 1).lgamma()
        - arb(count - place + 1).lgamma()
        - count * (1 + (-log_odds).exp()).log()
        - place * log_odds
    )
    return log_pmf.exp()


def _run(
    ratio: Callable[[FloatArray], FloatArray],
    excess: Callable[[FloatArray], FloatArray],
    *,
    terms: int,
    guess: int,
) -> HockeyStick:
    """Sums over a run of weights 1, r_0, r_0 r_1, … of decreasing ratios, `terms` in all."""
    if terms == 0:
        return HockeyStick(arb(0), arb(0))
    taken = min(terms, 64 + 4 * int(guess**0.5))
    with np.errstate(all="ignore"):
        while True:
            places = np.arange(taken, dtype=np.float64)
            ratios = ratio(places)
            weights = np.concatenate(([1.0], np.cumprod(ratios)))
            value = float(np.sum(weights[:-1] * -np.expm1(-excess(places))))
            tail = float(np.sum(weights[:-1]))
            cut = _cut_off(float(weights[-1]), float(ratios[-1]), taken == terms)
            if taken == terms or cut <= UNIT * value:
                break
            taken = min(terms, 4 * taken)
    if not (np.isfinite(tail) and np.isfinite(cut)):
        raise NotCertified(f"a binomial sum of {terms} terms left the range of float64")
    relative = (6 * taken + 32) * UNIT
    left_out = arb(0.5 * cut, 0.5 * cut)
    return HockeyStick(
        value=arb(value, value * relative) + left_out, tail=arb(tail, tail * relative) + left_out
    )


def _cut_off(next_weight: float, ratio: float, complete: bool) -> float:
    """An upper bound on all weights from `next_weight` on, whose ratios are at most `ratio`."""
    if complete or next_weight == 0:
        return 0.0
    return next_weight / (1 - ratio) * (1 + 1e-9) if ratio < 1 else float("inf")


@dataclass(frozen=True, slots=True)
class Masses:
    """pmf(i) for i = first, first + 1, …, known up to `relative`; what lies outside is small."""

    first: int
    pmf: FloatArray
    relative: float
    below_first: float
    above_last: float


def binomial_masses(*, count: int, log_odds: Ball, tiny: float = 1e-280) -> Masses:
    """The binomial masses C(count, i) q^{count−i} (1−q)^i that are not below about `tiny`.

    Products of ratios away from the mode, as in `binomial_hockey_stick`; `below_first` and
    `above_last` bound the two tails that are left out by geometric series.
    """
    if count > MOST_TRIALS:
        raise NotCertified(f"{count} trials are too many to sum")
    odds = middle(log_odds.exp())
    mode = min(count, max(0, int((count + 1) / (1 + odds))))
    top = middle(_pmf(count, mode, log_odds))
    reach = int(math.sqrt(count) * math.sqrt(-math.log(tiny)) * 1.5) + 64
    with np.errstate(all="ignore"):
        down_count, up_count = min(mode, reach), min(count - mode, reach)
        m = np.arange(down_count, dtype=np.float64)
        down = np.cumprod((mode - m) / (count - mode + m + 1) * odds)
        m = np.arange(up_count, dtype=np.float64)
        above = np.cumprod((count - mode - m) / (mode + 1 + m) / odds)
    down, above = down[down * top > tiny], above[above * top > tiny]
    pmf = np.concatenate((down[::-1], [1.0], above)) * top
    first = mode - len(down)
    last = mode + len(above)
    return Masses(
        first=first,
        pmf=pmf,
        relative=(6 * len(pmf) + 32) * UNIT,
        below_first=0.0 if first == 0 else tiny * (len(pmf) + 64),
        above_last=0.0 if last == count else tiny * (len(pmf) + 64),
    )
