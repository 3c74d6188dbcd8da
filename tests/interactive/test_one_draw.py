"""The theorem of [VZ23], run: a mixture of systems, one per outcome of a single draw."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from farthing.errors import InvalidInput, NotCertified
from tests.interactive.finite import hockey_stick, one_draw, randomized_response, strategies
from tests.interactive.finite.one_draw import kernel
from tests.interactive.finite.systems import transcript_law
from tests.interactive.systems import random_law, random_pair, union


def leaky(factor: Fraction, delta: Fraction) -> list[tuple[Fraction, Fraction]]:
    """The four outcomes of leaky randomized response, on bit 0 and on bit 1."""
    honest = (1 - delta) * factor / (1 + factor)
    other = 1 - delta - honest
    return [(delta, Fraction(0)), (honest, other), (other, honest), (Fraction(0), delta)]


def test_the_mixture_is_the_conversation_for_every_adversary() -> None:
    for seed in range(150):
        rng = random.Random(seed)
        pair = random_pair(rng, rng.choice([1, 2, 2]), zeros=rng.random() < 0.5)
        found = one_draw(*pair)
        assert [sum(side) for side in zip(*found.outcomes, strict=True)] == [1, 1]
        for number, strategy in enumerate(strategies(union(*pair))):
            if number == 10:
                break
            for side in (0, 1):
                mixture: dict = {}
                for outcome, system in zip(found.outcomes, found.systems, strict=True):
                    for history, chance in transcript_law(system, strategy).items():
                        weight = outcome[side] * chance
                        mixture[history] = mixture.get(history, Fraction(0)) + weight
                wanted = transcript_law(pair[side], strategy)
                assert {h: w for h, w in mixture.items() if w > 0} == wanted


def test_three_rounds() -> None:
    for seed in range(10):
        one_draw(*random_pair(random.Random(seed), 3))  # checks itself


def test_leaky_randomized_response_is_one_such_draw() -> None:
    """Theorem 3 of [Lyu22] is the case of this pair; below the smallest δ there is no such draw."""
    refused = 0
    for seed in range(60):
        rng = random.Random(seed)
        pair = random_pair(rng, 2)
        factor = Fraction(rng.randint(4, 10), 4)
        least = max(hockey_stick(*pair, factor), hockey_stick(*pair[::-1], factor))
        one_draw(*pair, leaky(factor, least))
        if least > 0:
            refused += 1
            with pytest.raises(InvalidInput, match="as easy to tell apart"):
                one_draw(*pair, leaky(factor, least * Fraction(9, 10)))
    assert refused > 20


def test_kernels_exist_exactly_where_profiles_dominate() -> None:
    """Random targets are post-processings by construction; the kernel found has the same effect."""
    for seed in range(200):
        rng = random.Random(seed)
        size, wanted = rng.randint(1, 5), rng.randint(1, 4)
        source = list(
            zip(random_law(rng, size, zeros=True), random_law(rng, size, zeros=True), strict=True)
        )
        rows = [random_law(rng, wanted, zeros=True) for _ in range(size)]
        target = [
            (
                sum((source[i][0] * rows[i][j] for i in range(size)), Fraction(0)),
                sum((source[i][1] * rows[i][j] for i in range(size)), Fraction(0)),
            )
            for j in range(wanted)
        ]
        found = kernel(source, target)
        assert all(sum(row) == 1 and min(row) >= 0 for row in found)
        for j in range(wanted):
            for side in (0, 1):
                total = sum(source[i][side] * found[i][j] for i in range(size))
                assert total == target[j][side]


def test_there_is_no_kernel_towards_more_information() -> None:
    blurred = [(Fraction(2, 3), Fraction(1, 3)), (Fraction(1, 3), Fraction(2, 3))]
    sharp = [(Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))]
    kernel(sharp, blurred)
    with pytest.raises(NotCertified):
        kernel(blurred, sharp)


@pytest.mark.parametrize(
    "outcomes", [[(Fraction(1, 2), Fraction(1, 2))], [(Fraction(1), Fraction(1, 2))]]
)
def test_outcomes_add_up(outcomes: list) -> None:
    system = randomized_response([0], Fraction(2), 1)
    with pytest.raises(InvalidInput, match="total probability 1"):
        one_draw(system, system, outcomes)
