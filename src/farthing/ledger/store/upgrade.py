"""Create a ledger's tables or bring them up to date; refuse what this farthing does not know."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, select, text
from sqlalchemy.exc import ProgrammingError

from farthing.ledger.errors import WrongSchema
from farthing.ledger.store.connection import Store, sqlstate_of
from farthing.ledger.store.tables import REVISION, version

MIGRATIONS = Path(__file__).with_name("migrations")
#: Held on PostgreSQL while migrating, so that of several processes one does it.
_LOCK = 0x66617274
_PERMISSION_DENIED = "42501"


def ensure_schema(store: Store, *, upgrade: bool) -> None:
    """The schema that this farthing writes, or WrongSchema."""
    with store.read() as connection:
        found = revision_of(connection)
    if found == REVISION:
        return
    refuse_if_newer(found)
    if not upgrade:
        raise WrongSchema(found, REVISION, "upgrade it with `farthing owner upgrade`")
    store.write(lambda connection: _migrate(connection, store), patience=20)


def revision_of(connection: Connection) -> str | None:
    """The revision a database is at, None if it holds no ledger."""
    if not inspect(connection).has_table(version.name):
        return None
    return connection.execute(select(version.c.version_num)).scalar()


def refuse_if_newer(found: str | None) -> None:
    """Only revisions that have a migration here are known."""
    known = {path.name[1:5] for path in (MIGRATIONS / "versions").glob("v[0-9]*.py")}
    if found is not None and found not in known:
        raise WrongSchema(found, REVISION, "it was written by a newer farthing; update this one")


def _migrate(connection: Connection, store: Store) -> str:
    """The revision that was reached."""
    from alembic import command
    from alembic.config import Config

    if not store.is_sqlite:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    found = revision_of(connection)  # another process may have been faster
    if found == REVISION:
        return REVISION
    refuse_if_newer(found)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except ProgrammingError as error:
        if sqlstate_of(error) != _PERMISSION_DENIED:
            raise
        advice = "this role may not upgrade it; let the database's owner do it"
        raise WrongSchema(found, REVISION, advice) from None
    return REVISION
