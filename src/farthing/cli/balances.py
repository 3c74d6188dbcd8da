"""What `farthing ledger show` shows: caps, purses, registered lists, open reservations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from farthing.ledger.facts import Account, Purse
    from farthing.ledger.reading import Reader

#: Columns of numbers.
_RIGHT = {"farthings spent", "δ units spent", "used"}


def balances_of(book: Reader, name: str) -> dict[str, Any]:
    """The balances of a dataset as of now."""
    accounts, purses = book.accounts(name), book.purses(name)
    tariffs = {account.number: account for account in accounts if account.mode == "tariff"}
    rows: list[tuple[str, Account, Account | Purse, str | None]] = [
        *(("everybody", tariff, tariff, None) for tariff in tariffs.values()),
        *((purse.analyst, tariffs[purse.account], purse, purse.month) for purse in purses),
    ]
    return {
        "dataset": name,
        "balances": [
            {
                "account": tariff.name,
                "state": "in force" if tariff.open else "retired",
                "analyst": analyst,
                "farthings": held.farthings,
                "farthings_spent": held.farthings_spent,
                "delta_units": held.delta_units,
                "delta_units_spent": held.delta_units_spent,
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
            for lot in book.lots(name, account.name)
        ],
        "open_reservations": [
            {"entry": r.entry, "analyst": r.analyst} for r in book.open_reservations(name)
        ],
    }


def balances_table(shown: dict[str, Any]) -> Iterator[Table | str]:
    """The same for people."""
    name = escape(str(shown["dataset"]))
    yield _table(
        name,
        ["account", "analyst", "farthings spent", "δ units spent", "state", "month"],
        [
            [
                row["account"],
                row["analyst"],
                f"{row['farthings_spent']} of {row['farthings']}",
                f"{row['delta_units_spent']} of {row['delta_units']}",
                row["state"],
                row["month"] or "",
            ]
            for row in shown["balances"]
        ],
    )
    if shown["lists"]:
        yield _table(
            f"{name}: registered lists",
            ["list", "mode", "analyst", "item", "used"],
            [
                [
                    row["account"],
                    row["mode"],
                    row["analyst"],
                    row["item"],
                    f"{row['spent']} of {row['granted']}",
                ]
                for row in shown["lists"]
            ],
        )
    yield f"{len(shown['open_reservations'])} open reservations"


def _table(title: str, columns: list[str], rows: list[list[str]]) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="right" if column in _RIGHT else "left")
    for row in rows:
        table.add_row(*map(escape, row))
    return table
