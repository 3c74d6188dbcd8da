"""`farthing figures`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli.output import console, patience
from farthing.errors import require_choice
from farthing.optional import required
from farthing.whole_files import whole_file


def figures(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="A folder; made if need be.", show_default=False)
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="NAME", help="Draw this one; may be repeated.", show_default=False
        ),
    ] = None,
) -> None:
    """Draw every figure of the papers, and some of ours.

    Each as SVG, as PNG for light and dark paper, and its points as CSV; captions are in index.md.
    All of them take some minutes.
    """
    required("matplotlib")
    from farthing.lab.figures import FIGURES, as_markdown, write_figure  # takes time to load

    wanted = [require_choice("--only", name, FIGURES) for name in only or FIGURES]
    for place, name in enumerate(wanted, 1):
        began = time.monotonic()
        with patience(f"{place}/{len(wanted)}  {name}"):
            write_figure(FIGURES[name], out)
        took = f"{time.monotonic() - began:.1f} s"
        console().print(f"{place}/{len(wanted)}  {name}  ({took})", markup=False)
    with whole_file(out / "index.md") as file:
        file.write(as_markdown([FIGURES[name] for name in wanted], folder="", head="# Figures\n"))
