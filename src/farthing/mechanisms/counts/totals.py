"""Noisy totals of whole numbers that each unit changes by a bounded amount: one, or several."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from farthing.errors import InvalidInput, require_count
from farthing.mechanisms.noise.discrete import Coordinate, Noise, coordinate_noise
from farthing.mechanisms.noise.exact_sampling import system_bits
from farthing.mechanisms.protocol import (
    DEFAULT_CONFIDENCE,
    Contribution,
    Expectation,
    Mechanism,
    Release,
    Repeatable,
    Uses,
    require_confidence,
)

_LARGEST_BOUND = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedSum(Repeatable[int]):
    """The sum plus the noise that its guarantee asks for, as one count.

    Adding a unit adds a whole number between `lower` and `upper`, so it moves the sum by at most
    the larger bound (docs/theory/mechanisms.md, Theorems 1, 2 and 2a, with τ that bound).
    """

    coordinate: Coordinate
    lower: int
    upper: int

    def __post_init__(self) -> None:
        lower = require_count("lower", self.lower, at_least=-_LARGEST_BOUND)
        upper = require_count("upper", self.upper, at_least=lower)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        if lower == upper == 0:
            raise InvalidInput("lower and upper must not both be 0")
        _ = self.noise  # the scale is checked when the mechanism is made

    @property
    def noise(self) -> Noise:
        """What is added."""
        return coordinate_noise(self.coordinate, self.assumes.per_key_limit)

    @property
    def assumes(self) -> Contribution:
        """One number, changed by at most the larger bound."""
        return Contribution(1, max(abs(self.lower), abs(self.upper)))

    @property
    def guarantees(self) -> Uses:
        """One coordinate."""
        return ((self.coordinate, 1),)

    def recount(self, labels: int | None) -> Uses:
        """The price of drawing the sum once more."""
        return self.guarantees

    def mean(self, total: int, times: int) -> Release:
        """The mean of `times` noisy sums, as the nearest float; a single one stays whole.

        In Python's whole numbers: nothing overflows.
        """
        drawn = times * total + sum(self.noise.draw(times, system_bits()).tolist())
        return Release(("sum",), (drawn if times == 1 else float(Fraction(drawn, times)),))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTotals(Mechanism[tuple[int, ...]]):
    """Each total plus the noise that its guarantee asks for.

    A unit changes the i-th total by a whole number of at most `limits[i]`, up or down: one
    coordinate each, with noise as many times wider (Theorem 12 of docs/theory/mechanisms.md).
    """

    coordinate: Coordinate
    limits: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.limits:
            raise InvalidInput("there must be at least one total, got none")
        for limit in self.limits:
            require_count("a limit of a total", limit, at_least=1)
        _ = self.noises  # the scales are checked when the mechanism is made

    @property
    def noises(self) -> tuple[Noise, ...]:
        """What is added to each total."""
        return tuple(coordinate_noise(self.coordinate, limit) for limit in self.limits)

    @property
    def assumes(self) -> Contribution:
        """One label, with that many numbers."""
        return Contribution(1, self.limits[0], self.limits[1:])

    @property
    def guarantees(self) -> Uses:
        """One coordinate for each total."""
        return ((self.coordinate, len(self.limits)),)

    def run(self, totals: tuple[int, ...]) -> Release:
        """The noisy totals, in Python's whole numbers: nothing overflows."""
        source = system_bits()
        drawn = tuple(
            total + int(noise.draw(1, source)[0])
            for total, noise in zip(totals, self.noises, strict=True)
        )
        return Release(tuple(range(len(drawn))), drawn)

    def half_widths(self, confidence: float) -> tuple[float, ...]:
        """Intervals around the totals that hold all together."""
        each = 1 - (1 - confidence) / len(self.limits)
        return tuple(noise.half_width(each) for noise in self.noises)

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """Intervals around the totals."""
        return Expectation(totals=self.half_widths(require_confidence(confidence)))
