"""Directed rounding by name, for arithmetic and for people.

Arithmetic in float64 errs by at most `UNIT` relative in every operation on normal numbers. A
computation that may err by k such units is inflated by k units where its result is an upper bound
and deflated where it is a lower one.

Numbers shown to people are rounded the same way: an upper bound up and a lower one down, so that
the text read back as a float is still on the safe side.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from farthing.errors import NotCertified

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Number = TypeVar("Number", float, FloatArray)

#: The relative error of one rounding to the nearest float.
UNIT = 2.0**-53

#: Significant digits that a bound is shown with at least, and decimals from 0.1 on.
DIGITS = 6
#: Beyond this many digits before the decimal point the notation is scientific.
_LONGEST = 15


def inflated(value: Number, units: float) -> Number:
    """A non-negative result that erred by less than `units − 2` roundings, moved up past the truth.

    Two units pay for the multiplication itself.
    """
    return value * (1 + units * UNIT)


def deflated(value: Number, units: float) -> Number:
    """A non-negative result that erred by less than `units − 2` roundings, moved down past it."""
    return value * (1 - units * UNIT)


def float_up(exact: Fraction) -> float:
    """The smallest float that is not below the exact number."""
    nearest = exact.numerator / exact.denominator
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)


def float_down(exact: Fraction) -> float:
    """The largest float that is not above the exact number."""
    nearest = exact.numerator / exact.denominator
    return nearest if nearest <= exact else math.nextafter(nearest, -math.inf)


def shown_up(bound: float | None, *, digits: int = DIGITS) -> str:
    """An upper bound as text, never below it when read back; "not proved" for None."""
    return "not proved" if bound is None else _shown(bound, ROUND_CEILING, digits)


def shown_down(bound: float | None, *, digits: int = DIGITS) -> str:
    """A lower bound as text, never above it when read back; "not proved" for None."""
    return "not proved" if bound is None else _shown(bound, ROUND_FLOOR, digits)


def _shown(bound: float, rounding: str, digits: int) -> str:
    """At least `digits` significant digits, and as many decimals; fewer where they are zeros.

    The decimal that is rounded is the shortest one that reads back as the float, so 0.1 stays 0.1.
    """
    if math.isnan(bound):
        raise NotCertified("a bound that is not a number cannot be shown")
    if math.isinf(bound):
        return "inf" if bound > 0 else "-inf"
    exact = Decimal(repr(float(bound)))
    if exact == 0:
        return "0"
    before_point = exact.adjusted() + 1
    context = Context(prec=digits + max(before_point, 0), rounding=rounding)
    rounded = context.plus(exact).normalize()
    if -4 <= rounded.adjusted() < _LONGEST:
        return f"{rounded:f}"
    return _read_back(f"{rounded:e}", rounding)


def _read_back(text: str, rounding: str) -> str:
    """The text, or the largest float where rounding outwards would read back as infinite."""
    limit = math.inf if rounding == ROUND_CEILING else -math.inf
    return repr(math.copysign(math.nextafter(math.inf, 0), limit)) if float(text) == limit else text
