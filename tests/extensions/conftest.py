"""Extensions are tried on the engines of the other tests."""

from tests.engine.conftest import (  # noqa: F401 # fixtures
    owner_log,
    postgres,
    source,
    spark,
)
