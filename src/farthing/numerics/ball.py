"""Ball arithmetic (Arb, through python-flint) and the way back to floats.

An `arb` is a midpoint with a radius that provably contains the exact value. Floats enter
exactly and leave through `up` and `down`, rounded to the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from typing import ParamSpec, TypeAlias, TypeVar

from flint import arb, ctx

from farthing.errors import NotCertified

Ball: TypeAlias = arb

P = ParamSpec("P")
R = TypeVar("R")

#: Working precision in bits. Losing 60 bits to cancellation still leaves a full float.
PRECISION = 128


def in_balls(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` with the working precision of this module."""

    @wraps(function)
    def at_precision(*args: P.args, **kwargs: P.kwargs) -> R:
        with ctx.workprec(max(PRECISION, ctx.prec)):
            return function(*args, **kwargs)

    return at_precision


def up(ball: Ball) -> float:
    """A float that is certainly at least the exact value."""
    return _directed(ball.upper(), math.inf)


def down(ball: Ball) -> float:
    """A float that is certainly at most the exact value."""
    return _directed(ball.lower(), -math.inf)


def middle(ball: Ball) -> float:
    """The float nearest to the midpoint: for searches, never for a bound."""
    return float(ball.mid())


def hull(low: Ball, high: Ball) -> Ball:
    """A ball that contains both arguments and everything between them."""
    return low.union(high)


def ends(ball: Ball) -> tuple[Fraction, Fraction]:
    """Fractions between which the exact value certainly lies."""
    return _exactly(ball.lower()), _exactly(ball.upper())


def _exactly(number: Ball) -> Fraction:
    mantissa, exponent = number.man_exp()
    return int(mantissa) * Fraction(2) ** int(exponent)


def _directed(exact: Ball, towards: float) -> float:
    if not exact.is_finite():
        raise NotCertified("the ball arithmetic lost all precision; no bound can be stated")
    nearest = float(exact)
    if arb(nearest) == exact:
        return nearest
    return math.nextafter(nearest, towards)
