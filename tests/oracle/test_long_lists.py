"""Long lists by Fourier sums, beside the same lists composed step by step."""

import pytest

import farthing as fa
from farthing.composition.adaptive import grid_choice
from farthing.composition.adaptive.grid_choice import Layout, blocks_of
from farthing.composition.adaptive.optimum import COARSEST
from farthing.composition.adaptive.profiles import _only_blocks, _sum_of_blocks, curves
from farthing.composition.bounds.nonadaptive import epsilon_nonadaptive
from farthing.composition.items import losses_of
from farthing.guarantees.losses import laplace


@pytest.mark.parametrize(("epsilon", "count"), [(0.05, 150), (0.3, 120)])
def test_laplace_on_a_lattice_meets_shifted_lines(monkeypatch, epsilon, count):
    summed = fa.compose([(fa.Laplace(epsilon), count)]).epsilon_at(1e-6)
    monkeypatch.setattr(laplace, "SEVERAL", 10**9)
    curves.cache_clear()
    shifted = fa.compose([(fa.Laplace(epsilon), count)]).epsilon_at(1e-6)
    curves.cache_clear()
    assert max(summed.lower, shifted.lower) <= min(summed.upper, shifted.upper)
    assert summed.width <= 1e-3


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3])
def test_blocks_lie_above_the_adaptive_optimum(delta):
    """800 rounds in blocks of 212, beside the operators one after the other."""
    items = losses_of([(fa.BoundedRange(0.1), 800)])
    blocks = blocks_of(0.1, 800, 8e-3, delta)
    assert blocks is not None
    assert blocks.number * blocks.length >= 800
    assert blocks.number > 1
    found = _sum_of_blocks(items, 8e-3, delta, whole=False)
    assert found is not None
    upper, lower = found[0].first_below(delta), found[1].last_above(delta)
    direct = fa.compose([(fa.BoundedRange(0.1), 800)], tolerance=2e-3).epsilon_at(delta)
    assert direct.lower <= upper <= direct.upper * 1.02
    exact = epsilon_nonadaptive(delta, epsilon=0.1, count=800)
    assert exact.upper * 0.98 <= lower <= direct.upper


def test_blocks_beside_other_losses():
    """Noise joins the sum of blocks; as an order fixed in advance it is one of the plays."""
    items = [(fa.Gaussian(20.0), 10), (fa.BoundedRange(0.05), 1200), (fa.Laplace(0.02), 300)]
    found = _sum_of_blocks(losses_of(items), 8e-3, 1e-6, whole=False)
    assert found is not None
    upper, lower = found[0].first_below(1e-6), found[1].last_above(1e-6)
    direct = fa.compose(items, tolerance=1e-2).epsilon_at(1e-6)
    assert direct.lower <= upper <= direct.upper * 1.02
    assert direct.lower * 0.98 <= lower <= direct.upper
    assert lower > fa.compose(items[1:2], tolerance=1e-2).epsilon_at(1e-6).upper


def test_blocks_need_a_known_order(monkeypatch):
    """Two parameters in whatever order are not cut into blocks of one of them."""
    monkeypatch.setattr(grid_choice, "DIRECT_WORK", 1e6)
    items = [(fa.BoundedRange(0.02), 1000), (fa.BoundedRange(0.04), 1000)]
    made = Layout.of(losses_of(items), COARSEST, 1e-6, whole=False)
    assert made is not None
    assert made.blocked == {0.02, 0.04}
    assert not _only_blocks(losses_of(items), "setwise", made)
    assert _only_blocks(losses_of(items), "adaptive", made)
    curves.cache_clear()
    anyhow = fa.compose(items, adaptivity="setwise", tolerance=0.05).epsilon_at(1e-6)
    given = fa.compose(items, tolerance=0.05).epsilon_at(1e-6)
    curves.cache_clear()
    assert given.lower <= anyhow.upper
    assert anyhow.lower > 0
