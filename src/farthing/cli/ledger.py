"""`farthing ledger init | sign | grant | register | show | …` and `farthing statement`."""

from __future__ import annotations

import io
import json
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.markup import escape

from farthing.cli import options
from farthing.cli.balances import balances_of, balances_table
from farthing.cli.output import console, patience, print_json
from farthing.cli.tariff import read_tariff
from farthing.composition.certificate import Certificate, verify
from farthing.errors import InvalidInput
from farthing.guarantees.notation import parse_item

ledger = typer.Typer(
    name="ledger",
    help="Budgets that several analysts share: sign, grant, show, verify, export.",
    no_args_is_help=True,
)

Where = Annotated[
    str,
    typer.Option(
        "--ledger",
        "-l",
        help="A SQLite file or a postgresql:// address.",
        envvar="FARTHING_LEDGER",
        show_default=False,
    ),
]
Name = Annotated[str, typer.Argument(metavar="DATASET", help="The dataset.", show_default=False)]
Analyst = Annotated[str, typer.Argument(metavar="ANALYST", help="The analyst.", show_default=False)]
TariffOrCertificate = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A tariff in TOML, or a certificate in JSON.", show_default=False
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write to this file.", show_default=False)
]


class Mode(StrEnum):
    """How a registered list is used."""

    batch = "batch"
    setwise = "setwise"


@ledger.command("init")
def init_command(
    name: Name,
    file: TariffOrCertificate,
    where: Where,
    unit: Annotated[str, typer.Option("--unit", help="The column that says who a row is about.")],
    owner: Annotated[str, typer.Option("--owner", help="Who answers for the data.")],
    limit: Annotated[
        list[str] | None,
        typer.Option("--limit", help="A contribution limit, e.g. keys=10.", show_default=False),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Add a dataset and put a tariff in force; creates the ledger if it is not there."""
    from farthing.ledger import Dataset, Ledger

    limits = dict(_limit(text) for text in limit or [])
    dataset = Dataset(name, unit=unit, owner=owner, contribution_limits=limits)
    certificate = _certificate(file)
    with Ledger.open(where) as book:
        book.add(dataset)
        account = book.sign(name, certificate)
    _say(
        as_json,
        {"dataset": name, "farthings": account.farthings, "digest": certificate.digest},
        f"{name}: {account.farthings} farthings in force, certificate {certificate.digest}",
    )


@ledger.command("sign")
def sign_command(
    name: Name,
    file: TariffOrCertificate,
    where: Where,
    account: Annotated[str, typer.Option("--name", help="A name for the new account.")],
    as_json: options.AsJson = False,
) -> None:
    """Retire the tariff in force and sign another; the two accounts compose."""
    from farthing.ledger import Ledger

    certificate = _certificate(file)
    with Ledger.open(where, upgrade=False) as book:
        opened = book.sign(name, certificate, name=account)
    _say(
        as_json,
        {"dataset": name, "account": opened.number, "farthings": opened.farthings},
        f"{name}: account {opened.number} with {opened.farthings} farthings is in force",
    )


@ledger.command("grant")
def grant_command(
    name: Name,
    analyst: Analyst,
    where: Where,
    farthings: Annotated[int, typer.Option("--farthings", help="How many.", show_default=False)],
    delta_units: Annotated[int, typer.Option("--delta-units", help="Units of δ.")] = 0,
    monthly: Annotated[
        bool, typer.Option("--monthly", help="Renew by calendar month (UTC), within the cap.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Give an analyst farthings; a second grant adds to the first."""
    from farthing.ledger import Ledger

    renewal = "monthly" if monthly else None
    with Ledger.open(where, upgrade=False) as book:
        purse = book.grant(
            name, analyst, farthings=farthings, delta_units=delta_units, renewal=renewal
        )
    _say(
        as_json,
        {"dataset": name, "analyst": analyst, "farthings": purse.farthings},
        f"{analyst} holds {purse.farthings} farthings of {name}" + (" a month" if monthly else ""),
    )


@ledger.command("register")
def register_command(
    name: Name,
    analyst: Analyst,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help='TOML: [queries] name = ["10xbr:0.1", …] for a batch, '
            '[items] name = "20xbr:0.1" for set-wise use.',
        ),
    ],
    where: Where,
    account: Annotated[str, typer.Option("--name", help="A name for the list.")],
    mode: Annotated[Mode, typer.Option("--mode", help="How the list is used.")] = Mode.batch,
    as_json: options.AsJson = False,
) -> None:
    """Open an account for a list that is fixed in advance."""
    from farthing.ledger import Ledger

    listed = _read_list(file, mode)
    with Ledger.open(where, upgrade=False) as book, patience("certifying"):
        opened = book.register(name, account, listed, analyst=analyst)
        document = book.document(name, opened.number)
    _say(
        as_json,
        {"dataset": name, "account": opened.number, "epsilon_at": document["epsilon_at"]},
        f"{name}: {account} is registered as account {opened.number} for {analyst}",
    )


