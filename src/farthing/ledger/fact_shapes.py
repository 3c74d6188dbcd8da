"""What an entry of each kind says: which fields, and what each may hold.

The roles write nothing else. So whatever else is found in a book was not written by a ledger, and a
number that is not a whole one, or a field that nobody knows, is not read as if it were.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeAlias

from farthing.canonical import canonical
from farthing.composition.accounts.account_profiles import HALVING
from farthing.errors import InvalidInput
from farthing.interactive import mechanism_from_json, mechanism_to_json
from farthing.ledger.locations import require_location
from farthing.ledger.months import month_name, month_number, written_time
from farthing.ledger.records import (
    BATCH,
    END,
    LARGEST,
    LEVELS,
    MONTHLY,
    OPEN,
    RELOCATE,
    RESTORE,
    RETIRE,
    SAID,
    SETWISE,
    TARIFF,
    require_items,
    require_name,
    use_from_json,
)
from farthing.ledger.store.statements import SEAL

#: Says whether a value may stand in a field; InvalidInput is as good as no.
Rule: TypeAlias = Callable[[Any], object]


def require_shape(fact: Mapping[str, Any]) -> None:
    """The fields of the fact's kind, and in each what it may hold; or InvalidInput."""
    kind = fact.get("kind")
    if kind == "account":
        kind = _ACCOUNT if fact.get("mode") == TARIFF else _LIST
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise InvalidInput(f"there is no kind of entry {kind!r:.60}")
    fields = {**_EVERY, **_FIELDS[kind]}
    missing = fields.keys() - fact.keys() - _LATER.get(kind, set())
    if missing or fact.keys() - fields.keys():
        wrong = min(missing or fact.keys() - fields.keys())
        raise InvalidInput(f"{wrong!r:.60} is {'missing' if missing else 'not a field of it'}")
    for name, value in fact.items():
        if not _holds(fields[name], value):
            raise InvalidInput(f"its {name} is nothing that a ledger writes there")


def _holds(rule: Rule, value: Any) -> bool:
    try:
        return bool(rule(value))
    except (InvalidInput, AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return False


def _is_whole(value: Any, at_least: int = 0, at_most: int = LARGEST) -> bool:
    """A number of JSON without a fraction; True is none."""
    return type(value) is int and at_least <= value <= at_most


def _is_number(value: Any) -> bool:
    return _is_whole(value, at_least=1)


def _is_returned(value: Any) -> bool:
    return _is_whole(value, at_least=-LARGEST, at_most=0)


def _is_name(value: Any) -> bool:
    return bool(require_name("it", value))


def _is_names(value: Any) -> bool:
    return type(value) is list and all(map(_is_name, value)) and len(set(value)) == len(value)


def _is_places(value: Any) -> bool:
    return type(value) is list and bool(value) and all(map(require_location, value))


def _is_time(value: Any) -> bool:
    return type(value) is str and written_time(datetime.fromisoformat(value)) == value


def _is_month(value: Any) -> bool:
    return type(value) is str and month_name(month_number(value)) == value


def _is_token(value: Any) -> bool:
    return type(value) is str and re.fullmatch("[0-9a-f]{32}", value) is not None


def _is_hash(value: Any) -> bool:
    return type(value) is str and re.fullmatch("[0-9a-f]{64}", value) is not None


def _is_items(value: Any) -> bool:
    return max(require_items(value).values()) <= LARGEST


def _is_use(value: Any) -> bool:
    return canonical(use_from_json(value).to_json()) == canonical(value)


def _is_mechanism(value: Any) -> bool:
    return canonical(mechanism_to_json(mechanism_from_json(value))) == canonical(value)


def _is_anything(_: Any) -> bool:
    return True


def _is_data(value: Any) -> bool:
    """What Replay takes apart itself."""
    return type(value) is dict


def _just(*allowed: object) -> Rule:
    return lambda value: any(type(value) is type(one) and value == one for one in allowed)


def _or_none(rule: Rule) -> Rule:
    return lambda value: value is None or rule(value)


_EVERY: dict[str, Rule] = {
    "kind": _is_name,
    "dataset": _is_name,
    "time": _is_time,
    "token": _is_token,
}
_DECLARES: dict[str, Rule] = {"description": _is_data, "beside": _is_names}
_DECLARES_AGAIN: dict[str, Rule] = {**_DECLARES, "former": _is_places}
_OPENS: dict[str, Rule] = {"account": _is_number, "name": _is_name, "share": _is_number}
_HOLDER: dict[str, Rule] = {"account": _is_number, "analyst": _is_name}
_AMOUNTS: dict[str, Rule] = {"farthings": _is_whole, "delta_units": _is_whole}
_CHARGES: dict[str, Rule] = {
    **_HOLDER,
    **_AMOUNTS,
    "items": _is_items,
    "month": _is_month,
    "question": _is_anything,
    "question_digest": _or_none(_is_hash),
}
_SETTLES: dict[str, Rule] = {
    **_HOLDER,
    "settles": _is_number,
    "question_digest": _or_none(_is_hash),
}
_SAYS: dict[str, Rule] = {
    "conversation": _is_token,
    "analyst": _is_name,
    "asked": _is_whole,
    "head": _is_hash,
}
_ACCOUNT, _LIST = "account of a tariff", "account of a list"
_FIELDS: Mapping[str, dict[str, Rule]] = MappingProxyType(
    {
        "dataset": {**_DECLARES, "ledger": _is_name},
        "version": _DECLARES_AGAIN,
        "describe": _DECLARES_AGAIN,
        RELOCATE: _DECLARES_AGAIN,
        _ACCOUNT: {
            **_OPENS,
            "mode": _just(TARIFF),
            "certificate": _is_data,
            "levels": _just(LEVELS, HALVING),
        },
        _LIST: {
            **_OPENS,
            "mode": _just(BATCH, SETWISE),
            "document": _is_data,
            "analyst": _is_name,
        },
        "grant": {
            **_HOLDER,
            **_AMOUNTS,
            "renewal": _just(None, MONTHLY),
            "month": _or_none(_is_month),
        },
        "revoke": {**_HOLDER, **_AMOUNTS},
        "reserve": {**_CHARGES, "month": _or_none(_is_month)},
        "close": {
            **_SETTLES,
            "unused": lambda value: value == {} or _is_items(value),
            "farthings": _is_returned,
            "delta_units": _is_returned,
            "release_digest": _is_name,
            "release": _is_anything,
            "use": _or_none(_is_use),
            "revoked": _or_none(_is_number),
        },
        "abandon": {
            **_SETTLES,
            "unused": _just({}),
            "farthings": _just(0),
            "delta_units": _just(0),
            "reason": _is_name,
        },
        OPEN: {
            **_CHARGES,
            "conversation": _is_token,
            "mechanism": _is_mechanism,
            "commitment": _is_hash,
            "use": _or_none(_is_use),
        },
        SAID: _SAYS,
        END: {**_SAYS, "settles": _is_number, "reason": _is_name},
        SEAL: {"successor": _is_name},
        "resume": {"ledger": _is_name, "seal": _is_hash},
        RETIRE: {"account": _is_number},
        RESTORE: {"ledger": _is_name},
    }
)
#: What earlier formats did not write.
_LATER = {
    "dataset": {"beside", "ledger"},
    "version": {"former"},
    "describe": {"former"},
    "close": {"use", "revoked"},
    _ACCOUNT: {"share"},
    _LIST: {"share"},
}
