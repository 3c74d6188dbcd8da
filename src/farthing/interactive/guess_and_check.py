"""Guess-and-Check, Algorithm 1 of [Lyu22]: guess a number, pay only for wrong guesses."""

from __future__ import annotations

from dataclasses import dataclass, field

from flint import arb

from farthing.errors import require_count, require_real
from farthing.interactive.protocol import Drawing, Json, Verdict, require_whole
from farthing.interactive.sparse_vector import SparseVector, WatchAccuracy, WatchState
from farthing.mechanisms.accuracy import DEFAULT_CONFIDENCE
from farthing.mechanisms.protocol import Uses
from farthing.numerics.ball import down, in_balls


@dataclass(frozen=True, slots=True)
class Guess:
    """Is `guess` within the tolerance of `value`? The value is the true number, never shown."""

    value: int = field(repr=False)
    guess: int

    def __post_init__(self) -> None:
        require_whole(self.value)
        require_whole(self.guess)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessAndCheck:
    """Says whether guesses are right within `tolerance`, and corrects up to `corrections` of them.

    |value − guess| changes by at most the sensitivity, so this is a sparse vector with one
    threshold (ε for it and 2ε for the answers) beside `corrections` numbers of ε/corrections each:
    4ε in all [Lyu22, Theorem 5]. A distance is not monotone even if the number is. The items of
    `guarantees` compose to less than 4ε where a δ is allowed.
    """

    epsilon: float
    corrections: int
    tolerance: int
    sensitivity: int = 1
    _watch: SparseVector = field(init=False, repr=False, compare=False)

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
        object.__setattr__(self, "_watch", watch)

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

    @property
    def guarantees(self) -> Uses:
        """3ε for checking, ε/corrections for each correction."""
        return self._watch.guarantees

    def accuracy(self, questions: int, confidence: float = DEFAULT_CONFIDENCE) -> WatchAccuracy:
        """Accuracy over up to `questions` guesses together; the threshold is the tolerance."""
        return self._watch.accuracy(questions, confidence)

    def begin(self) -> Drawing[WatchState]:
        """Draw the noise on the tolerance."""
        return self._watch.begin()

    def reply(self, state: WatchState, question: Guess, /) -> Drawing[tuple[Verdict, WatchState]]:
        """Positive if the guess is wrong; then the answer has the number."""
        distance = abs(question.value - question.guess)
        return self._watch.compare(state, distance, self.tolerance, question.value)

    def halted(self, state: WatchState, /) -> bool:
        """After the last correction."""
        return self._watch.halted(state)

    def state_to_json(self, state: WatchState, /) -> Json:
        """Two whole numbers."""
        return self._watch.state_to_json(state)

    def state_from_json(self, data: Json, /) -> WatchState:
        """The same, checked."""
        return self._watch.state_from_json(data)


@in_balls
def _share(epsilon: float, corrections: int) -> float:
    """ε/corrections, rounded down, so that all corrections together cost at most ε."""
    return down(arb(epsilon) / corrections)