@ledger.command("show")
def show_command(
    where: Where,
    name: Annotated[str | None, typer.Argument(metavar="[DATASET]", help="Only this one.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Caps, purses, registered lists and open reservations."""
    from farthing.ledger import Ledger

    with Ledger.open(where, upgrade=False) as book:
        shown = [balances_of(book, dataset) for dataset in ([name] if name else book.datasets())]
    if as_json:
        print_json({"datasets": shown})
        return
    if not shown:
        console().print("no datasets yet; add one with `farthing ledger init`")
    for dataset in shown:
        for part in balances_table(dataset):
            console().print(part)


@ledger.command("odometer")
def odometer_command(
    name: Name,
    where: Where,
    analyst: Annotated[
        list[str] | None,
        typer.Option("--analyst", help="A coalition; without it everybody.", show_default=False),
    ] = None,
    delta: options.Delta = 1e-6,
    as_json: options.AsJson = False,
) -> None:
    """What has been spent so far, as an (ε, δ) statement that is valid at any moment."""
    from farthing.ledger import Ledger, odometer
    from farthing.ledger.rounding import rounded_up

    with Ledger.open(where, upgrade=False) as book, patience("reading the odometer"):
        reading = odometer(book, name, delta=delta, analysts=analyst)
    who = "all analysts together" if analyst is None else ", ".join(analyst)
    _say(
        as_json,
        reading.to_json(),
        f"{who}: ε ≤ {rounded_up(reading.epsilon)} at δ = {delta}, "
        f"{reading.farthings_spent} of {reading.cap} farthings spent"
        + (" by everybody, whose spending can show in refusals" if reading.shared else "")
        + f"\nby the {reading.theorem}"
        + ("" if reading.assuming is None else f"\nif {reading.assuming}"),
    )


@ledger.command("verify")
def verify_command(
    where: Where,
    name: Annotated[str | None, typer.Argument(metavar="[DATASET]", help="Only this one.")] = None,
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
    from farthing.ledger import Ledger, verify

    with Ledger.open(where, upgrade=False) as book, patience("verifying"):
        found = verify(book, name, prove=not quick, contains=contains)
    if as_json:
        rows = [
            {"dataset": v.dataset, "entries": v.entries, "head": v.head, "proved": v.proved}
            for v in found
        ]
        print_json({"verified": True, "datasets": rows})
        return
    for v in found:
        again = "proved again" if v.proved else "not proved again"
        console().print(
            f"[bold green]verified[/bold green]: {escape(v.dataset)}, {v.entries} entries, "
            f"{v.certificates} certificates {again}\nhead {v.head}",
            soft_wrap=True,
        )


@ledger.command("export")
def export_command(
    where: Where,
    output: Output = None,
) -> None:
    """The whole book as JSON Lines, on standard output or in a file."""
    from farthing.ledger import Ledger, export_lines

    with (
        Ledger.open(where, upgrade=False) as book,
        tempfile.TemporaryFile("w+", encoding="utf-8") as file,
    ):
        count = 0
        for line in export_lines(book):
            file.write(f"{line}\n")
            count += 1
        file.seek(0)
        _put(output, file)
    if output is not None:
        console().print(f"{count} lines written to {output}")


@ledger.command("import")
def import_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON Lines from an export.")],
    where: Where,
    as_json: options.AsJson = False,
) -> None:
    """Write exported books into a ledger that has none of their datasets; all or nothing."""
    from farthing.ledger import Ledger, import_lines

    with _reading(file) as lines, Ledger.open(where) as book, patience("importing"):
        counts = import_lines(book, lines)
    _say(
        as_json,
        {"imported": counts},
        "\n".join(f"{name}: {count} entries" for name, count in counts.items()),
    )


@ledger.command("abandon")
def abandon_command(
    name: Name,
    entry: Annotated[int, typer.Argument(metavar="ENTRY", help="Number of the reservation.")],
    where: Where,
    reason: Annotated[str, typer.Option("--reason", help="Why nothing was released.")],
    as_json: options.AsJson = False,
) -> None:
    """Settle a reservation that a crash left open. Nothing comes back."""
    from farthing.ledger import Ledger

    with Ledger.open(where, upgrade=False) as book:
        held = [r for r in book.open_reservations(name) if r.entry == entry]
        if not held:
            raise InvalidInput(f"entry {entry} of {name} is not an open reservation")
        settled = book.abandon(held[0], reason=reason)
    _say(
        as_json,
        {"dataset": name, "abandoned": entry, "entry": settled.number},
        f"entry {entry} is abandoned; what it reserved stays spent",
    )


@ledger.command("upgrade")
def upgrade_command(where: Where, as_json: options.AsJson = False) -> None:
    """Create the ledger or bring its schema up to date."""
    from farthing.ledger import Ledger

    with Ledger.open(where):
        pass
    _say(as_json, {"upgraded": True}, "the ledger is up to date")


def statement(
    name: Name,
    where: Where,
    delta: options.Delta = 1e-6,
    output: Output = None,
    as_json: options.AsJson = False,
) -> None:
    """What a deployment should say about itself (NIST SP 800-226), in Markdown or JSON."""
    from farthing.ledger import Ledger, markdown
    from farthing.ledger import statement as make

    with Ledger.open(where, upgrade=False) as book, patience("writing the statement"):
        data = make(book, name, delta=delta)
    text = json.dumps(data, ensure_ascii=False) + "\n" if as_json else markdown(data)
    _put(output, io.StringIO(text))


def _certificate(file: Path) -> Certificate:
    if file.suffix == ".json":
        with patience("verifying the certificate"):
            return verify(file)
    tariff = read_tariff(file)
    with patience("certifying"):
        return tariff.certify()


def _limit(text: str) -> tuple[str, int]:
    name, equals, number = text.partition("=")
    if not equals or not number.isdecimal():
        raise InvalidInput(f"a limit must look like keys=10, got {text!r}")
    return name, int(number)


def _put(output: Path | None, text: TextIO) -> None:
    """Everything at once, so that an error leaves nothing half printed."""
    if output is None:
        shutil.copyfileobj(text, sys.stdout)
        return
    try:
        with output.open("w", encoding="utf-8") as file:
            shutil.copyfileobj(text, file)
    except OSError as error:
        raise InvalidInput(f"{output} cannot be written: {error}") from None


@contextmanager
def _reading(file: Path) -> Iterator[TextIO]:
    """A file, read line by line: a line ends where JSON Lines says and nowhere else."""
    try:
        with file.open(encoding="utf-8", newline="\n") as lines:
            yield lines
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from None


def _read_list(file: Path, mode: Mode) -> Any:
    from farthing.ledger import Batch, Setwise

    try:
        with _reading(file) as lines:
            data = tomllib.loads(lines.read())
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{file} is not TOML: {error}") from None
    key = "queries" if mode is Mode.batch else "items"
    listed = data.get(key)
    if set(data) != {key} or not isinstance(listed, dict):
        raise InvalidInput(f"{file} must have one table [{key}]")
    if mode is Mode.batch:
        return Batch({name: [parse_item(text) for text in texts] for name, texts in listed.items()})
    return Setwise({name: parse_item(text) for name, text in listed.items()})


def _say(as_json: bool, answer: dict[str, object], words: str) -> None:
    if as_json:
        print_json(answer)
    else:
        console().print(words, markup=False)
