"""Settings for every suite: Hypothesis draws the same examples on every run."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "farthing",
    derandomize=True,
    deadline=None,  # the first use of the engine compiles
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("farthing")

#: Fixtures that start a server, and parameters that stand for one.
SERVERS = {"icu_postgres", "postgres", "postgres_url", "spark"}
ON_A_SERVER = {"postgresql", "postgres", "spark"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts PostgreSQL or Spark is marked `server`."""
    for item in items:
        if isinstance(item, pytest.Function):
            given = item.callspec.params.values() if hasattr(item, "callspec") else ()
            named = {value for value in given if isinstance(value, str)}
            if SERVERS & set(item.fixturenames) or ON_A_SERVER & named:
                item.add_marker(pytest.mark.server)
