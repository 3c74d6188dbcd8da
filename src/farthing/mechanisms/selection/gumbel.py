"""Top-k by Gumbel noise: KnownGumb and UnkGumb, drawn as exponential mechanisms."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from farthing.errors import InvalidInput, require_count
from farthing.guarantees.kinds import BoundedRange
from farthing.mechanisms.histogram import Histogram, labels_at, top_counts
from farthing.mechanisms.noise.exact_sampling import system_bits
from farthing.mechanisms.protocol import (
    DEFAULT_CONFIDENCE,
    Contribution,
    Expectation,
    Mechanism,
    Release,
    Uses,
    check,
    epsilon_less_leak,
    leak_once,
    require_confidence,
    selection_accuracy,
    told_apart,
)
from farthing.mechanisms.selection.exponential import STOP, Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGumbel(Mechanism[Histogram]):
    """The first k labels in the order of count + Gumbel(per_key_limit/ε) noise.

    k draws without replacement, each ε-bounded range: adding a unit raises every count by
    between 0 and per_key_limit, so the range of the score is per_key_limit. How many counts a
    unit changes does not matter.
    """

    epsilon: float
    k: int
    per_key_limit: int

    def __post_init__(self) -> None:
        check(self, "epsilon", "k", "per_key_limit")

    @property
    def rate(self) -> Fraction:
        """The exact factor of a count in the exponent."""
        return Fraction(self.epsilon) / self.per_key_limit

    @property
    def assumes(self) -> Contribution:
        """A limit on each count alone."""
        return Contribution(None, self.per_key_limit)

    @property
    def guarantees(self) -> Uses:
        """k draws."""
        return ((BoundedRange(self.epsilon), self.k),)

    def run(self, histogram: Histogram) -> Release:
        """k labels of the known domain, in order."""
        return Release(labels_at(histogram, self.choose(histogram)[0]))

    def choose(self, histogram: Histogram) -> tuple[list[int], bool]:
        """Positions of the labels, and False: there is no ⊥ in a known domain."""
        if self.k > len(histogram):
            raise InvalidInput(
                f"k must be at most the size of the domain, got k = {self.k} "
                f"and {len(histogram)} labels"
            )
        race = Selection(histogram.counts, self.rate, system_bits())
        return [race.draw() for _ in range(self.k)], False

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """How far the first label lies below the largest count."""
        size = require_count("domain_size", domain_size, at_least=self.k)
        rate = float(self.rate)
        return Expectation(
            selection=selection_accuracy(rate, size - 1, confidence),
            told_apart=told_apart(rate, confidence),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownGumbel(Mechanism[Histogram]):
    """The first labels in Gumbel order among the top `candidates` counts, until k of them or ⊥.

    ⊥ is one more candidate at count cutoff + per_key_limit, where the cutoff is the largest
    count left out, and stands for m(1 − δ)/δ equal ones, m = min(contribution_limit, candidates)
    (`contribution_limit` None: a unit may change any number of counts). Draws are made at
    ε + ln(1 − δ); each is then ε-bounded range outside an event of probability δ for the whole
    call. Theorem 3 of docs/theory/mechanisms.md.

    A list that ends with ⊥ costs one draw more than it has labels.
    """

    epsilon: float
    delta: float
    k: int
    candidates: int = field()  # a field, not the protocol's property as its default
    per_key_limit: int
    contribution_limit: int | None = None

    def __post_init__(self) -> None:
        check(
            self,
            *("epsilon", "delta", "k", "candidates", "per_key_limit"),
            optional=("contribution_limit",),
        )
        if self.k > self.candidates:
            raise InvalidInput(
                f"k must be at most candidates, got k = {self.k} and {self.candidates} candidates"
            )
        if self.draw_epsilon <= 0:
            raise InvalidInput(
                "epsilon must be greater than -ln(1 - delta), "
                f"got epsilon = {self.epsilon:g} and delta = {self.delta:g}"
            )

    @property
    def draw_epsilon(self) -> float:
        """The parameter of the draws, ε + ln(1 − δ); the rest of ε pays for unseen labels."""
        return epsilon_less_leak(self.epsilon, self.delta)

    @property
    def rate(self) -> Fraction:
        """The exact factor of a count in the exponent."""
        return Fraction(self.draw_epsilon) / self.per_key_limit

    @property
    def stop_multiplicity(self) -> int:
        """How many candidates ⊥ stands for: m(1 − δ)/δ, rounded up."""
        limit = self.candidates
        if self.contribution_limit is not None:
            limit = min(limit, self.contribution_limit)
        leak_odds = (1 - Fraction(self.delta)) / Fraction(self.delta)
        return math.ceil(limit * leak_odds)

    @property
    def assumes(self) -> Contribution:
        """The two limits."""
        return Contribution(self.contribution_limit, self.per_key_limit)

    @property
    def guarantees(self) -> Uses:
        """k draws, and δ once."""
        return (BoundedRange(self.epsilon), self.k), leak_once(self.delta)

    def guarantees_for(self, release: Release) -> Uses:
        """The draws that the list shows were made: ⊥ is one of them."""
        used = len(release.labels) + int(release.stopped)
        return (BoundedRange(self.epsilon), used), leak_once(self.delta)

    def run(self, histogram: Histogram) -> Release:
        """At most k labels in order; `stopped` if ⊥ came before the k-th."""
        chosen, stopped = self.choose(histogram)
        return Release(labels_at(histogram, chosen), stopped=stopped)

    def choose(self, histogram: Histogram) -> tuple[list[int], bool]:
        """Positions of the labels, and whether ⊥ ended the list."""
        top = top_counts(histogram, self.candidates)
        stop = (top.cutoff + self.per_key_limit, self.stop_multiplicity)
        race = Selection(top.counts, self.rate, system_bits(), stop=stop)
        chosen: list[int] = []
        while len(chosen) < self.k:
            winner = race.draw()
            if winner == STOP:
                return chosen, True
            chosen.append(int(top.positions[winner]))
        return chosen, False

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """`found_from` weighs ⊥ alone: ln(multiplicity) + ln(confidence odds), over the rate."""
        level, rate = require_confidence(confidence), float(self.rate)
        odds = math.log(self.stop_multiplicity) + math.log(level / (1 - level))
        return Expectation(
            selection=selection_accuracy(rate, self.candidates - 1, level),
            found_from=self.per_key_limit + odds / rate,
            told_apart=told_apart(rate, level),
        )
