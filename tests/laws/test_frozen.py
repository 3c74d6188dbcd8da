"""What a mechanism promises is a fact: it does not change, and equal facts are equal."""

import dataclasses
import pickle

import pytest

import farthing as fa
from laws.kinds import GUARANTEES


@pytest.mark.parametrize("name", GUARANTEES)
def test_guarantees_are_frozen_and_hashable(name):
    guarantee = GUARANTEES[name]
    field = dataclasses.fields(guarantee)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(guarantee, field, 0.5)
    with pytest.raises((AttributeError, TypeError)):
        guarantee.something_else = 1
    assert hash(guarantee) == hash(dataclasses.replace(guarantee))
    assert guarantee == dataclasses.replace(guarantee)
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee


def test_kinds_with_equal_numbers_are_different_facts():
    assert len({fa.PureDP(0.1), fa.BoundedRange(0.1), fa.Laplace(0.1), fa.Gaussian(0.1)}) == 4
    assert fa.PureDP(0.1) != fa.BoundedRange(0.1)


def test_whole_numbers_become_floats():
    assert isinstance(fa.PureDP(1).epsilon, float)
    assert fa.PureDP(1) == fa.PureDP(1.0)


def test_compositions_and_brackets_are_frozen():
    composition = fa.compose([fa.PureDP(0.1)])
    bracket = composition.epsilon_at(1e-6)
    with pytest.raises(dataclasses.FrozenInstanceError):
        composition.adaptivity = "none"
    with pytest.raises(dataclasses.FrozenInstanceError):
        bracket.upper = 0.0


def test_the_callers_list_is_left_alone():
    given = [fa.PureDP(0.1), (fa.BoundedRange(0.2), 3), fa.PureDP(0.1)]
    copy = list(given)
    fa.compose(given).epsilon_at(1e-6)
    assert given == copy


@pytest.mark.parametrize(
    "sides", [(1.0, 0.5), (-0.1, 1.0), (0.0, float("inf")), (float("nan"), 1.0)]
)
def test_a_bracket_that_is_none_raises(sides):
    with pytest.raises(fa.NotCertified, match="a bracket must satisfy"):
        fa.Bracket(*sides, theorem="none")


def test_reading_a_bracket():
    bracket = fa.Bracket(0.9, 1.0, "example")
    assert bracket.width == pytest.approx(0.1)
    assert 0.95 in bracket
    assert 1.01 not in bracket
    assert fa.Bracket(0.0, 0.0, "example").width == 0.0
