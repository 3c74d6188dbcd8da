"""The hash chain: every entry's hash covers its own fact and, through the one before, all others.

    content_n = SHA-256(canonical JSON of the fact)
    hash_n    = SHA-256(hash_{n−1} content_n),    hash_0 = GENESIS

The database computes hash_n itself, in the statement that takes the dataset's lock, so that
two writers can never build on the same head (`store.link`).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from farthing.errors import InvalidInput

GENESIS = "0" * 64
_NESTED = (dict, list, tuple)

_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


def canonical(value: object) -> str:
    """The one text of a JSON value: sorted keys, all of them text, no spaces, no NaN."""
    try:
        text = _encode(value)
        text.encode("utf-8")
        _require_text_keys((value,))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"what is kept in the ledger must be plain JSON: {error}") from None
    return text


def _require_text_keys(value: Any) -> None:
    """Other keys are turned into text by JSON, in an order of their own and perhaps twice."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("every key must be text")
        value = value.values()
    for inner in value:
        if isinstance(inner, _NESTED):
            _require_text_keys(inner)


def digest(value: object) -> str:
    """SHA-256 of the canonical JSON of a value, in hexadecimal."""
    return sha256(canonical(value))


def sha256(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def linked(previous: str, content: str) -> str:
    """The hash of an entry from the hash of the one before and the digest of its own fact."""
    return sha256(previous + content)
