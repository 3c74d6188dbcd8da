"""Laws of an accountant: it never spends past, refusals change nothing, and files keep it."""

from __future__ import annotations

import json
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import farthing as fa
from farthing.canonical import digest
from farthing.composition.bounds.moments import MomentBound
from farthing.composition.items import losses_of
from tests.laws.kinds import GROWING, GUARANTEES


def budget() -> fa.Accountant:
    return fa.Accountant(3.0, 1e-6, leaks=1e-7)


@pytest.mark.parametrize("name", GUARANTEES)
def test_every_kind_can_be_spent_until_nothing_is_left(name: str) -> None:
    guarantee = GUARANTEES[name]
    accountant = fa.Accountant(3.0, 1e-6, leaks=1e-7, mostly=guarantee)
    most = accountant.how_many(guarantee)
    assert most >= budget().how_many(guarantee)
    assert most > 0
    assert accountant.would_fit(guarantee, most)
    assert not accountant.would_fit(guarantee, most + 1)
    accountant.spend(guarantee, most)
    with pytest.raises(fa.BudgetExceeded):
        accountant.spend(guarantee)


@pytest.mark.parametrize("name", [n for n in GUARANTEES if n not in ("renyi", "sampled laplace")])
def test_what_fits_is_within_the_budget_when_it_is_composed(name: str) -> None:
    """A list fixed in advance is one way to spend."""
    guarantee = GUARANTEES[name]
    most = min(budget().how_many(guarantee), 200)
    if most > 0:
        assert fa.compose([(guarantee, most)], tolerance=0.05).epsilon_at(1e-6).lower <= 3.0


@pytest.mark.parametrize("name", GUARANTEES)
def test_count_is_that_many_times(name: str) -> None:
    guarantee, one, other = GUARANTEES[name], budget(), budget()
    if one.would_fit(guarantee, 3):
        one.spend(guarantee, 3)
        for _ in range(3):
            other.spend(guarantee)
        assert one.to_json() == other.to_json()


@pytest.mark.parametrize("name", [name for name in GROWING if not name.startswith("subset")])
def test_less_private_is_never_cheaper(name: str) -> None:
    counts = [budget().how_many(GROWING[name](size)) for size in (0.1, 0.2, 0.4, 0.8)]
    assert counts == sorted(counts, reverse=True)


def test_concentrated_budgets_have_their_closed_form() -> None:
    """All of zCDP: the ρ that the tight conversion turns into (ε, 63/64·δ), at the best order."""
    for epsilon, delta in ((3.0, 1e-6), (0.3, 1e-9), (20.0, 1e-3)):
        rho = fa.Accountant(epsilon, delta).remaining.rho
        bound = MomentBound(losses_of([fa.ZeroConcentratedDP(rho)]))
        assert bound.epsilon_at(delta * 63 / 64) == pytest.approx(epsilon, rel=1e-4)
        assert fa.Accountant(epsilon, delta).would_fit(fa.ZeroConcentratedDP(rho))
        assert not fa.Accountant(epsilon, delta).would_fit(fa.ZeroConcentratedDP(rho * 1.0001))


def test_pure_budgets_are_spent_to_the_last_bit() -> None:
    accountant = fa.Accountant(1.0, 0.0)
    accountant.spend(fa.PureDP(0.125), 4)
    assert accountant.remaining == fa.Allowance(rho=0.0, epsilon=0.5, delta=0.0)
    accountant.spend(fa.BoundedRange(0.5))
    assert accountant.spent == 1.0
    with pytest.raises(fa.BudgetExceeded, match="does not fit"):
        accountant.spend(fa.PureDP(5e-324))
    # 0.1 and 0.2 are a little more than a tenth and two: their exact sum is not 0.3
    tenths = fa.Accountant(0.3, 0.0)
    tenths.spend(fa.PureDP(0.1))
    assert tenths.would_fit(fa.PureDP(0.2)) == (Fraction(0.1) + Fraction(0.2) <= Fraction(0.3))


def test_large_pure_items_are_kept_apart() -> None:
    """Basic composition is the order ∞, and costs nothing beside the others."""
    assert fa.Accountant(3.0, 1e-6).how_many(fa.PureDP(1.0)) == 3
    accountant = fa.Accountant(3.0, 1e-6)
    accountant.spend(fa.PureDP(1.0), 2)
    accountant.spend(fa.Gaussian(15.0))  # neither basic composition nor the first order affords it
    assert math.isclose(accountant.order, 8.92, rel_tol=0.01)


def test_a_refusal_says_both_sides_and_changes_nothing() -> None:
    accountant = budget()
    accountant.spend(fa.Gaussian(5.0))
    before = accountant.to_json()
    with pytest.raises(fa.BudgetExceeded, match=r"dp:4\.0 does not fit") as refused:
        accountant.spend(fa.PureDP(4.0), 2)
    assert refused.value.requested == (fa.PureDP(4.0), 2)
    assert refused.value.remaining == accountant.remaining
    with pytest.raises(fa.BudgetExceeded, match="leaks"):
        accountant.spend(fa.ApproximateDP(0.1, 2e-7))
    assert accountant.to_json() == before
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


