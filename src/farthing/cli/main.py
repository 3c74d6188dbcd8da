"""`farthing`: the command line."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from farthing import __version__
from farthing.cli.composition import calibrate, convert, delta, epsilon, plan, tariff, tradeoff
from farthing.cli.deployment import doctor, figures, serve, statement
from farthing.errors import FarthingError
from farthing.numerics.compiled import was_interrupted
from farthing.optional import explained
from farthing.wording import plain

#: The exit code that typer turns an interrupt into.
_INTERRUPTED = 130


def _lazy_group(name: str, module: str, words: str) -> typer.Typer:
    """The Typer `name` in a module of `farthing.cli`, imported when it is used.

    What it needs may not be installed, and takes time to load.
    """

    class Lazy(TyperGroup):
        def _group(self) -> Any:
            return get_group(getattr(import_module(f"farthing.cli.{module}"), name))

        def list_commands(self, ctx: Any) -> list[str]:
            return list(self._group().list_commands(ctx))

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            return self._group().resolve_command(ctx, args)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return self._group().get_command(ctx, cmd_name)

    return typer.Typer(name=name, help=words, cls=Lazy, no_args_is_help=True)


app = typer.Typer(
    name="farthing",
    help="The tightest privacy loss that can be proved, and a budget that is never overspent.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (
    epsilon, delta, tradeoff, plan, calibrate, convert, statement, serve, doctor, figures
):  # fmt: skip # in the order of the help
    app.command()(_command)
app.add_typer(tariff)

#: Groups whose modules are imported when they are used.
_LAZY = {
    "ledger": "Look into a budget that several analysts share: show, odometer, verify, export.",
    "owner": "Decide about a budget: add data, sign, grant, revoke, register, move.",
    "query": "Private answers from a table: plan what they cost, then run them.",
    "converse": "Conversations about a table: paid for once, asked until answers are positive.",
    "tokens": "Who may use the service: mint, list, withdraw.",
}
for _name, _words in _LAZY.items():
    app.add_typer(_lazy_group(_name, "owner" if _name == "tokens" else _name, _words))


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
    """That it was interrupted and, if the interrupt says so, what stays spent."""
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
