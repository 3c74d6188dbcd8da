"""A ledger as JSON Lines, one entry a line, and back: the imported chain is identical."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import Connection, insert
from sqlalchemy.exc import IntegrityError

from farthing.canonical import canonical
from farthing.errors import InvalidInput
from farthing.ledger.book import Ledger
from farthing.ledger.errors import AlreadyThere, Damaged
from farthing.ledger.facts import require_name
from farthing.ledger.moves import released
from farthing.ledger.reading import Reader
from farthing.ledger.schema import accounts, datasets, entries, lots, purses
from farthing.ledger.walk import Walk

FORMAT = "farthing ledger 1"
#: Entries that are inserted at a time.
_CHUNK = 1000
_FIELDS = {"dataset": str, "number": int, "fact": dict, "previous": str, "hash": str}


def export_lines(ledger: Reader) -> Iterator[str]:
    """Every dataset's book, after one line that says what this is."""
    yield canonical({"format": FORMAT})
    for dataset in ledger.datasets():
        for entry in ledger.entries(dataset):
            yield canonical(
                {
                    "dataset": dataset,
                    "number": entry.number,
                    "fact": dict(entry.fact),
                    "previous": entry.previous,
                    "hash": entry.hash,
                }
            )


def import_lines(ledger: Ledger, lines: Iterable[str]) -> dict[str, int]:
    """Write exported books into a ledger that has none of these datasets: all or nothing.

    The chain and the balances are checked on the way in. Gives the number of entries of each.
    """
    given = _parsed(lines)
    return ledger.store.write(lambda connection: _import(connection, given))


def _parsed(lines: Iterable[str]) -> list[dict[str, Any]]:
    records = []
    for place, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except ValueError:
            raise InvalidInput(f"line {place} must be JSON") from None
        if place == 1:
            if record != {"format": FORMAT}:
                raise InvalidInput(f"the first line must say the format {FORMAT!r}")
            continue
        if not isinstance(record, dict) or {k: type(v) for k, v in record.items()} != _FIELDS:
            raise InvalidInput(f"line {place} must be an entry of a ledger")
        require_name(f"the dataset in line {place}", record["dataset"])
        records.append(record)
    return records


def _import(connection: Connection, records: list[dict[str, Any]]) -> dict[str, int]:
    walks: dict[str, Walk] = {}
    identities: dict[str, int] = {}
    pending: list[dict[str, Any]] = []
    for record in records:
        name = record["dataset"]
        if name not in walks:
            walks[name] = Walk(name)
            identities[name] = _new_dataset(connection, name)
        written = canonical(record["fact"])
        fact = walks[name].take(record["number"], written, record["previous"], record["hash"])
        pending.append(
            {
                "dataset_id": identities[name],
                "number": record["number"],
                "fact": written,
                "kind": fact["kind"],
                "previous": record["previous"],
                "hash": record["hash"],
                "settles": fact.get("settles"),
                "released": released(fact),
            }
        )
        if len(pending) == _CHUNK:
            connection.execute(insert(entries), pending)
            pending = []
    if pending:
        connection.execute(insert(entries), pending)
    for name, walk in walks.items():
        _write_balances(connection, identities[name], walk)
    return {name: walk.number for name, walk in walks.items()}


def _new_dataset(connection: Connection, name: str) -> int:
    try:
        made = connection.execute(
            insert(datasets).values(name=name, number=0, previous="", hash="")
        )
    except IntegrityError:
        raise AlreadyThere(f"dataset {name} exists; import into a ledger without it") from None
    assert made.inserted_primary_key is not None
    return int(made.inserted_primary_key[0])


def _write_balances(connection: Connection, identity: int, walk: Walk) -> None:
    if walk.replay.dataset is None or walk.replay.dataset.name != walk.dataset:
        raise Damaged(f"entry 1 does not describe {walk.dataset}", walk.dataset, 1)
    connection.execute(
        datasets.update()
        .filter_by(id=identity)
        .values(number=walk.number, previous=walk.previous, hash=walk.hash)
    )
    for table, rows in (
        (accounts, walk.replay.accounts.values()),
        (purses, walk.replay.purses.values()),
        (lots, walk.replay.lots.values()),
    ):
        if rows:
            connection.execute(insert(table), [{"dataset_id": identity, **row} for row in rows])
