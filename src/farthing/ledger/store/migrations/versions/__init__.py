"""Alembic migrations of the ledger, oldest first."""
