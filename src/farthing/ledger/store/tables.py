"""The tables, how they are created, and how those of an older ledger are brought up to date.

`entries` is the book; balances can be computed from it (entries/fact.py).

The turns of conversations are kept beside it, because they are written far more often. `turns` is a
chain of hashes for each conversation, and the book holds its end. `secrets` holds the noise; the
last turn holds a commitment to it. No export and no statement reads `secrets`.

A row of `entries` or `turns` is never changed. Balances live in purses and lots, so that one
guarded UPDATE decides whether a request fits, at the same cost however long the book is.

A new ledger gets all tables at once. An old one gets the steps that it lacks. To add a step, write
its function, name it in `UPGRADES`, and raise `REVISION`. A step that creates tables as they are
today must be written out before those tables change.
"""

from __future__ import annotations

from collections.abc import Callable
from secrets import token_hex

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    delete,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.exc import ProgrammingError

from farthing.ledger.errors import WrongSchema
from farthing.ledger.store.connection import Store, sqlstate_of

#: The newest migration; a ledger is written only by a farthing that knows its schema.
REVISION = "0003"

metadata = MetaData()

version = Table(
    "farthing_version",
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="farthing_version_pkc"),
)

#: One row: the identity of this ledger. A book that moves names the ledger that it moves to.
ledgers = Table("farthing_ledger", metadata, Column("identity", String(32), primary_key=True))

datasets = Table(
    "farthing_datasets",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    # the end of the chain
    Column("number", BigInteger, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    # the entry that holds what the owner declares now
    Column("declared", BigInteger, nullable=False, server_default="1"),
    # 0 on a copy for reading and on a book that was sealed: no entry can be added
    Column("writable", SmallInteger, nullable=False, server_default="1"),
)

accounts = Table(
    "farthing_accounts",
    metadata,
    Column("dataset_id", ForeignKey("farthing_datasets.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("mode", String(10), nullable=False),
    Column("name", String(200), nullable=False),
    Column("analyst", String(200)),  # who may run a registered list
    Column("entry", BigInteger, nullable=False),
)
Index("farthing_account_names", accounts.c.dataset_id, accounts.c.name, unique=True)

purses = Table(
    "farthing_purses",
    metadata,
    Column("dataset_id", ForeignKey("farthing_datasets.id"), primary_key=True),
    Column("account", Integer, primary_key=True, autoincrement=False),
    Column("analyst", String(200), primary_key=True),
    Column("farthings", BigInteger, nullable=False),
    Column("delta_units", BigInteger, nullable=False),
    Column("farthings_spent", BigInteger, nullable=False),
    Column("delta_units_spent", BigInteger, nullable=False),
    Column("month", Integer),  # months since year 0 for a purse that renews, else NULL
    Column("open", SmallInteger, nullable=False),  # 0 on a retired cap and a revoked purse
)

lots = Table(
    "farthing_lots",
    metadata,
    Column("dataset_id", ForeignKey("farthing_datasets.id"), primary_key=True),
    Column("account", Integer, primary_key=True, autoincrement=False),
    Column("item", String(200), primary_key=True),
    Column("granted", BigInteger, nullable=False),
    Column("spent", BigInteger, nullable=False),
)

entries = Table(
    "farthing_entries",
    metadata,
    Column("dataset_id", ForeignKey("farthing_datasets.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("fact", Text, nullable=False),  # canonical JSON; what follows repeats parts of it
    Column("kind", String(10), nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("settles", BigInteger),  # the reservation that this closes or abandons
    Column("released", String(64)),  # digest of the question whose release is kept here
)
SETTLING, RELEASING = "settles IS NOT NULL", "released IS NOT NULL"
Index(
    "farthing_settled_once",
    entries.c.dataset_id,
    entries.c.settles,
    unique=True,
    sqlite_where=text(SETTLING),
    postgresql_where=text(SETTLING),
)
Index(
    "farthing_releases",
    entries.c.dataset_id,
    entries.c.released,
    entries.c.number,
    sqlite_where=text(RELEASING),
    postgresql_where=text(RELEASING),
)

#: Conversations that were opened: how much was asked, and the end of the chain of turns.
conversations = Table(
    "farthing_conversations",
    metadata,
    Column("id", String(32), primary_key=True),  # random: an analyst sees it, unlike entry numbers
    Column("dataset_id", ForeignKey("farthing_datasets.id"), nullable=False, index=True),
    Column("entry", BigInteger, nullable=False),
    Column("analyst", String(200), nullable=False),
    Column("declared", BigInteger, nullable=False),  # the entry with the rows it was opened on
    Column("turns", BigInteger, nullable=False),
    Column("asked", BigInteger, nullable=False),
    Column("head", String(64), nullable=False),
    Column("commitment", String(64), nullable=False),
    Column("open", SmallInteger, nullable=False),  # 0 when it has ended and when its book moved on
)

#: The noise, on which later answers depend. Whoever reads this can read the data.
secrets = Table(
    "farthing_secrets",
    metadata,
    Column("conversation", ForeignKey("farthing_conversations.id"), primary_key=True),
    Column("state", Text, nullable=False),
)

#: Questions and answers that were written together, before any answer was given.
turns = Table(
    "farthing_turns",
    metadata,
    Column("conversation", ForeignKey("farthing_conversations.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("said", Text, nullable=False),  # canonical JSON
    Column("hash", String(64), nullable=False),
)


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
            metadata.create_all(connection)
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
    connection.execute(insert(ledgers).values(identity=token_hex(16)))


def _seals(connection: Connection) -> None:
    """A ledger has an identity, a book can be closed for writing, a dataset declared anew."""
    ledgers.create(connection)
    _name_this_ledger(connection)
    for column in ("declared BIGINT", "writable SMALLINT"):
        added = f"ALTER TABLE farthing_datasets ADD COLUMN {column} DEFAULT '1' NOT NULL"
        connection.execute(text(added))


def _conversations(connection: Connection) -> None:
    """Conversations: what was opened, what was said, and the noise."""
    metadata.create_all(connection, tables=[conversations, secrets, turns])


#: What brings a ledger to each revision from the one before.
UPGRADES: dict[str, Callable[[Connection], None]] = {"0002": _seals, "0003": _conversations}
