"""`farthing serve`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli.output import patience


def serve(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="The service's farthing.toml.", show_default=False),
    ] = None,
    listen: Annotated[
        str | None, typer.Option("--listen", help="HOST:PORT, if not as the file says.")
    ] = None,
    folder: Annotated[
        Path, typer.Option("--folder", help="Without --config: where the sample is kept.")
    ] = Path("farthing-sample"),
    rows: Annotated[
        int, typer.Option("--rows", min=100, help="Without --config: rows of the sample.")
    ] = 1_000_000,
) -> None:
    """Serve datasets over HTTP, with a console in the browser.

    Without --config a sample is made and served: engagements of members with articles, an owner,
    two analysts, a signed budget.
    """
    from farthing.server.sample import make_sample  # the service's libraries may be missing
    from farthing.server.serving import listening_at, serve_from
    from farthing.server.settings import read_settings

    if config is None:
        config = folder / "farthing.toml"
        if config.exists():
            _say(f"Going on with the sample in {folder}; its tokens were shown when it was made.")
            _say(f"Another one: farthing tokens mint analyst ann --config {config}")
        else:
            with patience("making a sample and proving its budget"):
                made = make_sample(folder, rows)
            _say(f"A sample was made in {folder}. These tokens are shown now and never again:\n")
            for name, token in made.tokens.items():
                _say(f"  {name:6} {token}")
            _say("")
    settings = read_settings(config)
    settings = settings if listen is None else settings.at(listen)
    with listening_at(settings.host, settings.port) as listening:
        _say(f"The console: http://{settings.host}:{settings.port}/  (Ctrl-C stops the service)")
        serve_from(str(config), listening)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
