"""Tariffs at the edge: small ones keep their claims, odd ones are answered or refused at once.

Before, a tariff of six half-ε counts was certified at ε = 3.029 though 3 is all that can be bought,
and at no δ below 1e-5; items of price 10³⁰ or ε = 0 ended in OverflowError and ZeroDivisionError,
dp above 37 in MemoryError, and an item that nobody could afford set the grid.
"""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import farthing as fa
from farthing.composition.tariffs import budget
from farthing.composition.tariffs.tariff import tariff_profiles
from farthing.composition.tariffs.verification import verify_document

SMALL = fa.Tariff({"count": (fa.PureDP(0.5), 2), "select": (fa.BoundedRange(0.3), 2)}, farthings=13)


def test_a_small_tariff_is_never_above_the_sum_of_its_epsilons() -> None:
    certificate = SMALL.certify()
    claims = dict(certificate.epsilons)
    assert {1e-3, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12, 0.0} == set(claims)
    assert all(bracket.upper <= 3.0 for bracket in claims.values())
    assert claims[0.0].upper == 3.0
    assert claims[0.0].width <= 1e-8
    assert claims[1e-3].upper == pytest.approx(2.98266, abs=1e-4)
    for delta in (0.0, 1e-300, 1e-40, 1e-13, 1e-4):
        assert certificate.epsilon_at(delta) <= 3.0
    assert certificate.delta_at(3.0) == 0
    assert certificate.delta_at(2.9) > 0


def test_units_are_all_that_is_left_beyond_the_sum() -> None:
    items = {"rough": (fa.ApproximateDP(0.5, 1e-9), 2)}
    tariff = fa.Tariff(items, farthings=13, delta_units=100, delta_unit=1e-9)
    certificate = tariff.certify()
    assert certificate.epsilon_at(tariff.leak) == 3.0
    assert certificate.delta_at(3.0) <= tariff.leak * (1 + 1e-8)
    with pytest.raises(fa.NotCertified):
        certificate.epsilon_at(tariff.leak * 0.5)


def test_mixtures_count_and_not_only_single_items() -> None:
    """Five farthings buy one of each: more ε than either alone."""
    items = {"a": (fa.PureDP(1.0), 2), "b": (fa.PureDP(1.4), 3)}
    assert fa.Tariff(items, farthings=5).certify().epsilon_at(0) == 2.4


@pytest.mark.parametrize("dear", [fa.PureDP(400.0), fa.Gaussian(0.5), fa.PureDP(1e-6)])
def test_what_nobody_can_afford_changes_nothing(dear: fa.Guarantee) -> None:
    items: dict[str, tuple[fa.Guarantee, int]] = {**SMALL.items, "dear": (dear, 14)}
    ours, plain = fa.Tariff(items, farthings=13).certify(), SMALL.certify()
    assert ours.epsilons == plain.epsilons
    assert ours.profile == plain.profile


def test_perfect_privacy_is_for_sale() -> None:
    for guarantee in (fa.PureDP(0), fa.BoundedRange(0), fa.Laplace(0), fa.ApproximateDP(0, 0)):
        certificate = fa.Tariff({"nothing": (guarantee, 1)}, farthings=10).certify()
        assert certificate.epsilon_at(0) == 0
        assert certificate.delta_at(0) == 0
        verify_document(certificate.to_json())


def test_a_large_epsilon_needs_no_fine_grid() -> None:
    certificate = fa.Tariff({"count": (fa.PureDP(38.0), 1)}, farthings=2).certify()
    assert certificate.epsilon_at(0) == 76
    assert certificate.epsilon_at(1e-3) == pytest.approx(75.999, abs=1e-2)


def test_prices_that_share_a_factor_cost_no_more() -> None:
    many = fa.Tariff({"count": (fa.PureDP(0.5), 10**15)}, farthings=6 * 10**15 + 1)
    assert many.certify().epsilon_at(0) == 3.0
    few = fa.Tariff({"count": (fa.PureDP(0.5), 3)}, farthings=7)
    spent = [float(p.most_epsilon or 0) for p in tariff_profiles(few, 0.1, 1e-3)]
    assert spent == [0, 0, 0, 0.5, 0.5, 0.5, 1, 1]


