"""The book: datasets, accounts, purses, lots and entries."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

AMOUNTS = ("farthings", "delta_units", "farthings_spent", "delta_units_spent")


def upgrade() -> None:
    """Everything from nothing. Written out, so that it stays what it was when it was released."""
    op.create_table(
        "farthing_datasets",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.create_table(
        "farthing_accounts",
        _dataset(),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("mode", sa.String(10), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("analyst", sa.String(200)),
        sa.Column("entry", sa.BigInteger, nullable=False),
    )
    op.create_index(
        "farthing_account_names", "farthing_accounts", ["dataset_id", "name"], unique=True
    )
    op.create_table(
        "farthing_purses",
        _dataset(),
        sa.Column("account", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("analyst", sa.String(200), primary_key=True),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in AMOUNTS),
        sa.Column("month", sa.Integer),
        sa.Column("open", sa.SmallInteger, nullable=False),
    )
    op.create_table(
        "farthing_lots",
        _dataset(),
        sa.Column("account", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("item", sa.String(200), primary_key=True),
        sa.Column("granted", sa.BigInteger, nullable=False),
        sa.Column("spent", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "farthing_entries",
        _dataset(),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("fact", sa.Text, nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("settles", sa.BigInteger),
        sa.Column("released", sa.String(64)),
    )
    _partial_index(
        "farthing_settled_once",
        "farthing_entries",
        ["dataset_id", "settles"],
        "settles IS NOT NULL",
        unique=True,
    )
    _partial_index(
        "farthing_releases",
        "farthing_entries",
        ["dataset_id", "released", "number"],
        "released IS NOT NULL",
        unique=False,
    )


def _dataset() -> sa.Column[int]:
    return sa.Column(
        "dataset_id", sa.Integer, sa.ForeignKey("farthing_datasets.id"), primary_key=True
    )


def _partial_index(name: str, table: str, columns: list[str], where: str, *, unique: bool) -> None:
    clause = sa.text(where)
    op.create_index(
        name, table, columns, unique=unique, sqlite_where=clause, postgresql_where=clause
    )
