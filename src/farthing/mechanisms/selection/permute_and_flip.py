"""Permute-and-flip [MS20]: a selection that is ε-DP and never worse than the exponential one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from farthing.errors import require_count
from farthing.guarantees.kinds import PermuteAndFlip
from farthing.mechanisms.accuracy import DEFAULT_CONFIDENCE, Accuracy, selection_accuracy
from farthing.mechanisms.histogram import ArrayLike
from farthing.mechanisms.noise.exact_sampling import Acceptance
from farthing.mechanisms.noise.randomness import system_bits
from farthing.mechanisms.protocol import Uses, check
from farthing.mechanisms.selection.exponential import score_array


@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlipMechanism:
    """Candidates in random order, each kept with probability e^(ε·(u(y) − best)/score_range).

    The first one that is kept is the answer; the best one always is. `score_range` as for the
    exponential mechanism. It costs `PermuteAndFlip(ε)`, which is more than ε-bounded range: for
    many selections the exponential mechanism is cheaper, for a single one this is more accurate.
    """

    epsilon: float
    score_range: float

    def __post_init__(self) -> None:
        check(self, "epsilon", "score_range")

    @property
    def rate(self) -> Fraction:
        """The exact factor of the score in the exponent."""
        return Fraction(self.epsilon) / Fraction(self.score_range)

    @property
    def guarantees(self) -> Uses:
        """One draw."""
        return ((PermuteAndFlip(self.epsilon), 1),)

    def run(self, scores: ArrayLike) -> int:
        """The position of the chosen score, drawn exactly: floats are the numbers that they are."""
        values, source = score_array(scores).tolist(), system_bits()
        coins, best, left = Acceptance(self.rate), max(values), list(range(len(values)))
        while True:
            place = source.below(len(left))
            left[place], left[-1] = left[-1], left[place]
            chosen = left.pop()
            if coins.accepts(Fraction(best) - Fraction(values[chosen]), source):
                return chosen

    def accuracy(self, *, domain_size: int, confidence: float = DEFAULT_CONFIDENCE) -> Accuracy:
        """How far below the best score the chosen one lies: at most what the exponential mechanism
        states for the same rate, by [MS20, Thm 2]."""
        size = require_count("domain_size", domain_size, at_least=1)
        return selection_accuracy(float(self.rate), size - 1, confidence)
