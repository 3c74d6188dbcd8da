"""Create the tables of a ledger or bring them up to date; refuse a schema that is not known here.

A new ledger gets the tables of tables.py at once. An old one gets the steps that it lacks. To add
a step, write its function, name it in `UPGRADES`, and raise `REVISION` in tables.py. A step that
creates tables as they are today must be written out before those tables change.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from sqlalchemy import Connection, delete, insert, inspect, select, text
from sqlalchemy.exc import ProgrammingError

from farthing.ledger.errors import WrongSchema
from farthing.ledger.store import tables
from farthing.ledger.store.connection import Store, sqlstate_of
from farthing.ledger.store.tables import REVISION, version

#: Held on PostgreSQL while migrating, so that of several processes one does it.
_LOCK = 0x66617274
_PERMISSION_DENIED = "42501"


def ensure_schema(store: Store, *, upgrade: bool) -> None:
    """The schema that this farthing writes, or WrongSchema."""
    with store.read() as connection:
        revision = _revision_of(connection)
    if revision == REVISION:
        return
    _refuse_if_newer(revision)
    if not upgrade:
        raise WrongSchema(revision, REVISION, "upgrade it with `farthing owner upgrade`")
    store.write(lambda connection: _migrate(connection, store), patience=20)


def _revision_of(connection: Connection) -> str | None:
    """The revision of a database, None if it holds no ledger."""
    if not inspect(connection).has_table(version.name):
        return None
    return connection.execute(select(version.c.version_num)).scalar()


def _refuse_if_newer(revision: str | None) -> None:
    if revision not in (None, "0001", *UPGRADES):
        raise WrongSchema(revision, REVISION, "it was written by a newer farthing; update this one")


def _migrate(connection: Connection, store: Store) -> str:
    """Create everything, or run the steps that are missing; gives the revision reached."""
    if not store.is_sqlite:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    before = _revision_of(connection)  # another process may have been faster
    if before == REVISION:
        return REVISION
    _refuse_if_newer(before)
    try:
        if before is None:
            tables.metadata.create_all(connection)
            _name_this_ledger(connection)
        for revision in sorted(UPGRADES):
            if before is not None and revision > before:
                UPGRADES[revision](connection)
    except ProgrammingError as error:
        if sqlstate_of(error) != _PERMISSION_DENIED:
            raise
        advice = "this role may not upgrade it; let the database's owner do it"
        raise WrongSchema(before, REVISION, advice) from None
    connection.execute(delete(version))
    connection.execute(insert(version).values(version_num=REVISION))
    return REVISION


def _name_this_ledger(connection: Connection) -> None:
    connection.execute(insert(tables.ledgers).values(identity=secrets.token_hex(16)))


def _seals(connection: Connection) -> None:
    """A ledger has an identity, a book can be closed for writing, a dataset declared anew."""
    tables.ledgers.create(connection)
    _name_this_ledger(connection)
    for column in ("declared BIGINT", "writable SMALLINT"):
        added = f"ALTER TABLE farthing_datasets ADD COLUMN {column} DEFAULT '1' NOT NULL"
        connection.execute(text(added))


def _conversations(connection: Connection) -> None:
    """Conversations: what was opened, what was said, and the noise."""
    added = [tables.conversations, tables.secrets, tables.turns]
    tables.metadata.create_all(connection, tables=added)


#: What brings a ledger to each revision from the one before.
UPGRADES: dict[str, Callable[[Connection], None]] = {"0002": _seals, "0003": _conversations}
