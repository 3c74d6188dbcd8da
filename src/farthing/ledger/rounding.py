"""How bounds are shown to people: never smaller than they are."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context

_SIX_DIGITS = Context(prec=6, rounding=ROUND_CEILING)


def rounded_up(bound: float | None) -> str:
    """Six digits, the last one rounded up; None is not proved."""
    if bound is None:
        return "not proved"
    return f"{float(_SIX_DIGITS.create_decimal_from_float(bound)):.6g}"