@pytest.mark.parametrize(
    ("items", "farthings", "message"),
    [
        ({"x": (fa.PureDP(1.0), 10**30)}, 5, "at most 1e\\+18"),
        ({"x": (fa.PureDP(1.0), 1)}, 10**30, "at most 1e\\+18"),
        ({"x": (fa.PureDP(1.0), 1)}, 10**4000, "at most 1e\\+18"),
        ({"x": (fa.PureDP(1e300), 1)}, 5, "protects nobody"),
        ({"x": (fa.Gaussian(1e-300), 1)}, 5, "protects nobody"),
        ({"x": (fa.DiscreteGaussian(1e-3), 1)}, 5, "protects nobody"),
        ({"x": (fa.DiscreteGaussian(1e300), 1)}, 5, "too many outcomes"),
        ({"x": (fa.PureDP(1.0), 1)}, 10**18, "protects nobody"),
        ({"x": (fa.PureDP(1e-9), 1), "y": (fa.PureDP(1.0), 10**11)}, 10**12, "hours"),
        ({"x": (fa.BoundedRange(1e-3), 1), "y": (fa.PureDP(0.1), 99_999)}, 10**5, "memory"),
    ],
)
def test_hopeless_tariffs_are_refused_at_once(
    items: dict[str, tuple[fa.Guarantee, int]], farthings: int, message: str
) -> None:
    with pytest.raises(fa.FarthingError, match=message):
        fa.Tariff(items, farthings=farthings).certify()


def test_units_that_cannot_be_counted() -> None:
    rough = {"x": (fa.ApproximateDP(1.0, 0.5), 1)}
    for units, unit in ((10**400, 1e-12), (5, 0.25), (1, 5e-324)):
        with pytest.raises(fa.FarthingError):
            fa.Tariff(rough, 5, delta_units=units, delta_unit=unit).certify()


WILD = st.floats(0, allow_nan=False, allow_infinity=False) | st.floats(1e-12, 50)
ABOVE_ZERO = WILD.filter(lambda x: x > 0)
WHOLE = st.integers(1, 12) | st.integers(1, 10**6) | st.integers(1, 10**40)
GUARANTEES = st.one_of(
    st.builds(fa.PureDP, WILD),
    st.builds(fa.BoundedRange, WILD),
    st.builds(fa.Laplace, WILD),
    st.builds(fa.ApproximateDP, WILD, st.floats(0, 1, exclude_max=True)),
    st.builds(fa.Gaussian, ABOVE_ZERO),
    st.builds(fa.DiscreteGaussian, ABOVE_ZERO, WHOLE),
)
ITEMS = st.dictionaries(st.text(max_size=3), st.tuples(GUARANTEES, WHOLE), max_size=4)
FUZZ = settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would take more than a moment is refused, as what takes hours is."""
    monkeypatch.setattr(budget, "MOST_WORK", 3e8)
    monkeypatch.setattr(budget, "MOST_MEMORY", 1e8)


@pytest.mark.usefixtures("impatient")
@FUZZ
@given(ITEMS, WHOLE, st.integers(0, 9) | WHOLE, WILD, st.floats(0, 1), st.floats(0, 1))
def test_only_our_errors_escape(
    items: dict[str, tuple[fa.Guarantee, int]],
    farthings: int,
    units: int,
    unit: float,
    delta: float,
    tolerance: float,
) -> None:
    try:
        tariff = fa.Tariff(items, farthings, delta_units=units, delta_unit=unit)
        certificate = tariff.certify(deltas=(delta, 1e-6), tolerance=max(tolerance, 1e-3))
    except fa.FarthingError:
        return
    assert repr(certificate)
    verify_document(certificate.to_json())


@pytest.mark.usefixtures("impatient")
@FUZZ
@given(ITEMS, WILD, st.floats(0, 1))
def test_only_our_errors_escape_from_planning(
    items: dict[str, tuple[fa.Guarantee, int]], epsilon: float, delta: float
) -> None:
    with contextlib.suppress(fa.FarthingError):
        fa.propose_prices({name: guarantee for name, (guarantee, _) in items.items()})
    with contextlib.suppress(fa.FarthingError):
        fa.largest_farthings(items, epsilon=epsilon, delta=delta, tolerance=0.3)
