"""The odometer is valid at a data-dependent time, several accounts compose, and both can fail."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import farthing as fa
from farthing.composition.accounts.account_profiles import (
    FINENESS,
    HALVING,
    AccountProfile,
    epsilon_at_levels,
    epsilon_of,
    level_reached,
    levels,
    list_profile,
    profiles_when_spent,
)
from farthing.composition.adaptive.operators import BoundedRangeChoice
from farthing.composition.adaptive.profiles import operator_of
from farthing.composition.tariffs.tariff import tariff_profiles
from farthing.guarantees.losses import loss_of
from farthing.ledger import Dataset, Ledger, NotInLedger, RegisteredBatch, RegisteredSet, odometer
from farthing.ledger.reports.budget import PLANNED, Lifetimes
from farthing.numerics.curves import Grid, Supports

EPSILON, CAP, DELTA = 0.2, 40, 1e-3


def test_levels_end_at_the_cap_and_never_exceed_it() -> None:
    assert levels(16, 16) == tuple(range(1, 17))
    assert levels(5, 16) == (1, 2, 3, 4, 5)
    assert levels(100, 16)[-1] == 100
    assert len(levels(1000, 16)) == 16


def test_levels_that_halve_are_close_to_what_is_spent_everywhere() -> None:
    assert levels(1, HALVING) == (1,)
    assert levels(8, HALVING) == (1, 2, 3, 4, 6, 8)
    steps = levels(1000, HALVING)
    assert steps[-5:] == (250, 354, 500, 708, 1000)
    assert steps[:4] == (2, 3, 4, 6)
    for spent in range(steps[0], 1001):
        assert spent <= level_reached(steps, spent) <= math.ceil(math.sqrt(2) * spent)


def worst_excess(epsilon_at: Callable[[int], float]) -> float:
    """The smallest δ for which these readings hold, for the worst analyst there is.

    The analyst buys randomized responses one by one and stops when the answers please them.
    Stopping with a view of probabilities p, q costs [p − e^{ε(spent)} q]₊; backward induction over
    how many answers there are and how many of them were "yes" gives the largest sum.
    """
    truth = 1 / (1 + math.exp(-EPSILON))

    def stop(n: int, yes: int) -> float:
        p = truth**yes * (1 - truth) ** (n - yes)
        q = (1 - truth) ** yes * truth ** (n - yes)
        return max(0.0, p - math.exp(epsilon_at(n)) * q)

    value = [stop(CAP, yes) for yes in range(CAP + 1)]
    for n in reversed(range(CAP)):
        value = [max(stop(n, yes), value[yes] + value[yes + 1]) for yes in range(n + 1)]
    return value[0]


@pytest.mark.parametrize("spaced", [16, HALVING])
def test_the_reading_holds_whenever_the_analyst_stops(spaced: int | str) -> None:
    tariff = fa.Tariff({"ask": (fa.PureDP(EPSILON), 1)}, farthings=CAP)
    steps = levels(CAP, spaced)
    parts = profiles_when_spent(tariff, frozenset(range(CAP + 1)), DELTA / 16)
    cases = len(steps) + 1
    read = {n: epsilon_at_levels([parts[n]], [parts[CAP]], cases, DELTA) for n in steps}
    assert read[steps[0]] < read[steps[2]] < read[CAP]

    def reading(n: int, pure: float) -> float:
        return min(read[level_reached(steps, n)], n * pure) if n else 0.0

    assert worst_excess(lambda n: reading(n, math.inf)) <= DELTA
    assert worst_excess(lambda n: reading(n, EPSILON)) <= DELTA
    assert any(reading(n, EPSILON) < 0.9 * reading(n, math.inf) for n in range(1, 9))
    # a sum of less than the pure epsilons that were bought is not a guarantee
    assert worst_excess(lambda n: reading(n, 0.9 * EPSILON)) > 3 * DELTA

    # the profile of what happens to be spent, at the whole δ, is not a guarantee
    naive = {n: epsilon_of([parts[n]], DELTA) for n in range(CAP + 1)}
    assert worst_excess(lambda n: naive[n]) > 3 * DELTA


def test_accounts_compose_however_they_are_interleaved() -> None:
    """Two accounts, the next step chosen from either: never above the blocks' composition."""
    tariff = fa.Tariff({"a": (fa.BoundedRange(0.8), 1), "b": (fa.PureDP(0.3), 1)}, farthings=3)
    listed = RegisteredSet({"s": (fa.BoundedRange(0.5), 2), "l": (fa.Laplace(0.4), 1)})
    grid = Grid(0.01, 500, 500)
    of_tariff = [operator_of(loss_of(g), grid, 1e-6) for g, _ in tariff.items.values()]
    selection, laplace = BoundedRangeChoice(0.5), operator_of(loss_of(fa.Laplace(0.4)), grid, 1e-6)
    table: dict[tuple[int, int, int], Supports] = {}
    for b, s, n in itertools.product(range(4), range(3), range(2)):
        best = Supports.of_nothing(grid)
        if b > 0:
            for operator in of_tariff:
                best = best.larger(operator.below(table[b - 1, s, n]))
        if s > 0:
            best = best.larger(selection.below(table[b, s - 1, n]))
        if n > 0:
            best = best.larger(laplace.below(table[b, s, n - 1]))
        table[b, s, n] = best
    parts = [
        profiles_when_spent(tariff, frozenset({3}), 1e-4)[3],
        list_profile(listed.items, listed.adaptivity, 1e-4),
    ]
    interleaved = table[3, 2, 1]
    for delta in (1e-4, 1e-3, 1e-2, 0.1):
        together = epsilon_of(parts, delta)
        assert interleaved.last_above(delta) <= together
        assert together < sum(epsilon_of([part], delta / 2) for part in parts)
    # the test can fail: without the list the tariff alone is exceeded
    assert interleaved.last_above(1e-3) > epsilon_of(parts[:1], 1e-3)


