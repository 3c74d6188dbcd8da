"""What readers and owners are shown as tables: balances, and who asked what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rich.markup import escape
from rich.table import Table

from farthing.engine.context import record_in_words
from farthing.errors import FarthingError
from farthing.ledger.records import Account, Purse
from farthing.ledger.reports.history import Asked
from farthing.ledger.roles.reader import Reader
from farthing.wording import plain

#: Columns of numbers.
_RIGHT = {"farthings spent", "δ units spent", "used", "farthings", "δ units"}
#: Longer questions are cut where people read them; --json has all of it.
_LONGEST = 80
#: How the end of a question is called for people.
_OUTCOMES = {"open": "open", "close": "answered", "abandon": "abandoned", "end": "ended"}


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
    """The same for people."""
    name = escape(plain(str(shown["dataset"])))
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
    where = "" if shown["goes_on_here"] else "; a copy or sealed: nothing can be written here"
    talks = shown["open_conversations"]
    said = f", {len(talks)} open conversations" if talks else ""
    yield f"{len(shown['open_reservations'])} open reservations{said}{where}"


def history_table(asked: list[Asked], *, values: bool = False) -> Table:
    """Who asked what, when, and for how much; with `values`, what was told."""
    several = len({one.dataset for one in asked}) > 1
    last = ["version", "released"] if values else ["version"]
    return _table(
        "history" if several else escape(plain(asked[0].dataset)),
        ["time (UTC)", "analyst", "question", "farthings", "δ units", "outcome", *last],
        [
            [
                one.time[:16].replace("T", " "),
                one.analyst,
                (f"{one.dataset}: " if several else "") + _question_in_words(one.question),
                str(one.price.farthings),
                str(one.price.delta_units),
                _OUTCOMES[one.outcome],
                one.version or "live",
                *([_values_in_words(one.release)] if values else []),
            ]
            for one in asked
        ],
    )


def _question_in_words(question: Any) -> str:
    """As the engine would title it; what was asked without the engine as it was kept."""
    if question is None:
        return "(not stated)"
    try:
        return record_in_words(question)
    except FarthingError:
        return json.dumps(question, ensure_ascii=False)[:_LONGEST]


def _values_in_words(release: Any) -> str:
    """Labels with their numbers; what was kept without the engine as it was kept."""
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


def _table(title: str, columns: list[str], rows: list[list[str]]) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="right" if column in _RIGHT else "left")
    for row in rows:
        table.add_row(*(escape(plain(cell)) for cell in row))
    return table
