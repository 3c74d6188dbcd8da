"""The privacy of the sparse vector and of Guess-and-Check, computed exactly for small cases."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import pytest

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import PureDP
from farthing.interactive import Conversation, Exceeds, Guess, GuessAndCheck, SparseVector
from farthing.interactive.protocol import Noise, noise_shifted_by
from tests.interactive.exact_sparse_vector import Compared, ExactSparseVector
from tests.interactive.finite import geometric_noise, hockey_stick, tabulate_mechanism

A, B = Fraction(1, 2), Fraction(2, 3)


def neighbours(
    rounds: int, positives: int, *, monotone: bool
) -> Iterator[tuple[list[Compared], list[Compared]]]:
    """Every short transcript on two neighbours: heights near 0, each moved by at most 1.

    A transcript fixes the questions, so this covers every adaptive adversary.
    """
    moves = (0, 1) if monotone else (-1, 0, 1)
    for heights in product((-1, 0, 1), repeat=rounds):
        for moved in product(moves, repeat=rounds):
            for answers in product((False, True), repeat=rounds):
                if sum(answers) <= positives:
                    other = [h + d for h, d in zip(heights, moved, strict=True)]
                    first = list(zip(heights, answers, strict=True))
                    second = list(zip(other, answers, strict=True))
                    yield first, second
                    yield second, first


class TestExactPrivacy:
    """Noise with its infinite tails; e^ε is a^−1·b^−(2c), or a^−1·b^−c for monotone numbers."""

    def test_probabilities_add_up(self) -> None:
        exact = ExactSparseVector(A, B)
        patterns = product((False, True), repeat=3)
        total = sum(
            exact.probability(list(zip((-1, 0, 2), answers, strict=True))) for answers in patterns
        )
        assert total == 1

    @pytest.mark.parametrize("monotone", [False, True])
    @pytest.mark.parametrize("positives", [1, 2])
    def test_no_transcript_exceeds_epsilon(self, positives: int, monotone: bool) -> None:
        exact = ExactSparseVector(A, B)
        bound = 1 / A / B ** ((1 if monotone else 2) * positives)
        for first, second in neighbours(2, positives, monotone=monotone):
            assert exact.probability(first) <= bound * exact.probability(second)

    @pytest.mark.parametrize(("monotone", "bound"), [(False, Fraction(24)), (True, Fraction(6))])
    def test_epsilon_is_needed(self, monotone: bool, bound: Fraction) -> None:
        """Twelve negative answers and two positive ones come within 10⁻⁵ of e^ε."""
        exact = ExactSparseVector(Fraction(2, 3), Fraction(1, 2))
        moved = 0 if monotone else -1
        first = [(0, False)] * 12 + [(-20, True)] * 2
        second = [(1, False)] * 12 + [(-20 + moved, True)] * 2
        ratio = exact.probability(first) / exact.probability(second)
        assert bound * (1 - Fraction(1, 10**5)) < ratio <= bound

    def test_adding_a_unit_costs_the_threshold_and_removing_it_does_not(self) -> None:
        """Monotone numbers, from more to fewer: the proof needs no shift of the threshold."""
        exact = ExactSparseVector(A, B)
        for fewer, more in neighbours(2, 1, monotone=True):
            if all(low[0] <= high[0] for low, high in zip(fewer, more, strict=True)):
                assert exact.probability(more) <= exact.probability(fewer) / B


def noise_law(bound: int) -> object:
    """Each noise as it is, cut off at `bound`, with e^(−1/scale) rounded to a nearby fraction."""

    def law(noise: Noise) -> dict[int, Fraction]:
        ratio = Fraction(math.exp(-1 / noise.scale)).limit_denominator(1000)
        return geometric_noise(ratio, bound)

    return law


class TestTheCodeThatAnswers:
    """The live mechanisms, tabulated: within what is charged, up to the tails that were cut off."""

    def check(self, mechanism: object, first: dict, second: dict, *, bound: int = 16) -> Fraction:
        """δ of two answers at the charged ε; also that a quarter of ε would not be enough."""
        pair = [
            tabulate_mechanism(mechanism, asked, noise_law(bound), 2) for asked in (first, second)
        ]
        charged = sum(item.epsilon * count for item, count in mechanism.guarantees)
        factor = Fraction(math.exp(charged)) * Fraction(1001, 1000)
        worst = max(hockey_stick(*pair, factor), hockey_stick(*pair[::-1], factor))
        less = Fraction(math.exp(charged / 4))
        assert hockey_stick(*pair, less) > Fraction(1, 10**4)
        return worst

    def test_one_threshold(self) -> None:
        mechanism = SparseVector(positives=1, threshold_epsilon=0.7, answer_epsilon=1.6)
        first = {"a": Exceeds(0, 0), "b": Exceeds(1, 0)}
        second = {"a": Exceeds(1, 0), "b": Exceeds(0, 0)}
        assert self.check(mechanism, first, second) < Fraction(1, 1000)

    def test_sensitivity_is_respected(self) -> None:
        mechanism = SparseVector(
            positives=1, threshold_epsilon=1.4, answer_epsilon=3.2, sensitivity=2
        )
        first = {"a": Exceeds(0, 0), "b": Exceeds(2, 0)}
        second = {"a": Exceeds(2, 0), "b": Exceeds(0, 0)}
        assert self.check(mechanism, first, second) < Fraction(1, 1000)

    def test_refreshed_thresholds(self) -> None:
        mechanism = SparseVector(
            positives=2, refresh_after=1, threshold_epsilon=1.5, answer_epsilon=3.0
        )
        first, second = {"a": Exceeds(-2, 0)}, {"a": Exceeds(-3, 0)}
        assert self.check(mechanism, first, second, bound=6) < Fraction(1, 1000)


def test_the_scales_are_those_of_the_proof() -> None:
    one = SparseVector(positives=3, threshold_epsilon=0.5, answer_epsilon=0.25, sensitivity=2)
    assert [n.scale for n in (one._watching.threshold_noise, one._watching.query_noise)] == [4, 48]
    monotone = SparseVector(
        positives=3, threshold_epsilon=0.5, answer_epsilon=0.25, sensitivity=2, monotone=True
    )
    assert monotone._watching.query_noise.scale == 24
    classic = SparseVector(
        positives=3,
        refresh_after=1,
        threshold_epsilon=0.5,
        answer_epsilon=0.25,
        value_epsilon=0.125,
    )
    assert [n.scale for n in (classic._watching.query_noise, classic._watching.value_noise)] == [
        8,
        8,
    ]
    guess = GuessAndCheck(epsilon=0.5, corrections=2, tolerance=5, sensitivity=3)
    assert guess._watching.query_noise == noise_shifted_by(0.5, 2 * 3)
    assert guess._watching.value_noise == noise_shifted_by(0.25, 3)


def test_what_is_charged() -> None:
    one = SparseVector(positives=3, threshold_epsilon=0.5, answer_epsilon=0.25, value_epsilon=0.125)
    assert one.guarantees == ((PureDP(0.75), 1), (PureDP(0.125), 3))
    classic = SparseVector(positives=3, refresh_after=1, threshold_epsilon=0.5, answer_epsilon=0.25)
    assert classic.guarantees == ((PureDP(0.75), 3),)
    between = SparseVector(positives=5, refresh_after=2, threshold_epsilon=0.5, answer_epsilon=0.25)
    assert between.guarantees == ((PureDP(0.75), 3),)
    guess = GuessAndCheck(epsilon=0.5, corrections=3, tolerance=5)
    total = sum(Fraction(item.epsilon) * count for item, count in guess.guarantees)
    assert 2 - Fraction(1, 10**15) < total <= 2  # 4ε


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 7.7])
@pytest.mark.parametrize("positives", [1, 2, 7, 1000])
def test_a_whole_epsilon_is_shared_and_never_exceeded(epsilon: float, positives: int) -> None:
    mechanism = SparseVector.from_epsilon(epsilon, positives=positives)
    ((charged, count),) = mechanism.guarantees
    assert count == 1
    assert epsilon * (1 - 1e-12) < charged.epsilon <= epsilon


def test_the_share_is_the_best_one() -> None:
    """Moving epsilon between threshold and answers makes the noise of a comparison larger."""
    best = SparseVector.from_epsilon(1.0, positives=8)

    def spread(threshold: float) -> float:
        moved = SparseVector(positives=8, threshold_epsilon=threshold, answer_epsilon=1 - threshold)
        watching = moved._watching
        return float(2 * watching.threshold_noise.scale**2 + 2 * watching.query_noise.scale**2)

    least = spread(best.threshold_epsilon)
    assert least < spread(best.threshold_epsilon * 1.1)
    assert least < spread(best.threshold_epsilon * 0.9)


class TestAccuracy:
    def failures(self, mechanism: SparseVector, questions: int, runs: int) -> float:
        """How often some answer is further off than stated, asked right at the edges."""
        stated = mechanism.accuracy(questions, 0.9)
        error, threshold = stated.threshold_error, 100
        failed = 0
        for _ in range(runs):
            conversation = Conversation(mechanism)
            wrong = False
            for number in range(questions):
                high = number % 2 == 1 and number < 2 * mechanism.positives - 1
                value = threshold + error if high else threshold - error - 1
                verdict = conversation.ask(Exceeds(value, threshold))
                wrong |= verdict.positive != high
                if verdict.value is not None:
                    wrong |= abs(verdict.value - value) > stated.value_error
                if conversation.over or wrong:
                    break
            failed += wrong
        return failed / runs

    @pytest.mark.parametrize("refresh_after", [None, 1])
    @pytest.mark.parametrize("value_epsilon", [None, 0.5])
    def test_failures_are_rare_and_not_absurdly_rare(
        self, refresh_after: int | None, value_epsilon: float | None
    ) -> None:
        """Stated: 0.1. Four standard deviations above it, and at least a hundredth of it below."""
        mechanism = SparseVector(
            positives=3,
            threshold_epsilon=0.5,
            answer_epsilon=1.0,
            refresh_after=refresh_after,
            value_epsilon=value_epsilon,
        )
        measured = self.failures(mechanism, 8, 600)
        assert measured <= 0.1 + 4 * math.sqrt(0.09 / 600)
        assert measured >= 0.001

    def test_it_would_notice_an_error_stated_too_small(self) -> None:
        mechanism = SparseVector(positives=3, threshold_epsilon=0.5, answer_epsilon=1.0)
        noisy = SparseVector(positives=3, threshold_epsilon=0.25, answer_epsilon=0.5)
        stated = mechanism.accuracy(8, 0.9).threshold_error
        wrong = 0
        for _ in range(600):
            conversation = Conversation(noisy)
            wrong += any(conversation.ask(Exceeds(-stated - 1, 0)).positive for _ in range(8))
        assert wrong / 600 > 0.1 + 4 * math.sqrt(0.09 / 600)

    def test_more_epsilon_or_fewer_questions_is_more_accurate(self) -> None:
        base = SparseVector(positives=5, threshold_epsilon=0.1, answer_epsilon=0.2)
        better = SparseVector(positives=5, threshold_epsilon=0.2, answer_epsilon=0.4)
        monotone = SparseVector(
            positives=5, threshold_epsilon=0.1, answer_epsilon=0.2, monotone=True
        )
        error = base.accuracy(100).threshold_error
        assert better.accuracy(100).threshold_error < 0.6 * error
        assert monotone.accuracy(100).threshold_error < 0.7 * error
        assert base.accuracy(10).threshold_error < error < base.accuracy(1000).threshold_error

    def test_one_threshold_is_more_accurate_than_refreshed_ones(self) -> None:
        """The point of the variant of Appendix B of [Lyu22], at the same sum of epsilons."""
        one = SparseVector.from_epsilon(1.0, positives=10)
        per = 0.1
        classic = SparseVector(
            positives=10, refresh_after=1, threshold_epsilon=per / 2, answer_epsilon=per / 2
        )
        assert one.accuracy(1000).threshold_error < classic.accuracy(1000).threshold_error


@pytest.mark.parametrize(
    "change",
    [
        {"positives": 0},
        {"positives": 1.5},
        {"threshold_epsilon": 0.0},
        {"answer_epsilon": math.nan},
        {"value_epsilon": -1.0},
        {"refresh_after": 0},
        {"sensitivity": 0},
        {"sensitivity": 0.5},
        {"monotone": 1},
    ],
)
def test_bad_parameters(change: dict) -> None:
    good = {"positives": 2, "threshold_epsilon": 0.5, "answer_epsilon": 0.5}
    SparseVector(**good)
    with pytest.raises(InvalidInput):
        SparseVector(**(good | change))


@pytest.mark.parametrize("question", [Exceeds, Guess])
@pytest.mark.parametrize("value", [1.5, "123-45-6789", None, True])
def test_numbers_that_are_not_whole_are_refused_and_not_repeated(
    question: type, value: object
) -> None:
    with pytest.raises(InvalidInput) as caught:
        question(value, 3)
    assert "123-45" not in str(caught.value)


def test_the_true_number_is_not_in_the_text_of_a_question() -> None:
    assert "987654321" not in repr(Exceeds(987654321, 3))
    assert "987654321" not in repr(Guess(987654321, 3))
