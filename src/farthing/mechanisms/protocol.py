"""What a mechanism is: what it assumes, what it costs, what to expect of it, and a run."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from operator import le
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from flint import arb

from farthing.errors import require_count, require_real
from farthing.guarantees.kinds import ApproximateDP, Guarantee
from farthing.mechanisms.noise.discrete import Noise
from farthing.numerics.ball import down, in_balls

DEFAULT_CONFIDENCE = 0.95

#: Where a number lies: both ends belong to it.
Interval: TypeAlias = tuple[float, float]
#: Where released numbers lie: one half-width for all, an interval for each, or no number.
Errors: TypeAlias = float | tuple[Interval, ...] | None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Expected error, and half-width of a confidence interval.

    For counts the error is |released − true| of one count before anything is withheld; for
    selections it is how far the score of the chosen candidate lies below the best one.
    """

    expected_error: float
    half_width: float
    confidence: float

    def divided(self, by: float) -> Accuracy:
        """The same accuracy in a unit that is `by` times larger."""
        return Accuracy(self.expected_error / by, self.half_width / by, self.confidence)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What to expect before running.

    `counts`: the error of each released number. `selection`: how far, in counts, a selected
    label may lie below the best remaining one. `told_apart`: of two labels whose counts differ
    by this much, the larger comes first with probability `confidence`.

    The cutoff is the largest count that the mechanism does not look at. `found_from`: a label whose
    count exceeds the cutoff by this much is found with probability `confidence`. `above_cutoff`:
    a noisy count that exceeds the noisy cutoff by less is withheld. `threshold`: noisy counts
    below it are withheld.

    `totals`: half-widths, which hold together, of the totals that a number is computed from.
    """

    counts: Accuracy | None = None
    selection: Accuracy | None = None
    found_from: float | None = None
    threshold: int | None = None
    above_cutoff: int | None = None
    totals: tuple[float, ...] | None = None
    told_apart: float | None = None

    @property
    def shown_from(self) -> int | None:
        """About how large the count of a label must be to be shown; None if all are."""
        given = (self.threshold, self.above_cutoff, self.found_from)
        return next((math.ceil(least) for least in given if least is not None), None)


@lru_cache(maxsize=1024)
def noise_accuracy(noise: Noise, confidence: float, times: int = 1) -> Accuracy:
    """Accuracy of one count with this noise, or of the mean of `times` such counts."""
    level = require_confidence(confidence)
    return Accuracy(noise.expected_absolute(times), noise.half_width(level, times), level)


def joint_level(confidence: float, count: int) -> float:
    """The confidence that each of `count` independent intervals needs for all of them to hold.

    level^(1/count), rounded up.
    """
    level = require_confidence(confidence)
    if count <= 1:
        return level
    return min(math.nextafter(math.exp(math.log(level) / count), 1), math.nextafter(1, 0))


def selection_accuracy(rate: float, competitors: int, confidence: float) -> Accuracy:
    """Accuracy of one draw of the exponential mechanism among competitors + 1 candidates.

    Expected error: the draw maximises E[score] + entropy/rate, the maximum is at least the
    best score, and the entropy is at most ln(competitors + 1). Half-width: all candidates at
    least w below the best one weigh together at most competitors·e^(−rate·w) of it.
    """
    level = require_confidence(confidence)
    odds = competitors * level / (1 - level)
    width = math.log(odds) / rate if odds > 1 else 0.0
    return Accuracy(math.log1p(competitors) / rate, width, level)


def told_apart(rate: float, confidence: float) -> float:
    """The difference between two counts from which their order is right with this probability.

    A candidate of weight e^(rate·gap) comes before one of weight 1 with probability
    1/(1 + e^(−rate·gap)), whatever other candidates there are.
    """
    level = require_confidence(confidence)
    return max(0.0, math.log(level / (1 - level)) / rate)


def require_confidence(confidence: float) -> float:
    """A confidence level strictly between 0 and 1."""
    return require_real("confidence", confidence, above=0, below=1)


#: What composition charges: guarantees, each with how often it is used. Independent steps.
Uses: TypeAlias = tuple[tuple[Guarantee, int], ...]

Data = TypeVar("Data")
Data_contra = TypeVar("Data_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Release:
    """Labels in order, each with a count if counts were bought.

    `stopped`: the list ended because ⊥ was drawn before k labels were found. `moved`: the most that
    a count was moved from its noisy value afterwards. `among`: the labels were chosen by their
    released counts from this many. `parts`: the release of each label, where that is more than a
    count.
    """

    labels: tuple[Any, ...]
    counts: tuple[int | float, ...] | None = None
    stopped: bool = False
    moved: float = 0.0
    among: int | None = None
    parts: tuple[Release, ...] = ()

    def picked(self, places: Sequence[int]) -> Release:
        """The labels at these places, in their order."""

        def at(values: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(values[place] for place in places) if values else ()

        counts = None if self.counts is None else at(self.counts)
        return replace(self, labels=at(self.labels), counts=counts, parts=at(self.parts))


@dataclass(frozen=True, slots=True)
class Contribution:
    """How much one unit may change the data that a mechanism runs on.

    At most `contribution_limit` numbers (None: any number), each by at most `per_key_limit`, and
    all of them together by at most `total` (None: the product of the two). Where a mechanism runs
    once for each label, `contribution_limit` limits the labels and `per_key_limit` the first number
    of a label, or the total weight of its values; `others` limits the further numbers of a label.
    Adding a unit only raises the counts of a histogram; it may lower a sum.
    """

    contribution_limit: int | None
    per_key_limit: int
    others: tuple[int, ...] = ()
    total: int | None = None

    def within(self, other: Contribution) -> bool:
        """Whether data bounded like this is also bounded like `other`."""
        if len(self.others) != len(other.others):
            return False
        own, limits = (self.per_key_limit, *self.others), (other.per_key_limit, *other.others)
        return (
            all(map(le, own, limits))
            and _at_most(self.contribution_limit, other.contribution_limit)
            and _at_most(self._most, other.total)
        )

    @property
    def _most(self) -> int | None:
        """The most that a unit changes the first numbers by in total."""
        if self.total is not None or self.contribution_limit is None:
            return self.total
        return self.contribution_limit * self.per_key_limit


@runtime_checkable
class Mechanism(Protocol[Data_contra]):
    """A mechanism that runs on counts or other numbers made from units.

    `guarantees` hold between neighbours of which one has one unit more, if that unit changes the
    data by no more than the mechanism `assumes`. The caller must ensure that.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def assumes(self) -> Contribution:
        """What must hold for the data it runs on."""

    @property
    def candidates(self) -> int | None:
        """How many of the largest counts it looks at; None for all of them."""
        return None

    @property
    @abstractmethod
    def guarantees(self) -> Uses:
        """The price before running: no release costs more."""

    def guarantees_for(self, release: Release) -> Uses:
        """The price that this release shows; by default the same for every outcome."""
        return self.guarantees

    @abstractmethod
    def run(self, data: Data_contra, /) -> Release:
        """One release, drawn exactly with fresh bits from the operating system."""

    @abstractmethod
    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """What to expect before running, from the parameters alone.

        `domain_size`, the number of labels, is needed by selections from a known domain.
        """

    def errors(self, release: Release, confidence: float, *, together: bool = False) -> Errors:
        """Where the true numbers lie: one half-width for all, or an interval for each.

        Each holds with probability `confidence` given that it was released; with `together`, all
        of them do. None if no number is released.
        """
        return None

    @property
    def added(self) -> tuple[Noise, int] | None:
        """The noise of each released number, of so many draws the mean, if it is independent of the
        others' and of what was released; None if more is to be said."""
        return None

    def total(self, release: Release, confidence: float) -> Interval | None:
        """Where the sum of the released true numbers lies; None if no number is released."""
        if release.counts is None:
            return None
        errors = self.errors(release, confidence, together=True)
        if errors is None:
            return None
        if isinstance(errors, tuple):
            return sum(low for low, _ in errors), sum(high for _, high in errors)
        total, width = sum(release.counts), len(release.counts) * errors
        return total - width, total + width


