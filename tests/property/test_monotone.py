"""Upper bounds grow with every parameter: more mechanisms, larger ε, smaller δ."""

from dataclasses import fields, replace

from hypothesis import given, settings
from hypothesis import strategies as st

import farthing as fa
from property.lists import counted, deltas, lists

#: brackets are this wide at most, so an upper bound may fall by as much and no more
SLACK = 1.01


def _upper(items, delta, adaptivity="adaptive"):
    return fa.compose(items, adaptivity=adaptivity, tolerance=1e-2).epsilon_at(delta)


@settings(max_examples=15)
@given(lists, deltas, counted, st.sampled_from(["none", "adaptive", "setwise"]))
def test_one_more_item(items, delta, extra, adaptivity):
    fewer, more = _upper(items, delta, adaptivity), _upper([*items, extra], delta, adaptivity)
    assert fewer.lower <= more.upper
    assert fewer.upper <= more.upper * SLACK + 1e-12


@settings(max_examples=15)
@given(lists, deltas, st.floats(min_value=1, max_value=3), st.sampled_from(["none", "adaptive"]))
def test_one_item_made_weaker(items, delta, factor, adaptivity):
    (guarantee, count), *rest = items
    name = fields(guarantee)[0].name
    scale = 1 / factor if isinstance(guarantee, fa.Gaussian) else factor
    weaker = replace(guarantee, **{name: getattr(guarantee, name) * scale})
    strong = _upper(items, delta, adaptivity)
    weak = _upper([(weaker, count), *rest], delta, adaptivity)
    assert strong.lower <= weak.upper
    assert strong.upper <= weak.upper * SLACK + 1e-12


@settings(max_examples=18)
@given(lists, deltas, st.floats(min_value=1e-6, max_value=1), st.sampled_from(["none", "setwise"]))
def test_less_delta(items, delta, part, adaptivity):
    strict, loose = _upper(items, delta * part, adaptivity), _upper(items, delta, adaptivity)
    assert loose.lower <= strict.upper
    assert loose.upper <= strict.upper * SLACK + 1e-12


@settings(max_examples=18)
@given(lists, deltas, st.floats(min_value=1e-12, max_value=0.3))
def test_a_leak_only_costs(items, delta, part):
    leak = delta * part
    plain = _upper(items, delta)
    leaky = _upper([*items, fa.ApproximateDP(0.0, leak)], delta)
    assert plain.lower <= leaky.upper
    assert plain.upper <= leaky.upper * SLACK + 1e-12
