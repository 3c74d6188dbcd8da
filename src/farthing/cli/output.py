"""How answers look: one JSON object, or a table for people."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from farthing.composition.bounds import Bracket
from farthing.numerics.rounding import shown_down, shown_up
from farthing.progress import News, listening
from farthing.wording import plain

#: Work that takes longer than this shows that it is still going.
PATIENCE_SECONDS = 2.0


def print_json(answer: dict[str, object]) -> None:
    """One object on standard output, in ASCII; floats read back exactly."""
    sys.stdout.write(json.dumps(answer) + "\n")


def console() -> Console:
    """A console on standard output."""
    return Console(highlight=False)


def bracketed(bracket: Bracket) -> str:
    """Both ends of a bracket, rounded outwards."""
    return f"\\[{shown_down(bracket.lower)}, {shown_up(bracket.upper)}]"


def spread(bracket: Bracket) -> str:
    """The width of a bracket in words."""
    if bracket.width <= 1e-8:
        return "exact to 8 digits"
    return f"within {shown_up(100 * bracket.width, digits=2)} %"


@contextmanager
def patience(what: str) -> Iterator[None]:
    """Show a progress bar on a terminal if the work takes longer than two seconds.

    It shows what is known so far, and is removed at the end. Pipes get nothing of it.
    """
    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield
        return
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(pulse_style="cyan"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[so_far]}", markup=False),
        console=screen,
        transient=True,
    )
    task = progress.add_task(what, total=None, so_far="")

    def show(news: News) -> None:
        so_far = plain(news.so_far)
        progress.update(task, completed=news.done, total=news.total, so_far=so_far)

    timer = threading.Timer(PATIENCE_SECONDS, progress.start)
    timer.daemon = True
    timer.start()
    try:
        with listening(show):
            yield
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
