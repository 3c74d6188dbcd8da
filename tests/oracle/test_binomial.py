"""Binomial hockey-stick sums and binomial_masses in ball arithmetic, against the plain sums."""

import pytest
from flint import arb

from farthing.numerics.ball import down, in_balls, up
from farthing.numerics.binomial import binomial_hockey_stick, binomial_masses
from oracle.reference import mp


def _sum(count, log_odds, step, gap, last):
    q = 1 / (1 + mp.exp(-mp.mpf(log_odds)))
    value, tail = mp.mpf(0), mp.mpf(0)
    weight = q**count
    for i in range(last + 1):
        value -= weight * mp.expm1(-(mp.mpf(gap) + (last - i) * mp.mpf(step)))
        tail += weight
        weight *= mp.mpf(count - i) / (i + 1) * (1 - q) / q
    return value, tail


@pytest.mark.parametrize("count", [1, 2, 17, 400])
@pytest.mark.parametrize("log_odds", [-2.5, 0.0, 0.01, 1.0, 9.0])
@pytest.mark.parametrize("gap", [0.0, 1e-12, 0.3])
@in_balls
def test_hockey_stick(count, log_odds, gap):
    for last in {0, count // 3, count // 2, count - 1, count}:
        stick = binomial_hockey_stick(
            count=count, log_odds=arb(log_odds), step=arb(0.07), gap=arb(gap), last=last
        )
        value, tail = _sum(count, log_odds, 0.07, gap, last)
        for ball, exact in ((stick.value, value), (stick.tail, tail)):
            assert down(ball) <= exact <= up(ball)
            assert up(ball) <= float(exact) * (1 + 1e-11) + 5e-324


@pytest.mark.parametrize(("count", "log_odds"), [(1, 0.3), (50, -1.0), (5000, 0.02), (3000, 5.0)])
@in_balls
def test_masses(count, log_odds):
    known = binomial_masses(count=count, log_odds=arb(log_odds), tiny=1e-40)
    q = 1 / (1 + mp.exp(-mp.mpf(log_odds)))
    weight, kept, below, above = q**count, 0, mp.mpf(0), mp.mpf(0)
    last = known.first + len(known.pmf) - 1
    for i in range(count + 1):
        if i < known.first:
            below += weight
        elif i > last:
            above += weight
        else:
            mass = mp.mpf(float(known.pmf[i - known.first]))
            assert abs(mass - weight) <= known.relative * weight
            kept += 1
        weight *= mp.mpf(count - i) / (i + 1) * (1 - q) / q
    assert kept == len(known.pmf)
    assert below <= known.below_first
    assert above <= known.above_last
