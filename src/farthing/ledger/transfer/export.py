"""A ledger as JSON Lines, one entry a line: a copy for reading, elsewhere or later."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import select

from farthing.canonical import canonical
from farthing.ledger.chain_check import ENTRIES_BETWEEN_NEWS
from farthing.ledger.roles.reader import Reader
from farthing.ledger.store.queries import (
    all_declared,
    datasets_beside,
    entry_of,
    entry_rows,
    row_of_dataset,
)
from farthing.ledger.store.tables import datasets
from farthing.progress import tell

FORMAT = "farthing ledger 1"


def export_lines(reader: Reader, dataset: str | None = None) -> Iterator[str]:
    """Every dataset's book at one moment, or this one's and those beside it, after one line that
    says what this is."""
    yield canonical({"format": FORMAT})
    with reader.snapshot() as connection:
        if dataset is None:
            names = tuple(connection.scalars(select(datasets.c.name).order_by(datasets.c.name)))
        else:
            row_of_dataset(connection, dataset)
            names = datasets_beside(all_declared(connection), dataset)
        for name in names:
            with entry_rows(connection, row_of_dataset(connection, name)) as rows:
                for entry in map(entry_of, rows):
                    if entry.number % ENTRIES_BETWEEN_NEWS == 0:
                        tell(f"{entry.number} entries of {name}")
                    yield canonical(
                        {
                            "dataset": name,
                            "number": entry.number,
                            "fact": entry.fact.to_json(),
                            "previous": entry.previous,
                            "hash": entry.hash,
                        }
                    )
