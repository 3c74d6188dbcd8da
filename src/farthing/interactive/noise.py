"""The noise of conversations: whole numbers with two-sided geometric tails, drawn exactly."""

from __future__ import annotations

from fractions import Fraction

from farthing.mechanisms.discrete_laplace import DiscreteLaplaceNoise
from farthing.mechanisms.randomness import system_bits

Noise = DiscreteLaplaceNoise
#: How many numbers are drawn at a time at most.
LARGEST_BLOCK = 1024


def noise_shifted_by(epsilon: float, shift: int) -> Noise:
    """Noise whose probabilities change by at most the factor e^ε when it is shifted by `shift`."""
    return Noise(shift / Fraction(epsilon))


def drawn(noise: Noise) -> int:
    """One exact draw. Nothing is drawn ahead: a number kept for later could be used twice."""
    return int(noise.draw(1, system_bits())[0])


class Draws:
    """Exact draws for several questions that are answered in one go, made in blocks.

    It lives as long as that call: what is left over is dropped with it, and nothing is kept that
    could be used twice.
    """

    def __init__(self) -> None:
        self._bits = system_bits()
        # by id: hashing costs more than a draw
        self._kinds: dict[int, tuple[Noise, list[int]]] = {}
        self._block = 4

    def __call__(self, noise: Noise) -> int:
        """The next number, used once."""
        known = self._kinds.get(id(noise))
        if known is None:
            known = self._kinds[id(noise)] = noise, []
        left = known[1]
        if not left:
            self._block = min(2 * self._block, LARGEST_BLOCK)
            left.extend(noise.draw(self._block, self._bits).tolist())
        return left.pop()
