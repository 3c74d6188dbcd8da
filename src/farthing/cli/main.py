"""`farthing`: the command line."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from farthing import __version__
from farthing.cli.composition import calibrate, delta, epsilon, plan
from farthing.cli.conversion import convert
from farthing.cli.doctor import doctor
from farthing.cli.figures import figures
from farthing.cli.lazy import lazy_group
from farthing.cli.serve import serve
from farthing.cli.statement import statement
from farthing.cli.tariff import tariff
from farthing.errors import FarthingError
from farthing.numerics.compiled import was_interrupted
from farthing.optional import explained
from farthing.wording import plain

#: The exit code that typer turns an interrupt into.
_INTERRUPTED = 130

app = typer.Typer(
    name="farthing",
    help="The tightest privacy loss that can be proved, and a budget that is never overspent.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(epsilon)
app.command()(delta)
app.command()(plan)
app.command()(calibrate)
app.command()(convert)
app.command()(statement)
app.command()(serve)
app.command()(doctor)
app.command()(figures)
app.add_typer(tariff)
app.add_typer(
    lazy_group(
        "ledger",
        "farthing.cli.ledger",
        "Look into a budget that several analysts share: show, odometer, verify, export.",
    )
)
app.add_typer(
    lazy_group(
        "owner",
        "farthing.cli.owner_data",
        "Decide about a budget: add data, sign, grant, revoke, register, move.",
    )
)
app.add_typer(
    lazy_group(
        "query",
        "farthing.cli.query",
        "Private answers from a table: plan what they cost, then run them.",
    )
)
app.add_typer(
    lazy_group(
        "converse",
        "farthing.cli.converse",
        "Conversations about a table: paid for once, asked as long as answers are negative.",
    )
)
app.add_typer(
    lazy_group(
        "tokens",
        "farthing.cli.tokens",
        "Who may come into the service: mint, list, withdraw.",
    )
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"farthing {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and stop.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """The tightest privacy loss that can be proved, and a budget that is never overspent."""


def _what_stays_spent(error: BaseException | None) -> str:
    """That it was interrupted, and what that costs, where the interrupt behind an error says so."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt) and error.args:
            return f"farthing: {plain(str(error))}\n"
        error = error.__cause__ or error.__context__
    return "farthing: interrupted\n"


def run() -> None:
    """The entry point: errors go to standard error, with exit code 2 and nothing on stdout."""
    try:
        app(prog_name="farthing")
    except SystemExit as stop:
        if stop.code == _INTERRUPTED:
            sys.stderr.write(_what_stays_spent(stop))
        raise
    except (KeyboardInterrupt, SystemError) as error:  # before typer listens, or inside numba
        if not was_interrupted(error):
            raise
        sys.stderr.write(_what_stays_spent(error))
        sys.exit(_INTERRUPTED)
    except FarthingError as error:
        for line in str(error).splitlines():
            sys.stderr.write(f"farthing: {plain(line)}\n")
        sys.exit(2)
    except ModuleNotFoundError as error:
        refusal = explained(error)
        if refusal is None:
            raise
        sys.stderr.write(f"farthing: {refusal}\n")
        sys.exit(2)
