"""What a field of an entry may hold, as the types of its fields.

A ledger writes nothing else. So whatever else is found in a book was not written by a ledger, and
a number that is not whole, or a field that nobody knows, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin

from farthing.canonical import canonical
from farthing.errors import InvalidInput
from farthing.interactive import mechanism_from_json, mechanism_to_json
from farthing.ledger.locations import require_location
from farthing.ledger.months import month_name, month_number, written_time
from farthing.ledger.records import LARGEST, require_items, require_name, use_from_json

#: Says whether a value may stand in a field; an error of Python or InvalidInput is as good as no.
Rule: TypeAlias = Callable[[Any], object]


def rule_of(hint: Any) -> Rule:
    """The rule that a field's type stands for."""
    origin = get_origin(hint)
    if origin is Annotated:
        rule: Rule = get_args(hint)[1]
        return rule
    if origin in (Union, UnionType):
        (inner,) = (one for one in get_args(hint) if one is not NoneType)
        required = rule_of(inner)
        return lambda value: value is None or required(value)
    raise TypeError(f"{hint} is not a type of a field")


def holds(rule: Rule, value: Any) -> bool:
    """Whether the value may stand there."""
    try:
        return bool(rule(value))
    except (InvalidInput, AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return False


def one_of(*allowed: object) -> Rule:
    """One of these values, of the same type."""
    return lambda value: any(type(value) is type(one) and value == one for one in allowed)


def _is_whole(value: Any, at_least: int = 0, at_most: int = LARGEST) -> bool:
    """A number of JSON without a fraction; True is none."""
    return type(value) is int and at_least <= value <= at_most


def _is_name(value: Any) -> bool:
    return bool(require_name("it", value))


def _are_names(value: Any) -> bool:
    return type(value) is list and all(map(_is_name, value)) and len(set(value)) == len(value)


def _are_places(value: Any) -> bool:
    return type(value) is list and bool(value) and all(map(require_location, value))


def _is_time(value: Any) -> bool:
    return type(value) is str and written_time(datetime.fromisoformat(value)) == value


def _is_month(value: Any) -> bool:
    return type(value) is str and month_name(month_number(value)) == value


def _is_hex(digits: int) -> Rule:
    pattern = re.compile(f"[0-9a-f]{{{digits}}}")
    return lambda value: type(value) is str and pattern.fullmatch(value) is not None


def _are_items(value: Any) -> bool:
    return max(require_items(value).values()) <= LARGEST


def _is_use(value: Any) -> bool:
    return canonical(use_from_json(value).to_json()) == canonical(value)


def _is_mechanism(value: Any) -> bool:
    return canonical(mechanism_to_json(mechanism_from_json(value))) == canonical(value)


Name = Annotated[str, _is_name]
Names = Annotated[list[str], _are_names]
Places = Annotated[list[str], _are_places]
Time = Annotated[str, _is_time]
Month = Annotated[str, _is_month]
Token = Annotated[str, _is_hex(32)]
Hash = Annotated[str, _is_hex(64)]
#: The number of an entry or of an account.
Number = Annotated[int, lambda value: _is_whole(value, at_least=1)]
Amount = Annotated[int, _is_whole]
#: An amount that comes back, written as a negative number.
Returned = Annotated[int, lambda value: _is_whole(value, at_least=-LARGEST, at_most=0)]
Nothing = Annotated[int, one_of(0)]
Items = Annotated[dict[str, int], _are_items]
ItemsOrNone = Annotated[dict[str, int], lambda value: value == {} or _are_items(value)]
NoItems = Annotated[dict[str, int], lambda value: value == {} and type(value) is dict]
UseData = Annotated[dict[str, Any], _is_use]
MechanismData = Annotated[dict[str, Any], _is_mechanism]
#: What the entry itself takes apart when it is applied.
Document = Annotated[dict[str, Any], lambda value: type(value) is dict]
Anything = Annotated[Any, lambda _: True]
