"""Numbers that can never be right raise, and say which, why and what was given."""

import math

import numpy as np
import pytest

import farthing as fa
from laws.kinds import GUARANTEES

NAN, INF = math.nan, math.inf
NOT_A_NUMBER = [NAN, INF, -INF, "0.1", None, True, [0.1], 1j]

CONSTRUCTORS = [
    (fa.PureDP, "epsilon", (0.1,), 0, [-0.1, -1e-300]),
    (fa.BoundedRange, "epsilon", (0.1,), 0, [-0.1]),
    (fa.Laplace, "epsilon", (0.1,), 0, [-0.1]),
    (fa.ApproximateDP, "epsilon", (0.1, 1e-6), 0, [-0.1]),
    (fa.ApproximateDP, "delta", (0.1, 1e-6), 1, [-0.1, 1.0, 1.5]),
    (fa.Gaussian, "noise_multiplier", (2.0,), 0, [0.0, -1.0]),
    (fa.ConcentratedDP, "mu", (0.1, 0.1), 0, [-0.1]),
    (fa.ConcentratedDP, "tau", (0.1, 0.1), 1, [-0.1]),
    (fa.ZeroConcentratedDP, "rho", (0.1, 0.0, 0.0), 0, [-0.1]),
    (fa.ZeroConcentratedDP, "xi", (0.1, 0.0, 0.0), 1, [-0.2]),
    (fa.ZeroConcentratedDP, "delta", (0.1, 0.0, 0.0), 2, [-0.1, 1.0]),
    (fa.TruncatedConcentratedDP, "rho", (0.1, 3.0), 0, [-0.1]),
    (fa.TruncatedConcentratedDP, "omega", (0.1, 3.0), 1, [1.0, 0.5]),
]


def _cases():
    for kind, name, values, place, outside in CONSTRUCTORS:
        for bad in [*NOT_A_NUMBER, *outside]:
            yield pytest.param(kind, name, values, place, bad, id=f"{kind.__name__}-{name}-{bad!r}")


@pytest.mark.parametrize(("kind", "name", "values", "place", "bad"), list(_cases()))
def test_constructors(kind, name, values, place, bad):
    given = [*values[:place], bad, *values[place + 1 :]]
    with pytest.raises(fa.InvalidInput) as caught:
        kind(*given)
    message = str(caught.value)
    assert message.startswith(f"{name} must be")
    shown = repr(bad) if not isinstance(bad, float) else f"{bad:g}"
    assert f"got {shown}" in message or f"got {bad!r}" in message
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("curve", [None, 3.0, "curve"])
def test_a_renyi_curve_must_be_a_function(curve):
    with pytest.raises(fa.InvalidInput, match="curve must be a function"):
        fa.RenyiDP(curve)


@pytest.mark.parametrize("limit", [1.0, 0.0, NAN, -INF, "3", None, True])
def test_the_orders_of_a_renyi_curve(limit):
    with pytest.raises(fa.InvalidInput, match="orders_below must be greater than 1"):
        fa.RenyiDP(lambda alpha: alpha, limit)


@pytest.mark.parametrize("value", [NAN, -1.0])
def test_a_renyi_curve_must_not_return_nonsense(value):
    with pytest.raises(fa.InvalidInput, match="must be at least 0"):
        fa.compose([fa.RenyiDP(lambda _: value)]).epsilon_at(1e-6)


@pytest.mark.parametrize("bad", [True, False, 2.5, 3.0, "3", None, 0, -1, NAN, INF, [2]])
def test_counts_are_whole_numbers(bad):
    with pytest.raises(fa.InvalidInput, match="count must be a whole number of at least 1, got"):
        fa.compose([(fa.PureDP(0.1), bad)])
    with pytest.raises(fa.InvalidInput, match="count must be a whole number"):
        fa.gaussian_epsilon(1e-6, noise_multiplier=2.0, count=bad)
    with pytest.raises(fa.InvalidInput, match="count must be a whole number"):
        fa.largest_epsilon(fa.PureDP, count=bad, epsilon=1.0, delta=1e-6)


