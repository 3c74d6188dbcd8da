"""What a price means: a share of the budget, and a reading that is never too small."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import farthing as fa
from farthing.composition.accounts.account_profiles import (
    HALVING,
    epsilon_at_levels,
    level_reached,
    levels,
    profiles_when_spent,
    reading_by_moments,
    stated_delta,
)
from farthing.engine.answer import Spending
from farthing.ledger import Ledger, odometer

ROWS = pa.table({"member": [1, 2, 3, 4], "k": ["a", "b", "a", "b"]})
SOLD = {
    "select": (fa.BoundedRange(0.1), 1),
    "count": (fa.Gaussian(10.0), 4),
    "leak": (fa.ApproximateDP(0.0, 1e-9), 1),
}


@pytest.fixture(scope="module")
def signed() -> fa.Certificate:
    tariff = fa.Tariff(SOLD, 100, delta_units=100, delta_unit=1e-9)
    return tariff.certify(tolerance=0.02, deltas=(1e-6,))


def test_a_quick_reading_is_an_upper_bound_and_close(signed: fa.Certificate) -> None:
    """Against the odometer's own levels, with the same shares of δ."""
    steps = levels(100, HALVING)
    parts = profiles_when_spent(signed.tariff, frozenset(steps), 1e-6)
    for spent in (1, 5, 20, 50, 80, 100):
        quick = reading_by_moments(signed, spent, 1e-6)
        slow = epsilon_at_levels(
            [parts[level_reached(steps, spent)]], [parts[100]], len(steps) + 1, 1e-6
        )
        assert quick is not None
        assert slow * (1 - 5e-3) <= quick, spent
        assert quick <= 1.25 * slow or spent < 20, spent
    assert reading_by_moments(signed, 0, 1e-6) == 0.0
    ever = signed.epsilon_at(0.99e-6)
    assert reading_by_moments(signed, 100, 1e-6) == ever


def test_items_that_are_pure_read_their_largest_sum() -> None:
    pure = fa.Tariff({"count": (fa.PureDP(0.1), 4), "select": (fa.BoundedRange(0.1), 4)}, 40)
    signed = pure.certify(tolerance=0.1, deltas=(1e-6,))
    assert reading_by_moments(signed, 4, 1e-6) == pytest.approx(0.1)
    assert reading_by_moments(signed, 40, 1e-6) <= 1.0 + 1e-9


def test_which_delta_is_stated(signed: fa.Certificate) -> None:
    assert stated_delta(signed) == 1e-6
    usual = fa.Tariff({"count": (fa.PureDP(0.1), 1)}, 3).certify(tolerance=0.2)
    assert stated_delta(usual) == 1e-6
    assert stated_delta(fa.Tariff(SOLD, 3).certify(tolerance=0.2, deltas=(1e-4,))) == 1e-4


def opened(tmp_path: Any, signed: fa.Certificate, farthings: int = 100) -> fa.Session:
    return fa.open(
        ROWS,
        dataset="events",
        unit="member",
        ledger=tmp_path / "budget.db",
        tariff=signed,
        farthings=farthings,
    )


def test_every_price_is_shown_three_ways(tmp_path: Any, signed: fa.Certificate) -> None:
    with opened(tmp_path, signed) as data:
        plan = data.count().plan()
        assert plan.spending.share == 0.04
        assert plan.spending.epsilon_before == 0.0
        assert "4 farthings, 4% of the budget" in str(plan)
        assert "ε ≤ 0, afterwards ε ≤ 0." in str(plan)
        assert plan.to_json()["spending"] == plan.spending.to_json()
        planned = plan.spending
        answer = plan.run()
        assert answer.spending == planned
        assert "4% of the budget" in answer.paid
        assert "everything so far within ε = 0." in answer.paid
        again = data.count().run()
        assert again.cached
        assert again.spending is None
        both = data.batch({"a": data.count(repeats=2), "b": data.count(repeats=3)})
        assert both.plan().spending.share == 0.2
        answers = both.run()
        assert answers["a"].spending.epsilon_before == answer.spending.epsilon_after
        shares = [one.spending.share for one in answers.values()]
        assert shares == pytest.approx([0.08, 0.12])


def test_what_a_guess_from_one_answer_is_worth(
    tmp_path: Any, signed: fa.Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Computed when somebody looks, from what is bought; no run waits for it."""
    with opened(tmp_path, signed) as data:
        plan = data.count().plan()
        ((name, times),) = plan.items.items()
        alone = fa.compose([(signed.tariff.items[name][0], times)]).delta_at(0.0)
        assert (1 + alone.lower) / 2 <= plan.guess() <= (1 + 1.1 * alone.upper) / 2
        assert "from even odds whether one member is there: right at most" in str(plan)
        assert plan.to_json()["guess"] == plan.guess()
        with monkeypatch.context() as patched:
            patched.setattr("farthing.composition.accounts.account_profiles.compose", lambda: 1 / 0)
            data.count().run()
        assert data.count().plan().guess() is None  # nothing is bought again


def test_what_is_shown_is_no_less_than_the_odometer(tmp_path: Any, signed: fa.Certificate) -> None:
    with opened(tmp_path, signed) as data, Ledger.open(tmp_path / "budget.db") as ledger:
        for repeats in (1, 3, 6):
            shown = data.count(repeats=repeats).run().spending
            assert shown is not None
            assert shown.epsilon_after >= odometer(ledger.reader(), "events").epsilon * (1 - 5e-3)


def test_nothing_is_said_that_depends_on_others(tmp_path: Any, signed: fa.Certificate) -> None:
    """Purses of which the cap can refuse one."""
    with opened(tmp_path, signed, 60) as data, fa.Desk.open(tmp_path / "budget.db") as desk:
        assert data.count().plan().spending.epsilon_after is not None
        desk.grant("events", "bob", farthings=40)
        assert data.count().plan().spending.epsilon_after is not None
        desk.grant("events", "eve", farthings=0, delta_units=1)  # which the cap has no more of
        nothing = {"share": 0.04, "epsilon_before": None, "epsilon_after": None, "delta": None}
        assert data.count().plan().spending == Spending.from_json(nothing)
        assert "so far" not in str(data.count().plan())
        assert "everything so far" not in data.count().run().paid


def test_a_list_of_somebody_else_tells_this_analyst_nothing(
    tmp_path: Any, signed: fa.Certificate
) -> None:
    with opened(tmp_path, signed, 60) as data, fa.Desk.open(tmp_path / "budget.db") as desk:
        desk.grant("events", "bob", farthings=40)
        before = data.count().plan().spending
        assert before.epsilon_after is not None
        desk.register("events", "weekly", {"n": {"kind": "count"}}, analyst="bob")
        assert data.count().plan().spending == before
        desk.register("events", "own", {"n": {"kind": "count"}}, analyst="analyst")
        assert data.count().plan().spending.epsilon_after is None
        desk.sign("events", signed, name="second")
        desk.grant("events", "analyst", farthings=60)
        assert data.count().plan().spending.epsilon_after is None


def test_no_run_waits_for_what_its_price_proves(
    tmp_path: Any, signed: fa.Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, signed) as data:
        with monkeypatch.context() as patched:
            patched.setattr("farthing.engine.answer.reading_by_moments", lambda *_: 1 / 0)
            answer = data.count().run()
            with pytest.raises(ZeroDivisionError):
                _ = answer.spending.epsilon_after
        assert answer.spending.epsilon_before == 0.0
        assert answer.spending.epsilon_after > 0
