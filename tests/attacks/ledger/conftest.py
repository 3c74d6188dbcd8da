"""What attacks on a ledger need: the ledgers of its own tests, on both databases."""

from tests.ledger.conftest import (  # noqa: F401 # fixtures
    certificate,
    clock,
    folder,
    ledger,
    postgres,
    postgres_url,
    processes,
    target,
)
