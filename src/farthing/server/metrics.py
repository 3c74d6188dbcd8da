"""Numbers for Prometheus: requests and runs, by route. No names, no datasets, no values."""

from __future__ import annotations

import os
from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    values,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

#: Where several workers leave their numbers for one another.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")


class Metrics:
    """What is counted in one worker; with several, `page` adds them up."""

    def __init__(self) -> None:
        if FOLDER in os.environ:  # the library itself looks only when it is loaded
            values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call] # no types
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "farthing_requests",
            "Requests that were answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "farthing_request_seconds",
            "How long requests took.",
            ("route",),
            registry=self._registry,
        )
        self._active = Gauge(
            "farthing_runs_active",
            "Questions that run now.",
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        self._look: Callable[[], int] = lambda: 0

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """One request."""
        known = method if method in METHODS else "other"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def watch_runs(self, active: Callable[[], int]) -> None:
        """How many run is looked up when somebody asks."""
        self._look = active

    def page(self) -> bytes:
        """The text that Prometheus reads."""
        self._active.set(self._look())
        if FOLDER not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call] # it has no types
        return generate_latest(together)


def forget_worker(process: int) -> None:
    """What a worker that died was doing is not counted any more; what it has done still is."""
    mark_process_dead(process)  # type: ignore[no-untyped-call] # it has no types
