"""Randomized response, generalized and leaky: the mechanisms that attain the bounds."""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb

from farthing.errors import InvalidInput, require_real
from farthing.guarantees.kinds import ApproximateDP, BoundedRange
from farthing.mechanisms.noise.exact_sampling import bernoulli, system_bits
from farthing.mechanisms.protocol import Uses, check
from farthing.numerics.ball import Ball


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralizedRandomizedResponse:
    """A bit answered so that the privacy losses are t and t − ε, t = largest_loss.

    Definition 2.4 of [DDR20]. Bit 0 is answered 0 with probability q = (1 − e^(t−ε))/(1 − e^−ε),
    bit 1 is answered 0 with probability p = (e^−t − e^−ε)/(1 − e^−ε). With t = ε/2 it is Warner's.
    """

    epsilon: float
    largest_loss: float

    def __post_init__(self) -> None:
        check(self, "epsilon")
        loss = require_real("largest_loss", self.largest_loss, at_least=0)
        if loss > self.epsilon:
            raise InvalidInput(
                f"largest_loss must be at most epsilon = {self.epsilon:g}, got {loss:g}"
            )
        object.__setattr__(self, "largest_loss", loss)

    @property
    def guarantees(self) -> Uses:
        """One ε-bounded-range answer."""
        return ((BoundedRange(self.epsilon), 1),)

    def run(self, bit: int) -> int:
        """0 or 1."""
        secret = require_bit(bit)
        return 0 if bernoulli(lambda: self.probability_of_zero(secret), system_bits()) else 1

    def accuracy(self, bit: int) -> float:
        """The probability that the answer differs from the bit."""
        zero = float(self.probability_of_zero(require_bit(bit)).mid())
        return zero if bit else 1 - zero

    def probability_of_zero(self, bit: int) -> Ball:
        """q for bit 0, p for bit 1; exact where it is a constant."""
        if self.largest_loss in (0, self.epsilon):
            return arb(1 if self.largest_loss == 0 else 0)
        epsilon, loss = arb(self.epsilon), arb(self.largest_loss)
        whole = -(-epsilon).expm1()
        if bit == 0:
            return -(loss - epsilon).expm1() / whole
        return ((-loss).exp() - (-epsilon).exp()) / whole


@dataclass(frozen=True, slots=True)
class LeakyAnswer:
    """A bit, and whether it is certainly the true one."""

    bit: int
    leaked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakyRandomizedResponse:
    """With probability δ the bit, marked as true; otherwise the bit with odds e^ε : 1.

    Every (ε, δ)-DP mechanism is a post-processing of it [Smith25, Lemma 3.1].
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check(self, "epsilon", "delta")

    @property
    def guarantees(self) -> Uses:
        """One (ε, δ)-DP answer."""
        return ((ApproximateDP(self.epsilon, self.delta), 1),)

    def run(self, bit: int) -> LeakyAnswer:
        """The answer."""
        secret, source = require_bit(bit), system_bits()
        if bernoulli(lambda: arb(self.delta), source):
            return LeakyAnswer(secret, leaked=True)
        truthful = bernoulli(lambda: 1 / (1 + (-arb(self.epsilon)).exp()), source)
        return LeakyAnswer(secret if truthful else 1 - secret, leaked=False)

    def accuracy(self) -> float:
        """The probability that the answer differs from the bit."""
        return (1 - self.delta) * float((1 / (1 + arb(self.epsilon).exp())).mid())


def require_bit(bit: object) -> int:
    """0 or 1. The message does not repeat the value, which may be personal data."""
    if bit not in (0, 1) or isinstance(bit, bool):
        raise InvalidInput("the bit must be 0 or 1, got something else")
    return int(bit)
