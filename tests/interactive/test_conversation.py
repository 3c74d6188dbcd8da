"""Opening, asking, halting, closing, storing and going on."""

from __future__ import annotations

import json

import pytest

from farthing.canonical import canonical
from farthing.errors import InvalidInput, Unsupported
from farthing.guarantees.kinds import BoundedRange, ConcentratedDP, PureDP, ZeroConcentratedDP
from farthing.interactive import (
    Concurrent,
    Conversation,
    ConversationOver,
    Exceeds,
    Guess,
    GuessAndCheck,
    SparseVector,
    mechanism_from_json,
    mechanism_to_json,
    require_chargeable,
)
from farthing.mechanisms.noise import exact_sampling

WATCH = SparseVector(positives=2, threshold_epsilon=1.0, answer_epsilon=1.0)
CLASSIC = SparseVector(
    positives=3, refresh_after=1, threshold_epsilon=1.0, answer_epsilon=1.0, value_epsilon=0.5
)
GUESS = GuessAndCheck(epsilon=0.5, corrections=2, tolerance=20)
ALL = [WATCH, CLASSIC, GUESS, Concurrent([WATCH, Concurrent([GUESS, CLASSIC])])]

SURE, NEVER = Exceeds(10**6, 0), Exceeds(-(10**6), 0)


def test_negative_answers_are_not_limited_and_positive_ones_are() -> None:
    conversation = Conversation(WATCH)
    assert not any(conversation.ask(NEVER).positive for _ in range(50))
    assert conversation.ask(SURE).positive
    assert not conversation.over
    assert conversation.ask(SURE).positive
    assert conversation.over
    for question in (SURE, NEVER):
        with pytest.raises(ConversationOver):
            conversation.ask(question)
    assert conversation.asked == 52


def test_closing_ends_it() -> None:
    conversation = Conversation(WATCH)
    conversation.close()
    assert conversation.over
    with pytest.raises(ConversationOver):
        conversation.ask(NEVER)


def test_numbers_come_with_positive_answers_only() -> None:
    conversation = Conversation(CLASSIC)
    assert conversation.ask(NEVER).value is None
    assert abs(conversation.ask(SURE).value - 10**6) < 1000
    corrected = Conversation(GUESS).ask(Guess(500_000, 0))
    assert corrected.positive
    assert abs(corrected.value - 500_000) < 1000


def test_a_right_guess_passes_and_costs_nothing() -> None:
    wide = GuessAndCheck(epsilon=0.5, corrections=1, tolerance=10_000)
    conversation = Conversation(wide)
    assert not any(conversation.ask(Guess(7, 9)).positive for _ in range(50))


def test_the_threshold_is_kept_or_refreshed() -> None:
    def thresholds(mechanism: SparseVector) -> list[int]:
        conversation = Conversation(mechanism)
        found = []
        while not conversation.over:
            found.append(conversation.to_json()["state"]["threshold_noise"])
            conversation.ask(SURE)
        return found

    options = {"positives": 6, "threshold_epsilon": 0.001, "answer_epsilon": 1.0}
    assert len(set(thresholds(SparseVector(**options)))) == 1
    assert len(set(thresholds(SparseVector(**options, refresh_after=1)))) == 6
    every_second = thresholds(SparseVector(**options, refresh_after=2))
    assert every_second[0::2] == every_second[1::2]
    assert len(set(every_second)) == 3


def test_parts_are_separate_and_end_separately() -> None:
    conversation = Conversation(Concurrent([WATCH, CLASSIC]))
    before = conversation.to_json()["state"]["parts"][1]
    conversation.ask((0, SURE))
    conversation.ask((0, SURE))
    assert conversation.to_json()["state"]["parts"][1] == before
    with pytest.raises(ConversationOver, match="part 0"):
        conversation.ask((0, NEVER))
    for _ in range(3):
        assert not conversation.over
        conversation.ask((1, SURE))
    assert conversation.over


@pytest.mark.parametrize("index", [2, -1, 0.5])
def test_a_part_that_does_not_exist(index: object) -> None:
    with pytest.raises(InvalidInput):
        Conversation(Concurrent([WATCH, CLASSIC])).ask((index, SURE))


def test_nothing_to_compose() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        Concurrent([])


def test_what_all_parts_cost() -> None:
    nested = ALL[-1]
    assert nested.guarantees == WATCH.guarantees + GUESS.guarantees + CLASSIC.guarantees


