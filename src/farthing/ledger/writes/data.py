"""Write about the data: add a dataset, declare something about it, seal its book."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from sqlalchemy import Connection, insert, update
from sqlalchemy.exc import IntegrityError

from farthing.errors import InvalidInput
from farthing.ledger.declared_data import Declared, overlap
from farthing.ledger.entries.data import AddDataset, Declaration, Seal
from farthing.ledger.entries.fact import GENESIS
from farthing.ledger.errors import AlreadyThere
from farthing.ledger.store import queries
from farthing.ledger.store.open_book import Writing
from farthing.ledger.store.tables import conversations, datasets


def add_dataset(writing: Writing, declared: Declared) -> None:
    """Begin the book of a dataset whose data is in no other one."""
    require_place(queries.all_declared(writing.connection), declared)
    ledger = queries.identity_of_ledger(writing.connection)
    writing.row = new_dataset(writing.connection, writing.dataset)
    writing.append(AddDataset.of(declared, **writing.stamp(), ledger=ledger))


def declare(writing: Writing, kind: type[Declaration], declared: Declared) -> None:
    """Write what is declared about a dataset from now on."""
    entry = writing.append(kind.of(declared, **writing.stamp()))
    here = update(datasets).filter_by(id=writing.row)
    writing.connection.execute(here.values(declared=entry.number))


def seal(writing: Writing, successor: str) -> None:
    """End the book here; the ledger `successor` may take it over."""
    if successor == queries.identity_of_ledger(writing.connection):
        raise InvalidInput("a book is sealed for another ledger, not for its own")
    writing.append(Seal(**writing.stamp(), successor=successor))
    run = writing.connection.execute
    run(update(datasets).filter_by(id=writing.row).values(writable=0))
    # waits for whoever is asking in a conversation, and lets nobody begin
    run(update(conversations).filter_by(dataset_id=writing.row).values(open=0))


def require_place(known: Mapping[str, Declared], new: Declared) -> None:
    """A dataset's data must not be in another dataset, unless that one is declared beside it.

    The places where data was before it was relocated count too.
    """
    dataset, beside = new.dataset, new.beside
    for other in beside:
        if other not in known:
            raise queries.no_dataset(other)
        unit = known[other].dataset.unit
        if unit != dataset.unit:
            raise InvalidInput(
                f"datasets beside each other must have one unit, {other} has {unit}, "
                f"got {dataset.unit}: their guarantees would not be about the same neighbours"
            )
    itself = (dataset.name,) if dataset.name in known else ()
    together = queries.datasets_beside(known, *beside, *itself)
    for name, declared in known.items():
        if name in (dataset.name, *together):
            continue
        for mine, theirs in product(new.places, declared.places):
            if overlap(theirs, mine):
                raise AlreadyThere(
                    f"{mine} is there already, as the dataset {name}; a budget belongs "
                    f"to the data: use {name}, or add this one beside it"
                )


def new_dataset(connection: Connection, name: str) -> int:
    """The row of an empty book."""
    try:
        made = connection.execute(
            insert(datasets).values(
                name=name, number=0, previous=GENESIS, hash=GENESIS, declared=1, writable=1
            )
        )
    except IntegrityError:
        raise AlreadyThere(f"there is a dataset {name} already; choose another name") from None
    assert made.inserted_primary_key is not None
    return int(made.inserted_primary_key[0])
