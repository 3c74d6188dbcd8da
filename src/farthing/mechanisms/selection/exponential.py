"""The exponential mechanism [DDR20, Proposition 2], and the choice of the least total with it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidInput, require_count, require_real
from farthing.guarantees.kinds import BoundedRange
from farthing.mechanisms.histogram import Histogram, labels_at
from farthing.mechanisms.noise.exact_sampling import system_bits
from farthing.mechanisms.protocol import (
    DEFAULT_CONFIDENCE,
    Accuracy,
    Contribution,
    Expectation,
    Mechanism,
    Release,
    Uses,
    check,
    selection_accuracy,
)
from farthing.mechanisms.selection.draws import Scores, Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class ByScore:
    """A selection by scores u(y).

    `score_range` bounds, over all neighbours, how much more the score of one candidate may
    change than that of another: sup {u(x, y) − u(x', y) − u(x, y') + u(x', y')}.
    """

    epsilon: float
    score_range: float

    def __post_init__(self) -> None:
        check(self, "epsilon", "score_range")

    @property
    def rate(self) -> Fraction:
        """The exact factor of the score in the exponent."""
        return Fraction(self.epsilon) / Fraction(self.score_range)

    def accuracy(self, *, domain_size: int, confidence: float = DEFAULT_CONFIDENCE) -> Accuracy:
        """How far below the best score the chosen one lies, among `domain_size` candidates."""
        size = require_count("domain_size", domain_size, at_least=1)
        return selection_accuracy(float(self.rate), size - 1, confidence)


class ExponentialMechanism(ByScore):
    """Candidate y with probability proportional to e^(ε·u(y)/score_range): ε-bounded range."""

    __slots__ = ()

    @classmethod
    def from_sensitivity(
        cls, *, epsilon: float, sensitivity: float, monotone: bool = False
    ) -> ExponentialMechanism:
        """By Proposition 1 of [DDR20] the range is at most 2·sensitivity, or 1· if monotone.

        Monotone: adding a unit never lowers a score (or never raises one).
        """
        size = require_real("sensitivity", sensitivity, above=0)
        return cls(epsilon=epsilon, score_range=size if monotone else 2 * size)

    @property
    def guarantees(self) -> Uses:
        """One ε-bounded-range draw."""
        return ((BoundedRange(self.epsilon), 1),)

    def run(self, scores: ArrayLike) -> int:
        """The position of the chosen score."""
        return Selection(score_array(scores), self.rate, system_bits()).draw()


def score_array(scores: ArrayLike) -> Scores:
    """Scores as whole numbers or floats, all finite."""
    array = np.asarray(scores)
    if array.ndim != 1 or array.size == 0:
        raise InvalidInput(f"scores must be a non-empty sequence, got shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise InvalidInput(f"scores must be numbers, got the type {array.dtype}")
    if array.dtype.kind != "f":
        if int(array.max()) >= 1 << 63:
            raise InvalidInput("whole-number scores must be below 2^63")
        return array.astype(np.int64)
    wrong = np.flatnonzero(~np.isfinite(array))
    if wrong.size:
        raise InvalidInput(
            f"scores must be finite; {wrong.size} of {array.size} are not, "
            f"the first at position {wrong[0]}"
        )
    return array.astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastTotal(Mechanism[Histogram]):
    """One label whose total is about the least: the exponential mechanism with score −total.

    A unit more changes all totals by amounts that differ from one another by at most
    `score_range`, so the draw is ε-bounded range (Definition of [DDR20]).
    """

    epsilon: float
    score_range: int

    def __post_init__(self) -> None:
        check(self, "epsilon")
        require_count("score_range", self.score_range, at_least=1)

    @property
    def _choice(self) -> ExponentialMechanism:
        return ExponentialMechanism(epsilon=self.epsilon, score_range=self.score_range)

    @property
    def assumes(self) -> Contribution:
        """All totals may change, within the range."""
        return Contribution(None, self.score_range)

    @property
    def guarantees(self) -> Uses:
        """One ε-bounded-range draw."""
        return ((BoundedRange(self.epsilon), 1),)

    def run(self, totals: Histogram) -> Release:
        """The chosen label alone."""
        return Release(labels_at(totals, [self._choice.run(-totals.counts)]))

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """How far the chosen total may lie above the least, among `domain_size` labels."""
        size = require_count("domain_size", domain_size, at_least=1)
        return Expectation(selection=self._choice.accuracy(domain_size=size, confidence=confidence))
