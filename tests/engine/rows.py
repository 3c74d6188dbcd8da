"""Small tables with everything that can be difficult in them, and naive answers about them."""

from __future__ import annotations

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from farthing.engine.sql.bounding import text_of

TEXTS = (None, "", "é", "a|b", "~", "~p", "x'y", "\\", "a", "日本", "a\x00", "NULL", "n", " a")
DAYS = (
    None,
    date(2013, 1, 5),
    date(1999, 12, 31),
    date(1970, 1, 1),
    date(1, 1, 1),
    date(9999, 12, 31),
)
NUMBERS = (None, float("nan"), float("inf"), float("-inf"), 1.5, -2.25, 3.1, 1e300, 0.005)

SCHEMA = pa.schema(
    {
        "member": pa.int64(),
        "name": pa.string(),
        "text": pa.string(),
        "whole": pa.int32(),
        "day": pa.date32(),
        "flag": pa.bool_(),
        "worth": pa.float64(),
        "large": pa.int64(),
    }
)


def difficult(count: int, *, seed: int = 1, texts: Sequence[str | None] = TEXTS) -> pa.Table:
    """Rows of few members, so that the limits matter."""
    draw = random.Random(seed)
    member = [draw.choice([None, *range(40)]) for _ in range(count)]
    columns: dict[str, list[Any]] = {
        "member": member,
        "name": [None if m is None else f"m|{m}" for m in member],
        "text": [draw.choice(texts) for _ in range(count)],
        "whole": [draw.choice([None, -3, 0, 1, 2, 7]) for _ in range(count)],
        "day": [draw.choice(DAYS) for _ in range(count)],
        "flag": [draw.choice([None, True, False]) for _ in range(count)],
        "worth": [draw.choice(NUMBERS) for _ in range(count)],
        "large": [draw.choice([2**63 - 1, -(2**63), 5]) for _ in range(count)],
    }
    return pa.table(columns, schema=SCHEMA)


def naive_histogram(
    rows: pa.Table, unit: str, by: Sequence[str], *, secret: str, limit: int | None, per_key: int
) -> dict[str, int]:
    """The bounded histogram by its definition, in Python."""
    pairs: dict[Any, Counter[str]] = defaultdict(Counter)
    for row in rows.to_pylist():
        if row[unit] is not None:
            label = tuple(row[name] for name in by)
            pairs[row[unit]][text_of(label if len(by) > 1 else label[0])] += 1
    total: Counter[str] = Counter()
    for who, keys in pairs.items():
        kept = sorted(keys, key=lambda key: place_of(secret, text_of(who), key))[:limit]
        for key in kept:
            total[key] += min(keys[key], per_key)
    return dict(total)


def place_of(secret: str, who: str, key: str) -> int:
    """What decides the order of a unit's keys; both are texts of the engine."""
    return _number(secret + who) * _number(secret + key) % (2**31 - 1)


def _number(text: str) -> int:
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:7], 16) + 1
