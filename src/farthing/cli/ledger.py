"""`farthing ledger show | odometer | verify | certificate | export | import`: to look into it."""

from __future__ import annotations

import json
import tempfile
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import options
from farthing.cli.balances import balances_of, balances_table
from farthing.cli.ledger_options import AnyName, Name, Output, put, reading, say
from farthing.cli.output import console, patience, print_json
from farthing.ledger import Ledger, NotInLedger, export_lines, import_lines, odometer, verify
from farthing.numerics.rounding import shown_up
from farthing.wording import many, plain

ledger = typer.Typer(
    name="ledger",
    help="Look into a budget that several analysts share: show, verify, export, certificates.",
    no_args_is_help=True,
)


@ledger.command("show")
def show_command(
    where: options.LedgerAt, name: AnyName = None, as_json: options.AsJson = False
) -> None:
    """Caps, purses, registered lists and open reservations, and who this ledger is."""
    with Ledger.open(where, upgrade=False) as book, patience("reading"):
        reader = book.reader()
        identity = reader.identity()
        shown = [balances_of(reader, one) for one in ([name] if name else reader.datasets())]
    if as_json:
        print_json({"ledger": identity, "datasets": shown})
        return
    if not shown:
        console().print("no datasets yet; add one with `farthing owner`")
    for dataset in shown:
        for part in balances_table(dataset):
            console().print(part)
    console().print(f"ledger {identity}", soft_wrap=True)


@ledger.command("odometer")
def odometer_command(
    name: Name,
    where: options.LedgerAt,
    analyst: Annotated[
        list[str] | None,
        typer.Option("--analyst", help="A coalition; without it everybody.", show_default=False),
    ] = None,
    delta: options.Delta = 1e-6,
    as_json: options.AsJson = False,
) -> None:
    """What has been spent so far, as an (ε, δ) statement that is valid at any moment."""
    with Ledger.open(where, upgrade=False) as book, patience("reading the odometer"):
        reading_now = odometer(book.reader(), name, delta=delta, analysts=analyst)
    who = "all analysts together" if analyst is None else ", ".join(analyst)
    spent = f"{reading_now.farthings_spent} of {reading_now.cap} farthings spent"
    say(
        as_json,
        reading_now.to_json(),
        f"{who}: ε ≤ {shown_up(reading_now.epsilon)} at δ = {delta}, {spent}"
        + (" by everybody, whose spending can show in refusals" if reading_now.shared else "")
        + f"\nby the {reading_now.theorem}"
        + ("" if reading_now.assuming is None else f"\nif {reading_now.assuming}"),
    )


@ledger.command("verify")
def verify_command(
    where: options.LedgerAt,
    name: AnyName = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Do not prove the certificates again: seconds each.")
    ] = False,
    contains: Annotated[
        str | None,
        typer.Option("--contains", help="A head noted earlier that must be in the chain."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Walk the chain, play every entry again, compare the balances, prove the certificates."""
    with Ledger.open(where, upgrade=False) as book, patience("verifying"):
        found = verify(book.reader(), name, prove=not quick, contains=contains)
    rows: list[dict[str, object]] = [
        {"dataset": v.dataset, "entries": v.entries, "head": v.head, "proved": v.proved}
        for v in found
    ]
    if as_json:
        print_json({"verified": True, "datasets": rows})
        return
    for v in found:
        again = "proved again" if v.proved else "not proved again"
        console().print("[bold green]verified[/bold green]: ", end="")
        say(
            False,
            {},
            f"{v.dataset}, {v.entries} entries, {many(v.certificates, 'certificate')} {again}"
            f"\nhead {v.head}",
        )


@ledger.command("certificate")
def certificate_command(
    name: Name,
    where: options.LedgerAt,
    account: Annotated[
        str | None,
        typer.Option("--account", help="A tariff by its name; else the one in force."),
    ] = None,
    output: Output = None,
) -> None:
    """The certificate that was signed, as JSON, on standard output or in a file.

    `farthing tariff check` and `python checker.py` prove it without this ledger.
    """
    with Ledger.open(where, upgrade=False) as book:
        reader = book.reader()
        signed = [
            one
            for one in reader.accounts(name)
            if one.mode == "tariff" and (one.open if account is None else one.name == account)
        ]
        if not signed:
            what = "in force" if account is None else f"called {account!r:.60}"
            raise NotInLedger(f"{name} has no tariff {what}; `farthing ledger show` lists them")
        document = reader.document(name, signed[-1].number)
    put(output, StringIO(json.dumps(document, ensure_ascii=False, indent=1) + "\n"))
    if output is not None:
        say(False, {}, f"the certificate of {name} is in {output}")


@ledger.command("export")
def export_command(where: options.LedgerAt, output: Output = None) -> None:
    """The whole book as JSON Lines, on standard output or in a file: a copy for reading."""
    with (
        Ledger.open(where, upgrade=False) as book,
        tempfile.TemporaryFile("w+", encoding="utf-8") as file,
    ):
        count = 0
        with patience("exporting"):
            for line in export_lines(book.reader()):
                file.write(f"{line}\n")
                count += 1
        file.seek(0)
        put(output, file)
    if output is not None:
        console().print(plain(f"{count} lines written to {output}"), markup=False)


@ledger.command("import")
def import_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON Lines from an export.")],
    where: options.LedgerAt,
    take_over: Annotated[
        list[str] | None,
        typer.Option(metavar="HEAD", help="Go on here with the book that ends so in the source."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Copy exported books into a ledger, to read and verify; all or nothing.

    A longer export of the same book extends its copy. A book that was sealed for this ledger goes
    on here if its owner shows the head that `ledger verify` prints in the source.
    """
    with reading(file) as lines, Ledger.open(where) as book, patience("importing"):
        counts = import_lines(book, lines, take_over=take_over or ())
    say(
        as_json,
        {"imported": counts},
        "\n".join(f"{name}: {count} entries" for name, count in counts.items()),
    )
