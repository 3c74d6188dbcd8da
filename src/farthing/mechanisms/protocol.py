"""What a mechanism is: what it assumes, what it costs, what to expect of it, and a run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import le
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from flint import arb

from farthing.errors import require_count, require_real
from farthing.guarantees.kinds import ApproximateDP, Guarantee
from farthing.mechanisms.accuracy import DEFAULT_CONFIDENCE, Expectation, Interval
from farthing.numerics.ball import down, in_balls

#: What composition charges: guarantees, each with how often it is used. Independent steps.
Uses: TypeAlias = tuple[tuple[Guarantee, int], ...]

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

    def errors(
        self, release: Release, confidence: float, *, together: bool = False
    ) -> float | tuple[Interval, ...] | None:
        """Where the true numbers lie: one half-width for all, or an interval for each.

        Each holds with probability `confidence` given that it was released; with `together`, all
        of them do. None if no number is released.
        """
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


def _positive(name: str, value: object) -> float:
    return require_real(name, value, above=0)


def _at_least_one(name: str, value: object) -> int:
    return require_count(name, value, at_least=1)


def _probability(name: str, value: object) -> float:
    return require_real(name, value, above=0, below=1)


#: name → check. epsilon: per draw or per coordinate; contribution_limit: how many counts one
#: unit raises (ℓ0, Δ); per_key_limit: by how much each (ℓ∞, τ); candidates: how many of the
#: largest counts are looked at (d̄).
CHECKS: dict[str, Callable[[str, object], object]] = {
    "epsilon": _positive,
    "score_range": _positive,
    "delta": _probability,
    "probability": _probability,
    "k": _at_least_one,
    "candidates": _at_least_one,
    "contribution_limit": _at_least_one,
    "per_key_limit": _at_least_one,
}


def check(mechanism: object, *names: str, optional: tuple[str, ...] = ()) -> None:
    """Replace each named field of a frozen mechanism by its checked value."""
    for name in names:
        object.__setattr__(mechanism, name, CHECKS[name](name, getattr(mechanism, name)))
    for name in optional:
        value = getattr(mechanism, name)
        if value is not None:
            object.__setattr__(mechanism, name, CHECKS[name](name, value))


@lru_cache(maxsize=256)
@in_balls
def epsilon_less_leak(epsilon: float, delta: float) -> float:
    """ε + ln(1 − δ), rounded down: what remains of ε when ln(1/(1 − δ)) is set aside."""
    return down(arb(epsilon) + (-arb(delta)).log1p())
