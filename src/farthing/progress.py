"""What long computations tell while they go on, to whoever listens.

    with fa.listening(print):
        fa.compose([(fa.BoundedRange(0.01), 10_000)]).epsilon_at(1e-6)

Grids that are refined, searches, recursions over farthings and walks through a book tell what they
know so far; without a listener that costs next to nothing. A search asks many questions on its way:
what it knows itself is told, and what it finds out in between is not.
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
    """What is known so far, in words; and steps that are done, of how many, if that is known."""

    so_far: str
    done: int | None = None
    total: int | None = None


Listener: TypeAlias = Callable[[News], None]

_listener: ContextVar[Listener | None] = ContextVar("farthing_listener", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Everything that is computed inside, in this thread, tells its news to `listener`, or nobody.

    `listener` is called with `News` as often as there are any, up to thousands of times a second;
    what it raises ends the computation.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def narrowing(what: str) -> Iterator[Callable[[float, bool], None]]:
    """A search for the place where an answer changes: (place, whether the answer lies above it).

    The nearest places on both sides are told; what is computed inside to answer is not.
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
    """News from inside begin with these words."""
    outer = _listener.get()
    if outer is None:
        yield
        return
    with listening(lambda news: outer(replace(news, so_far=f"{what}: {news.so_far}"))):
        yield


def tell(so_far: str, done: int | None = None, total: int | None = None) -> None:
    """To the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(News(so_far, done, total))


def tell_between(what: str, low: float, high: float) -> None:
    """That a number lies between two others, as far as is known."""
    listener = _listener.get()
    if listener is not None:
        ends = f"between {low:.5g} and {high:.5g}" if high < math.inf else f"at least {low:.5g}"
        listener(News(f"{what} {ends}"))
