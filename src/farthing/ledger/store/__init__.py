"""The database behind a ledger."""