def test_leaks_are_taken_off_once() -> None:
    part = AccountProfile(None, 1e-7)
    assert epsilon_of([part, part], 1e-6) == 0.0
    with pytest.raises(fa.Unattainable):
        epsilon_of([part, part], 2e-7)


@pytest.mark.slow
def test_readings_grow_with_spending_and_stay_below_the_cap(ledger: Ledger) -> None:
    assert odometer(ledger.reader(), "events").epsilon == 0.0
    ledger.owner().grant("events", "ann", farthings=400)
    readings = []
    for _ in range(5):
        ledger.analyst("events", "ann").reserve({"select": 100})
        readings.append(odometer(ledger.reader(), "events"))
    values = [reading.epsilon for reading in readings]
    assert values == sorted(values)
    assert [reading.level for reading in readings] == [125, 250, 354, 500, 500]
    assert values[0] < 0.6 * values[-1]
    part = profiles_when_spent(ledger.reader().tariff("events", 1), frozenset({500}), 1e-6)[500]
    assert epsilon_of([part], 1e-6) <= values[-1] <= 1.05 * epsilon_of([part], 1e-6)


def test_coalitions(ledger: Ledger) -> None:
    ledger.owner().grant("events", "bob", farthings=200)
    ledger.analyst("events", "ann").reserve({"select": 60})
    ledger.analyst("events", "bob").reserve({"select": 120})
    alone = {who: odometer(ledger.reader(), "events", analysts=[who]) for who in ("ann", "bob")}
    both = odometer(ledger.reader(), "events", analysts=["ann", "bob"])
    everybody = odometer(ledger.reader(), "events")
    assert not alone["ann"].shared
    assert alone["ann"].epsilon < alone["bob"].epsilon < both.epsilon
    assert both.epsilon < everybody.epsilon, "of which 300 farthings are granted, not 500"
    assert (alone["ann"].farthings_spent, both.farthings_spent) == (60, 180)
    with pytest.raises(NotInLedger):
        odometer(ledger.reader(), "events", analysts=["eve"])


def test_where_the_cap_can_refuse_an_analyst_the_spending_of_others_counts(ledger: Ledger) -> None:
    ledger.owner().grant("events", "bob", farthings=401)  # 501 promised, 500 there
    ledger.analyst("events", "bob").reserve({"select": 400})
    reading = odometer(ledger.reader(), "events", analysts=["ann"])
    assert reading.shared
    assert reading.farthings_spent == 400
    assert reading.epsilon == odometer(ledger.reader(), "events").epsilon


def test_a_purse_that_renews_makes_the_cap_reachable(ledger: Ledger) -> None:
    ledger.owner().grant("events", "may", farthings=1, renewal="monthly")
    assert odometer(ledger.reader(), "events", analysts=["ann"]).shared


def test_retired_tariffs_and_lists_count(ledger: Ledger, certificate: fa.Certificate) -> None:
    ledger.analyst("events", "ann").reserve({"select": 50})
    one = odometer(ledger.reader(), "events").epsilon
    ledger.owner().sign("events", certificate, name="second")
    ledger.owner().grant("events", "bob", farthings=100)
    after_signing = odometer(ledger.reader(), "events").epsilon
    assert one <= after_signing < 1.3 * one  # only the share of δ is smaller
    ledger.analyst("events", "bob").reserve({"select": 50})
    two = odometer(ledger.reader(), "events")
    assert after_signing < two.epsilon < 2 * after_signing
    assert two.cap == 1000
    ledger.owner().register(
        "events", "list", RegisteredBatch({"q": [(fa.Laplace(0.5), 4)]}), analyst="bob"
    )
    unused = odometer(ledger.reader(), "events").epsilon
    ledger.analyst("events", "bob").reserve_list("list")
    assert odometer(ledger.reader(), "events").epsilon > 1.2 * unused
    assert odometer(ledger.reader(), "events", analysts=["ann"]).epsilon < two.epsilon


