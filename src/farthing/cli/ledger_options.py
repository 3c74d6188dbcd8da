"""Options and words that the commands of owners and readers share."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer

from farthing.cli.output import console, print_json
from farthing.errors import InvalidInput
from farthing.whole_files import whole_file
from farthing.wording import plain

Name = Annotated[str, typer.Argument(metavar="DATASET", help="The dataset.", show_default=False)]
AnyName = Annotated[str | None, typer.Argument(metavar="[DATASET]", help="Only this one.")]
Analyst = Annotated[str, typer.Argument(metavar="ANALYST", help="The analyst.", show_default=False)]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write to this file.", show_default=False)
]


def say(as_json: bool, answer: dict[str, object], words: str) -> None:
    """One JSON object, or lines for people in which no name commands the terminal."""
    if as_json:
        print_json(answer)
    else:
        for line in words.split("\n"):
            console().print(plain(line), markup=False, soft_wrap=True)


def warn(words: str | None) -> None:
    """On standard error, so that an answer can be read by programs."""
    if words is not None:
        typer.echo(f"warning: {plain(words)}", err=True)


def put(output: Path | None, text: TextIO) -> None:
    """Everything at once, so that an error leaves nothing half printed."""
    if output is None:
        shutil.copyfileobj(text, sys.stdout)
        return
    with whole_file(output) as file:
        shutil.copyfileobj(text, file)


@contextmanager
def reading(file: Path) -> Iterator[TextIO]:
    """A file, read line by line: a line ends where JSON Lines says and nowhere else."""
    try:
        with file.open(encoding="utf-8", newline="\n") as lines:
            yield lines
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from None
