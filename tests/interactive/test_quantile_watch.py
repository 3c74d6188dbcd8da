"""A watch over quantiles: the number that is compared, and what it costs, by enumeration."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product

import pytest

from tests.interactive.exact_sparse_vector import Compared, ExactSparseVector

VALUES = range(4)
QUANTILES = [Fraction(1, 2), Fraction(1, 3), Fraction(3, 4), Fraction(9, 10)]
A, B = Fraction(2, 3), Fraction(1, 2)

Table = tuple[int, ...]


def number(table: Table, q: Fraction, v: int) -> int:
    """a·#{x ≥ v} − (b − a)·#{x < v}."""
    below = sum(x < v for x in table)
    return q.numerator * (len(table) - below) - (q.denominator - q.numerator) * below


def tables(most: int) -> Iterator[Table]:
    for size in range(most + 1):
        yield from combinations_with_replacement(VALUES, size)


def change(q: Fraction, values: int = 1) -> int:
    return max(q.numerator, q.denominator - q.numerator) * values


@pytest.mark.parametrize("q", QUANTILES)
def test_it_is_not_negative_exactly_if_the_quantile_is_at_least_the_value(q: Fraction) -> None:
    """The quantile of n values is number ⌊qn⌋ of them, counted from 0."""
    for table in tables(6):
        for v in VALUES:
            reached = not table or sorted(table)[q.numerator * len(table) // q.denominator] >= v
            assert (number(table, q, v) >= 0) == reached


@pytest.mark.parametrize("q", QUANTILES)
@pytest.mark.parametrize("values", [1, 2])
def test_a_unit_moves_it_both_ways_by_at_most_what_is_charged(q: Fraction, values: int) -> None:
    moved = {
        number((*table, *unit), q, v) - number(table, q, v)
        for table in tables(3)
        for unit in combinations_with_replacement(VALUES, values)
        for v in VALUES
    }
    assert max(moved) == q.numerator * values
    assert min(moved) == -(q.denominator - q.numerator) * values
    assert max(map(abs, moved)) == change(q, values)


@pytest.mark.parametrize("q", QUANTILES)
def test_no_transcript_of_neighbours_exceeds_epsilon(q: Fraction) -> None:
    """Noise with its infinite tails: e^ε = A^−Δ·B^−2Δ for one positive answer, both directions."""
    exact, most = ExactSparseVector(A, B), change(q)
    bound = A**-most * B ** (-2 * most)
    for table, unit in product(tables(2), VALUES):
        for asked in product(range(1, 4), repeat=2):
            for answers in ((False, False), (False, True), (True, False)):
                sides: list[list[Compared]] = [
                    [(number(t, q, v), yes) for v, yes in zip(asked, answers, strict=True)]
                    for t in (table, (*table, unit))
                ]
                one, other = map(exact.probability, sides)
                assert one <= bound * other
                assert other <= bound * one


def test_the_price_of_a_monotone_number_would_not_be_enough() -> None:
    """A value of 2 raises the rank at 1 and lowers it at 3: no to one and yes to the other."""
    q = Fraction(1, 2)
    before, after = (0,) * 3, (0, 0, 0, 2)
    exact = ExactSparseVector(A, B)
    chances = [
        exact.probability([(number(t, q, 1), False)] * 30 + [(number(t, q, 3), True)])
        for t in (before, after)
    ]
    assert chances[0] > chances[1] / A / B
    assert chances[0] <= chances[1] / A / B**2
