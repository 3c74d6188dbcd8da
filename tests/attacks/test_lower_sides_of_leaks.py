"""A loss with an infinite part in both directions had a lower side that nobody attains, where the
truth is smaller than the rounding of that part: two bounds contradicted each other."""

from __future__ import annotations

import math

import pytest

import farthing as fa
from farthing.guarantees.losses.discrete import attained_one_way

P = (0.05292981682180007, 0.021505182083474465, 0.21377406578979422, 0.5547328547827485,
     0.15695808052218257)  # fmt: skip # found by chance
Q = (0.4467121295791305, 0.16248140441912978, 0.21015789999843906, 0.17993891275623056,
     0.0006096532470701212)  # fmt: skip # the other neighbour
LOSSES = tuple(math.log(p / q) for p, q in zip(P, Q, strict=True))
PAIR = fa.TwoWayLoss(
    fa.LossDistribution(LOSSES, P, 1e-4),
    fa.LossDistribution(tuple(-loss for loss in reversed(LOSSES)), tuple(reversed(Q)), 1e-4),
)


@pytest.mark.parametrize("adaptivity", ["none", "adaptive"])
def test_both_sides_of_what_next_to_nothing_attains(adaptivity):
    found = fa.compose([fa.ZeroConcentratedDP(0.005), PAIR], adaptivity=adaptivity)
    both = found.delta_at(3.0)
    assert both.lower <= both.upper
    without = found.directions[1].delta_at(3.0)
    assert without.lower <= without.upper


@pytest.mark.parametrize("with_unit", [True, False])
def test_nothing_is_attained_beyond_the_losses_of_a_direction(with_unit):
    atoms = attained_one_way(PAIR, with_unit=with_unit)
    most = PAIR.with_unit.losses[-1] if with_unit else PAIR.without_unit.losses[-1]
    assert atoms.losses[atoms.masses > 0].max() <= most
