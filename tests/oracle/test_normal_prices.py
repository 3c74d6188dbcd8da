"""Kinds that only bound moments, paid for in Gaussian noise: lemma 4 against adversaries."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import farthing as fa
from farthing.composition.accounts.gaussian_filter import GaussianFilter
from farthing.composition.adaptive.normal_prices import _Moments, climbed, sold
from farthing.composition.bounds.moment_witness import Moments
from farthing.guarantees.losses import loss_of
from farthing.numerics.ball import in_balls
from farthing.numerics.curves import Grid
from tests.oracle.test_gaussian_filter import profile

KINDS = [
    fa.ZeroConcentratedDP(0.005),
    fa.ZeroConcentratedDP(0.05),
    fa.ZeroConcentratedDP(0.002, 0.001),
    fa.TruncatedConcentratedDP(0.005, 20.0),
    fa.ConcentratedDP(0.005, 0.1),
    fa.RenyiDP(lambda order: 0.005 * order if order > 1.2 else math.inf, 40.0),
]


def mechanisms(guarantee: fa.Guarantee) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    """Losses and masses of mechanisms with this guarantee: noise in small bins, and witnesses."""
    found = []
    loss = loss_of(guarantee)
    example = loss_of(fa.Gaussian(10.0)) if isinstance(guarantee, fa.RenyiDP) else loss.example()
    if example is not None:
        atoms = example.atoms_below(0.01, example.reach(1e-12))
        found.append((tuple(atoms.losses.tolist()), tuple(atoms.masses.tolist())))
    moments = Moments.of(loss)
    if moments is not None:
        for size in (0.5, 1.0, 2.0, 4.0, 6.0):
            witness = moments.witness(size * math.sqrt(2 * moments.rho) + moments.rho)
            if witness is not None:
                found.append((witness.losses, witness.masses))
    return found


@pytest.mark.parametrize("guarantee", KINDS, ids=lambda kind: type(kind).__name__)
@in_balls
def test_no_mechanism_exceeds_lemma_4(guarantee: fa.Guarantee) -> None:
    curve = _Moments.of((loss_of(guarantee),))
    assert curve is not None
    found = mechanisms(guarantee)
    assert found
    for behind in (0.0, 0.3 * curve.variance, 2 * curve.variance, 40 * curve.variance):
        deviation = math.sqrt(behind + curve.variance)
        grid = Grid(deviation / 2, 0, 12)
        bounds = curve.before(behind, grid)
        for x, bound in zip(grid.points().tolist(), bounds.tolist(), strict=True):
            for losses, masses in found:
                pairs = zip(losses, masses, strict=True)
                reached = sum(m * profile(behind, x - loss) for loss, m in pairs)
                assert reached <= bound * (1 + 1e-7) + 1e-13


def test_a_bound_that_is_too_small_is_found_out() -> None:
    """Noise itself reaches nearly all of it where much is behind."""
    guarantee = fa.ZeroConcentratedDP(0.005)
    curve = _Moments.of((loss_of(guarantee),))
    assert curve is not None
    losses, masses = mechanisms(guarantee)[0]
    grid = Grid(0.2, 0, 8)
    for x, bound in zip(grid.points().tolist(), curve.before(0.4, grid).tolist(), strict=True):
        pairs = zip(losses, masses, strict=True)
        reached = sum(m * profile(0.4, x - loss) for loss, m in pairs)
        alone = profile(0.4, x)
        assert reached - alone >= 0.97 * (bound - alone)


@pytest.mark.parametrize("guarantee", KINDS[:4], ids=str)
def test_prices_hold_at_every_balance(guarantee: fa.Guarantee) -> None:
    rates = GaussianFilter.of(3.0, 1e-6).rates((loss_of(guarantee),))
    assert len(rates) >= 2  # the last one costs 2.3 times as much
    assert all(one.price > other.price for one, other in itertools.pairwise(rates))
    for rate in rates[:4]:
        for more in (0.0, 0.5):
            behind = float(rate.least - rate.price) * (1 + more)
            for x in (0.0, 0.05, 0.2, 0.5, 1.0):
                for losses, masses in mechanisms(guarantee):
                    pairs = zip(losses, masses, strict=True)
                    reached = sum(m * profile(behind, x - loss) for loss, m in pairs)
                    assert reached <= profile(behind + float(rate.price), x) + 1e-11


def test_climbing_is_the_way_back_down() -> None:
    rates = GaussianFilter.of(3.0, 1e-6).rates((loss_of(fa.ZeroConcentratedDP(0.002)),))
    for count in (1, 2, 7, 30, 60):
        top = climbed(rates[0].price * 0, rates, count)
        assert sold(top, rates, count)[0] == count


def test_the_best_of_many_witnesses_stays_below_the_list() -> None:
    """A game: at every state the worst of a menu of mechanisms, on a lattice of losses."""
    count, rho, step = 40, 0.002, 0.05
    moments = Moments(0.0, rho, math.inf)
    menu = [(i, moments.witness(i * step)) for i in range(1, 9)]
    size = 200
    x = np.arange(-size, size + 1) * step
    value = np.maximum(0.0, -np.expm1(x))
    for _ in range(count):
        best = value.copy()
        for cells, witness in menu:
            if witness is None:
                continue
            low, rest, high = witness.masses
            left = np.concatenate((np.ones(cells), value[:-cells]))
            right = np.concatenate((value[cells:], np.zeros(cells)))
            best = np.maximum(best, high * left + rest * value + low * right)
        value = best
    whole = fa.compose([(fa.ZeroConcentratedDP(rho), count)])
    for epsilon in (0.0, 0.5, 1.0, 1.5):
        reached = value[size + round(epsilon / step)]
        bracket = whole.delta_at(epsilon)
        assert 0.5 * bracket.lower <= reached <= bracket.upper


@pytest.mark.parametrize(
    ("items", "width"),
    [
        ([(fa.ZeroConcentratedDP(6e-5), 1000)], 0.004),
        ([(fa.ZeroConcentratedDP(6e-4), 100)], 0.016),
        ([(fa.Gaussian(20.0), 30), (fa.ZeroConcentratedDP(6e-4), 100)], 0.01),
        ([(fa.ZeroConcentratedDP(6e-4), 100), (fa.BoundedRange(0.1), 50)], 0.01),
    ],
)
def test_many_small_moments_are_nearly_noise(items: list[object], width: float) -> None:
    bracket = fa.compose(items).epsilon_at(1e-6)
    assert bracket.upper - bracket.lower <= width * bracket.upper


def test_an_accountant_sells_moments_like_noise() -> None:
    moments, noise = fa.ZeroConcentratedDP(0.00125), fa.Gaussian(20.0)  # the same ρ
    assert fa.Accountant(3.0, 1e-6).how_many(moments) >= 160  # 147 by Rényi orders
    mixed = fa.Accountant(3.0, 1e-6)
    mixed.spend(noise, 80)
    assert mixed.how_many(moments) >= 80
    mixed.spend(moments, 80)
    assert not mixed.would_fit(noise, 20)


@in_balls
def test_formula_at_one_point() -> None:
    """U_b + density·(e^r − 1)/(β(1 + β)) at x = 0, β small: noise to first order."""
    curve = _Moments.of((loss_of(fa.ZeroConcentratedDP(1e-6)),))
    assert curve is not None
    bound = curve.before(0.1, Grid(1.0, 0, 1))[0]
    assert 0 <= bound / profile(0.1 + 2e-6, 0.0) - 1 < 1e-7
