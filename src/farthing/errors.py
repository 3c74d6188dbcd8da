"""Every error farthing raises on purpose.

    FarthingError
    ├── InvalidInput      what was given can never be right (also a ValueError)
    ├── Unsupported       the question is well formed, but no theorem answers it
    ├── Unattainable      the target cannot be met by any value
    ├── NotCertified      the numerics could not prove an answer; none is returned
    └── BudgetExceeded    an accountant has not enough left (composition/accounts/accountant.py)

Messages say what must hold, what was given and, where it helps, what to do instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class FarthingError(Exception):
    """Base of every error raised on purpose."""


class InvalidInput(FarthingError, ValueError):
    """A parameter is outside the range in which it means anything."""


class Unsupported(FarthingError):
    """No theorem covers this combination; the message names one that is close."""


class Unattainable(FarthingError):
    """No finite value reaches the target that was asked for."""


class NotCertified(FarthingError):
    """The numerics could not enclose the answer. Nothing is returned instead."""


def require_real(
    name: str,
    value: object,
    *,
    at_least: float | None = None,
    above: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """`value` as a finite float inside the stated range, or InvalidInput."""
    number = _as_float(value)
    if (
        number is None
        or not math.isfinite(number)
        or (at_least is not None and number < at_least)
        or (above is not None and number <= above)
        or (below is not None and number >= below)
        or (at_most is not None and number > at_most)
    ):
        limits = {"at least": at_least, "greater than": above, "less than": below}
        limits["at most"] = at_most
        wanted = [f"{words} {limit:g}" for words, limit in limits.items() if limit is not None]
        raise InvalidInput(f"{name} must be {_and(['finite', *wanted])}, got {_shown(value)}")
    return number


def require_count(name: str, value: object, *, at_least: int = 0) -> int:
    """`value` as a whole number of at least `at_least`, or InvalidInput."""
    whole = value if isinstance(value, int) and not isinstance(value, bool) else None
    if whole is None and hasattr(value, "__index__") and not isinstance(value, bool):
        whole = value.__index__()
    if whole is None or whole < at_least:
        raise InvalidInput(
            f"{name} must be a whole number of at least {at_least}, got {_shown(value)}"
        )
    return whole


def require_choice(name: str, value: object, choices: Iterable[str]) -> str:
    """`value` if it is one of `choices`, or InvalidInput."""
    allowed = tuple(choices)
    if value not in allowed:
        raise InvalidInput(
            f"{name} must be one of {', '.join(allowed)}, got {_shown(value)}"
            + did_you_mean(value, allowed)
        )
    return str(value)


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the nearest known one."""
    by_small_letters = {name.casefold(): name for name in known}
    found = get_close_matches(str(given).casefold(), by_small_letters, n=1)
    return f"; did you mean {by_small_letters[found[0]]}?" if found else ""


def within_reason(read: Callable[P, T]) -> Callable[P, T]:
    """A reader whose only errors are ours, however deep the text nests."""

    @wraps(read)
    def reader(*values: P.args, **named: P.kwargs) -> T:
        try:
            return read(*values, **named)
        except RecursionError:
            raise InvalidInput("the SQL nests deeper than can be read") from None

    return reader


def _as_float(value: object) -> float | None:
    if isinstance(value, bool | str | bytes) or value is None:
        return None
    try:
        return float(value)  # type: ignore[arg-type] # anything with __float__ is welcome
    except (TypeError, ValueError, OverflowError):
        return None


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
