"""Canonical JSON and its digest. Everything that is hashed is written like this."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from farthing.errors import InvalidInput

_NESTED = (dict, list, tuple)

_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


def canonical(value: object) -> str:
    """Sorted keys, all of them text, no spaces, no NaN; InvalidInput for what is not plain JSON."""
    try:
        text = _encode(value)
        text.encode("utf-8")
        _require_text_keys((value,))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"the value must be plain JSON: {error}") from None
    return text


def digest(value: object) -> str:
    """SHA-256 of the canonical JSON of a value, in hexadecimal."""
    return sha256(canonical(value))


def sha256(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _require_text_keys(value: Any) -> None:
    """Other keys are turned into text by JSON, in an order of their own and perhaps twice."""
    if isinstance(value, dict):
        for key in value:  # in the path of every reservation; a generator costs twice as much
            if not isinstance(key, str):
                raise TypeError("every key must be text")
        value = value.values()
    for inner in value:
        if isinstance(inner, _NESTED):
            _require_text_keys(inner)
