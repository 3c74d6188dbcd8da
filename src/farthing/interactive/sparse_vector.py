"""The sparse vector: is this number above its threshold? Only positive answers are limited.

One noisy threshold for all positive answers is the variant of [LSL17] (Appendix B of
[Lyu22]); a new one after each of them (`refresh_after=1`) is the classic one. Both, and everything
between, are proved for discrete noise in docs/theory/concurrency.md. Guess-and-Check, Algorithm 1
of [Lyu22], asks it how far off a guess is: only wrong guesses are paid for.

A question carries the true number, which the holder of the data computes. Between neighbours it may
change by at most `sensitivity`. `monotone` means that adding a unit never lowers a number that is
asked about (counts, sums of numbers that are not negative).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from fractions import Fraction

from flint import arb

from farthing.errors import InvalidInput, require_count, require_real
from farthing.guarantees.kinds import PureDP
from farthing.interactive.protocol import (
    Drawing,
    Json,
    Noise,
    Verdict,
    noise_shifted_by,
    require_keys,
    require_whole,
)
from farthing.mechanisms.protocol import DEFAULT_CONFIDENCE, Uses, require_confidence
from farthing.numerics.ball import Ball, down, in_balls
from farthing.numerics.search import least_reaching

#: Shares of the failure probability that thresholds may get; the best one is used.
_SHARES = tuple(arb(2) ** -k for k in range(1, 9))


@dataclass(frozen=True, slots=True)
class WatchAccuracy:
    """With probability at least `confidence` all of this holds for every answer.

    A positive answer means that the number is at least threshold − `threshold_error`, a negative
    one that it is below threshold + `threshold_error`, and a number given out is within
    `value_error` of the truth (None: numbers were not bought). The questions may depend on
    earlier answers.
    """

    threshold_error: int
    value_error: int | None
    confidence: float


@dataclass(frozen=True, slots=True)
class Watching:
    """What is drawn in a conversation, how often, and what that costs.

    There are `thresholds` noisy thresholds for `positives` positive answers; a threshold serves
    `refresh_after` of them (None: all).
    """

    threshold_noise: Noise
    query_noise: Noise
    value_noise: Noise | None
    thresholds: int
    positives: int
    refresh_after: int | None
    guarantees: Uses


def _reach(noise: Noise, tails: int, failures: Ball) -> int:
    """The smallest w for which `tails` events "noise > w" have at most this probability in all."""
    return least_reaching(lambda w: tails * noise.tail(w + 1), failures)


@dataclass(frozen=True, slots=True)
class Exceeds:
    """Is `value` at least `threshold`? The value is the true number and is never shown."""

    value: int = field(repr=False)
    threshold: int

    def __post_init__(self) -> None:
        require_whole(self.value)
        require_whole(self.threshold)


@dataclass(frozen=True, slots=True)
class WatchState:
    """The noise on the threshold, and how many positive answers are left."""

    threshold_noise: int = field(repr=False)
    positives_left: int


class _Watch:
    """A mechanism that compares numbers with noisy thresholds."""

    __slots__ = ()

    _watching: Watching

    @property
    def guarantees(self) -> Uses:
        """One ε-DP item per noisy threshold, one per number that may be given out."""
        return self._watching.guarantees

    @in_balls
    def accuracy(self, questions: int, confidence: float = DEFAULT_CONFIDENCE) -> WatchAccuracy:
        """Accuracy over up to `questions` answers together.

        A union bound over thresholds (both tails), questions (one tail) and numbers (both tails).
        A number far below its threshold is answered wrongly only if its own noise is large, one far
        above only if it is small: one tail per question. Half of the failures go to numbers if
        there are any. Given everything before, the noise of the next answer is fresh, so the bound
        holds for questions chosen from earlier answers.
        """
        watching = self._watching
        count = require_count("questions", questions, at_least=1)
        level = require_confidence(confidence)
        failures = 1 - arb(level)
        value_error = None
        if watching.value_noise is not None:
            failures /= 2
            value_error = _reach(watching.value_noise, 2 * min(count, watching.positives), failures)
        threshold_error = min(
            _reach(watching.threshold_noise, 2 * min(count, watching.thresholds), share * failures)
            + _reach(watching.query_noise, count, (1 - share) * failures)
            for share in (*_SHARES, *(1 - share for share in _SHARES[1:]))
        )
        return WatchAccuracy(threshold_error, value_error, level)

    def begin(self) -> Drawing[WatchState]:
        """Draw the first threshold."""
        noise = yield self._watching.threshold_noise
        return WatchState(noise, self._watching.positives)

    def compare(
        self, state: WatchState, height: int, threshold: int, value: int
    ) -> Drawing[tuple[Verdict, WatchState]]:
        """Positive if height + noise ≥ threshold + its noise; `value` is what may be given out."""
        watching = self._watching
        noise = yield watching.query_noise
        if height + noise < threshold + state.threshold_noise:
            return Verdict(positive=False), state
        shown = None
        if watching.value_noise is not None:
            shown = value + (yield watching.value_noise)
        left = state.positives_left - 1
        kept, served = state.threshold_noise, watching.refresh_after
        if left > 0 and served and (watching.positives - left) % served == 0:
            kept = yield watching.threshold_noise
        return Verdict(positive=True, value=shown), WatchState(kept, left)

    def halted(self, state: WatchState, /) -> bool:
        """After the last positive answer."""
        return state.positives_left == 0

    def state_to_json(self, state: WatchState, /) -> Json:
        """Two whole numbers."""
        return asdict(state)

    def state_from_json(self, data: Json, /) -> WatchState:
        """The state, checked against the number of positive answers that were bought."""
        require_keys(data, "threshold_noise", "positives_left")
        left = require_whole(data["positives_left"], at_least=0)
        if left > self._watching.positives:
            raise InvalidInput("a stored conversation has more answers left than were bought")
        return WatchState(require_whole(data["threshold_noise"]), left)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector(_Watch):
    """Answers until `positives` answers were positive.

    Each noisy threshold costs threshold_epsilon + answer_epsilon and serves `refresh_after`
    positive answers (all of them if None). With `value_epsilon`, a positive answer comes with the
    number itself, which costs value_epsilon each time.

    Noise on a threshold has scale sensitivity/threshold_epsilon, noise on a number that is compared
    2·refresh_after·sensitivity/answer_epsilon, half of that if `monotone`.
    """

    positives: int
    threshold_epsilon: float
    answer_epsilon: float
    refresh_after: int | None = None
    value_epsilon: float | None = None
    sensitivity: int = 1
    monotone: bool = False
    _watching: Watching = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        positives = require_count("positives", self.positives, at_least=1)
        shift = require_count("sensitivity", self.sensitivity, at_least=1)
        served = positives
        if self.refresh_after is not None:
            served = min(positives, require_count("refresh_after", self.refresh_after, at_least=1))
        if not isinstance(self.monotone, bool):
            raise InvalidInput(f"monotone must be True or False, got {self.monotone!r}")
        threshold = require_real("threshold_epsilon", self.threshold_epsilon, above=0)
        answers = require_real("answer_epsilon", self.answer_epsilon, above=0)
        value = None
        if self.value_epsilon is not None:
            value = require_real("value_epsilon", self.value_epsilon, above=0)
        refresh = None if self.refresh_after is None else served
        thresholds = -(-positives // served)
        guarantees: Uses = ((PureDP(_sum_up(threshold, answers)), thresholds),)
        if value is not None:
            guarantees += ((PureDP(value), positives),)
        watching = Watching(
            noise_shifted_by(threshold, shift),
            noise_shifted_by(answers, (1 if self.monotone else 2) * served * shift),
            None if value is None else noise_shifted_by(value, shift),
            thresholds,
            positives,
            refresh,
            guarantees,
        )
        checked = {
            "positives": positives,
            "threshold_epsilon": threshold,
            "answer_epsilon": answers,
            "refresh_after": refresh,
            "value_epsilon": value,
            "sensitivity": shift,
            "_watching": watching,
        }
        for name, setting in checked.items():
            object.__setattr__(self, name, setting)

    @classmethod
    @in_balls
    def from_epsilon(
        cls,
        epsilon: float,
        *,
        positives: int,
        sensitivity: int = 1,
        monotone: bool = False,
        refresh_after: int | None = None,
        value_epsilon: float | None = None,
    ) -> SparseVector:
        """ε for each threshold, shared in the proportion 1 : k^(2/3).

        k is the number of positive answers that a threshold serves, or twice that if numbers are
        not monotone. It is the share at which the variance of query noise minus threshold noise
        is smallest.
        """
        whole = require_real("epsilon", epsilon, above=0)
        count = require_count("positives", positives, at_least=1)
        served = count
        if refresh_after is not None:
            served = min(count, require_count("refresh_after", refresh_after, at_least=1))
        weight = arb(served if monotone else 2 * served) ** (arb(2) / 3)
        threshold = down(arb(whole) / (1 + weight))
        return cls(
            positives=count,
            threshold_epsilon=threshold,
            answer_epsilon=down(arb(whole) - arb(threshold)),
            refresh_after=refresh_after,
            value_epsilon=value_epsilon,
            sensitivity=sensitivity,
            monotone=monotone,
        )

    @property
    def thresholds(self) -> int:
        """How many noisy thresholds there are."""
        return self._watching.thresholds

    def reply(self, state: WatchState, question: Exceeds, /) -> Drawing[tuple[Verdict, WatchState]]:
        """Compare the number with its threshold."""
        return self.compare(state, question.value, question.threshold, question.value)


def _sum_up(first: float, second: float) -> float:
    """The smallest float that is not below the exact sum."""
    exact = Fraction(first) + Fraction(second)
    nearest = float(exact)
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)


@dataclass(frozen=True, slots=True)
class Guess:
    """Is `guess` within the tolerance of `value`? The value is the true number, never shown."""

    value: int = field(repr=False)
    guess: int

    def __post_init__(self) -> None:
        require_whole(self.value)
        require_whole(self.guess)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessAndCheck(_Watch):
    """Says whether guesses are right within `tolerance`, and corrects up to `corrections` of them.

    |value − guess| changes by at most the sensitivity, so this is a sparse vector with one
    threshold (ε for it and 2ε for the answers) beside `corrections` numbers of ε/corrections each:
    4ε in all [Lyu22, Theorem 5]. A distance is not monotone even if the number is. The items of
    `guarantees`, 3ε for checking and ε/corrections for each correction, compose to less than 4ε
    where a δ is allowed. Of `accuracy`, the threshold is the tolerance.
    """

    epsilon: float
    corrections: int
    tolerance: int
    sensitivity: int = 1
    _watching: Watching = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        epsilon = require_real("epsilon", self.epsilon, above=0)
        corrections = require_count("corrections", self.corrections, at_least=1)
        tolerance = require_count("tolerance", self.tolerance, at_least=1)
        watch = SparseVector(
            positives=corrections,
            threshold_epsilon=epsilon,
            answer_epsilon=2 * epsilon,
            value_epsilon=_share(epsilon, corrections),
            sensitivity=self.sensitivity,
        )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "corrections", corrections)
        object.__setattr__(self, "tolerance", tolerance)
        object.__setattr__(self, "sensitivity", watch.sensitivity)
        object.__setattr__(self, "_watching", watch._watching)

    @classmethod
    @in_balls
    def from_epsilons(
        cls,
        checking: float,
        correcting: float,
        *,
        corrections: int,
        tolerance: int,
        sensitivity: int = 1,
    ) -> GuessAndCheck:
        """The largest ε for which checking costs `checking` and each correction `correcting`."""
        checks = require_real("checking", checking, above=0)
        numbers = require_real("correcting", correcting, above=0)
        count = require_count("corrections", corrections, at_least=1)
        return cls(
            epsilon=min(down(arb(checks) / 3), down(arb(numbers) * count)),
            corrections=count,
            tolerance=tolerance,
            sensitivity=sensitivity,
        )

    def reply(self, state: WatchState, question: Guess, /) -> Drawing[tuple[Verdict, WatchState]]:
        """Positive if the guess is wrong; then the answer has the number."""
        distance = abs(question.value - question.guess)
        return self.compare(state, distance, self.tolerance, question.value)


@in_balls
def _share(epsilon: float, corrections: int) -> float:
    """ε/corrections, rounded down, so that all corrections together cost at most ε."""
    return down(arb(epsilon) / corrections)
