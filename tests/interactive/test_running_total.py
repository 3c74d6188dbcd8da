"""A running total that is told often and paid for once."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

import farthing as fa
from farthing.canonical import canonical
from farthing.errors import InvalidInput
from farthing.interactive import (
    Concurrent,
    Conversation,
    ConversationOver,
    RunningTotal,
    Update,
    covers_growing_rows,
    mechanism_from_json,
    mechanism_to_json,
    seal,
    unseal,
)
from farthing.interactive.running_total import BITS, MOST_UPDATES, TotalState
from farthing.interactive.stored import SealedState
from farthing.ledger import Dataset, Ledger, statement, verify
from farthing.mechanisms.noise.exact_sampling import system_bits

FAIRLY = {"noise_multiplier": 2.0}


def matrix(horizon: int) -> np.ndarray:
    """The square root of running sums in whole steps, from its definition."""
    column = [round(Fraction(math.comb(2 * k, k), 4**k) * 2**BITS) for k in range(horizon)]
    return np.array(
        [[column[i - j] if i >= j else 0 for j in range(horizon)] for i in range(horizon)],
        dtype=object,
    )


def driven(
    mechanism: RunningTotal, totals: Sequence[int], noise: Sequence[int]
) -> tuple[list[int], TotalState]:
    """What is told of these totals with this noise, and the last state."""
    state, told = TotalState(((),), ((),)), []
    for total, drawn in zip(totals, noise, strict=True):
        drawing = mechanism.reply(state, Update(total))
        next(drawing)
        with pytest.raises(StopIteration) as done:
            drawing.send(drawn)
        verdict, state = done.value.value
        told.append(verdict.value)
    return told, state


def test_without_noise_it_is_the_total() -> None:
    draw = random.Random(1)
    totals = [draw.randrange(-(10**18), 10**18) for _ in range(60)]
    assert driven(RunningTotal(horizon=60, **FAIRLY), totals, [0] * 60)[0] == totals


def test_what_is_kept_is_the_matrix_times_what_was_added() -> None:
    draw = random.Random(2)
    added = [draw.randrange(-50, 50) for _ in range(40)]
    noise = [draw.randrange(-(10**6), 10**6) for _ in range(40)]
    totals = np.cumsum(added).tolist()
    _, state = driven(RunningTotal(horizon=40, **FAIRLY), totals, noise)
    expected = matrix(40) @ np.array(added, dtype=object) + np.array(noise, dtype=object)
    assert list(state.kept[0]) == list(expected)


def test_what_is_told_is_a_function_of_what_is_kept() -> None:
    """Other data with the noise that makes up for it: every answer is the same, to the last bit."""
    draw, mechanism = random.Random(3), RunningTotal(horizon=30, **FAIRLY)
    for _ in range(20):
        one, other = ([draw.randrange(-99, 99) for _ in range(30)] for _ in range(2))
        noise = [draw.randrange(-(10**7), 10**7) for _ in range(30)]
        moved = matrix(30) @ (np.array(one, dtype=object) - np.array(other, dtype=object))
        instead = [int(z + shift) for z, shift in zip(noise, moved, strict=True)]
        first = driven(mechanism, np.cumsum(one).tolist(), noise)
        second = driven(mechanism, np.cumsum(other).tolist(), instead)
        assert first[0] == second[0]
        assert first[1].kept == second[1].kept


@pytest.mark.parametrize("horizon", [1, 2, 5])
@pytest.mark.parametrize("items", [1, 3])
def test_the_noise_is_enough_for_every_unit_and_not_more(horizon: int, items: int) -> None:
    """Every way in which a unit may change the total, in whole numbers."""
    whole = matrix(horizon)

    def worst(changes: Sequence[tuple[int, ...]]) -> int:
        return max(int(((whole @ np.array(one, dtype=object)) ** 2).sum()) for one in changes)

    every = list(product(range(-2, 3), repeat=horizon))
    in_all = worst([one for one in every if sum(map(abs, one)) <= 2])
    twice = worst([one for one in every if sum(map(bool, one)) <= 2])
    for times, square in ((None, in_all), (2, twice)):
        mechanism = RunningTotal(
            horizon=horizon, noise_multiplier=1.5, items=items, sensitivity=2, times=times
        )
        needed = Fraction(1.5) ** 2 * square / items
        assert needed <= mechanism.noise.deviation**2 <= needed * (1 + Fraction(1, 10**12))
        assert mechanism.guarantees == ((fa.Gaussian(1.5), items),)


def test_a_unit_that_comes_and_goes_would_need_more() -> None:
    """Rows that go and come again are not covered by a limit on the rows that count."""
    mechanism = RunningTotal(horizon=6, **FAIRLY)
    back_and_forth = [1, -1, 1, -1, 1, -1]
    change = matrix(6) @ np.array(back_and_forth, dtype=object)
    assert int((change**2).sum()) * 4 > 1.5 * mechanism.noise.deviation**2


@pytest.mark.parametrize("window", [None, 1, 7])
def test_widths_are_those_of_the_inverse(window: int | None) -> None:
    horizon = 25
    mechanism = RunningTotal(horizon=horizon, noise_multiplier=3.0, sensitivity=5)
    sums = np.tril(np.ones((horizon, horizon)))
    if window is not None:
        sums -= np.tril(np.ones((horizon, horizon)), -window)
    weights = sums @ np.linalg.inv(matrix(horizon).astype(np.float64))
    deviations = np.linalg.norm(weights, axis=1) * float(mechanism.noise.deviation)
    rounded = [0.5 if window is None or t < window else 1.0 for t in range(horizon)]
    alone = mechanism.half_widths(window=window)
    assert alone == pytest.approx(1.959964 * deviations + rounded, rel=1e-4)
    assert (alone >= 1.959963 * deviations + rounded).all()
    together = mechanism.half_widths(window=window, together=horizon)
    assert together == pytest.approx(3.090232 * deviations + rounded, rel=1e-4)


def test_errors_are_as_stated_and_not_larger_by_a_third() -> None:
    """4000 courses of 8 updates: a deviation off by 12 % happens less often than once in 10⁷."""
    mechanism = RunningTotal(horizon=8, **FAIRLY)
    noise = mechanism.noise.draw(32_000, system_bits()).reshape(4000, 8)
    told = [driven(mechanism, [10] * 8, row)[0][-1] for row in noise.tolist()]
    errors = np.array(told) - 10
    stated = (mechanism.half_widths(confidence=0.95)[-1] - 0.5) / 1.959964
    assert 0.88 < errors.std() / stated < 1.12
    assert abs(errors.mean()) < 6 * stated / math.sqrt(4000)


def test_error_grows_slowly() -> None:
    """365 updates: three times the error of one, where a budget for each day has nineteen times."""
    widths = RunningTotal(horizon=365, noise_multiplier=20.0).half_widths()
    alone = RunningTotal(horizon=1, noise_multiplier=20.0).half_widths()
    assert widths[-1] / alone[-1] < 3.0


def test_it_ends_with_its_horizon() -> None:
    conversation = Conversation(RunningTotal(horizon=2, **FAIRLY))
    assert conversation.ask(Update(5)).positive
    assert [type(answer.value) for answer in conversation.ask_many([Update(6), Update(7)])] == [int]
    with pytest.raises(ConversationOver):
        conversation.ask(Update(8))


def test_series_share_one_price() -> None:
    """A unit is in one label or in several: what it changes in all of them together is limited."""
    horizon, labels = 3, 2
    mechanism = RunningTotal(horizon=horizon, noise_multiplier=1.0, sensitivity=2, series=labels)
    whole, worst = matrix(horizon), 0
    for change in product(range(-2, 3), repeat=horizon * labels):
        if sum(map(abs, change)) <= 2:
            halves = np.array(change, dtype=object).reshape(labels, horizon)
            worst = max(worst, sum(int(((whole @ half) ** 2).sum()) for half in halves))
    assert worst <= mechanism.noise.deviation**2 <= worst * (1 + Fraction(1, 10**12))
    alone = RunningTotal(horizon=horizon, noise_multiplier=1.0, sensitivity=2)
    assert mechanism.guarantees == alone.guarantees


def test_each_series_has_its_own_updates() -> None:
    conversation = Conversation(RunningTotal(horizon=2, noise_multiplier=1e-3, series=3))
    told = conversation.ask_many(
        [Update(10), Update(20, 1), Update(11), Update(30, 2), Update(22, 1), Update(33, 2)]
    )
    assert [answer.value for answer in told] == [10, 20, 11, 30, 22, 33]  # hardly any noise
    assert conversation.over
    again = Conversation(RunningTotal(horizon=1, series=2, **FAIRLY))
    again.ask(Update(1))
    before = again.to_json()
    for wrong, error in ((Update(1), ConversationOver), (Update(1, 2), InvalidInput)):
        with pytest.raises(error):
            again.ask(wrong)
    assert again.to_json() == before


def test_it_is_sealed_and_comes_back() -> None:
    mechanism = RunningTotal(horizon=9, sensitivity=3, items=2, times=4, **FAIRLY)
    both = Conversation(Concurrent([mechanism, mechanism]))
    both.ask_many([(0, Update(4)), (1, Update(10**30)), (0, Update(5))])
    sealed = seal(both)
    text = json.loads(canonical(sealed.secret))
    again = unseal(SealedState(text, sealed.commitment))
    assert again.to_json() == both.to_json()
    assert again.mechanism == both.mechanism
    assert mechanism_from_json(json.loads(canonical(mechanism_to_json(mechanism)))) == mechanism
    assert covers_growing_rows(both.mechanism)
    assert "30" not in repr(again)


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"totals": [[]], "kept": [[]], "more": 1},
        {"totals": [], "kept": []},
        {"totals": [[], []], "kept": [[], []]},
        {"totals": [[1]], "kept": [[]]},
        {"totals": [[1, 2, 3]], "kept": [[1, 2, 3]]},
        {"totals": [[1.0]], "kept": [[1]]},
        {"totals": [["1"]], "kept": [[1]]},
        {"totals": [[True]], "kept": [[1]]},
        {"totals": ["1"], "kept": [[1]]},
        {"totals": {"0": [1]}, "kept": [[1]]},
        {"totals": None, "kept": None},
        [],
    ],
)
def test_a_state_that_is_none(stored: object) -> None:
    with pytest.raises(InvalidInput):
        RunningTotal(horizon=2, **FAIRLY).state_from_json(stored)


@pytest.mark.parametrize(
    "wrong",
    [
        {"horizon": 0},
        {"horizon": MOST_UPDATES + 1},
        {"horizon": 2.5},
        {"items": 0},
        {"sensitivity": 0},
        {"sensitivity": 1 << 60},
        {"series": 0},
        {"series": 1 << 15},
        {"times": 0},
        {"noise_multiplier": 0.0},
        {"noise_multiplier": math.nan},
        {"noise_multiplier": 1e300},
    ],
)
def test_bad_numbers_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        RunningTotal(**{"horizon": 4, **FAIRLY, **wrong})


def test_an_update_is_a_whole_number_that_is_not_shown() -> None:
    assert "7" not in repr(Update(7))
    for wrong in (1.5, True, "1", None):
        with pytest.raises(InvalidInput):
            Update(wrong)
    with pytest.raises(InvalidInput):
        Update(1, -1)


def test_sets_of_updates_match_the_definition() -> None:
    """`times` counts updates, whichever they are."""
    horizon, times = 6, 3
    whole = matrix(horizon)
    square = max(
        int((whole[:, list(steps)].sum(axis=1) ** 2).sum())
        for steps in combinations(range(horizon), times)
    )
    mechanism = RunningTotal(horizon=horizon, noise_multiplier=1.0, times=times)
    assert mechanism.noise.deviation**2 >= square


def test_in_the_book(tmp_path: Path) -> None:
    """Charged once with Gaussian items, found again, over after its horizon, and verified."""
    tariff = fa.Tariff({"count": (fa.Gaussian(5.0), 2), "dp": (fa.PureDP(0.1), 1)}, farthings=20)
    certificate = tariff.certify(tolerance=0.9, deltas=(1e-3,), epsilons=(1.0,))
    mechanism = RunningTotal(horizon=3, noise_multiplier=5.0, items=4)
    with Ledger.open(tmp_path / "book.db") as ledger:
        owner = ledger.owner()
        owner.add(Dataset("visits", unit="member", owner="team", version="1"))
        owner.sign("visits", certificate)
        owner.grant("visits", "ann", farthings=15)
        ann = ledger.analyst("visits", "ann")
        with pytest.raises(InvalidInput, match="covers"):
            ann.open_conversation(RunningTotal(horizon=3, noise_multiplier=4.9))
        held = ann.open_conversation(mechanism)
        assert ann.remaining().farthings == 15 - 4 * 2
        first = held.ask({"day": 1}, Update(100))
        again = ann.conversation(held.id)
        rest = again.ask_many([({"day": 2}, Update(130)), ({"day": 3}, Update(170))])
        with pytest.raises(ConversationOver):
            again.ask({"day": 4}, Update(180))
        assert [said.told for said in again.transcript()] == [first, *rest]
        widths = mechanism.half_widths(confidence=1 - 1e-9, together=3)
        for told, truth, width in zip([first, *rest], (100, 130, 170), widths, strict=True):
            assert told.value is not None
            assert abs(told.value - truth) <= width
        verify(ledger.reader())
        said = statement(ledger.reader(), "visits", delta=1e-3)
        assert "do not go and come again" in said["growing_rows"]["says"]
