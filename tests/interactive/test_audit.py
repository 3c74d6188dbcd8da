"""Adaptive attacks on conversations: what is sold stands, the published mistakes are caught.

Every audit is valid with confidence 0.999, so a sound mechanism fails a test with probability of at
most 0.001, and the seeds are fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from fractions import Fraction

from farthing.interactive import (
    Concurrent,
    Conversation,
    Exceeds,
    Guess,
    GuessAndCheck,
    SparseVector,
    Verdict,
)
from farthing.interactive.protocol import Drawing, Noise, noise_shifted_by
from farthing.interactive.sparse_vector import WatchState
from farthing.lab.audit import audit
from farthing.mechanisms.noise.discrete import DiscreteLaplaceNoise
from tests.interactive.finite import geometric_noise, hockey_stick, tabulate_mechanism

#: Numbers by name: what the data hold.
Data = dict[str, int]
UP_AND_DOWN = {"up": 0, "down": 1}, {"up": 1, "down": 0}
CONFIDENCE = 0.999


@dataclass(frozen=True)
class Played:
    """A mechanism under an adaptive adversary, which returns what it looks at."""

    mechanism: object
    play: Callable[[Conversation, Data], Hashable]

    def run(self, data: Data) -> Hashable:
        return self.play(Conversation(self.mechanism), data)


def measured(
    mechanism: object, play: Callable, pair: tuple[Data, Data] = UP_AND_DOWN, trials: int = 1500
) -> float:
    return audit(Played(mechanism, play), *pair, trials=trials, confidence=CONFIDENCE).epsilon


def charged(mechanism: object) -> float:
    return sum(item.epsilon * count for item, count in mechanism.guarantees)


def tampered(mechanism: SparseVector, **noises: Noise) -> SparseVector:
    """The same mechanism, the same price, other noise."""
    copy = replace(mechanism)
    object.__setattr__(copy, "_watching", replace(mechanism._watching, **noises))
    return copy


def contrast(questions: int) -> Callable[[Conversation, Data], int]:
    """Ask about both numbers in turns; how often one was above more often than the other."""

    def play(conversation: Conversation, data: Data) -> int:
        seen = 0
        for _ in range(questions):
            for name, sign in (("up", -1), ("down", 1)):
                if conversation.over:
                    return seen
                seen += sign * conversation.ask(Exceeds(data[name], 0)).positive
        return seen

    return play


def patience(longest: int) -> Callable[[Conversation, Data], int]:
    """Ask about one number until it is above; how long that took."""

    def play(conversation: Conversation, data: Data) -> int:
        for waited in range(longest):
            if conversation.ask(Exceeds(data["number"], 0)).positive:
                return waited
        return longest

    return play


def below_then_above(conversation: Conversation, data: Data) -> tuple[bool, bool]:
    """The event that a threshold without noise on the numbers gives away."""
    first = conversation.ask(Exceeds(data["up"], 1)).positive
    second = (not conversation.over) and conversation.ask(Exceeds(data["down"], 1)).positive
    return first, second


def chase(conversation: Conversation, data: Data) -> tuple[int, ...]:
    """Raise the threshold after a positive answer, lower it after a negative one."""
    threshold, path = 0, []
    while not conversation.over and len(path) < 6:
        name = "up" if threshold >= 0 else "down"
        positive = conversation.ask(Exceeds(data[name], threshold)).positive
        threshold += 1 if positive else -1
        path.append(threshold)
    return tuple(path)


class TestSound:
    def test_one_threshold(self) -> None:
        mechanism = SparseVector(positives=4, threshold_epsilon=0.5, answer_epsilon=1.0)
        for play in (contrast(8), chase):
            assert measured(mechanism, play) <= charged(mechanism)

    def test_refreshed(self) -> None:
        mechanism = SparseVector(
            positives=4, refresh_after=1, threshold_epsilon=0.2, answer_epsilon=0.4
        )
        for play in (contrast(8), chase):
            assert measured(mechanism, play) <= charged(mechanism)

    def test_monotone(self) -> None:
        """Less noise for counts that only rise; audited on such a pair in both directions."""
        mechanism = SparseVector(
            positives=1, threshold_epsilon=0.05, answer_epsilon=1.5, sensitivity=100, monotone=True
        )
        pair = {"number": -107}, {"number": -7}
        found = measured(mechanism, patience(20), pair)
        assert found <= charged(mechanism)

    def test_guess_and_check(self) -> None:
        mechanism = GuessAndCheck(epsilon=0.4, corrections=2, tolerance=2)

        def play(conversation: Conversation, data: Data) -> int:
            """Guess again from every correction."""
            guess, seen = 0, 0
            for _ in range(6):
                if conversation.over:
                    break
                verdict = conversation.ask(Guess(data["number"], guess))
                if verdict.value is not None:
                    guess, seen = verdict.value, seen + verdict.value
            return seen

        assert measured(mechanism, play, ({"number": 0}, {"number": 1})) <= charged(mechanism)

    def test_rows_that_react_to_answers(self) -> None:
        """After a positive answer other units leave, after a negative one they join."""
        mechanism = SparseVector(positives=3, threshold_epsilon=0.5, answer_epsilon=1.0)

        def play(conversation: Conversation, data: Data) -> int:
            others, asked = 0, 0
            while not conversation.over and asked < 12:
                positive = conversation.ask(Exceeds(data["up"] + others, 0)).positive
                others += -2 if positive else 1
                asked += 1
            return others

        assert measured(mechanism, play) <= charged(mechanism)

    def test_interleaved(self) -> None:
        """Questions for one conversation are chosen from the answers of the other."""
        mechanism = Concurrent(
            [
                SparseVector(positives=2, threshold_epsilon=0.5, answer_epsilon=0.5),
                SparseVector(
                    positives=2, threshold_epsilon=0.5, answer_epsilon=0.5, value_epsilon=0.3
                ),
            ]
        )

        def play(conversation: Conversation, data: Data) -> tuple[bool, ...]:
            threshold, seen = 0, []
            for turn in range(4):
                states = conversation._state
                part = turn % 2
                if mechanism.parts[part].halted(states[part]):
                    continue
                verdict = conversation.ask((part, Exceeds(data["up"], threshold)))
                threshold = 1 if verdict.positive else -1
                seen.append(verdict.positive)
            return tuple(seen)

        assert measured(mechanism, play) <= charged(mechanism)


class TestBroken:
    def test_no_noise_on_the_numbers(self) -> None:
        sound = SparseVector(positives=1, threshold_epsilon=1.0, answer_epsilon=1.0)
        silent = tampered(sound, query_noise=DiscreteLaplaceNoise(Fraction(1, 1000)))
        assert measured(silent, below_then_above) > charged(sound)
        assert measured(sound, below_then_above) <= charged(sound)

    def test_threshold_noise_not_scaled_to_the_sensitivity(self) -> None:
        sound = SparseVector(
            positives=1, threshold_epsilon=0.05, answer_epsilon=3.0, sensitivity=1000
        )
        unscaled = tampered(sound, threshold_noise=noise_shifted_by(0.05, 1))
        pair = {"number": -1070}, {"number": -70}
        assert measured(unscaled, patience(20), pair, 4000) > charged(sound)
        assert measured(sound, patience(20), pair, 4000) <= charged(sound)

    def test_noise_on_the_numbers_not_scaled_to_the_positive_answers(self) -> None:
        """Twenty positive answers with the noise of one, and the price of one."""
        sound = SparseVector(positives=20, threshold_epsilon=0.2, answer_epsilon=0.8)
        unscaled = tampered(sound, query_noise=noise_shifted_by(0.8, 2))
        assert measured(unscaled, contrast(20), trials=1000) > charged(sound)
        assert measured(sound, contrast(20), trials=400) <= charged(sound)

    def test_unlimited_positive_answers(self) -> None:
        sold = SparseVector(positives=1, threshold_epsilon=0.2, answer_epsilon=0.8)
        endless = tampered(replace(sold, positives=10**6), query_noise=sold._watching.query_noise)
        assert measured(endless, contrast(20), trials=1000) > charged(sold)
        assert measured(sold, contrast(20), trials=1000) <= charged(sold)

    def test_threshold_kept_but_charged_as_if_each_answer_had_its_own(self) -> None:
        """The noise of refreshed thresholds, one price "because every answer starts anew"."""
        refreshed = SparseVector(
            positives=20, refresh_after=1, threshold_epsilon=0.2, answer_epsilon=0.8
        )
        kept = tampered(
            replace(refreshed, refresh_after=None), query_noise=refreshed._watching.query_noise
        )
        ((one_answer, answers),) = refreshed.guarantees
        assert answers == 20
        found = measured(kept, contrast(20), trials=1000)
        assert one_answer.epsilon < found <= charged(refreshed)  # twenty prices do cover it

    def test_the_noise_of_the_comparison_given_out(self) -> None:
        """A number shown with the noise it was compared with; by exact enumeration."""
        sound = SparseVector(
            positives=1, threshold_epsilon=1.0, answer_epsilon=2.0, value_epsilon=1.0
        )
        reusing = ReusedNoise(
            positives=1, threshold_epsilon=1.0, answer_epsilon=2.0, value_epsilon=1.0
        )
        first = {"many": Exceeds(0, 0), "last": Exceeds(1, 0)}
        second = {"many": Exceeds(1, 0), "last": Exceeds(0, 0)}

        def excess(mechanism: SparseVector, rounds: int, factor: int) -> Fraction:
            pair = [
                tabulate_mechanism(mechanism, asked, halved, rounds) for asked in (first, second)
            ]
            return hockey_stick(*pair, Fraction(factor))

        # e^ε with a = 1/2: shifts of 1 and 2 for the comparison, 1 more for a number of its own
        assert excess(reusing, 4, 2 * 4) > Fraction(1, 500)
        assert excess(sound, 2, 2 * 4 * 2) < Fraction(1, 2000)


class ReusedNoise(SparseVector):
    """Gives out the number with the noise that decided the comparison."""

    __slots__ = ()

    def compare(
        self, state: WatchState, height: int, threshold: int, value: int
    ) -> Drawing[tuple[Verdict, WatchState]]:
        noise = yield self._watching.query_noise
        if height + noise < threshold + state.threshold_noise:
            return Verdict(positive=False), state
        left = WatchState(state.threshold_noise, state.positives_left - 1)
        return Verdict(positive=True, value=value + noise), left


def halved(_: Noise) -> dict[int, Fraction]:
    return geometric_noise(Fraction(1, 2), 10)
