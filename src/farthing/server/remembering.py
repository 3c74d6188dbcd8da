"""Answers that look at no rows, kept for a moment: plans while somebody edits, earlier releases.

They are kept for one analyst, under what was asked and everything that they depend on: what is
declared, granted, and spent by this analyst. Nothing that others do is in it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from fastapi import Response
from fastapi.responses import JSONResponse

from farthing.canonical import digest

#: How long an answer is kept, how many of them, and how large each may be.
KEPT_SECONDS, MOST, LARGEST_BYTES = 10.0, 1000, 1 << 16


class Remembered:
    """Answers of one worker."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Any, ...], tuple[float, bytes]] = OrderedDict()
        self._turn = threading.Lock()

    def answer(
        self, depends: tuple[Any, ...], asked: Any, make: Callable[[], dict[str, Any] | None]
    ) -> Response | None:
        """What `make` gives, or gave a moment ago; None, and nothing is kept, if it gives None."""
        key = (depends, digest(asked))
        with self._turn:
            until, kept = self._kept.get(key, (0.0, b""))
        if until < time.monotonic():
            made = make()
            if made is None:
                return None
            kept = bytes(JSONResponse(made).body)
            if len(kept) > LARGEST_BYTES:
                return Response(kept, media_type="application/json")
            with self._turn:
                self._kept[key] = time.monotonic() + KEPT_SECONDS, kept
                self._kept.move_to_end(key)
                while len(self._kept) > MOST:
                    self._kept.popitem(last=False)
        return Response(kept, media_type="application/json")
