"""Progress of long computations, for anyone who listens.

    with fa.listening(print):
        fa.compose([(fa.BoundedRange(0.01), 10_000)]).epsilon_at(1e-6)

Refinements of grids, searches, recursions over farthings and checks of a ledger report what they
know so far. Without a listener that costs next to nothing. A search reports its own progress, not
that of the questions it asks on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class News:
    """What is known so far, in words; how many steps are done, and of how many, if known."""

    so_far: str
    done: int | None = None
    total: int | None = None


Listener: TypeAlias = Callable[[News], None]

_listener: ContextVar[Listener | None] = ContextVar("farthing_listener", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Computations inside, in this thread, report their progress to `listener`, or to nobody.

    `listener` is called with `News`, up to thousands of times a second. An exception that it raises
    ends the computation.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def narrowing(what: str) -> Iterator[Callable[[float, bool], None]]:
    """Reports a search: call it with a place, and whether the answer lies above that place.

    The nearest places on both sides are reported; computations inside are silent.
    """
    outer = _listener.get()
    low, high = 0.0, math.inf

    def seen(place: float, below: bool) -> None:
        nonlocal low, high
        low, high = (max(low, place), high) if below else (low, min(high, place))
        with listening(outer):
            tell_between(what, low, high)

    with listening(None):
        yield seen


@contextmanager
def about(what: str) -> Iterator[None]:
    """Reports from inside begin with these words."""
    outer = _listener.get()
    if outer is None:
        yield
        return
    with listening(lambda news: outer(replace(news, so_far=f"{what}: {news.so_far}"))):
        yield


def tell(so_far: str, done: int | None = None, total: int | None = None) -> None:
    """Reports to the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(News(so_far, done, total))


def tell_between(what: str, low: float, high: float) -> None:
    """Reports that a number lies between two others, as far as is known."""
    listener = _listener.get()
    if listener is not None:
        ends = f"between {low:.5g} and {high:.5g}" if high < math.inf else f"at least {low:.5g}"
        listener(News(f"{what} {ends}"))
