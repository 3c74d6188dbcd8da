"""How tests wait: for what must come, on a machine that may be as busy as it likes."""

from __future__ import annotations

import time
from collections.abc import Callable

#: What takes so many seconds hangs.
HANGS = 600


def until(condition: Callable[[], object]) -> None:
    """Wait for it. There is a limit only so that what never comes is noticed."""
    end = time.monotonic() + HANGS
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)
