"""Properties of brackets over random lists."""

from hypothesis import given, settings
from hypothesis import strategies as st

import farthing as fa
from property.lists import deltas, epsilons, lists


@settings(max_examples=18)
@given(lists, deltas, st.sampled_from(["none", "adaptive", "setwise"]))
def test_a_coarse_bracket_contains_a_fine_one(items, delta, adaptivity):
    coarse = fa.compose(items, adaptivity=adaptivity, tolerance=3e-2).epsilon_at(delta)
    fine = fa.compose(items, adaptivity=adaptivity, tolerance=3e-3).epsilon_at(delta)
    assert coarse.lower <= fine.lower <= fine.upper <= coarse.upper


@settings(max_examples=18)
@given(lists, epsilons, st.sampled_from(["none", "adaptive", "setwise"]))
def test_a_coarse_bracket_of_delta_contains_a_fine_one(items, epsilon, adaptivity):
    coarse = fa.compose(items, adaptivity=adaptivity, tolerance=3e-2).delta_at(epsilon)
    fine = fa.compose(items, adaptivity=adaptivity, tolerance=3e-3).delta_at(epsilon)
    assert coarse.lower <= fine.lower <= fine.upper <= coarse.upper


@settings(max_examples=18)
@given(lists, deltas)
def test_more_freedom_never_costs_less(items, delta):
    none, adaptive, setwise = (
        fa.compose(items, adaptivity=a, tolerance=1e-2).epsilon_at(delta)
        for a in ("none", "adaptive", "setwise")
    )
    assert none.lower <= adaptive.upper
    assert adaptive.lower <= setwise.upper
    assert none.lower <= setwise.upper


@settings(max_examples=18)
@given(lists, deltas, st.sampled_from(["none", "adaptive", "setwise"]))
def test_no_bound_lies_below_what_an_adversary_achieves(items, delta, adaptivity):
    composition = fa.compose(items, adaptivity=adaptivity, tolerance=1e-2)
    best = composition.epsilon_at(delta)
    for name, bracket in composition.bounds_at(delta).items():
        assert best.lower <= bracket.upper, name


@settings(max_examples=18)
@given(lists, epsilons, st.sampled_from(["none", "adaptive", "setwise"]))
def test_delta_and_epsilon_meet(items, epsilon, adaptivity):
    composition = fa.compose(items, adaptivity=adaptivity, tolerance=1e-2)
    delta = composition.delta_at(epsilon)
    if delta.upper >= 1:
        return
    assert composition.epsilon_at(delta.upper).lower <= epsilon
    if delta.lower > 1e-200:
        assert composition.epsilon_at(delta.lower).upper >= epsilon * (1 - 1e-9)


@settings(max_examples=18)
@given(lists, deltas, st.randoms(use_true_random=False))
def test_a_set_has_no_order(items, delta, random):
    shuffled = list(items)
    random.shuffle(shuffled)
    for adaptivity in ("none", "setwise"):
        one = fa.compose(items, adaptivity=adaptivity, tolerance=1e-2).epsilon_at(delta)
        other = fa.compose(shuffled, adaptivity=adaptivity, tolerance=1e-2).epsilon_at(delta)
        assert one.lower <= other.upper
        assert other.lower <= one.upper


def test_a_tolerance_that_is_not_met_is_stated():
    """Many unequal bounded ranges fixed in advance: the upper side is an adaptive one."""
    many = [fa.BoundedRange(0.01 * hundredths) for hundredths in range(10, 24)]
    bracket = fa.compose(many, adaptivity="none").epsilon_at(1e-6)
    assert bracket.width > 1e-3
    assert "limit reached" in bracket.theorem
    met = fa.compose([(fa.BoundedRange(0.1), 20)]).epsilon_at(1e-6)
    assert met.width <= 1e-3
    assert "limit" not in met.theorem
