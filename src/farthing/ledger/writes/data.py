"""Room for a new dataset: its name is free, and its data is not there under another one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from sqlalchemy import Connection, insert, text
from sqlalchemy.exc import IntegrityError

from farthing.errors import InvalidInput
from farthing.ledger.chain import GENESIS
from farthing.ledger.declared_data import Declared
from farthing.ledger.errors import AlreadyThere, NotInLedger
from farthing.ledger.locations import overlap
from farthing.ledger.store.queries import datasets_beside
from farthing.ledger.store.tables import datasets

#: Held on PostgreSQL while a dataset is added, so that no two see each other's place free.
_ADDING = 0x66617275


def one_adds_at_a_time(connection: Connection) -> None:
    """Whoever looks for a place for a dataset is alone until they have taken it.

    On SQLite every writing transaction is.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADDING})


def require_place(known: Mapping[str, Declared], new: Declared) -> None:
    """A dataset's data is not there under another name, unless it is said which.

    Where the data of a dataset was before it was relocated counts too.
    """
    dataset, beside = new.dataset, new.beside
    for other in beside:
        if other not in known:
            raise NotInLedger(f"there is no dataset {other!r:.60}")
        unit = known[other].dataset.unit
        if unit != dataset.unit:
            raise InvalidInput(
                f"datasets beside each other must have one unit, {other} has {unit}, "
                f"got {dataset.unit}: their guarantees would not be about the same neighbours"
            )
    itself = (dataset.name,) if dataset.name in known else ()
    together = datasets_beside(known, *beside, *itself)
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
    """An empty book."""
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
