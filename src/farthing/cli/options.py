"""Options that several commands share, and how they print and read."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from farthing.composition.bounds import Bracket
from farthing.errors import InvalidInput
from farthing.numerics.rounding import shown_down, shown_up
from farthing.progress import News, listening
from farthing.whole_files import whole_file
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


class Adaptivity(StrEnum):
    """How mechanisms are chosen."""

    none = "none"
    adaptive = "adaptive"
    setwise = "setwise"
    concurrent = "concurrent"


ItemTexts = Annotated[
    list[str],
    typer.Argument(
        metavar="ITEM...",
        help="Mechanisms as [COUNTx]KIND:PARAMETERS, e.g. 100xbr:0.1. Kinds: dp:ε, br:ε, adp:ε,δ, "
        "lap:ε, gauss:noise_multiplier, dgauss:noise_multiplier[,sensitivity], pf:ε, cdp:μ,τ, "
        "zcdp:ρ[,ξ[,δ]], tcdp:ρ,ω; of a sample poisson:rate/KIND:…, subset:rate/KIND:….",
        show_default=False,
    ),
]
OneItemText = Annotated[
    str,
    typer.Argument(metavar="ITEM", help="A mechanism: br:0.1 (how many?) or 100xbr (which ε?)."),
]
FreeItemTexts = Annotated[
    list[str],
    typer.Argument(
        metavar="ITEM...",
        help="Mechanisms as for `epsilon`, with one parameter written as ?: "
        "1000xpoisson:0.01/gauss:? 100xbr:0.1.",
        show_default=False,
    ),
]
Epsilon = Annotated[float, typer.Option("--epsilon", help="The overall ε.", show_default=False)]
Delta = Annotated[float, typer.Option("--delta", help="The overall δ.", show_default=False)]
HowChosen = Annotated[
    Adaptivity,
    typer.Option(
        "--adaptivity",
        help="none: all chosen in advance. adaptive: mechanisms depend on earlier answers. "
        "setwise: their order too. concurrent: interactive, interleaved.",
    ),
]
Tolerance = Annotated[
    float, typer.Option("--tolerance", help="Relative width that the bracket is refined to.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
LedgerAt = Annotated[
    str,
    typer.Option(
        "--ledger",
        "-l",
        help="A SQLite file or a postgresql:// address.",
        envvar="FARTHING_LEDGER",
        show_default=False,
    ),
]
LedgerBeside = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        "-l",
        help="A SQLite file or a postgresql:// address; a file beside the data if left out.",
        envvar="FARTHING_LEDGER",
        show_default=False,
    ),
]
Name = Annotated[str, typer.Argument(metavar="DATASET", help="The dataset.", show_default=False)]
AnyName = Annotated[str | None, typer.Argument(metavar="[DATASET]", help="Only this one.")]
Analyst = Annotated[str, typer.Argument(metavar="ANALYST", help="The analyst.", show_default=False)]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write to this file.", show_default=False)
]


def several(text: str | None) -> str | list[str] | None:
    """One place or table, or several separated by commas.

    A file with a comma in its name, an address and a pattern such as {a,b} are one.
    """
    if text is None or "," not in text or "://" in text or "{" in text or os.path.exists(text):
        return text
    return [part.strip() for part in text.split(",")]


def say(as_json: bool, answer: dict[str, object], words: str) -> None:
    """Print one JSON object, or lines for people without control characters."""
    if as_json:
        print_json(answer)
    else:
        for line in words.split("\n"):
            console().print(plain(line), markup=False, soft_wrap=True)


def warn(words: str | None) -> None:
    """Print a warning on standard error, so that programs can read the answer."""
    if words is not None:
        typer.echo(f"warning: {plain(words)}", err=True)


def put(output: Path | None, text: TextIO) -> None:
    """Write everything at once, so that an error leaves no partial output."""
    if output is None:
        shutil.copyfileobj(text, sys.stdout)
        return
    with whole_file(output) as file:
        shutil.copyfileobj(text, file)


@contextmanager
def reading(file: Path) -> Iterator[TextIO]:
    """A text file whose lines end at \\n only, as in JSON Lines."""
    try:
        with file.open(encoding="utf-8", newline="\n") as lines:
            yield lines
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from None
