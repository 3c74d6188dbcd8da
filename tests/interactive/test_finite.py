"""Finite systems: what they are, and that running several at once is one of them."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from farthing.errors import InvalidInput
from farthing.interactive import Concurrent, Exceeds, SparseVector
from tests.interactive.finite import (
    FiniteSystem,
    concurrent,
    converse,
    geometric_noise,
    hockey_stick,
    randomized_response,
    strategies,
    tabulate_mechanism,
    transcript_law,
)
from tests.interactive.finite.systems import HALTED, Reply, tabulate
from tests.interactive.systems import random_pair

HALF = Fraction(1, 2)


def test_a_table_and_its_system_are_the_same() -> None:
    table = {
        (): {"x": {"yes": Fraction(1, 3), "no": Fraction(2, 3)}},
        (("x", "yes"),): {"again": {"yes": Fraction(1)}, "stop": {"done": Fraction(1)}},
    }
    system = FiniteSystem.from_table(table)
    assert system.to_table() == table
    assert system.replies["x"]["no"].then == HALTED
    for seed in range(50):
        system = random_pair(random.Random(seed), 3)[0]
        assert FiniteSystem.from_table(system.to_table()) == system


@pytest.mark.parametrize(
    "answers",
    [
        {0: Fraction(1, 2)},
        {0: Fraction(3, 2), 1: Fraction(-1, 2)},
        {0: 0.5, 1: 0.5},
        {},
    ],
)
def test_probabilities_are_exact_and_add_up(answers: dict) -> None:
    with pytest.raises(InvalidInput):
        FiniteSystem({"x": {answer: Reply(chance, HALTED) for answer, chance in answers.items()}})


def test_a_history_that_is_never_met_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no conversation leads to"):
        FiniteSystem.from_table({(): {"x": {0: Fraction(1)}}, (("x", 1),): {"x": {0: Fraction(1)}}})


def test_what_may_be_asked_may_not_depend_on_what_is_hidden() -> None:
    with pytest.raises(InvalidInput, match="follow from the earlier answers"):
        tabulate(
            {0: HALF, 1: HALF},
            lambda state, _: [("same", state, Fraction(1))],
            lambda state, history: ["x"] if len(history) < 1 + state else [],
        )


def test_pairs_that_allow_different_questions_are_refused() -> None:
    first, second = randomized_response([0], Fraction(2), 1), randomized_response([0, 1], HALF, 1)
    with pytest.raises(InvalidInput, match="same questions"):
        hockey_stick(first, second, Fraction(1))


@pytest.mark.parametrize("factor", [0.5, -1, True, "2"])
def test_factors_are_exact(factor: object) -> None:
    system = randomized_response([0], Fraction(2), 1)
    with pytest.raises(InvalidInput, match="exact fraction"):
        hockey_stick(system, system, factor)


def test_randomized_response_asked_twice_is_independent() -> None:
    system = randomized_response([1], Fraction(3), 2)
    (strategy,) = strategies(system)
    law = transcript_law(system, strategy)
    assert law[((0, 1), (0, 1))] == Fraction(9, 16)
    assert law[((0, 1), (0, 0))] == Fraction(3, 16)


def test_each_part_sees_its_own_history_only() -> None:
    """The probability of any interleaved transcript is the product of the parts' probabilities."""
    for seed in range(40):
        rng = random.Random(seed)
        parts = [random_pair(rng, 1)[0], random_pair(rng, 2)[0]]
        whole = concurrent(parts)
        for strategy, _ in zip(strategies(whole), range(30), strict=False):
            for history, weight in transcript_law(whole, strategy).items():
                chance = Fraction(1)
                for index, part in enumerate(parts):
                    system = part
                    for (asked, question), answer in history:
                        if asked == index:
                            reply = system.replies[question][answer]
                            chance, system = chance * reply.probability, reply.then
                    assert not system.replies
                assert weight == chance


def test_composition_nests() -> None:
    rng = random.Random(5)
    one, two, three = (random_pair(rng, 1)[0] for _ in range(3))
    flat, nested = concurrent([one, two, three]), concurrent([concurrent([one, two]), three])

    def rename(system: FiniteSystem) -> FiniteSystem:
        return FiniteSystem(
            {
                _flat(question): {
                    answer: Reply(reply.probability, rename(reply.then))
                    for answer, reply in answers.items()
                }
                for question, answers in system.replies.items()
            }
        )

    assert rename(nested) == flat


def _flat(question: tuple) -> tuple:
    index, inner = question
    return inner if index == 0 else (2, inner)


def test_the_live_composer_is_the_composition_of_the_tables() -> None:
    """`Concurrent` runs the code for analysts; `concurrent` composes what that code does alone."""
    first = SparseVector(positives=1, threshold_epsilon=1.0, answer_epsilon=1.0)
    second = SparseVector(
        positives=2, refresh_after=1, threshold_epsilon=0.5, answer_epsilon=1.0, value_epsilon=1.0
    )

    def law(_: object) -> dict[int, Fraction]:
        return geometric_noise(Fraction(1, 3), 1)

    alone = [
        tabulate_mechanism(first, {"a": Exceeds(0, 0)}, law, 1),
        tabulate_mechanism(second, {"b": Exceeds(0, 1)}, law, 2),
    ]
    names = {(0, "a"): (0, Exceeds(0, 0)), (1, "b"): (1, Exceeds(0, 1))}
    together = tabulate_mechanism(Concurrent([first, second]), names, law, 3)
    whole = concurrent(alone)
    checked = 0

    def compare(live: FiniteSystem, table: FiniteSystem) -> None:
        nonlocal checked
        for question, answers in table.replies.items():
            for answer, reply in answers.items():
                assert live.replies[question][answer].probability == reply.probability
                checked += 1
                compare(live.replies[question][answer].then, reply.then)

    compare(together, whole)
    assert checked > 50


def test_conversations_are_drawn_with_the_stated_probabilities() -> None:
    """4000 conversations against 12/16, 3/16, 1/16: four standard deviations, about 1 in 10⁴."""
    system = FiniteSystem(
        {
            "x": {
                0: Reply(Fraction(3, 4), HALTED),
                1: Reply(Fraction(1, 4), randomized_response([0], Fraction(3), 1)),
            }
        }
    )
    strategy = {(): "x", (("x", 1),): 0}
    law = transcript_law(system, strategy)
    runs = [converse(system, strategy) for _ in range(4000)]
    for history, chance in law.items():
        spread = 4 * (4000 * chance * (1 - chance)) ** 0.5
        assert abs(runs.count(history) - 4000 * chance) < spread
