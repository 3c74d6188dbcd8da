"""The ledger: who may spend how much of what, and everything that was spent.

with Ledger.open("budget.db") as ledger:
    owner = ledger.owner()
    owner.add(Dataset("events", unit="member_id", owner="data-team"))
    owner.sign("events", tariff.certify())
    owner.grant("events", "ann", farthings=100)
    ann = ledger.analyst("events", "ann")
    held = ann.reserve({"select": 10}, question={"top_k": 10})
    …                                          # run the mechanism
    ann.close(held, release_digest)            # or abandon(held): nothing comes back
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from typing import Self

from farthing.ledger.declared_data import require_location
from farthing.ledger.roles.analyst import Analyst
from farthing.ledger.roles.owner import Owner
from farthing.ledger.roles.reader import Reader
from farthing.ledger.store.connection import Store
from farthing.ledger.store.open_book import OpenBook, utc_now
from farthing.ledger.store.queries import all_declared
from farthing.ledger.store.tables import ensure_schema


class Ledger:
    """An open ledger. Threads may share it; each process opens its own.

    Take a role to do something with it: `owner`, `analyst`, `reader`.
    """

    def __init__(self, book: OpenBook) -> None:
        self.book = book

    @classmethod
    def open(
        cls,
        target: str | os.PathLike[str],
        *,
        upgrade: bool = True,
        clock: Callable[[], datetime] = utc_now,
    ) -> Self:
        """The ledger in this file or at this PostgreSQL address.

        With `upgrade` it is created if it is missing and migrated if it is old; without, both
        are errors. A newer schema than this farthing knows is always an error.
        """
        store = Store(target, create=upgrade)
        try:
            ensure_schema(store, upgrade=upgrade)
        except BaseException:
            store.shut()
            raise
        return cls(OpenBook(store, clock))

    def owner(self) -> Owner:
        """The role of an owner, who decides."""
        return Owner(self.book)

    def analyst(self, dataset: str, name: str) -> Analyst:
        """The role of one analyst, with one dataset."""
        return Analyst(self.book, dataset, name)

    def reader(self) -> Reader:
        """The role of a reader, who sees everything."""
        return Reader(self.book)

    def datasets_at(self, location: str) -> tuple[str, ...]:
        """The datasets with exactly this location."""
        require_location(location)
        known = self.book.store.ask(all_declared)
        return tuple(
            name for name, declared in known.items() if declared.dataset.location == location
        )

    def shut(self) -> None:
        """Give the database connections back."""
        self.book.store.shut()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()

    def __repr__(self) -> str:
        return f"Ledger({self.book.store.name})"
