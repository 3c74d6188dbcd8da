"""Which items pay for a conversation, who may go on when rows change, and answers in blocks."""

from __future__ import annotations

import numpy as np
import pytest

import farthing as fa
from farthing.errors import InvalidInput, Unsupported
from farthing.interactive import (
    Concurrent,
    Conversation,
    ConversationOver,
    Exceeds,
    GuessAndCheck,
    SparseVector,
    cheapest_items,
    covers_growing_rows,
    require_paid,
)
from farthing.interactive.protocol import Draws, noise_shifted_by
from farthing.mechanisms.noise import exact_sampling

TARIFF = fa.Tariff(
    {
        "tenth": (fa.PureDP(0.1), 2),
        "half": (fa.PureDP(0.5), 9),
        "dear": (fa.PureDP(0.2), 100),
        "select": (fa.BoundedRange(0.5), 1),
        "laplace": (fa.Laplace(0.5), 1),
        "leak": (fa.ApproximateDP(0.0, 1e-9), 1),
    },
    farthings=100,
    delta_units=10,
    delta_unit=1e-9,
)
WATCH = SparseVector.from_epsilon(0.15, positives=3)


class TestItems:
    def test_one_item_for_each_use(self) -> None:
        assert cheapest_items(TARIFF, WATCH.guarantees) == {"half": 1}
        uses = SparseVector.from_epsilon(0.1, positives=3, value_epsilon=0.3).guarantees
        assert cheapest_items(TARIFF, uses) == {"tenth": 1, "half": 3}

    def test_nothing_that_covers_it_is_sold(self) -> None:
        with pytest.raises(InvalidInput, match=r"covers dp:0\.6"):
            cheapest_items(TARIFF, SparseVector.from_epsilon(0.6, positives=1).guarantees)
        with pytest.raises(Unsupported, match="bounded range"):
            cheapest_items(TARIFF, ((fa.BoundedRange(0.1), 1),))

    @pytest.mark.parametrize("items", [{"half": 1}, {"dear": 1}])
    def test_paid(self, items: dict[str, int]) -> None:
        require_paid(TARIFF, items, WATCH.guarantees)

    @pytest.mark.parametrize(
        "items", [{"tenth": 1}, {"tenth": 2}, {"select": 1}, {"laplace": 1}, {"leak": 1}]
    )
    def test_not_paid(self, items: dict[str, int]) -> None:
        with pytest.raises(InvalidInput, match="do not pay"):
            require_paid(TARIFF, items, WATCH.guarantees)

    def test_more_than_is_used(self) -> None:
        with pytest.raises(InvalidInput, match="more items"):
            require_paid(TARIFF, {"half": 2}, WATCH.guarantees)

    def test_the_large_uses_choose_first(self) -> None:
        uses = ((fa.PureDP(0.1), 2), (fa.PureDP(0.5), 1))
        require_paid(TARIFF, {"half": 2, "tenth": 1}, uses)
        require_paid(TARIFF, {"tenth": 1, "half": 2}, uses)
        with pytest.raises(InvalidInput, match="do not pay"):
            require_paid(TARIFF, {"dear": 2, "tenth": 1}, uses)

    def test_guess_and_check_from_what_its_items_cost(self) -> None:
        for checking, correcting in ((0.5, 0.1), (0.1, 0.5), (0.3, 0.1)):
            made = GuessAndCheck.from_epsilons(checking, correcting, corrections=3, tolerance=5)
            (checks, once), (numbers, times) = made.guarantees
            assert (once, times) == (1, 3)
            assert checks.epsilon <= checking
            assert numbers.epsilon <= correcting
            used = max(checks.epsilon / checking, numbers.epsilon / correcting)
            assert used == pytest.approx(1)  # one of the two is used up


class TestManyAtOnce:
    def test_the_same_as_one_by_one(self) -> None:
        sure = SparseVector.from_epsilon(200.0, positives=2, value_epsilon=200.0)
        asked = [Exceeds(v, 100) for v in (0, 500, 0, 700, 900, 0)]
        many, single = Conversation(sure), Conversation(sure)
        told = many.ask_many(asked)
        assert told == [single.ask(one) for one in asked[:4]]
        assert (many.asked, many.over) == (4, True)
        with pytest.raises(ConversationOver):
            many.ask_many(asked)

    def test_a_bad_question_leaves_it_as_it_was(self) -> None:
        held = Conversation(WATCH)
        before = held.to_json()
        with pytest.raises(AttributeError):
            held.ask_many([Exceeds(0, 10**6), "nonsense"])
        assert held.to_json() == before

    def test_numbers_are_used_once_and_have_the_right_law(self) -> None:
        narrow, wide = noise_shifted_by(1.0, 1), noise_shifted_by(0.1, 1)
        with exact_sampling._seeded(7):
            draw = Draws()
            found = [(draw(narrow), draw(wide)) for _ in range(20_000)]
        for column, noise in zip(np.array(found).T, (narrow, wide), strict=True):
            error = 5 * np.sqrt(5.0 * noise.variance**2 / len(found))  # kurtosis of about 6
            assert abs(column.var() - noise.variance) < error
            lag = np.corrcoef(column[:-1], column[1:])[0, 1]
            assert abs(lag) < 5 / np.sqrt(len(found))


def test_whose_guarantee_covers_rows_that_change() -> None:
    guesses = GuessAndCheck(epsilon=0.1, corrections=1, tolerance=3)

    class Other(SparseVector):
        """Not the class that Theorem 6 is about."""

    other = Other(positives=1, threshold_epsilon=1.0, answer_epsilon=1.0)
    assert covers_growing_rows(Concurrent((WATCH, Concurrent((guesses,)))))
    assert not covers_growing_rows(other)
    assert not covers_growing_rows(Concurrent((WATCH, other)))
