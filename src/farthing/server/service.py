"""What one worker holds open: the ledger, the access store, a source for each dataset, caches.

A cache has plans, releases and terms for some seconds. An entry belongs to one analyst. Its key is
the request and everything that the answer depends on: what is declared, granted, and spent by this
analyst, and nothing that others do.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Self

from farthing.composition.tariffs.certificate import Certificate
from farthing.engine import query_from
from farthing.engine.context import Context, ExpiringCache, StatementCache, statement_of
from farthing.engine.desk import Desk
from farthing.engine.sources.base import Source
from farthing.engine.sources.opening import open_source
from farthing.errors import FarthingError, InvalidInput
from farthing.ledger import Analyst, Dataset, Ledger, Snapshot
from farthing.mechanisms.protocol import DEFAULT_CONFIDENCE
from farthing.server.access import AccessStore, StoredTokens
from farthing.server.callers import CallerGrants, Doorkeeper, Issuer
from farthing.server.jobs import Runner
from farthing.server.protection import PerMinute, ReleaseClock, UnpaidWork, request_rate
from farthing.server.settings import DatasetSettings, Settings

#: How long an answer is kept, how many of them, and how large each may be.
KEPT_SECONDS, MOST, LARGEST_BYTES = 10.0, 1000, 1 << 16


class Circumstances(NamedTuple):
    """What an answer depends on that reads no rows."""

    analyst: str
    datasets: tuple[str, ...] | None
    dataset: str
    month: int
    declared_and_granted: CallerGrants


class ServedAnalyst(Analyst):
    """An analyst who may not learn what others spend, nor what is left of the cap."""

    sees_the_cap = False


class CachedAnalyst(ServedAnalyst):
    """An analyst for as long as nothing changes: the ledger is looked at once.

    For plans, which promise nothing: whatever pays looks everything up again.
    """

    def snapshot(self) -> Snapshot:
        return self._kept_snapshot

    def about(self) -> Dataset:
        return self._kept_snapshot.about

    def certificate(self) -> Certificate:
        return self._kept_snapshot.certificate

    @cached_property
    def _kept_snapshot(self) -> Snapshot:
        return super().snapshot()


@dataclass(frozen=True, slots=True)
class Remembered:
    """What one worker keeps: answers and analysts for some seconds, statements of each analyst."""

    answers: ExpiringCache[bytes] = field(default_factory=lambda: ExpiringCache(MOST, KEPT_SECONDS))
    analysts: ExpiringCache[CachedAnalyst] = field(
        default_factory=lambda: ExpiringCache(MOST, KEPT_SECONDS)
    )
    #: By dataset and name: nobody finds what others left.
    statements: dict[tuple[str, str], StatementCache] = field(default_factory=dict)


log = logging.getLogger("farthing.server")

#: Share of memory for all workers and datasets together, and for each at least.
MEMORY_PERCENT, LEAST_PERCENT = 60, 10


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that requests share. Safe to use from many threads."""

    settings: Settings
    ledger: Ledger
    access: AccessStore
    sources: Mapping[str, Source]
    doorkeeper: Doorkeeper
    rates: PerMinute
    unpaid: UnpaidWork
    runner: Runner
    remembered: Remembered
    _resources: ExitStack

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Open everything, or nothing; InvalidInput if a dataset is other data in the ledger."""
        with ExitStack() as undo:
            if settings.logs.engine is not None:
                handler = logging.FileHandler(settings.logs.engine, encoding="utf-8", delay=True)
                logging.getLogger("farthing.engine").addHandler(handler)
                undo.callback(handler.close)
                undo.callback(logging.getLogger("farthing.engine").removeHandler, handler)
            ledger = undo.enter_context(Ledger.open(settings.ledger))
            access = AccessStore(settings.access)
            undo.callback(access.shut)
            sources = {}
            for name, one in settings.datasets.items():
                sources[name] = _opened(one, settings)
                undo.callback(sources[name].shut)
                _require_same_data(ledger, name, sources[name])
                _warm(ledger, name, sources[name])
            limits = settings.limits
            elsewhere = None if settings.oidc is None else Issuer(settings.oidc).admit
            runner = Runner(access, limits, ReleaseClock(settings.release_every))
            undo.callback(runner.shut, limits.grace)
            return cls(
                settings=settings,
                ledger=ledger,
                access=access,
                sources=sources,
                doorkeeper=Doorkeeper(access, elsewhere),
                rates=request_rate(max(1, limits.requests_per_minute // settings.workers)),
                unpaid=UnpaidWork(limits.unpaid_seconds_per_minute / settings.workers),
                runner=runner,
                remembered=Remembered(),
                _resources=undo.pop_all(),
            )
        raise AssertionError  # an error above leaves through the stack

    def desk(self, owner: str) -> Desk:
        """The desk of the owner with this name."""
        tokens = StoredTokens(self.access)
        return Desk(self.ledger, owner=owner, sources=self.sources, tokens=tokens)

    def shut(self) -> None:
        """Wait for runs, and close everything."""
        self._resources.close()


def _opened(one: DatasetSettings, settings: Settings) -> Source:
    """Each worker takes its share of the cores: one statement on one thread takes less of them.

    Of the memory too, and each dataset of that, unless its settings say how much.
    """
    threads = max(1, (os.cpu_count() or 1) // settings.workers)
    share = MEMORY_PERCENT // (settings.workers * len(settings.datasets))
    memory = one.memory or f"{max(share, LEAST_PERCENT)}%"
    return open_source(one.data, table=one.table, spark=one.spark, memory=memory, threads=threads)


def _require_same_data(ledger: Ledger, name: str, source: Source) -> None:
    """A name in the configuration is that data in the ledger, or is not there yet."""
    known = Desk(ledger).name_of(source, name)
    if known not in (None, name):
        raise InvalidInput(f"the data of {name} is in the ledger as {known}; call it that")


def _warm(ledger: Ledger, name: str, source: Source) -> None:
    """A statement is written and prepared, so that nobody's first question waits for libraries to
    be loaded. It gives no rows, and looks at none."""
    try:
        analyst = ledger.analyst(name, "nobody")
        context = Context(source, analyst, analyst.about(), DEFAULT_CONFIDENCE)
        by = [one.name for one in context.schema.columns if one.name != context.about.unit][:1]
        query = context.checked(query_from({"kind": "top_k", "by": by, "k": 1}))
        counted, _ = statement_of(context, query)
        none = replace(counted, sql=f"SELECT * FROM ({counted.sql}) AS warmed LIMIT 0")
        query.data(source.run(none))
    except FarthingError as error:  # it is not in the ledger yet, or questions will say why
        log.info("%s was not warmed: %s", name, type(error).__name__)
