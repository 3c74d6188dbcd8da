"""Trying again, in one place: pauses that grow, until patience ends."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: The first pause and the longest one, in seconds; each is drawn around it.
FIRST, LONGEST = 0.001, 0.5


class Patience:
    """How long something is tried."""

    def __init__(self, seconds: float, longest: float = LONGEST) -> None:
        self._deadline = time.monotonic() + seconds
        self._pause = FIRST
        self._longest = longest

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._deadline

    def wait(self) -> None:
        """A while, longer each time."""
        time.sleep(self._pause * (0.5 + random.random()))
        self._pause = min(2 * self._pause, self._longest)


def insist(
    attempt: Callable[[bool], T],
    *,
    errors: tuple[type[Exception], ...],
    passes: Callable[[Exception], bool],
    translated: Callable[[Exception], Exception],
    seconds: float,
    longest: float = LONGEST,
) -> T:
    """The result of the first attempt that works.

    `attempt` is told whether one has failed before. Of these `errors` those that pass by
    themselves are waited for; the others, and the last one when patience is over, are raised as
    their translation. No pause is longer than `longest`.
    """
    patience = Patience(seconds, longest)
    failed = False
    while True:
        try:
            return attempt(failed)
        except errors as error:
            if not passes(error) or patience.is_over:
                raise translated(error) from None
        failed = True
        patience.wait()
