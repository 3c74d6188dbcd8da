"""Conversations: what was opened, what was said, and the noise."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing that is there changes."""
    op.create_table(
        "farthing_conversations",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("farthing_datasets.id"), nullable=False),
        sa.Column("entry", sa.BigInteger, nullable=False),
        sa.Column("analyst", sa.String(200), nullable=False),
        *(
            sa.Column(name, sa.BigInteger, nullable=False)
            for name in ("declared", "turns", "asked")
        ),
        sa.Column("head", sa.String(64), nullable=False),
        sa.Column("commitment", sa.String(64), nullable=False),
        sa.Column("open", sa.SmallInteger, nullable=False),
    )
    op.create_index(
        "ix_farthing_conversations_dataset_id", "farthing_conversations", ["dataset_id"]
    )
    op.create_table(
        "farthing_secrets", _conversation(), sa.Column("state", sa.Text, nullable=False)
    )
    op.create_table(
        "farthing_turns",
        _conversation(),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("said", sa.Text, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )


def _conversation() -> sa.Column[str]:
    return sa.Column(
        "conversation",
        sa.String(32),
        sa.ForeignKey("farthing_conversations.id"),
        primary_key=True,
    )
