"""Is the ledger what was written? Hashes, balances, turns and certificates, each once more."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, select

from farthing.errors import FarthingError, InvalidInput
from farthing.ledger.chain_check import ChainCheck, require_company
from farthing.ledger.errors import Damaged, NotInLedger
from farthing.ledger.proofs import prove_certificate, prove_list
from farthing.ledger.records import TARIFF
from farthing.ledger.reports.turn_check import check_turns
from farthing.ledger.roles.reader import Reader
from farthing.ledger.store.commands import repeated_columns
from farthing.ledger.store.queries import all_declared, entry_rows, identity_of_ledger
from farthing.ledger.store.tables import accounts, datasets, lots, purses


@dataclass(frozen=True, slots=True)
class Verified:
    """A dataset whose book was found right. `head` may be kept elsewhere, as a witness."""

    dataset: str
    entries: int
    head: str
    certificates: int
    proved: bool


def verify(
    reader: Reader, dataset: str | None = None, *, prove: bool = False, contains: str | None = None
) -> list[Verified]:
    """Check every dataset, or this one; Damaged names the first bad entry.

    Walks the chain, plays every entry again and compares the balances with the tables; walks the
    turns of conversations, and looks whether the noise is the one that was committed to. A
    certificate's digest is always checked; with `prove` each is proved again from scratch,
    which takes seconds. A chain that was cut off at its end and had its head moved back can
    only be told from outside: `contains` is a head that was seen earlier and must still be
    in the chain.
    """
    reader.check_pages()
    with reader.snapshot() as connection:
        query = select(datasets).order_by(datasets.c.id)
        rows = list(connection.execute(query if dataset is None else query.filter_by(name=dataset)))
        if dataset is not None and not rows:
            raise NotInLedger(f"there is no dataset {dataset!r:.60}")
        seen: list[str] = []
        here = identity_of_ledger(connection)
        walks = [_walk(connection, row, contains, seen) for row in rows]
        for row, walk in zip(rows, walks, strict=True):
            _check_home(row, walk, here)
        _check_company(connection, walks)
    if contains is not None and not seen:
        raise Damaged(f"no entry has the hash {contains[:80]}; the chain was cut or replaced")
    if prove:
        for walk in walks:
            _prove(walk)
    return [
        Verified(walk.dataset, walk.number, walk.hash, len(walk.state.documents), prove)
        for walk in walks
    ]


def _walk(connection: Connection, row: Any, contains: str | None, seen: list[str]) -> ChainCheck:
    walk = ChainCheck(row.name)
    with entry_rows(connection, row.id) as rows:
        for entry in rows:
            fact = walk.take(entry.number, entry.fact, entry.previous, entry.hash)
            columns = (entry.kind, entry.settles, entry.released)
            if columns != tuple(repeated_columns(fact).values()):
                raise walk.bad(entry.number, "its columns do not repeat what it says")
            if entry.hash == contains:
                seen.append(entry.hash)
    if row.declared != walk.state.declared:
        raise walk.bad(walk.state.declared, "the dataset is declared elsewhere than it says")
    if (row.number, row.previous, row.hash) != (walk.number, walk.previous, walk.hash):
        raise walk.bad(
            min(walk.number, row.number) + 1, "the chain does not end where the dataset says"
        )
    declared = walk.state.declaration
    if declared is None or declared.dataset.name != row.name:
        raise walk.bad(1, "it does not describe this dataset")
    for table, expected in (
        (accounts, walk.state.accounts.values()),
        (purses, walk.state.purses.values()),
        (lots, walk.state.lots.values()),
    ):
        _compare(connection, row, table, expected)
    check_turns(connection, row, walk.state.conversations)
    return walk


def _compare(
    connection: Connection, dataset: Any, table: Table, expected: Iterable[Mapping[str, Any]]
) -> None:
    """A table must hold exactly what the entries add up to."""

    def key(row: Mapping[str, Any]) -> str:
        return repr([row[column.name] for column in list(table.primary_key)[1:]])

    query = select(table).filter_by(dataset_id=dataset.id)
    rows: list[dict[str, Any]] = [row._asdict() for row in connection.execute(query)]
    found = {key(row): row for row in rows}
    wanted = {key(row): {"dataset_id": dataset.id, **row} for row in expected}
    wrong = sorted(k for k in found.keys() | wanted.keys() if found.get(k) != wanted.get(k))
    if wrong:
        what = table.name.removeprefix("farthing_")
        raise Damaged(
            f"the entries of {dataset.name} do not add up to its {what}: "
            f"{wrong[0]} is {_amounts(found.get(wrong[0]))}, "
            f"must be {_amounts(wanted.get(wrong[0]))}",
            dataset.name,
        )


def _amounts(row: Mapping[str, Any] | None) -> str:
    return "missing" if row is None else json.dumps({k: row[k] for k in row if k != "dataset_id"})


def _check_home(row: Any, walk: ChainCheck, here: str) -> None:
    """A book that takes entries is not sealed, and names no other ledger as the one it is in."""
    sealed, home = walk.state.sealed_for is not None, walk.state.home
    if row.writable == 1 and (sealed or home not in (None, here)):
        raise Damaged(
            f"the book of {row.name} goes on elsewhere, and yet it is open here", row.name
        )


def _check_company(connection: Connection, walks: list[ChainCheck]) -> None:
    known = all_declared(connection)
    for walk in walks:
        try:
            require_company(known, walk)
        except InvalidInput as error:
            raise walk.bad(walk.state.declared, str(error)) from None


def _prove(walk: ChainCheck) -> None:
    """Every claim of every account once more, from nothing."""
    for number, document in walk.state.documents.items():
        account = walk.state.accounts[number]
        try:
            if account["mode"] == TARIFF:
                prove_certificate(document)
            else:
                prove_list(document)
        except FarthingError as error:
            raise walk.bad(account["entry"], f"its claims are not proved again: {error}") from None
