"""Verify a ledger: check hashes, balances, turns and certificates once more."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, select

from farthing.canonical import canonical, sha256
from farthing.errors import FarthingError, InvalidInput
from farthing.interactive import SealedState, unseal
from farthing.ledger.entries.fact import (
    Broken,
    ChainCheck,
    Opened,
    linked,
    require,
    require_company,
    start_of,
)
from farthing.ledger.errors import Damaged
from farthing.ledger.records import TARIFF, answered_from_json
from farthing.ledger.registered_lists import prove_list
from farthing.ledger.roles.owner import prove_certificate
from farthing.ledger.roles.reader import Reader
from farthing.ledger.store.commands import noise_of, repeated_columns
from farthing.ledger.store.queries import (
    all_declared,
    balances,
    entry_rows,
    identity_of_ledger,
    no_dataset,
)
from farthing.ledger.store.tables import conversations, datasets, turns


@dataclass(frozen=True, slots=True)
class Verified:
    """A dataset whose book is right. Keep `head` elsewhere, as a witness."""

    dataset: str
    entries: int
    head: str
    certificates: int
    proved: bool


def verify(
    reader: Reader, dataset: str | None = None, *, prove: bool = False, contains: str | None = None
) -> list[Verified]:
    """Check every dataset, or this one; Damaged names the first bad entry.

    Walks the chain, replays every entry and compares the balances with the tables. Walks the turns
    of conversations, and checks the noise against the commitment. Checks the digest of every
    certificate; with `prove` each is proved again from scratch, which takes seconds. If the end of
    a chain was cut off and its head moved back, only somebody outside can know: `contains` is a
    head that was seen earlier and must still be in the chain.
    """
    reader.check_pages()
    with reader.snapshot() as connection:
        query = select(datasets).order_by(datasets.c.id)
        rows = list(connection.execute(query if dataset is None else query.filter_by(name=dataset)))
        if dataset is not None and not rows:
            raise no_dataset(dataset)
        seen: list[str] = []
        here = identity_of_ledger(connection)
        walks = [_walk(connection, row, contains, seen) for row in rows]
        known = all_declared(connection)
        for row, walk in zip(rows, walks, strict=True):
            _check_home(row, walk, here)
        for walk in walks:
            try:
                require_company(known, walk)
            except InvalidInput as error:
                raise walk.bad(walk.state.declared, str(error)) from None
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
                raise walk.bad(entry.number, "its columns differ from its fact")
            if entry.hash == contains:
                seen.append(entry.hash)
    if row.declared != walk.state.declared:
        raise walk.bad(walk.state.declared, "the dataset's row names another declaration")
    if (row.number, row.previous, row.hash) != (walk.number, walk.previous, walk.hash):
        raise walk.bad(
            min(walk.number, row.number) + 1, "the chain does not end where the dataset says"
        )
    declared = walk.state.declaration
    if declared is None or declared.dataset.name != row.name:
        raise walk.bad(1, "it does not describe this dataset")
    for table, expected in balances(walk.state):
        _compare(connection, row, table, expected)
    _check_turns(connection, row, walk.state.conversations)
    return walk


def _compare(
    connection: Connection, dataset: Any, table: Table, expected: Iterable[Mapping[str, Any]]
) -> None:
    """A table must hold exactly what the entries add up to."""

    def key(row: Mapping[str, Any]) -> str:
        return repr([row[column.name] for column in list(table.primary_key)[1:]])

    query = select(table).filter_by(dataset_id=dataset.id)
    rows: list[dict[str, Any]] = [row._asdict() for row in connection.execute(query)]
    stored = {key(row): row for row in rows}
    wanted = {key(row): {"dataset_id": dataset.id, **row} for row in expected}
    wrong = sorted(k for k in stored.keys() | wanted.keys() if stored.get(k) != wanted.get(k))
    if wrong:
        what = table.name.removeprefix("farthing_")
        raise Damaged(
            f"the entries of {dataset.name} do not add up to its {what}: "
            f"{wrong[0]} is {_amounts(stored.get(wrong[0]))}, "
            f"must be {_amounts(wanted.get(wrong[0]))}",
            dataset.name,
        )


def _amounts(row: Mapping[str, Any] | None) -> str:
    return "missing" if row is None else json.dumps({k: row[k] for k in row if k != "dataset_id"})


def _check_home(row: Any, walk: ChainCheck, here: str) -> None:
    """A book that can be written must not be sealed, or be in another ledger by its own entries."""
    sealed, home = walk.state.sealed_for is not None, walk.state.home
    if row.writable == 1 and (sealed or home not in (None, here)):
        raise Damaged(
            f"the book of {row.name} goes on elsewhere, but it can be written here", row.name
        )


def _prove(walk: ChainCheck) -> None:
    """Prove every claim of every account again."""
    for number, document in walk.state.documents.items():
        account = walk.state.accounts[number]
        try:
            (prove_certificate if account["mode"] == TARIFF else prove_list)(document)
        except FarthingError as error:
            raise walk.bad(account["entry"], f"its claims are not proved again: {error}") from None


def _check_turns(connection: Connection, dataset: Any, opened: dict[str, Opened]) -> None:
    """Every conversation of a dataset agrees with its entries and its turns, or Damaged."""
    query = select(conversations).filter_by(dataset_id=dataset.id)
    rows: dict[str, Any] = {row.id: row for row in connection.execute(query)}
    if set(rows) - set(opened):
        raise Damaged(f"{dataset.name} has a conversation that nobody opened", dataset.name)
    for identity, conversation in opened.items():
        try:
            if identity in rows:
                _check_conversation(connection, rows[identity], conversation, dataset.writable == 1)
            elif dataset.writable and conversation.open:
                raise Broken("it is open in the book, but it is not here")
        except Broken as error:
            number = conversation.entry
            what = f"the conversation of entry {number} of {dataset.name} is bad: {error}"
            raise Damaged(what, dataset.name, number) from None


def _check_conversation(
    connection: Connection, row: Any, opened: Opened, goes_on_here: bool
) -> None:
    """The row agrees with entries and turns, and the noise with the commitment; or Broken."""
    head, commitment, number, asked = start_of(row.id), opened.commitment, 0, 0
    heads = {0: head}
    query = select(turns).filter_by(conversation=row.id).order_by(turns.c.number)
    with connection.execute(query, execution_options={"yield_per": 100}) as said:
        for number, turn in enumerate(said, start=1):
            right = turn.number == number and turn.hash == linked(head, sha256(turn.said))
            require(right, f"turn {number} is missing or was changed")
            answers, commitment = _words(turn.said, (row.id, number, asked))
            asked += answers
            head = heads[asked] = turn.hash
    for marked, end in opened.marks:
        require(heads.get(marked) == end, "its turns are not those that the book tells of")
    after_its_end = not opened.open and opened.marks[-1][0] != asked
    require(not after_its_end, "questions were asked after it had ended")
    kept = (row.entry, row.analyst, row.declared, row.turns, row.asked, row.head, row.commitment)
    whose = (opened.entry, opened.analyst, opened.declared)
    same = kept == (*whose, number, asked, head, commitment)
    require(same, "its row does not agree with its turns")
    if goes_on_here:
        require((row.open == 1) == opened.open, "row and book do not agree whether it has ended")
        _check_noise(connection, row, opened)


def _words(said: str, place: tuple[str, int, int]) -> tuple[int, str]:
    """How many questions a turn answers, and the commitment after it; Broken if it is none."""
    _, number, _ = place
    try:
        words = json.loads(said)
        answered = [answered_from_json(answer) for answer in words["answered"]]
        named = (words["conversation"], words["turn"], words["asked"])
        right = canonical(words) == said and bool(answered) and named == place
        commitment = words["commitment"]
    except (ValueError, KeyError, TypeError):
        raise Broken(f"turn {number} is not a turn of a conversation") from None
    require(right, f"turn {number} belongs elsewhere")
    return len(answered), commitment


def _check_noise(connection: Connection, row: Any, opened: Opened) -> None:
    secret = noise_of(connection, row.id)
    try:
        if secret is None:
            raise ValueError
        kept = unseal(SealedState(json.loads(secret), row.commitment))
        same = kept.asked == row.asked and kept.mechanism == opened.mechanism
    except (ValueError, FarthingError):
        same = False
    require(same, "its noise is not what was committed to")
