"""A list of three mechanisms took half a minute: while the best choice of one of them was looked
for, the loss of another was cut into the same pieces again for each choice that was tried."""

from __future__ import annotations

import farthing as fa
from farthing.guarantees.losses import gaussian


def test_a_loss_is_cut_once_for_all_choices_of_others(monkeypatch):
    evaluated = 0
    normal_above = gaussian._normal_above

    def counted(x):
        nonlocal evaluated
        evaluated += 1
        return normal_above(x)

    monkeypatch.setattr(gaussian, "_normal_above", counted)
    items = [fa.ZeroConcentratedDP(0.0312), fa.Gaussian(1.01), fa.BoundedRange(0.1)]
    assert fa.compose(items, adaptivity="none", tolerance=0.1).epsilon_at(1e-6).upper < 5.1
    assert evaluated < 100_000, "once for each grid, not for each choice"
