"""Every kind has a loss, found by one registry, that keeps its promises to composition."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

import farthing as fa
from farthing.guarantees.losses import LOSSES, loss_of
from farthing.numerics.ball import in_balls, up
from tests.laws.kinds import GUARANTEES, REPLACED

ALL = {**GUARANTEES, **REPLACED}
ROOT = Path(__file__).parents[2]


def test_every_kind_is_registered() -> None:
    sampled = {fa.Subsampled, fa.SubsampledWithoutReplacement}
    assert set(LOSSES) | sampled == set(get_args(fa.Guarantee))
    with pytest.raises(fa.InvalidInput, match="guarantee"):
        loss_of("dp:0.1")


@pytest.mark.parametrize("name", ALL)
def test_a_loss_without_its_leak_leaks_nothing(name: str) -> None:
    for with_unit in (True, False):
        loss = loss_of(ALL[name], with_unit=with_unit)
        rest = loss.without_leak()
        assert rest.leak == 0
        assert rest.without_leak() == rest
        assert 0 <= loss.attained_leak <= loss.leak


@pytest.mark.parametrize("name", ALL)
def test_kinds_without_directions_have_one_loss(name: str) -> None:
    guarantee = ALL[name]
    same = loss_of(guarantee) == loss_of(guarantee, with_unit=False)
    assert same == (not loss_of(guarantee).one_way)


@pytest.mark.parametrize("name", ALL)
@in_balls
def test_fixed_losses_have_atoms_on_both_sides(name: str) -> None:
    loss = loss_of(ALL[name]).whole().without_leak()
    if not loss.known or loss.chosen_range is not None:
        with pytest.raises(TypeError, match="no fixed privacy loss"):
            loss.reach(1e-12)
        return
    reach = loss.reach(1e-12)
    above, below = loss.atoms_above(0.02, reach), loss.atoms_below(0.02, reach)
    assert 0.999 <= float(above.masses.sum()) + above.infinity <= 1.01
    assert 0.9 <= float(below.masses.sum()) <= 1 + 1e-9
    if loss.pure_epsilon is not None:
        assert float(below.losses.max()) <= loss.pure_epsilon * (1 + 1e-9)


@pytest.mark.parametrize("name", GUARANTEES)
@in_balls
def test_moments_exceed_no_pure_epsilon(name: str) -> None:
    loss = loss_of(ALL[name]).without_leak()
    if loss.pure_epsilon is not None:
        for alpha in (1.5, 4.0, 30.0):
            assert up(loss.log_moment(alpha) / (alpha - 1)) <= loss.pure_epsilon * (1 + 1e-9)


def test_a_kind_is_named_where_it_belongs() -> None:
    """A kind's name in more modules than these says that something matches on it again."""
    named = [
        path.relative_to(ROOT / "src" / "farthing").as_posix()
        for path in sorted((ROOT / "src").rglob("*.py"))
        if re.search(r"\bDiscreteGaussian\b", path.read_text("utf-8"))
    ]
    assert len(named) <= 8, named
    assert not [path for path in named if path.startswith("composition/")]
