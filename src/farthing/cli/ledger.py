"""`farthing ledger show | odometer | verify | certificate | export | import`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from farthing.cli import options
from farthing.cli.forms import AtLedger, add_operations, at_ledger
from farthing.cli.options import (
    AnyName,
    Name,
    Output,
    console,
    patience,
    print_json,
    put,
    reading,
    say,
)
from farthing.engine.desk import Desk
from farthing.ledger import Account, Ledger, Purse, Reader, export_lines, import_lines, verify
from farthing.wording import many, plain

ledger = typer.Typer(
    name="ledger",
    help="Look into a budget that several analysts share: show, verify, export, certificates.",
    no_args_is_help=True,
)

#: Columns of what is spent.
_SPENT = ("farthings spent", "δ units spent")
#: What accounts and purses have.
_AMOUNTS = ("farthings", "farthings_spent", "delta_units", "delta_units_spent")
#: Longer questions are cut where people read them; --json has all of it.
_LONGEST = 80
#: How the end of a question is called for people.
_OUTCOMES = {"open": "open", "close": "answered", "abandon": "abandoned", "end": "ended"}


@ledger.command("show")
def show_command(
    where: options.LedgerAt, name: AnyName = None, as_json: options.AsJson = False
) -> None:
    """Caps, purses, registered lists, open reservations, and the ledger's identity."""
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


add_operations(ledger, AtLedger, at_ledger)


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
    if as_json:
        shown = ("dataset", "entries", "head", "proved")
        rows = [{name: getattr(v, name) for name in shown} for v in found]
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
    with Desk(Ledger.open(where, upgrade=False)) as desk:
        document = desk.certificate(name, account)
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


def balances_of(reader: Reader, name: str) -> dict[str, Any]:
    """The balances of a dataset as of now."""
    accounts, purses = reader.accounts(name), reader.purses(name)
    tariffs = {account.number: account for account in accounts if account.mode == "tariff"}
    rows: list[tuple[str, Account, Account | Purse, str | None]] = [
        *(("everybody", tariff, tariff, None) for tariff in tariffs.values()),
        *((purse.analyst, tariffs[purse.account], purse, purse.month) for purse in purses),
    ]
    return {
        "dataset": name,
        "goes_on_here": reader.is_writable(name),
        "balances": [
            {
                "account": tariff.name,
                "state": _state(tariff, held),
                "analyst": analyst,
                **{name: getattr(held, name) for name in _AMOUNTS},
                "month": month,
            }
            for analyst, tariff, held, month in rows
        ],
        "lists": [
            {
                "account": account.name,
                "mode": account.mode,
                "analyst": account.analyst,
                "item": lot.item,
                "granted": lot.granted,
                "spent": lot.spent,
            }
            for account in accounts
            if account.number not in tariffs
            for lot in reader.lots(name, account.name)
        ],
        "open_reservations": [
            {"entry": r.entry, "analyst": r.analyst} for r in reader.open_reservations(name)
        ],
        "open_conversations": [
            {"id": one.id, "analyst": one.analyst, "asked": one.asked}
            for one in reader.conversations(name)
            if one.open
        ],
    }


def balances_table(shown: dict[str, Any]) -> Iterator[Table | str]:
    """The balances as tables for people."""
    name = escape(plain(str(shown["dataset"])))
    balances = Table("account", "analyst", *map(_right, _SPENT), "state", "month", title=name)
    for row in shown["balances"]:
        spent = (f"{row[f'{what}_spent']} of {row[what]}" for what in ("farthings", "delta_units"))
        _add(balances, row["account"], row["analyst"], *spent, row["state"], row["month"] or "")
    yield balances
    if shown["lists"]:
        title = f"{name}: registered lists"
        lists = Table("list", "mode", "analyst", "item", _right("used"), title=title)
        for row in shown["lists"]:
            used = f"{row['spent']} of {row['granted']}"
            _add(lists, row["account"], row["mode"], row["analyst"], row["item"], used)
        yield lists
    where = "" if shown["goes_on_here"] else "; a copy or sealed: nothing can be written here"
    talks = shown["open_conversations"]
    said = f", {len(talks)} open conversations" if talks else ""
    yield f"{len(shown['open_reservations'])} open reservations{said}{where}"


def history_table(asked: list[dict[str, Any]], *, values: bool = False) -> Table:
    """Who asked what, when, and for how much; with `values`, what was told."""
    several = len({one["dataset"] for one in asked}) > 1
    table = Table(
        *("time (UTC)", "analyst", "question", _right("farthings"), _right("δ units"), "outcome"),
        *(["version", "released"] if values else ["version"]),
        title="history" if several else escape(plain(asked[0]["dataset"])),
    )
    for one in asked:
        _add(
            table,
            one["time"][:16].replace("T", " "),
            one["analyst"],
            (f"{one['dataset']}: " if several else "") + one["caption"],
            str(one["farthings"]),
            str(one["delta_units"]),
            _OUTCOMES[one["outcome"]],
            one["version"] or "live",
            *([_values_in_words(one["release"])] if values else []),
        )
    return table


def _values_in_words(release: Any) -> str:
    """Labels with their numbers; a release in another form as JSON."""
    try:
        told = [
            f"{label}: {'listed' if count is None else count}"
            for one in ([] if release is None else release.values())
            for label, count in zip(one["labels"], one["counts"] or one["labels"], strict=True)
        ]
    except (AttributeError, KeyError, TypeError, ValueError):
        told = [json.dumps(release, ensure_ascii=False)]
    words = ", ".join(told)
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]} …"


def _state(tariff: Account, held: Account | Purse) -> str:
    if not tariff.open:
        return "retired"
    return "in force" if held.open else "revoked"


def _right(header: str) -> Column:
    """A column of numbers."""
    return Column(header, justify="right")


def _add(table: Table, *cells: str) -> None:
    table.add_row(*(escape(plain(cell)) for cell in cells))
