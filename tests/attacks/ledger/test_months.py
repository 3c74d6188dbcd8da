"""A month that tells of others: a purse that renews can be refused by the cap.

dp:1 at price 1, cap 10; a first analyst has 10, a second 1 each month. The first asks nine times
and buys a tenth item only if most answers are 1: then the second is refused. That refusal alone has
δ(1) = 0.758, while the statement said ε = 0.9999986 at δ = 1e-6 for the second's month.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import farthing as fa
from farthing.interactive import Exceeds, SparseVector
from farthing.ledger import Dataset, DoesNotFit, Ledger, markdown, odometer, statement
from tests.ledger.conftest import Clock

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


def test_everybody_in_a_month_is_stated_for_what_was_reserved_in_it(ledger: Ledger) -> None:
    (account,) = statement(ledger.reader(), "events", delta=DELTA)["accounts"]
    together = account["everybody_in_one_month"]
    assert together["farthings"] == 10
    assert "in which it was reserved" in together["if"]
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


def excess(differing: int, same: int, epsilon: float) -> float:
    """δ at this ε of the whole view: answers from two datasets, and answers from one."""
    total = 0.0
    for bits in itertools.product((True, False), repeat=differing + same):
        p = math.prod(TRUTH if bit else 1 - TRUTH for bit in bits)
        own = math.prod(1 - TRUTH if bit else TRUTH for bit in bits[:differing])
        others = math.prod(TRUTH if bit else 1 - TRUTH for bit in bits[differing:])
        total += max(0.0, p - math.exp(epsilon) * own * others)
    return total


def test_an_answer_counts_in_the_month_in_which_it_was_reserved(
    tmp_path: Path, clock: Clock
) -> None:
    """Two are reserved on 31 January and told on 1 February, with two more: four in February."""
    tariff = fa.Tariff({"ask": (fa.PureDP(1.0), 1)}, farthings=24)
    with Ledger.open(tmp_path / "late.db", clock=clock) as ledger:
        clock.time = datetime(2026, 1, 31, 23, tzinfo=UTC)
        owner = ledger.owner()
        owner.add(Dataset("events", unit="u", owner="o"))
        owner.sign("events", tariff.certify(tolerance=0.3, deltas=(DELTA,), epsilons=()))
        owner.grant("events", "ann", farthings=2, renewal="monthly")
        ann = ledger.analyst("events", "ann")
        january = [ann.reserve({"ask": 1}) for _ in range(2)]
        clock.time = datetime(2026, 2, 1, 1, tzinfo=UTC)
        february = [ann.reserve({"ask": 1}) for _ in range(2)]
        for held in (*january, *february):
            ann.close(held, "told")
        reader = ledger.reader()
        told = [entry.fact.time[:7] for entry in reader.entries("events", "close")]
        paid = [entry.fact.month for entry in reader.entries("events", "reserve")]
        assert told == ["2026-02"] * 4
        assert paid == ["2026-01"] * 2 + ["2026-02"] * 2
        data = statement(reader, "events", delta=DELTA)
        (account,) = data["accounts"]
        (own,) = account["per_analyst"]
        for row in (account["everybody_in_one_month"], own["in_one_month"]):
            assert excess(4, 0, row["epsilon"]) > 0.2, "not a bound on what is told in February"
            assert excess(2, 2, row["epsilon"]) <= DELTA, "but on what was reserved in it"
            assert "in which it was reserved" in row["if"]
            assert "in which it was opened" in row["if"]
        page = markdown(data)
        assert "reserved in any one month" in page
        assert "reserved in one period" in page


def test_a_conversation_counts_in_the_month_in_which_it_was_opened(
    ledger: Ledger, clock: Clock
) -> None:
    watch = SparseVector.from_epsilon(1.0, positives=1, monotone=True)
    with Ledger.open(ledger.book.store.url.database or "", clock=clock) as later:
        clock.time = datetime(2030, 1, 31, 23, tzinfo=UTC)
        second = later.analyst("events", "second")
        talk = second.open_conversation(watch)
        clock.time = datetime(2030, 2, 1, 1, tzinfo=UTC)
        talk.ask_many([({}, Exceeds(0, 10**6))])
        assert second.remaining().farthings == 1, "February's own is untouched"
        (opened,) = later.reader().entries("events", "open")
        assert opened.fact.month == "2030-01"
