"""Approximate Rényi DP of a conversation has no decomposition: the example of concurrency.md.

The first answer is 1 or 2 with probability ½ each. After 1 the adversary asks a or b, after 2 only
c; the bit that is answered is 1 with the probabilities below. δ of each side may be left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

DELTA, HALF = Fraction(1, 10), Fraction(1, 2)


@dataclass(frozen=True)
class Bit:
    """A question answered 1 with probability p in the first and q < p in the second system."""

    p: Fraction
    q: Fraction

    def moment(self, left_out: Fraction, other: Fraction) -> Fraction:
        """The smallest Σ (P − e)²/(Q − f) below this question, where e, f have these sums.

        The derivative in e is −2·ratio and in f ratio², so e belongs to the answer 1, with the
        larger ratio, and f to the answer 0, as long as their ratios stay in order: they do here.
        """
        assert self.ratios_stay_in_order(left_out, other)
        one = (HALF * self.p - left_out) ** 2 / (HALF * self.q)
        return one + (HALF * (1 - self.p)) ** 2 / (HALF * (1 - self.q) - other)

    def ratios_stay_in_order(self, left_out: Fraction, other: Fraction) -> bool:
        one = (HALF * self.p - left_out) / (HALF * self.q)
        return one >= HALF * (1 - self.p) / (HALF * (1 - self.q) - other)

    def slopes(self, left_out: Fraction, other: Fraction) -> tuple[Fraction, Fraction]:
        """The derivatives of `moment`."""
        zero = HALF * (1 - self.q) - other
        return (
            -2 * (HALF * self.p - left_out) / (HALF * self.q),
            (HALF * (1 - self.p) / zero) ** 2,
        )

    def reverse(self, left_out: Fraction, other: Fraction) -> Fraction:
        """Σ (Q − f)²/(P − e) with the same leak."""
        one = (HALF * self.q) ** 2 / (HALF * self.p - left_out)
        return one + (HALF * (1 - self.q) - other) ** 2 / (HALF * (1 - self.p))


A = Bit(Fraction(1, 8), Fraction(1, 240))
B = Bit(Fraction(1, 2), Fraction(1, 8))
C = Bit(Fraction(3, 10), Fraction(1, 50))


def alone(asked: Bit, left_out: Fraction, other: Fraction) -> Fraction:
    """What remains if this question follows answer 1, with so much of δ spent there."""
    return asked.moment(left_out, other) + C.moment(DELTA - left_out, DELTA - other)


def test_each_adversary_alone_is_served() -> None:
    for asked, spent, bound in (
        (A, (Fraction(431, 10_000), Fraction(46, 10_000)), Fraction("1.746")),
        (B, (Fraction(0), Fraction(9275, 100_000)), Fraction("1.686")),
    ):
        assert alone(asked, *spent) < bound
        rest = DELTA - spent[0], DELTA - spent[1]
        assert asked.reverse(*spent) + C.reverse(*rest) < bound  # the other direction as well


def test_no_leak_serves_both() -> None:
    """λa + (1 − λ)b + c is convex in how δ is spent, so it lies above its tangent plane."""
    weight = Fraction(37, 100)
    spent = Fraction(2997, 100_000), Fraction(529, 10_000)
    rest = DELTA - spent[0], DELTA - spent[1]
    value = weight * A.moment(*spent) + (1 - weight) * B.moment(*spent) + C.moment(*rest)
    slopes = [
        weight * a + (1 - weight) * b - c
        for a, b, c in zip(A.slopes(*spent), B.slopes(*spent), C.slopes(*rest), strict=True)
    ]
    least = value + sum(
        min(slope * (Fraction(0) - at), slope * (DELTA - at))
        for slope, at in zip(slopes, spent, strict=True)
    )
    assert least > Fraction("1.85")


def test_the_moment_below_a_question_is_the_smallest() -> None:
    """Every other way to leave out the same amounts, on a grid, is worse."""
    total, other = Fraction(3, 100), Fraction(5, 100)
    for bit in (A, B, C):
        best = bit.moment(total, other)
        for i in range(11):
            for j in range(11):
                e, f = total * i / 10, other * j / 10
                one_p, one_q = HALF * bit.p - e, HALF * bit.q - f
                zero_p = HALF * (1 - bit.p) - (total - e)
                zero_q = HALF * (1 - bit.q) - (other - f)
                if one_p >= 0 and one_q > 0:
                    assert one_p**2 / one_q + zero_p**2 / zero_q >= best