def test_whole_numbers_of_other_libraries_are_welcome():
    counted = fa.compose([(fa.PureDP(np.float64(0.1)), np.int64(4))])
    assert counted.epsilon_at(1e-6) == fa.compose([(fa.PureDP(0.1), 4)]).epsilon_at(1e-6)
    assert type(counted.items.pairs[0][1]) is int


@pytest.mark.parametrize("empty", [[], (), iter([])])
def test_an_empty_list(empty):
    with pytest.raises(
        fa.InvalidInput, match="at least one guarantee is needed, got an empty list"
    ):
        fa.compose(empty)


@pytest.mark.parametrize(
    "items",
    [
        [0.1],
        ["br:0.1"],
        [None],
        "br:0.1",
        [(0.1, 3)],
        [fa.PureDP],
        [(3, fa.PureDP(0.1))],
        [(fa.PureDP(0.1), 2, 3)],
        [(fa.PureDP(0.1),)],
        [()],
        fa.PureDP(0.1),
        None,
        7,
    ],
    ids=repr,
)
def test_things_that_are_no_guarantees(items):
    with pytest.raises(fa.InvalidInput):
        fa.compose(items)


@pytest.mark.parametrize("bad", ["", "None", "Adaptive", "full", None, 3])
def test_unknown_adaptivity(bad):
    with pytest.raises(fa.InvalidInput, match="adaptivity must be one of none, adaptive, setwise"):
        fa.compose([fa.PureDP(0.1)], adaptivity=bad)
    with pytest.raises(fa.InvalidInput, match="adaptivity must be one of"):
        fa.largest_count(fa.PureDP(0.1), epsilon=1.0, delta=1e-6, adaptivity=bad)


@pytest.mark.parametrize("bad", [0.0, -1e-3, 1.0, NAN, "0.1", None])
def test_tolerance(bad):
    with pytest.raises(fa.InvalidInput, match="tolerance must be"):
        fa.compose([fa.PureDP(0.1)], tolerance=bad)


@pytest.mark.parametrize("name", GUARANTEES)
@pytest.mark.parametrize("bad", [NAN, INF, -INF, -1e-9, 1.0, 2.0, "1e-6", None, True])
def test_delta(name, bad):
    composition = fa.compose([GUARANTEES[name]])
    for ask in (composition.epsilon_at, composition.bounds_at):
        with pytest.raises(
            fa.InvalidInput, match="delta must be finite, at least 0 and less than 1"
        ):
            ask(bad)


@pytest.mark.parametrize("name", GUARANTEES)
@pytest.mark.parametrize("bad", [NAN, INF, -INF, -1e-9, "1", None])
def test_epsilon(name, bad):
    with pytest.raises(fa.InvalidInput, match="epsilon must be finite and at least 0"):
        fa.compose([GUARANTEES[name]]).delta_at(bad)


