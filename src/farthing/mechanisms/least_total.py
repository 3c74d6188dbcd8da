"""A choice among a few ways, by what each of them would cost all units together."""

from __future__ import annotations

from dataclasses import dataclass

from farthing.errors import require_count
from farthing.guarantees.kinds import BoundedRange
from farthing.mechanisms.accuracy import DEFAULT_CONFIDENCE, Expectation
from farthing.mechanisms.exponential import ExponentialMechanism
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.parameters import check
from farthing.mechanisms.protocol import Contribution, Mechanism, Uses
from farthing.mechanisms.release import Release, labels_at


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
        """Any of the totals, within the range."""
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
