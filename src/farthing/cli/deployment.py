"""`farthing serve`, `doctor`, `statement`, `figures`.

Their libraries may not be installed, so they are imported when a command runs.
"""

from __future__ import annotations

import io
import json
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import options
from farthing.cli.options import Name, Output, console, patience, print_json, put, say
from farthing.errors import InvalidInput, require_choice
from farthing.optional import required
from farthing.whole_files import whole_file


def serve(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="The service's farthing.toml.", show_default=False),
    ] = None,
    listen: Annotated[
        str | None, typer.Option("--listen", help="HOST:PORT, if not as the file says.")
    ] = None,
    postgres: Annotated[
        str | None,
        typer.Option("--postgres", help="HOST:PORT for SQL clients that speak PostgreSQL."),
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
    from farthing.server.sample import make_sample
    from farthing.server.serving import Places, listening_at, serve_from
    from farthing.server.settings import PostgresSettings, read_settings

    if config is None:
        config = folder / "farthing.toml"
        if config.exists():
            typer.echo(
                f"Going on with the sample in {folder}; its tokens were shown when it was made."
            )
            typer.echo(f"Another one: farthing tokens mint analyst ann --config {config}")
        else:
            with patience("making a sample and proving its budget"):
                made = make_sample(folder, rows)
            typer.echo(
                f"A sample was made in {folder}. These tokens are shown now and never again:\n"
            )
            for name, token in made.tokens.items():
                typer.echo(f"  {name:6} {token}")
            typer.echo("")
    settings = read_settings(config)
    settings = settings if listen is None else settings.at(listen)
    door = settings.postgres if postgres is None else PostgresSettings(postgres)
    with ExitStack() as places:
        http = places.enter_context(listening_at(settings.host, settings.port))
        sql = None
        if door is not None:
            sql = places.enter_context(listening_at(*door.address, "--postgres"))
            typer.echo(f"SQL clients: {':'.join(map(str, door.address))}, a token as the password")
        typer.echo(
            f"The console: http://{settings.host}:{settings.port}/  (Ctrl-C stops the service)"
        )
        serve_from(str(config), Places(http, sql))


def doctor(
    config: Annotated[
        Path, typer.Option("--config", "-c", help="The service's farthing.toml.")
    ] = Path("farthing.toml"),
    as_json: options.AsJson = False,
) -> None:
    """Check that the service can work, and say what to do where it cannot.

    Configuration, libraries, Java, permissions, database, clock, the head of every book, data
    and whether its rows are as declared, tokens. Nothing is changed. The exit code is 1 if there
    is a problem.
    """
    from farthing.server.doctor import examine

    if not config.exists():
        raise InvalidInput(f"there is no {config}; say where the service's is with --config")
    findings = []
    looking = examine(config)
    while True:
        with patience("looking"):
            one = next(looking, None)
        if one is None:
            break
        findings.append(one)
        if not as_json:
            word = "ok      " if one.ok else "problem "
            advice = f"\n         → {one.advice}" if one.advice else ""
            say(False, {}, f"{word} {one.about}: {one.found}{advice}")
    well = all(one.ok for one in findings)
    if as_json:
        print_json({"ok": well, "findings": list(map(asdict, findings))})
    if not well:
        raise typer.Exit(1)


def statement(
    name: Name,
    where: options.LedgerAt,
    delta: options.Delta = 1e-6,
    output: Output = None,
    registry: Annotated[
        bool, typer.Option("--registry", help="As an entry for the public registry, in YAML.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """What a deployment should say about itself (NIST SP 800-226), in Markdown or JSON."""
    from farthing import ledger

    make = ledger.registry_entry if registry else ledger.statement
    with ledger.Ledger.open(where, upgrade=False) as book, patience("writing the statement"):
        data = make(book.reader(), name, delta=delta)
    shown = ledger.as_yaml(data) if registry else ledger.markdown(data)
    put(output, io.StringIO(json.dumps(data) + "\n" if as_json else shown))


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
