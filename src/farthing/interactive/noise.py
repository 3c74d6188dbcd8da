"""The noise of conversations: whole numbers with two-sided geometric tails, drawn exactly."""

from __future__ import annotations

from fractions import Fraction

from farthing.mechanisms.discrete_laplace import DiscreteLaplaceNoise
from farthing.mechanisms.randomness import system_bits

Noise = DiscreteLaplaceNoise


def noise_for(epsilon: float, shift: int) -> Noise:
    """Noise whose probabilities change by at most the factor e^ε when it is shifted by `shift`."""
    return Noise(shift / Fraction(epsilon))


def drawn(noise: Noise) -> int:
    """One exact draw. Nothing is drawn ahead: a number kept for later could be used twice."""
    return int(noise.draw(1, system_bits())[0])
