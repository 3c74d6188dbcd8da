"""The attacks use the same tables, servers and budgets as the tests of the engine."""

from tests.engine.conftest import (  # noqa: F401 # fixtures
    certificate,
    icu_postgres,
    opened,
    postgres,
    source,
    spark,
)
