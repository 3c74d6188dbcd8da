"""Pieces of a long loop give the whole, and none of them takes long."""

import numpy as np
import pytest

import farthing as fa
from farthing.composition.adaptive.operators import BoundedRangeChoice, FixedLoss
from farthing.guarantees.losses import loss_of
from farthing.numerics import convolution
from farthing.numerics.convolution import averaged, convolved, pieces
from farthing.numerics.curves import Chords, Grid, Supports


@pytest.mark.parametrize(("size", "each"), [(1, 1), (5000, 10**6), (10**6, 10**3), (512, 10**9)])
def test_pieces_cover_every_index_once(size, each):
    found = list(pieces(size, each))
    assert [i for part in found for i in (part.start, part.stop)] == sorted(
        i for part in found for i in (part.start, part.stop)
    )
    assert sum(part.stop - part.start for part in found) == size
    assert all(
        (p.stop - p.start) * each <= max(convolution.PIECE, convolution.FEWEST * each)
        for p in found
    )


@pytest.mark.parametrize(("long", "short"), [(3000, 7), (3000, 2900), (40, 3000)])
def test_sums_in_pieces(monkeypatch, long, short):
    source = np.random.default_rng(2)
    one, other = source.random(long), source.random(short)
    whole = np.convolve(one, other)
    monkeypatch.setattr(convolution, "PIECE", 1000)
    monkeypatch.setattr(convolution, "SPAN", 100)
    np.testing.assert_allclose(convolved(one, other), whole, rtol=1e-12)
    if long >= short:
        valid = np.convolve(one, other, mode="valid")
        np.testing.assert_allclose(averaged(one, other), valid, rtol=1e-12)


@pytest.mark.parametrize("kind", ["range", "noise"])
def test_operators_in_pieces(monkeypatch, kind):
    grid = Grid(0.002, 900, 1100)
    operator = BoundedRangeChoice(0.1)
    if kind == "noise":
        noise = fa.Gaussian(2.0)
        operator = FixedLoss(
            loss_of(noise).atoms_above(0.01, 4.0), loss_of(noise).atoms_below(0.01, 4.0)
        )
    above, below = Chords.of_nothing(grid), Supports.of_nothing(grid)
    for _ in range(2):
        whole = operator.above(above), operator.below(below)
        with monkeypatch.context() as patched:
            patched.setattr(convolution, "PIECE", 100)
            patched.setattr(convolution, "SPAN", 16)
            parts = operator.above(above), operator.below(below)
        np.testing.assert_allclose(parts[0].values, whole[0].values, rtol=1e-13)
        np.testing.assert_allclose(parts[1].values, whole[1].values, rtol=1e-13)
        above, below = whole
