"""Several totals of the same units, each with noise of its own."""

from __future__ import annotations

from dataclasses import dataclass

from farthing.errors import InvalidInput, require_count
from farthing.mechanisms.accuracy import DEFAULT_CONFIDENCE, Expectation, require_confidence
from farthing.mechanisms.noise import Coordinate, Noise, coordinate_noise
from farthing.mechanisms.protocol import Contribution, Mechanism, Uses
from farthing.mechanisms.randomness import system_bits
from farthing.mechanisms.release import Release


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