@given(
    st.lists(st.tuples(st.sampled_from(sorted(GUARANTEES)), st.integers(1, 40)), max_size=30),
    st.floats(0.1, 5.0),
)
def test_it_never_spends_past(purchases: list[tuple[str, int]], epsilon: float) -> None:
    """Refusals are foretold and change nothing; what is said to be left can be spent."""
    accountant = fa.Accountant(epsilon, 1e-5, leaks=1e-6)
    for name, count in purchases:
        fits, remaining = accountant.would_fit(GUARANTEES[name], count), accountant.remaining
        try:
            accountant.spend(GUARANTEES[name], count)
        except fa.BudgetExceeded:
            assert not fits
            assert accountant.remaining == remaining
        else:
            assert fits
            assert accountant.remaining.rho <= remaining.rho
        assert 0 <= accountant.spent <= 1
        assert 0 <= accountant.remaining.delta <= 1e-6
    left = accountant.remaining
    assert left.rho == 0 or accountant.would_fit(fa.ZeroConcentratedDP(left.rho))
    assert accountant.would_fit(fa.PureDP(left.epsilon))


def test_files(tmp_path: Path) -> None:
    accountant = budget()
    accountant.spend(fa.Subsampled(fa.Gaussian(1.0), 0.01), 50)
    accountant.spend(fa.ApproximateDP(0.1, 1e-9), 3)
    path = tmp_path / "budget.json"
    accountant.save(path)
    again = fa.Accountant.load(path)
    assert again.to_json() == accountant.to_json()
    assert again.remaining == accountant.remaining
    assert dict(again.bought) == {"poisson:0.01/gauss:1.0": 50, "adp:0.1,1e-09": 3}
    for change in ({"leaked": "0"}, {"epsilon": 30.0}, {"digest": ""}, {"spent": []}):
        path.write_text(json.dumps({**accountant.to_json(), **change}), encoding="utf-8")
        with pytest.raises(fa.InvalidInput):
            fa.Accountant.load(path)
    for text in ("{", "[]", '{"format": "farthing accountant 1"}'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(fa.InvalidInput):
            fa.Accountant.load(path)
    with pytest.raises(fa.InvalidInput, match="cannot be read"):
        fa.Accountant.load(tmp_path / "none.json")


def test_files_of_version_1_are_read() -> None:
    """They have Rényi orders only, with the same shares of δ."""
    orders = [8.92, *(1 + n * (8.92 - 1) for n in (2, 4, 8, 16)), None]
    body = {
        "format": "farthing accountant 1",
        "epsilon": 3.0,
        "delta": 1e-6,
        "leaks": 0.0,
        "order": 8.92,
        "orders": orders,
        "spent": ["1/2"] * 6,
        "leaked": "0",
        "bought": {"dp:0.5": 1},
    }
    again = fa.Accountant.from_json({**body, "digest": digest(body)})
    assert again.remaining.epsilon == 2.5
    assert again.remaining.variance == 0
    assert again.remaining.rho == pytest.approx(0.184 - 0.5 / 8.92, abs=1e-3)
    assert fa.Accountant.from_json(again.to_json()).to_json() == again.to_json()


def test_what_is_bought_first_decides_how_delta_is_divided() -> None:
    for guarantee, most in ((fa.Gaussian(20.0), 166), (fa.ZeroConcentratedDP(0.001), 184)):
        accountant = fa.Accountant(3.0, 1e-6)
        again = fa.Accountant.from_json(accountant.to_json())
        assert accountant.how_many(guarantee) == again.how_many(guarantee) >= most
        accountant.spend(guarantee)
        assert accountant.how_many(guarantee) == again.how_many(guarantee) - 1


def test_threads_do_not_overspend() -> None:
    accountant = fa.Accountant(1.0, 0.0)

    def take(_: int) -> bool:
        try:
            accountant.spend(fa.PureDP(1 / 64))
        except fa.BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, range(400))) == 64


def test_a_tariff_for_the_same_items_gives_less() -> None:
    accountant = fa.Accountant(1.0, 1e-5, leaks=1e-7, mostly=fa.ZeroConcentratedDP(1.0))
    accountant.spend(fa.BoundedRange(0.1), 12)
    accountant.spend(fa.ApproximateDP(0.1, 1e-8), 2)
    tariff = accountant.as_tariff()
    assert tariff.farthings == 12 + 2 * 4
    assert tariff.delta_units == 2
    assert accountant.tariff_epsilon().upper < 1.0
    accountant.spend(fa.Subsampled(fa.Gaussian(3.0), 0.1))
    assert accountant.as_tariff().items["poisson:0.1/gauss:3.0"][1] == 1
    accountant.spend(fa.TruncatedConcentratedDP(1e-4, 20.0))
    with pytest.raises(fa.Unsupported):
        accountant.as_tariff()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"delta": 1.0}, "delta must be"),
        ({"leaks": 1e-3}, "leaks must be at most delta"),
        ({"mostly": 3.0}, "mostly must be"),
    ],
)
def test_bad_numbers_raise(wrong: dict[str, float], message: str) -> None:
    given = {"epsilon": 1.0, "delta": 1e-6, **wrong}
    with pytest.raises(fa.InvalidInput, match=message):
        fa.Accountant(**given)


def test_what_cannot_be_spent() -> None:
    with pytest.raises(fa.InvalidInput, match="guarantee"):
        budget().spend("dp:0.1")
    with pytest.raises(fa.InvalidInput, match="count"):
        budget().spend(fa.PureDP(0.1), 0)
    with pytest.raises(fa.Unsupported, match="replace-one"):
        budget().spend(fa.SubsampledWithoutReplacement(fa.Gaussian(1.0), 0.1))
    with pytest.raises(fa.Unattainable, match="reveals nothing"):
        budget().how_many(fa.PureDP(0.0))
