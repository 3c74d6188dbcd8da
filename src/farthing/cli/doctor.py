"""`farthing doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import options
from farthing.cli.output import console, patience, print_json
from farthing.errors import InvalidInput
from farthing.wording import plain


def doctor(
    config: Annotated[
        Path, typer.Option("--config", "-c", help="The service's farthing.toml.")
    ] = Path("farthing.toml"),
    as_json: options.AsJson = False,
) -> None:
    """Look whether the service can work, and say what to do where it cannot.

    Configuration, libraries, Java, permissions, database, clock, the head of every book, data
    and whether its rows are as declared, tokens. Nothing is changed. The exit code is 1 if there
    is a problem.
    """
    from farthing.server.doctor import examine  # the service's libraries may be missing

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
            console().print(plain(f"{word} {one.about}: {one.found}"), markup=False, soft_wrap=True)
            if one.advice:
                console().print(plain(f"         → {one.advice}"), markup=False, soft_wrap=True)
    well = all(one.ok for one in findings)
    if as_json:
        print_json({"ok": well, "findings": [one.to_json() for one in findings]})
    if not well:
        raise typer.Exit(1)
