"""Reads typed values and filters, by the kinds of the schema."""

from __future__ import annotations

import csv
import json
import re
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from farthing.engine.filters import as_declared, filter_to_json, require_value, value_to_json
from farthing.engine.keys import key_from, kind_of, unquoted
from farthing.engine.where_text.conditions import filter_in
from farthing.errors import InvalidInput
from farthing.schema import BOOLEAN, DATE, DECIMAL, INTEGER, REAL, TIMESTAMP, Schema

#: One of several keys: no comma but in brackets or in double quotes.
_KEY = re.compile(r'(?:"(?:[^"]|"")*"|\((?:"(?:[^"]|"")*"|[^")])*\)|[^,"(])+')


def value_of(schema: Schema, name: str, text: str) -> Any:
    """A value of this column, as plain data."""
    return _value(schema[name].kind, name, text)


def _value(kind: str, name: str, text: str) -> Any:
    try:
        if kind == INTEGER:
            return int(text) if text.lstrip("+-").isdecimal() else _whole(text)
        if kind == REAL:
            return float(text)
        if kind == DECIMAL:
            return value_to_json(require_value(Decimal(text)))
        if kind == BOOLEAN:
            return {"true": True, "false": False}[text.lower()]
        if kind == DATE:
            return {"date": date.fromisoformat(text).isoformat()}
        if kind == TIMESTAMP:
            return {"time": datetime.fromisoformat(text).isoformat()}
    except (ValueError, KeyError, InvalidOperation):
        raise InvalidInput(f"{name} is {kind}, got {text!r:.60}") from None
    return text


def _whole(text: str) -> int:
    """1e6 is 1000000; 1.5 is no whole number."""
    number = Decimal(text)
    if not number.is_finite() or number.adjusted() > 20 or number != int(number):
        raise ValueError
    return int(number)


def filter_of(schema: Schema, conditions: list[str]) -> dict[str, Any] | None:
    """Filters in JSON, COLUMN=VALUE or COLUMN=VALUE,VALUE, and conditions in words."""
    parts = [_condition(schema, text) for text in conditions]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else {"all_of": parts}


def keys_of(schema: Schema, given: list[str]) -> list[str]:
    """What to group by: a text is one key or several, a,b; brackets and quotes keep commas."""
    return [
        key
        for text in given
        for key in ([text] if text in schema else map(str.strip, _KEY.findall(text)))
    ]


def categories_of(schema: Schema, by: list[str], given: list[str]) -> list[Any] | None:
    """Labels of a known domain; those of several columns are written a,b."""
    if not given:
        return None
    keys = [key_from(name) for name in by]
    kinds = [kind_of(key, schema) for key in keys]
    if len(by) == 1:
        return [_value(kinds[0], by[0], text) for text in given]
    labels = []
    for text in given:
        parts = next(csv.reader([text]))
        if len(parts) != len(by):
            raise InvalidInput(f"a category of {len(by)} columns looks like a,b, got {text!r:.60}")
        labels.append(list(map(_value, kinds, by, parts)))
    return labels


def _condition(schema: Schema, text: str) -> dict[str, Any]:
    if text.lstrip().startswith("{"):
        try:
            found = json.loads(text)
        except json.JSONDecodeError:
            raise InvalidInput(f"a filter in JSON must be one object, got {text!r:.60}") from None
        return dict(found)
    name, equals, values = text.partition("=")
    name = unquoted(name)
    if not equals or name not in schema or values[:1] in ("=", " ", "'"):
        return filter_to_json(as_declared(filter_in(text), schema.kinds)) or {}
    try:
        listed = next(csv.reader([values], strict=True), []) or [""]
    except csv.Error:
        raise InvalidInput(f"several values look like NO,SE, got {values!r:.60}") from None
    found = [value_of(schema, name, value) for value in listed]
    return {name: found if len(found) > 1 else found[0]}