GAUSSIAN_CALLS = [
    (lambda v: fa.gaussian_delta(v, noise_multiplier=1.0), "epsilon", [-1.0, NAN]),
    (lambda v: fa.gaussian_delta(1.0, noise_multiplier=v), "noise_multiplier", [0.0, -1.0, INF]),
    (lambda v: fa.gaussian_epsilon(v, noise_multiplier=1.0), "delta", [0.0, 1.0, NAN, -0.1]),
    (lambda v: fa.gaussian_noise_multiplier(v, 1e-6), "epsilon", [-1.0, NAN, INF]),
    (lambda v: fa.gaussian_noise_multiplier(1.0, v), "delta", [0.0, 1.0, NAN]),
    (lambda v: fa.zcdp_epsilon(v, noise_multiplier=1.0), "delta", [0.0, 1.0, NAN]),
    (lambda v: fa.zcdp_epsilon(1e-6, noise_multiplier=v), "noise_multiplier", [0.0, NAN]),
    (lambda v: fa.zcdp_noise_multiplier(v, 1e-6), "epsilon", [0.0, -1.0, NAN]),
    (lambda v: fa.zcdp_noise_multiplier(1.0, v), "delta", [0.0, 1.0]),
    (
        lambda v: fa.zcdp_epsilon(1e-6, noise_multiplier=1.0, contribution_limit=v),
        "contribution_limit",
        [0, 1.5, True],
    ),
    (
        lambda v: fa.largest_count(fa.PureDP(0.1), epsilon=v, delta=1e-6),
        "epsilon",
        [-1.0, NAN, INF],
    ),
    (lambda v: fa.largest_count(fa.PureDP(0.1), epsilon=1.0, delta=v), "delta", [-1.0, NAN, 1.0]),
    (
        lambda v: fa.largest_epsilon(fa.PureDP, count=3, epsilon=v, delta=1e-6),
        "epsilon",
        [-1.0, NAN],
    ),
    (lambda v: fa.largest_epsilon(fa.PureDP, count=3, epsilon=1.0, delta=v), "delta", [-1.0, 1.0]),
    (
        lambda v: fa.largest_epsilon(v, count=3, epsilon=1.0, delta=1e-6),
        "kind",
        [fa.Gaussian, "br", None],
    ),
]


@pytest.mark.parametrize(("call", "name", "values"), GAUSSIAN_CALLS)
def test_helpers(call, name, values):
    for value in values:
        with pytest.raises(fa.InvalidInput, match=f"{name} must be"):
            call(value)


EXTREME = [
    [fa.PureDP(1e-300)],
    [fa.PureDP(1e300)],
    [(fa.PureDP(800.0), 3)],
    [fa.BoundedRange(1e-300)],
    [(fa.BoundedRange(1e-300), 3)],
    [(fa.BoundedRange(1000.0), 3)],
    [(fa.BoundedRange(1e300), 2)],
    [fa.Laplace(1e-300)],
    [(fa.Laplace(1000.0), 2)],
    [fa.Laplace(1e300)],
    [fa.Gaussian(1e-200)],
    [fa.Gaussian(1e200)],
    [fa.Gaussian(1e-5)],
    [fa.ZeroConcentratedDP(0.0)],
    [fa.ZeroConcentratedDP(1e300)],
    [fa.ZeroConcentratedDP(1.0, -1.0)],
    [fa.ConcentratedDP(0.0, 0.0)],
    [fa.ConcentratedDP(0.0, 1.0)],
    [fa.ConcentratedDP(1e200, 1e200)],
    [fa.TruncatedConcentratedDP(0.0, 2.0)],
    [fa.TruncatedConcentratedDP(1.0, math.nextafter(1, 2))],
    [fa.TruncatedConcentratedDP(1.0, 1e300)],
    [fa.ApproximateDP(0.0, 0.0)],
    [fa.ApproximateDP(1e300, 0.5)],
    [fa.PureDP(1e-5), fa.PureDP(50.0)],
    [fa.BoundedRange(1e-5), fa.BoundedRange(5.0)],
    [fa.Laplace(1e-4), fa.Gaussian(0.5)],
    [fa.BoundedRange(1.0), fa.PureDP(1e-12)],
]


@pytest.mark.parametrize("items", EXTREME, ids=str)
@pytest.mark.parametrize("adaptivity", ["none", "adaptive"])
def test_extremes_give_an_answer_or_an_error_of_ours(items, adaptivity):
    """Never nan, never a warning (they are errors here), never an exception of another library."""
    composition = fa.compose(items, adaptivity=adaptivity)
    for ask, value in (
        (composition.epsilon_at, 1e-6),
        (composition.epsilon_at, 5e-324),
        (composition.delta_at, 1.0),
        (composition.delta_at, 0.0),
        (composition.delta_at, 1e5),
    ):
        try:
            bracket = ask(value)
        except fa.FarthingError:
            continue
        assert 0 <= bracket.lower <= bracket.upper < INF