class Repeatable(Mechanism[Data_contra], Protocol[Data_contra]):
    """A mechanism that can draw its numbers again for the labels it has found."""

    __slots__ = ()

    @property
    @abstractmethod
    def noise(self) -> Noise:
        """What is added to each number."""

    @property
    def added(self) -> tuple[Noise, int] | None:
        return self.noise, 1

    @abstractmethod
    def recount(self, labels: int | None) -> Uses:
        """The price of drawing the numbers of this many labels (None: the most) once more."""

    def run(self, data: Data_contra, /) -> Release:
        """One draw of each number."""
        return self.mean(data, 1)

    @abstractmethod
    def mean(self, data: Data_contra, times: int, /) -> Release:
        """Labels found once, with the mean of `times` draws of each number."""

    def errors(self, release: Release, confidence: float, *, together: bool = False) -> Errors:
        """Those of a single draw."""
        return self.errors_of_mean(release, confidence, 1, together=together)

    def errors_of_mean(
        self, release: Release, confidence: float, times: int, *, together: bool
    ) -> float:
        """The half-width of each mean: independent noise; if labels were chosen by their counts,
        all must hold anyway."""
        among = release.among or (len(release.labels) if together else 1)
        return self.noise.half_width(joint_level(confidence, among), times) + release.moved

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """The error of one number."""
        return Expectation(noise_accuracy(self.noise, confidence))