def test_a_question_that_fails_changes_nothing() -> None:
    conversation = Conversation(Concurrent([WATCH, CLASSIC]))
    before = conversation.to_json()
    with pytest.raises(InvalidInput):
        conversation.ask((7, SURE))
    assert conversation.to_json() == before


@pytest.mark.parametrize("mechanism", ALL)
def test_every_mechanism_is_sold_as_something_that_composes(mechanism: object) -> None:
    assert require_chargeable(mechanism.guarantees) == mechanism.guarantees


@pytest.mark.parametrize(
    ("guarantee", "instead"),
    [
        (BoundedRange(0.5), "dp:0.5"),
        (ZeroConcentratedDP(0.1, delta=1e-6), "adp:0,1e-06 and zcdp:0.1"),
        (ConcentratedDP(0.1, 0.2), "zcdp"),
    ],
)
def test_conversations_are_not_sold_as_what_no_theorem_covers(
    guarantee: object, instead: str
) -> None:
    class Sold(SparseVector):
        __slots__ = ()

        @property
        def guarantees(self) -> tuple:
            return ((PureDP(1.0), 1), (guarantee, 1))

    mechanism = Sold(positives=1, threshold_epsilon=1.0, answer_epsilon=1.0)
    with pytest.raises(Unsupported, match="cannot be sold") as caught:
        Conversation(mechanism)
    assert instead in str(caught.value)


@pytest.mark.parametrize("mechanism", ALL)
def test_mechanisms_are_plain_data(mechanism: object) -> None:
    stored = json.loads(canonical(mechanism_to_json(mechanism)))
    assert mechanism_from_json(stored) == mechanism


def questions() -> list:
    return [(0, Exceeds(v, 0)) for v in (-3, 1, 2)] + [(1, (0, Guess(v, 10))) for v in (5, 12, 60)]


def test_a_stored_conversation_goes_on_as_if_nothing_had_happened() -> None:
    """Stored after every answer and opened from the text: the same draws, the same answers."""
    mechanism = ALL[-1]
    with exact_sampling._seeded(7):
        straight = Conversation(mechanism)
        wanted = [straight.ask(question) for question in questions()]
    with exact_sampling._seeded(7):
        conversation = Conversation(mechanism)
        found = []
        for question in questions():
            found.append(conversation.ask(question))
            kept = json.loads(canonical(conversation.to_json()))
            described = json.loads(canonical(mechanism_to_json(mechanism)))
            conversation = Conversation.from_json(mechanism_from_json(described), kept)
    assert found == wanted
    assert conversation.to_json() == straight.to_json()


def test_opening_again_draws_nothing(source: exact_sampling.BitSource) -> None:
    kept = Conversation(WATCH).to_json()

    def refuse(_: int) -> bytes:
        raise AssertionError("a random number was drawn")

    source._read = refuse
    again = Conversation.from_json(WATCH, kept)
    assert again.to_json() == kept


@pytest.mark.parametrize(
    "change",
    [
        {"state": {"threshold_noise": 0.5, "positives_left": 1}},
        {"state": {"threshold_noise": 1, "positives_left": 3}},
        {"state": {"threshold_noise": 1, "positives_left": -1}},
        {"state": {"threshold_noise": 1}},
        {"state": None},
        {"asked": -1},
        {"closed": 0},
        {"more": 1},
    ],
)
def test_stored_nonsense_is_refused(change: dict) -> None:
    kept = Conversation(WATCH).to_json()
    with pytest.raises(InvalidInput):
        Conversation.from_json(WATCH, kept | change)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"above": {}},
        {"sparse_vector": {"positives": 1}},
        {"sparse_vector": []},
        {"concurrent": {}},
        {"concurrent": []},
        [],
    ],
)
def test_stored_mechanisms_that_are_none(data: object) -> None:
    with pytest.raises(InvalidInput):
        mechanism_from_json(data)


def test_the_noise_is_not_in_the_text_of_a_conversation() -> None:
    conversation = Conversation(
        SparseVector(positives=1, threshold_epsilon=1e-9, answer_epsilon=1.0)
    )
    noise = conversation.to_json()["state"]["threshold_noise"]
    assert abs(noise) > 10**6
    assert str(abs(noise)) not in repr(conversation)
    assert str(abs(noise)) not in repr(conversation._state)
