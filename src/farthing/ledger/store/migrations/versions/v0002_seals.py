"""Every ledger has an identity, a book can be closed for writing, a dataset declared anew."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What is there goes on selling where it is."""
    ledger = op.create_table(
        "farthing_ledger", sa.Column("identity", sa.String(32), primary_key=True)
    )
    op.bulk_insert(ledger, [{"identity": secrets.token_hex(16)}])
    for name, kind in (("declared", sa.BigInteger), ("writable", sa.SmallInteger)):
        op.add_column(
            "farthing_datasets", sa.Column(name, kind, nullable=False, server_default="1")
        )