def test_bad_deltas(ledger: Ledger) -> None:
    for delta in (0.0, 1.0, math.nan, -1e-6):
        with pytest.raises(fa.InvalidInput):
            odometer(ledger.reader(), "events", delta=delta)
    ledger.analyst("events", "ann").reserve({"select": 1})
    with pytest.raises(fa.Unattainable, match="delta units"):
        odometer(ledger.reader(), "events", delta=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "farthings"), [(0.1, 1000), (0.2, 400), (0.5, 200), (1.0, 100)]
)
def test_two_ordinary_tariffs_compose(epsilon: float, farthings: int) -> None:
    """Between the lower bound of one tariff with all the farthings and the sum of the two."""

    def tariff(b: int) -> fa.Tariff:
        return fa.Tariff({"select": (fa.BoundedRange(epsilon), 1)}, farthings=b)

    part = profiles_when_spent(tariff(farthings), frozenset({farthings}), DELTA)[farthings]
    together = epsilon_of([part, part], DELTA)
    *_, last = tariff_profiles(tariff(2 * farthings), FINENESS, DELTA)
    assert last.lower.last_above(DELTA) <= together < 2 * epsilon_of([part], DELTA / 2)
    assert together <= 1.05 * last.lower.last_above(DELTA)


def test_a_reading_over_two_strong_tariffs(target: str) -> None:
    tariff = fa.Tariff({"select": (fa.BoundedRange(1.0), 1)}, farthings=50)
    certificate = tariff.certify(tolerance=0.3, deltas=(1e-6,), epsilons=(1.0,))
    with Ledger.open(target) as ledger:
        ledger.owner().add(Dataset("events", unit="u", owner="o"))
        for name in ("first", "second"):
            ledger.owner().sign("events", certificate, name=name)
            ledger.owner().grant("events", "ann", farthings=50)
            ledger.analyst("events", "ann").reserve({"select": 25})
        assert odometer(ledger.reader(), "events").epsilon < 50


def test_a_reading_over_several_accounts_or_for_a_coalition_says_what_it_assumes(
    ledger: Ledger, certificate: fa.Certificate
) -> None:
    assert odometer(ledger.reader(), "events").assuming is None
    assert odometer(ledger.reader(), "events", analysts=["ann"]).assuming == PLANNED
    ledger.owner().sign("events", certificate, name="second")
    reading = odometer(ledger.reader(), "events")
    assert reading.assuming == PLANNED
    assert reading.to_json()["assuming"] == PLANNED


@pytest.fixture
def counts(tmp_path: Path) -> Iterator[Ledger]:
    """Counts of 0.1-DP, selections of 0.1 and Gaussian counts, all granted to one analyst."""
    sold = {
        "select": (fa.BoundedRange(0.1), 1),
        "count": (fa.PureDP(0.1), 4),
        "gauss": (fa.Gaussian(10.0), 4),
        "leak": (fa.ApproximateDP(0.0, 1e-9), 1),
    }
    tariff = fa.Tariff(sold, 160, delta_units=100, delta_unit=1e-9)
    with Ledger.open(tmp_path / "counts.db") as ledger:
        ledger.owner().begin(
            Dataset("events", unit="u", owner="o"),
            tariff.certify(tolerance=0.05, deltas=(1e-6,)),
            analyst="ann",
            farthings=160,
        )
        yield ledger


def test_pure_items_read_no_more_than_their_sum(counts: Ledger) -> None:
    reader, ann = counts.reader(), counts.analyst("events", "ann")
    ann.reserve({"count": 1})
    assert odometer(reader, "events").epsilon == 0.1
    ann.reserve({"count": 8})
    draws = ann.reserve({"select": 3, "leak": 1})
    assert odometer(reader, "events").epsilon == pytest.approx(1.2, abs=1e-12)
    ann.close(draws, "0" * 64, used={"select": 1, "leak": 1})
    ten = odometer(reader, "events").epsilon
    assert ten == pytest.approx(1.0, abs=1e-12)
    assert ten >= 10 * Fraction(0.1), "in exact numbers too"
    assert odometer(reader, "events", analysts=["ann"]).epsilon == ten
    ann.reserve({"gauss": 1})  # which has no pure epsilon: the level alone
    assert odometer(reader, "events").epsilon > 1.2


def test_so_far_is_never_above_ever(counts: Ledger) -> None:
    reader, ann = counts.reader(), counts.analyst("events", "ann")
    ever = Lifetimes(reader, "events", 1e-6)
    for _ in range(8):
        ann.reserve({"gauss": 5})
        so_far = odometer(reader, "events").epsilon
        assert so_far <= ever.whole()[0]["epsilon"]
        assert odometer(reader, "events", analysts=["ann"]).epsilon <= ever.together(["ann"])
    assert so_far == ever.whole()[0]["epsilon"], "when everything is spent, it is that"
