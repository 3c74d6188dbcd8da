"""A month that tells of others: a purse that renews can be refused by the cap.

dp:1 at price 1, cap 10; a first analyst has 10, a second 1 each month. The first asks nine times
and buys a tenth item only if most answers are 1: then the second is refused. That refusal alone has
δ(1) = 0.758, while the statement said ε = 0.9999986 at δ = 1e-6 for the second's month.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import farthing as fa
from farthing.ledger import Dataset, DoesNotFit, Ledger, odometer, statement

DELTA = 1e-6
TRUTH = math.e / (1 + math.e)


def open_ledger(path: Path, cap: int) -> Ledger:
    tariff = fa.Tariff({"ask": (fa.PureDP(1.0), 1)}, farthings=cap)
    ledger = Ledger.open(path)
    owner = ledger.owner()
    owner.add(Dataset("events", unit="u", owner="o"))
    owner.sign("events", tariff.certify(tolerance=0.3, deltas=(DELTA,), epsilons=()))
    owner.grant("events", "first", farthings=10)
    owner.grant("events", "second", farthings=1, renewal="monthly")
    return ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "ten.db", 10) as opened:
        yield opened


def is_refused(ledger: Ledger, ones: int) -> bool:
    """Whether the second is refused after the first has seen so many ones in nine answers."""
    first, second = (ledger.analyst("events", name) for name in ("first", "second"))
    for _ in range(9 + (ones > 4)):
        first.reserve({"ask": 1})
    try:
        second.reserve({"ask": 1})
    except DoesNotFit:
        return True
    return False


def refusal_delta(epsilon: float) -> float:
    """The δ that the second's refusal has at this ε, exactly."""

    def most_are_one(chance: float) -> float:
        return sum(
            math.comb(9, ones) * chance**ones * (1 - chance) ** (9 - ones) for ones in range(5, 10)
        )

    return max(0.0, most_are_one(TRUTH) - math.exp(epsilon) * most_are_one(1 - TRUTH))


def month_of_the_second(ledger: Ledger) -> dict[str, Any]:
    (account,) = statement(ledger.reader(), "events", delta=DELTA)["accounts"]
    rows = {row["analyst"]: row for row in account["per_analyst"]}
    month: dict[str, Any] = rows["second"]["in_one_month"]
    return month


@pytest.mark.parametrize("ones", [4, 5])
def test_the_refusal_depends_on_the_answers_of_another(ledger: Ledger, ones: int) -> None:
    assert is_refused(ledger, ones) == (ones > 4)


def test_the_attack_is_as_strong_as_it_was_said() -> None:
    assert refusal_delta(1.0) == pytest.approx(0.758, abs=5e-4)
    assert refusal_delta(0.9999986) > 0.7


def test_what_is_stated_for_a_month_covers_the_refusal(ledger: Ledger) -> None:
    month = month_of_the_second(ledger)
    assert not month["alone"]
    assert refusal_delta(month["epsilon"]) <= DELTA


def test_where_the_cap_cannot_have_refused_a_month_is_one_s_own(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "eleven.db", 11) as ledger:
        month = month_of_the_second(ledger)
        assert month["alone"]
        assert month["epsilon"] <= 1.0
        assert not is_refused(ledger, ones=9)


def test_everybody_in_a_month_is_stated_given_what_came_before(ledger: Ledger) -> None:
    (account,) = statement(ledger.reader(), "events", delta=DELTA)["accounts"]
    together = account["everybody_in_one_month"]
    assert together["farthings"] == 10
    assert "before the month" in together["if"]
    assert refusal_delta(together["epsilon"]) <= DELTA


def test_a_reading_for_one_analyst_says_what_it_rests_on(tmp_path: Path) -> None:
    """An owner who raises one purse because of another's answers tells about them."""
    with Ledger.open(tmp_path / "grants.db") as ledger:
        tariff = fa.Tariff({"ask": (fa.PureDP(1.0), 1)}, farthings=20)
        owner = ledger.owner()
        owner.add(Dataset("events", unit="u", owner="o"))
        owner.sign("events", tariff.certify(tolerance=0.3, deltas=(DELTA,), epsilons=()))
        owner.grant("events", "first", farthings=9)
        owner.grant("events", "second", farthings=1)
        reading = odometer(ledger.reader(), "events", analysts=["second"])
        assert not reading.shared
        assert reading.assuming is not None
        assert "without looking at releases" in reading.assuming
        assert odometer(ledger.reader(), "events").assuming is None
