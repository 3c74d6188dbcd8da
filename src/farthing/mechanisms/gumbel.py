"""Top-k by Gumbel noise: KnownGumb and UnkGumb, drawn as exponential mechanisms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from farthing.errors import InvalidInput, require_real
from farthing.guarantees.kinds import BoundedRange
from farthing.mechanisms.access import top_counts
from farthing.mechanisms.accuracy import (
    DEFAULT_CONFIDENCE,
    Accuracy,
    losing,
    selection_accuracy,
)
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.parameters import check, epsilon_less_leak
from farthing.mechanisms.randomness import open_source
from farthing.mechanisms.release import Items, Release, labels_at, leak
from farthing.mechanisms.selection import STOP, Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGumbel:
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
    def adaptive(self) -> bool:
        """Later draws depend on earlier ones: account them with an adaptive theorem."""
        return self.k > 1

    @property
    def rate(self) -> Fraction:
        """The exact factor of a count in the exponent."""
        return Fraction(self.epsilon) / self.per_key_limit

    @property
    def guarantees(self) -> Items:
        """k draws."""
        return ((BoundedRange(self.epsilon), self.k),)

    def guarantees_for(self, release: Release) -> Items:  # noqa: ARG002 # the price is fixed
        """The same for every outcome."""
        return self.guarantees

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
        race = Selection(histogram.counts, self.rate, open_source())
        return [race.draw() for _ in range(self.k)], False

    def accuracy(
        self, *, domain_size: int, gap: float = 0, confidence: float = DEFAULT_CONFIDENCE
    ) -> Accuracy:
        """Of one draw; `miss_probability` is for a label that leads the (k+1)-th count by `gap`.

        Such a label is missed only if one of the domain_size − k labels at least `gap` below
        comes before it; all of them together weigh at most (domain_size − k)·e^(−rate·gap) of it.
        """
        if domain_size < self.k:
            raise InvalidInput(f"domain_size must be at least k = {self.k}, got {domain_size}")
        rivals = domain_size - self.k
        lead = float(self.rate) * require_real("gap", gap, at_least=0)
        miss = losing([math.log(rivals) - lead] if rivals else [])
        return selection_accuracy(float(self.rate), domain_size - 1, confidence, miss)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownGumbel:
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
    candidates: int
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
    def adaptive(self) -> bool:
        """Later draws depend on earlier ones: account them with an adaptive theorem."""
        return self.k > 1

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
    def guarantees(self) -> Items:
        """k draws, and δ once."""
        return (BoundedRange(self.epsilon), self.k), leak(self.delta)

    def guarantees_for(self, release: Release) -> Items:
        """The draws that the list shows were made: ⊥ is one of them."""
        used = len(release.labels) + int(release.stopped)
        return (BoundedRange(self.epsilon), used), leak(self.delta)

    def run(self, histogram: Histogram) -> Release:
        """At most k labels in order; `stopped` if ⊥ came before the k-th."""
        chosen, stopped = self.choose(histogram)
        return Release(labels_at(histogram, chosen), stopped=stopped)

    def choose(self, histogram: Histogram) -> tuple[list[int], bool]:
        """Positions of the labels, and whether ⊥ ended the list."""
        top = top_counts(histogram, self.candidates)
        stop = (top.cutoff + self.per_key_limit, self.stop_multiplicity)
        race = Selection(top.counts, self.rate, open_source(), stop=stop)
        chosen: list[int] = []
        while len(chosen) < self.k:
            winner = race.draw()
            if winner == STOP:
                return chosen, True
            chosen.append(int(top.positions[winner]))
        return chosen, False

    def accuracy(
        self, *, lead: float, gap: float = 0, confidence: float = DEFAULT_CONFIDENCE
    ) -> Accuracy:
        """Of one draw; `miss_probability` is for a label `lead` above the cutoff.

        `gap` is its lead over the (k+1)-th count. It is missed only if ⊥ or one of the
        candidates − k labels at least `gap` below comes before it.
        """
        rate = float(self.rate)
        above = require_real("lead", lead, at_least=0) - self.per_key_limit
        rivals = [math.log(self.stop_multiplicity) - rate * above]
        if self.candidates > self.k:
            distance = require_real("gap", gap, at_least=0)
            rivals.append(math.log(self.candidates - self.k) - rate * distance)
        return selection_accuracy(rate, self.candidates - 1, confidence, losing(rivals))