@dataclass(frozen=True, slots=True)
class Around(Mechanism[Data], Generic[Data]):
    """A mechanism that runs another one, on the same data."""

    mechanism: Mechanism[Data]

    @property
    def assumes(self) -> Contribution:
        return self.mechanism.assumes

    @property
    def candidates(self) -> int | None:
        return self.mechanism.candidates


def _at_most(own: int | None, limit: int | None) -> bool:
    """None is no limit."""
    return limit is None or (own is not None and own <= limit)


def leak_once(delta: float) -> tuple[Guarantee, int]:
    """One step that reveals everything with probability δ and nothing otherwise."""
    return (ApproximateDP(0.0, delta), 1)


def summed_uses(*pairs: tuple[Guarantee, int]) -> Uses:
    """Equal guarantees merged into one entry, without those that are not used."""
    total: dict[Guarantee, int] = {}
    for guarantee, count in pairs:
        total[guarantee] = total.get(guarantee, 0) + count
    return tuple((guarantee, count) for guarantee, count in total.items() if count > 0)


#: name → check. epsilon: per draw or per coordinate; contribution_limit: how many counts one
#: unit raises (ℓ0, Δ); per_key_limit: by how much each (ℓ∞, τ); candidates: how many of the
#: largest counts are looked at (d̄).
CHECKS: dict[str, Callable[[str, object], object]] = {
    **dict.fromkeys(("epsilon", "score_range"), partial(require_real, above=0)),
    **dict.fromkeys(("delta", "probability"), partial(require_real, above=0, below=1)),
    **dict.fromkeys(
        ("k", "candidates", "contribution_limit", "per_key_limit"),
        partial(require_count, at_least=1),
    ),
}


def check(mechanism: object, *names: str, optional: tuple[str, ...] = ()) -> None:
    """Replace each named field of a frozen mechanism by its checked value."""
    for name in (*names, *optional):
        value = getattr(mechanism, name)
        if name in names or value is not None:
            object.__setattr__(mechanism, name, CHECKS[name](name, value))


@lru_cache(maxsize=256)
@in_balls
def epsilon_less_leak(epsilon: float, delta: float) -> float:
    """ε + ln(1 − δ), rounded down: what remains of ε when ln(1/(1 − δ)) is set aside."""
    return down(arb(epsilon) + (-arb(delta)).log1p())
