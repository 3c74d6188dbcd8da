"""Settings for every suite: Hypothesis draws the same examples on every run."""

import os
import random

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

#: Suites that are thorough rather than quick: statistics, oracles, enumerations, attacks, guides.
SLOW_SUITES = {
    "attacks",
    "client",
    "console",
    "docs",
    "figures",
    "games",
    "interactive",
    "oracle",
    "peers",
    "property",
    "server",
}
SLOW_FILES = {
    "test_audit.py",
    "test_audit_broken.py",
    "test_calibration.py",
    "test_checker.py",
    "test_cli.py",
    "test_committed.py",
    "test_composition_laws.py",
    "test_crashes.py",
    "test_every_way_to_spend.py",
    "test_export.py",
    "test_faults.py",
    "test_filters.py",
    "test_flights.py",
    "test_laplace.py",
    "test_machine.py",
    "test_names_and_values.py",
    "test_neighbours.py",
    "test_noisy_totals.py",
    "test_odometer.py",
    "test_our_figures.py",
    "test_paper_values.py",
    "test_per_label.py",
    "test_planning.py",
    "test_progress.py",
    "test_protocol.py",
    "test_public_joins.py",
    "test_races.py",
    "test_repeated.py",
    "test_rounded_gaussian.py",
    "test_safety.py",
    "test_samplers.py",
    "test_samples.py",
    "test_sources.py",
    "test_statement.py",
    "test_subsampling.py",
    "test_tails.py",
    "test_theorems.py",
    "test_upgraded.py",
    "test_verify.py",
    "test_watch.py",
}

#: Fixtures that start a server; words in the names of parameters and files that stand for one.
SERVERS = {"icu_postgres", "postgres", "postgres_url", "spark"}
ON_A_SERVER = ("postgres", "spark")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts PostgreSQL or Spark is marked `server`, thorough suites `slow`.

    FARTHING_SHUFFLE=7 runs tests in another order, the same one for the same number.
    """
    if "FARTHING_SHUFFLE" in os.environ:
        random.Random(os.environ["FARTHING_SHUFFLE"]).shuffle(items)
    for item in items:
        if isinstance(item, pytest.Function):
            given = item.callspec.params.values() if hasattr(item, "callspec") else ()
            named = " ".join(value for value in given if isinstance(value, str))
            served = any(word in f"{named} {item.path.name}" for word in ON_A_SERVER)
            if SERVERS & set(item.fixturenames) or served:
                item.add_marker(pytest.mark.server)
        suites = {part.name for part in item.path.parents}
        if SLOW_SUITES & suites or item.path.name in SLOW_FILES:
            item.add_marker(pytest.mark.slow)
