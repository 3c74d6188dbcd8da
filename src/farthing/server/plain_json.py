"""JSON as it may come in: finite numbers, text that can be kept, not nested too deeply."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import HTTPException, Request

#: No question is nested more deeply.
DEEPEST = 40
#: So many bytes are read faster than a thread is found for them.
QUICK_BYTES = 1 << 14


def require_plain_json(value: object, depth: int = 0) -> None:
    """ValueError if something in it could not be kept, or written back."""
    if depth > DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(value, str):
        _require_text(value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a finite number")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _require_text(key)
            require_plain_json(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            require_plain_json(inner, depth + 1)


def _require_text(text: str) -> None:
    """Text that UTF-8 can write, without NUL, which PostgreSQL does not keep."""
    text.encode("utf-8")
    if "\0" in text:
        raise ValueError("the character NUL")


def _plain_json(body: bytes) -> Any:
    found = json.loads(body)
    require_plain_json(found)
    return found


class PlainRequest(Request):
    """A request whose JSON was looked at; what cannot be read is refused with status 400."""

    async def read(self, elsewhere: Callable[[Callable[[], Any]], Awaitable[Any]]) -> None:
        """Read a large body now, `elsewhere` than in the thread that answers everybody."""
        body = await self.body()
        if len(body) > QUICK_BYTES:
            try:
                self._json = await elsewhere(partial(_plain_json, body))
            except (ValueError, RecursionError):
                raise HTTPException(400) from None

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = _plain_json(await self.body())
        return self._json
