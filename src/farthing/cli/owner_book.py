"""`farthing owner …`: what becomes of the book: history, copies, another place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import options
from farthing.cli.balances import history_table
from farthing.cli.ledger_options import AnyName, Name, reading, say
from farthing.cli.output import console, patience, print_json
from farthing.cli.owner import owner
from farthing.ledger import Ledger, back_up, export_lines, history, move, restore

__all__ = ["owner"]

#: How a file of SQLite begins.
_SQLITE = b"SQLite format 3\0"

#: How a day is written.
_DAY = {"formats": ["%Y-%m-%d"], "metavar": "YYYY-MM-DD", "show_default": False}


@owner.command("seal")
def seal_command(
    name: Name,
    where: options.LedgerAt,
    successor: Annotated[
        str, typer.Option("--successor", help="The identity of the ledger where it goes on.")
    ],
    as_json: options.AsJson = False,
) -> None:
    """End a book here, for good: only that ledger can go on with it. `move` does all of it."""
    with Ledger.open(where, upgrade=False) as ledger:
        entry = ledger.owner().seal(name, successor=successor)
    say(
        as_json,
        {"dataset": name, "successor": successor, "seal": entry.hash},
        f"{name} is sealed; it goes on in the ledger {successor}\n"
        f"(there: farthing ledger import FILE --take-over {entry.hash})",
    )


@owner.command("move")
def move_command(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The ledger to move to.")],
    where: options.LedgerAt,
    name: AnyName = None,
    as_json: options.AsJson = False,
) -> None:
    """Move a dataset, or all, to another ledger: sealed here, sold from there. Safe to repeat."""
    with (
        Ledger.open(where, upgrade=False) as source,
        Ledger.open(target) as there,
        patience("moving"),
    ):
        counts = move(source, there, name)
    say(
        as_json,
        {"moved": counts},
        "\n".join(f"{moved}: {count} entries" for moved, count in counts.items()),
    )


@owner.command("upgrade")
def upgrade_command(where: options.LedgerAt, as_json: options.AsJson = False) -> None:
    """Create the ledger or bring its schema up to date."""
    with patience("upgrading"), Ledger.open(where):
        pass
    say(as_json, {"upgraded": True}, "the ledger is up to date")


@owner.command("backup")
def backup_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes.")],
    where: options.LedgerAt,
    as_json: options.AsJson = False,
) -> None:
    """Write a copy of every book to a file, flushed and checked; people may go on meanwhile."""
    with Ledger.open(where, upgrade=False) as ledger, patience("backing up"):
        walks = back_up(ledger.reader(), file)
    found = [
        {"dataset": name, "entries": walk.number, "head": walk.hash} for name, walk in walks.items()
    ]
    say(
        as_json,
        {"file": str(file), "datasets": found},
        "\n".join(
            [f"written to {file}"]
            + [f"{one['dataset']}: {one['entries']} entries, head {one['head']}" for one in found]
        ),
    )


@owner.command("restore")
def restore_command(
    copy: Annotated[
        str,
        typer.Argument(
            metavar="COPY", help="A file of `owner backup`, or a copy of a ledger's own file."
        ),
    ],
    where: options.LedgerAt,
    as_json: options.AsJson = False,
) -> None:
    """Go on from a copy when the ledger is lost, in another one.

    Nobody knows what was spent after the copy was made, so every account in it counts as spent
    in full and is closed. Sign a tariff, and grant, for what is still to be given away.
    """
    with _lines_of(copy) as lines, Ledger.open(where) as ledger, patience("restoring"):
        counts = restore(ledger, lines)
    say(
        as_json,
        {"restored": counts},
        "\n".join(
            [f"{name}: {count} entries; its accounts are closed" for name, count in counts.items()]
            + ["everything in them counts as spent; sign a tariff for what is still to be given"]
            + ["datasets and accounts that were opened after the copy was made are not in it"]
        ),
    )


@owner.command("history")
def history_command(
    where: options.LedgerAt,
    name: AnyName = None,
    analyst: Annotated[
        str | None, typer.Option("--analyst", help="Only this one.", show_default=False)
    ] = None,
    since: Annotated[
        datetime | None, typer.Option("--since", help="From this day on (UTC).", **_DAY)
    ] = None,
    until: Annotated[
        datetime | None, typer.Option("--until", help="Up to this day (UTC).", **_DAY)
    ] = None,
    values: Annotated[
        bool, typer.Option("--values", help="Also what was released to them; the owner's alone.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Who asked what, when, for how much, and of which version of the rows."""
    first = None if since is None else since.replace(tzinfo=UTC)
    end = None if until is None else until.replace(tzinfo=UTC) + timedelta(days=1)
    with Ledger.open(where, upgrade=False) as ledger, patience("reading"):
        reader = ledger.reader()
        asked = [
            one
            for dataset in ([name] if name is not None else reader.datasets())
            for one in history(reader, dataset, analyst, since=first, until=end)
        ]
    if as_json:
        told = [{"release": one.release} if values else {} for one in asked]
        rows = [{**one.to_json(), **more} for one, more in zip(asked, told, strict=True)]
        print_json({"dataset": name, "asked": rows})
    elif asked:
        console().print(history_table(sorted(asked, key=lambda one: one.time), values=values))
    else:
        say(False, {}, "nothing was asked" + ("" if name is None else f" of {name}"))


@contextmanager
def _lines_of(copy: str) -> Iterator[Iterator[str]]:
    """The lines of an export: as they are in a file, or of a ledger that is there itself."""
    if "://" not in copy and not _is_sqlite(Path(copy)):
        with reading(Path(copy)) as lines:
            yield lines
        return
    with Ledger.open(copy, upgrade=False) as ledger:
        yield export_lines(ledger.reader())


def _is_sqlite(file: Path) -> bool:
    try:
        with file.open("rb") as start:
            return start.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False  # `reading` says what is wrong
