"""A cache of plans, releases and terms for each analyst, for some seconds.

An entry belongs to one analyst. Its key is the request and everything that the answer depends on:
what is declared, granted, and spent by this analyst, and nothing that others do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

from fastapi import Response
from fastapi.responses import JSONResponse

from farthing.canonical import digest
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.tariff import Price
from farthing.engine.context import ExpiringCache, StatementCache
from farthing.ledger import Analyst, Dataset, Ledger, Purse, Snapshot
from farthing.server.access.callers import CallerGrants

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


def left_in(purse: Purse) -> Price:
    """What is left of a purse, whatever the cap."""
    return purse.left()


class Remembered:
    """Answers and analysts of one worker."""

    def __init__(self) -> None:
        self._answers = ExpiringCache[bytes](MOST, KEPT_SECONDS)
        self._analysts = ExpiringCache[CachedAnalyst](MOST, KEPT_SECONDS)
        self._recent: dict[tuple[str, str], StatementCache] = {}

    def answer(
        self, circumstances: Circumstances, asked: Any, make: Callable[[], dict[str, Any] | None]
    ) -> Response | None:
        """What `make` gives, or gave a moment ago; None, and nothing is kept, if it gives None."""
        key = (circumstances, digest(asked))
        kept = self._answers.get(key)
        if kept is None:
            made = make()
            if made is None:
                return None
            kept = bytes(JSONResponse(made).body)
            if len(kept) <= LARGEST_BYTES:
                self._answers.keep(key, kept)
        return Response(kept, media_type="application/json")

    def recent(self, analyst: Analyst) -> StatementCache:
        """What the last questions of somebody who has a purse made of the rows."""
        return self._recent.setdefault((analyst.dataset, analyst.name), StatementCache())

    def analyst(self, circumstances: Circumstances, ledger: Ledger) -> CachedAnalyst:
        """An analyst whose facts are those of a moment ago, if what they depend on is the same."""
        kept = self._analysts.get(circumstances)
        if kept is None:
            kept = CachedAnalyst(ledger.book, circumstances.dataset, circumstances.analyst)
            self._analysts.keep(circumstances, kept)
        return kept
