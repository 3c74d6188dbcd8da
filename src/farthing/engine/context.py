"""What a question is asked in: a table, what was declared about it, and an analyst's purse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from farthing.engine.answer import Answer
from farthing.engine.kinds import query_from
from farthing.engine.kinds.base import Query, completed_query
from farthing.engine.purchase import Purchase
from farthing.engine.recent import Recent
from farthing.engine.sources.base import Source
from farthing.errors import InvalidInput
from farthing.guarantees.notation import format_guarantee
from farthing.ledger import Analyst, Dataset
from farthing.schema import Schema


def at_once() -> None:
    """Nobody waits for a clock, and none runs."""


@dataclass(frozen=True, slots=True)
class Context:
    """One table, one unit of privacy, one analyst. The schema and the version are the owner's.

    `begins` is called when the engine is ready and before anything is paid: from then on a run is
    timed. `on_the_clock` is waited for between the last look at the rows and the first trace that a
    release leaves in the ledger, from which an analyst could tell how long the rows took.
    """

    source: Source
    analyst: Analyst
    about: Dataset
    confidence: float
    on_the_clock: Callable[[], None] = at_once
    recent: Recent = field(default_factory=Recent, repr=False, compare=False)
    begins: Callable[[], None] = at_once

    def now(self) -> Context:
        """The same with what is declared now: an owner may have declared another version."""
        return replace(self, about=self.analyst.about())

    @property
    def schema(self) -> Schema:
        """What exists for an analyst."""
        return self.about.declared_schema

    @property
    def kept(self) -> bool:
        """Whether releases are given out again: only for rows whose version is declared."""
        return self.about.version is not None

    def asked(self, purchase: Purchase) -> dict[str, Any]:
        """What the ledger keeps: the query, what its items guarantee, which rows it is about."""
        return {
            "query": purchase.query.to_json(),
            "guarantees": {n: format_guarantee(g) for n, g in purchase.guarantees.items()},
            "unit": self.about.unit,
            "confidence": self.confidence,
            "version": self.about.version,
            "selection": self.source.selection,
        }

    def checked(self, query: Query) -> Query:
        """The query within the owner's limits, about columns that are declared."""
        return completed_query(query, self.schema, self.about.unit, self.about.limits)

    def earlier(self, purchases: Mapping[str, Purchase]) -> dict[str, Answer] | None:
        """The releases of the same questions about the same rows, if this analyst has them."""
        if not self.kept:
            return None
        found = self.analyst.release_of(record_of(self, purchases))
        if found is None:
            return None
        left = self.analyst.remaining()
        return {
            key: Answer.from_json(found.release[key], purchase.query, remaining=left)
            for key, purchase in purchases.items()
            if key in found.release
        }


def record_of(context: Context, purchases: Mapping[str, Purchase]) -> dict[str, Any]:
    """The question as the ledger keeps it, whether it is one or a batch."""
    return {key: context.asked(purchase) for key, purchase in purchases.items()}


def record_in_words(record: Mapping[str, Any]) -> str:
    """What `record_of` keeps, for people; InvalidInput if it is something else."""
    try:
        return "; ".join(
            query_from(asked["query"]).caption(asked["unit"]) for asked in record.values()
        )
    except (AttributeError, KeyError, TypeError):
        raise InvalidInput("this is not a question as a ledger keeps it") from None
