"""The database of the service: tokens, jobs, requests that were answered under a key.

Nothing here is a budget. If it is lost, tokens are minted anew and nothing is overspent.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from sqlalchemy import (
    Column,
    Connection,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    insert,
    select,
)
from sqlalchemy.exc import IntegrityError

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

#: One row: what release names are made with, so that they tell nothing.
keys = Table("farthing_access_key", metadata, Column("secret", String(64), primary_key=True))

#: Tokens, jobs and answers wait less for a lock than money does.
PATIENCE_SECONDS = 20.0


def written_now() -> str:
    """Now in UTC, as rows have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class AccessStore:
    """The database, open. Safe to share between threads; each process opens its own."""

    def __init__(self, target: str) -> None:
        self._store = Store(target, create=True)
        try:
            with self._store.engine.begin() as connection:
                metadata.create_all(connection)
        except IntegrityError:
            pass  # another worker makes the same tables at this moment
        self.secret = self._secret()

    def _secret(self) -> str:
        def work(connection: Connection) -> str:
            found = connection.scalar(select(keys.c.secret))
            if found is None:
                found = secrets.token_hex(32)
                connection.execute(insert(keys).values(secret=found))
            return str(found)

        return self.write(work)

    def write(self, work: Callable[[Connection], T]) -> T:
        """One transaction; what `work` gives, which is never None."""
        made = self._store.write(work, patience=PATIENCE_SECONDS)
        if made is None:
            raise Unavailable("the service's database changed its mind")
        return made

    def ask(self, work: Callable[[Connection], T]) -> T:
        """One snapshot."""
        return self._store.ask(work)

    def shut(self) -> None:
        """Give the connections back."""
        self._store.shut()
