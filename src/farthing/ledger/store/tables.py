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

import sqlalchemy as sa
from sqlalchemy.exc import ProgrammingError

from farthing.ledger.errors import WrongSchema
from farthing.ledger.store.connection import Store, sqlstate_of

#: The newest migration; a ledger is written only by a farthing that knows its schema.
REVISION = "0003"

metadata = sa.MetaData()

version = sa.Table(
    "farthing_version",
    metadata,
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="farthing_version_pkc"),
)

#: One row: the identity of this ledger. A book that moves names the ledger that it moves to.
ledgers = sa.Table(
    "farthing_ledger", metadata, sa.Column("identity", sa.String(32), primary_key=True)
)

datasets = sa.Table(
    "farthing_datasets",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    # the end of the chain
    sa.Column("number", sa.BigInteger, nullable=False),
    sa.Column("previous", sa.String(64), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    # the entry that holds what the owner declares now
    sa.Column("declared", sa.BigInteger, nullable=False, server_default="1"),
    # 0 on a copy for reading and on a book that was sealed: no entry can be added
    sa.Column("writable", sa.SmallInteger, nullable=False, server_default="1"),
)

accounts = sa.Table(
    "farthing_accounts",
    metadata,
    sa.Column("dataset_id", sa.ForeignKey("farthing_datasets.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("mode", sa.String(10), nullable=False),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("analyst", sa.String(200)),  # who may run a registered list
    sa.Column("entry", sa.BigInteger, nullable=False),
)
sa.Index("farthing_account_names", accounts.c.dataset_id, accounts.c.name, unique=True)

purses = sa.Table(
    "farthing_purses",
    metadata,
    sa.Column("dataset_id", sa.ForeignKey("farthing_datasets.id"), primary_key=True),
    sa.Column("account", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("analyst", sa.String(200), primary_key=True),
    sa.Column("farthings", sa.BigInteger, nullable=False),
    sa.Column("delta_units", sa.BigInteger, nullable=False),
    sa.Column("farthings_spent", sa.BigInteger, nullable=False),
    sa.Column("delta_units_spent", sa.BigInteger, nullable=False),
    sa.Column("month", sa.Integer),  # months since year 0 for a purse that renews, else NULL
    sa.Column("open", sa.SmallInteger, nullable=False),  # 0 on a retired cap and a revoked purse
)

lots = sa.Table(
    "farthing_lots",
    metadata,
    sa.Column("dataset_id", sa.ForeignKey("farthing_datasets.id"), primary_key=True),
    sa.Column("account", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("item", sa.String(200), primary_key=True),
    sa.Column("granted", sa.BigInteger, nullable=False),
    sa.Column("spent", sa.BigInteger, nullable=False),
)

entries = sa.Table(
    "farthing_entries",
    metadata,
    sa.Column("dataset_id", sa.ForeignKey("farthing_datasets.id"), primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("fact", sa.Text, nullable=False),  # canonical JSON; what follows repeats parts of it
    sa.Column("kind", sa.String(10), nullable=False),
    sa.Column("previous", sa.String(64), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.Column("settles", sa.BigInteger),  # the reservation that this closes or abandons
    sa.Column("released", sa.String(64)),  # digest of the question whose release is kept here
)
SETTLING, RELEASING = "settles IS NOT NULL", "released IS NOT NULL"
sa.Index(
    "farthing_settled_once",
    entries.c.dataset_id,
    entries.c.settles,
    unique=True,
    sqlite_where=sa.text(SETTLING),
    postgresql_where=sa.text(SETTLING),
)
sa.Index(
    "farthing_releases",
    entries.c.dataset_id,
    entries.c.released,
    entries.c.number,
    sqlite_where=sa.text(RELEASING),
    postgresql_where=sa.text(RELEASING),
)

#: Conversations that were opened: how much was asked, and the end of the chain of turns.
conversations = sa.Table(
    "farthing_conversations",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),  # random: an analyst sees it
    sa.Column("dataset_id", sa.ForeignKey("farthing_datasets.id"), nullable=False, index=True),
    sa.Column("entry", sa.BigInteger, nullable=False),
    sa.Column("analyst", sa.String(200), nullable=False),
    sa.Column("declared", sa.BigInteger, nullable=False),  # the entry with the rows of then
    sa.Column("turns", sa.BigInteger, nullable=False),
    sa.Column("asked", sa.BigInteger, nullable=False),
    sa.Column("head", sa.String(64), nullable=False),
    sa.Column("commitment", sa.String(64), nullable=False),
    sa.Column("open", sa.SmallInteger, nullable=False),  # 0 if it has ended or its book moved
)

#: The noise, on which later answers depend. Whoever reads this can read the data.
secrets = sa.Table(
    "farthing_secrets",
    metadata,
    sa.Column("conversation", sa.ForeignKey("farthing_conversations.id"), primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
)

#: Questions and answers that were written together, before any answer was given.
turns = sa.Table(
    "farthing_turns",
    metadata,
    sa.Column("conversation", sa.ForeignKey("farthing_conversations.id"), primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("said", sa.Text, nullable=False),  # canonical JSON
    sa.Column("hash", sa.String(64), nullable=False),
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


def _revision_of(connection: sa.Connection) -> str | None:
    """The revision of a database, None if it holds no ledger."""
    if not sa.inspect(connection).has_table(version.name):
        return None
    return connection.execute(sa.select(version.c.version_num)).scalar()


def _refuse_if_newer(revision: str | None) -> None:
    if revision not in (None, "0001", *UPGRADES):
        raise WrongSchema(revision, REVISION, "it was written by a newer farthing; update this one")


def _migrate(connection: sa.Connection, store: Store) -> str:
    """Create everything, or run the steps that are missing; gives the revision reached."""
    if not store.is_sqlite:
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
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
    connection.execute(sa.delete(version))
    connection.execute(sa.insert(version).values(version_num=REVISION))
    return REVISION


def _name_this_ledger(connection: sa.Connection) -> None:
    connection.execute(sa.insert(ledgers).values(identity=token_hex(16)))


def _seals(connection: sa.Connection) -> None:
    """A ledger has an identity, a book can be closed for writing, a dataset declared anew."""
    ledgers.create(connection)
    _name_this_ledger(connection)
    for column in ("declared BIGINT", "writable SMALLINT"):
        added = f"ALTER TABLE farthing_datasets ADD COLUMN {column} DEFAULT '1' NOT NULL"
        connection.execute(sa.text(added))


def _conversations(connection: sa.Connection) -> None:
    """Conversations: what was opened, what was said, and the noise."""
    metadata.create_all(connection, tables=[conversations, secrets, turns])


#: What brings a ledger to each revision from the one before.
UPGRADES: dict[str, Callable[[sa.Connection], None]] = {"0002": _seals, "0003": _conversations}
