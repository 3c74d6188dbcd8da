"""The database of the service: tokens, jobs, requests that were answered under a key.

Nothing here is a budget. If it is lost, tokens are minted anew and nothing is overspent.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import (
    ClauseElement,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from farthing.ledger.errors import Unavailable
from farthing.ledger.store.connection import Store

T = TypeVar("T")

metadata = MetaData()

tokens = Table(
    "farthing_access_tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("hash", String(200), nullable=False),
    Column("role", String(10), nullable=False),
    Column("name", String(200), nullable=False),
    Column("datasets", Text, nullable=False),  # JSON: a list of names, or null for all granted
    Column("created", String(40), nullable=False),
    Column("expires", String(40)),
    Column("revoked", String(40)),
)

jobs = Table(
    "farthing_access_jobs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("caller", String(220), nullable=False),
    Column("dataset", String(200)),
    Column("what", String(40), nullable=False),
    Column("state", String(10), nullable=False),
    Column("created", Float, nullable=False),
    Column("beat", Float, nullable=False),  # when its worker was last alive
    Column("finished", Float),
    Column("status", Integer),
    Column("body", Text),
)
Index("farthing_access_jobs_of", jobs.c.caller, jobs.c.created)

answered = Table(
    "farthing_access_answered",
    metadata,
    Column("caller", String(220), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("at", Float, nullable=False),
    Column("status", Integer),  # NULL until it is answered
    Column("body", Text),
)

#: One row: the key for names of releases.
keys = Table(
    "farthing_access_key",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("secret", String(64), nullable=False),
)

#: Seconds to wait for a lock: less than the ledger waits.
PATIENCE_SECONDS = 20.0


def written_now() -> str:
    """Now in UTC, as rows have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _make_tables(connection: Connection) -> bool:
    metadata.create_all(connection)
    return True


class AccessStore:
    """The database, open. Safe to share between threads; each process opens its own."""

    def __init__(self, target: str) -> None:
        self._store = Store(target, create=True)
        try:
            self.write(_make_tables)
        except Unavailable:  # another worker made the same tables at this moment
            self.write(_make_tables)
        self.add(keys, {"id": 1, "secret": secrets.token_hex(32)})
        self.secret = str(self.ask(lambda connection: connection.scalar(select(keys.c.secret))))

    def add(self, table: Table, row: Mapping[str, Any]) -> bool:
        """A new row, unless there is one with this key already."""

        def work(connection: Connection) -> list[Any]:
            on_sqlite = connection.dialect.name == "sqlite"
            added = sqlite.insert(table) if on_sqlite else postgresql.insert(table)
            made = added.values(**row).on_conflict_do_nothing().returning(*table.primary_key)
            return list(connection.execute(made))

        return len(self.write(work)) == 1

    def write(self, work: Callable[[Connection], T]) -> T:
        """The result of `work` in one transaction; never None."""
        made = self._store.write(work, patience=PATIENCE_SECONDS)
        if made is None:
            raise Unavailable("the service's database changed its mind")
        return made

    def ask(self, work: Callable[[Connection], T]) -> T:
        """One snapshot."""
        return self._store.ask(work)

    @property
    def is_file(self) -> bool:
        """Whether reads are local and do not wait for writers."""
        return self._store.is_sqlite

    def look_up(self, statement: ClauseElement, parameters: Mapping[str, Any]) -> list[Any]:
        """The rows of a prepared statement."""
        return self._store.look_up(statement, parameters)

    def shut(self) -> None:
        """Give the connections back."""
        self._store.shut()
