"""What a question is asked in: a table, what was declared about it, and an analyst's purse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

from farthing.canonical import digest
from farthing.engine.answer import Answer
from farthing.engine.computed.columns import ComputedColumns, with_computed
from farthing.engine.kinds import query_from
from farthing.engine.kinds.base import Query, completed_query, used_columns
from farthing.engine.purchase import Purchase
from farthing.engine.sources.base import Source
from farthing.engine.statement_cache import StatementCache
from farthing.errors import FarthingError, InvalidInput
from farthing.guarantees.notation import format_guarantee
from farthing.ledger import Analyst, Dataset, RowsChanged, Snapshot
from farthing.schema import DeclaredValues, Schema


def at_once() -> None:
    """Nobody waits for a clock, and none runs."""


@dataclass(frozen=True, slots=True)
class Context:
    """One table, one unit of privacy, one analyst. The schema and the version are the owner's.

    `begins` is called when the engine is ready and before anything is paid: from then on a run is
    timed. `on_the_clock` is waited for between the last look at the rows and the first trace that a
    release leaves in the ledger, from which an analyst could tell how long the rows took. It raises
    if the run was cancelled before it struck: then nothing is released.
    """

    source: Source
    analyst: Analyst
    about: Dataset
    confidence: float
    on_the_clock: Callable[[], None] = at_once
    recent: StatementCache = field(default_factory=StatementCache, repr=False, compare=False)
    begins: Callable[[], None] = at_once
    shut: Event = field(default_factory=Event, repr=False, compare=False)
    _snapshot: Snapshot | None = field(default=None, repr=False, compare=False)
    plan_only: bool = False

    def require_open(self) -> None:
        """Nothing is asked, and nothing paid, of data that was given back."""
        if self.shut.is_set():
            raise InvalidInput(
                f"this session on {self.about.name} was shut, so nothing was run or paid; open the "
                "data again"
            )

    def require_payable(self) -> None:
        """What is opened for plans alone pays for nothing."""
        if self.plan_only:
            raise InvalidInput(f"{self.about.name} was opened with plan_only: nothing can be run")

    def now(self) -> Context:
        """The same with what is declared now: an owner may have declared another version.

        A table in memory was copied when it was opened, so it stays in the version it had then.
        """
        self.require_open()
        about = self.analyst.about()
        if self.source.location is None and about.version != self.about.version:
            raise RowsChanged(about.name)
        return replace(self, about=about)

    def at_this_moment(self) -> Context:
        """The same with everything that a plan looks at, read from the ledger at once."""
        self.require_open()
        snapshot = self.analyst.snapshot()
        if self.source.location is None and snapshot.about.version != self.about.version:
            raise RowsChanged(self.about.name)
        return replace(self, about=snapshot.about, _snapshot=snapshot)

    @property
    def snapshot(self) -> Snapshot:
        """What a plan looks at in the ledger."""
        assert self._snapshot is not None, "a plan begins with at_this_moment"
        return self._snapshot

    @property
    def schema(self) -> Schema:
        """What exists for an analyst."""
        return self.about.declared_schema

    def schema_for(self, query: Query) -> Schema:
        """The same with the columns that a query computes."""
        return with_computed(self.schema, used_columns(query))

    @property
    def kept(self) -> bool:
        """Whether releases are given out again: only for rows whose version is declared."""
        return self.about.version is not None

    def asked(self, purchase: Purchase) -> dict[str, Any]:
        """What the ledger keeps: the query, what its items guarantee, which rows it is about.

        Declared bounds are part of it: a release of 1.0.0, for which rows outside did not count, is
        no answer to the same question.
        """
        query, used = purchase.query, used_columns(purchase.query)
        bounds = self.schema_for(query).declared.bounds
        stored = ComputedColumns(self.schema).stored(used)
        applied = {name: list(bounds[name]) for name in sorted(used | stored) if name in bounds}
        computed = {n: self.schema[n].expression for n in sorted(used) if n in self.schema}
        computed = {name: text for name, text in computed.items() if text is not None}
        return {
            "query": query.to_json(),
            **({"bounds": applied} if applied else {}),
            **({"computed": computed} if computed else {}),
            "guarantees": {n: format_guarantee(g) for n, g in purchase.guarantees.items()},
            "unit": self.about.unit,
            "confidence": self.confidence,
            "version": self.about.version,
            "selection": self.source.selection,
        }

    def checked(self, query: Query) -> Query:
        """The query within the owner's limits, about columns that are declared."""
        return completed_query(query, self.schema, self.about.unit, self.about.limits)

    def caption(self, query: Query) -> str:
        """What is counted, of which rows, and every bound and limit that is applied."""
        return query.caption(self.about.unit, self.schema_for(query).declared)

    def earlier(self, question: str, purchases: Mapping[str, Purchase]) -> Answer | None:
        """The release of the same question about the same rows, if this analyst has it: asked by
        itself or in a batch. `purchases` are what it buys under its name and beside it."""
        if not self.kept:
            return None
        alone = {name.removeprefix(question): one for name, one in purchases.items()}
        earlier = self.analyst.earlier_release(record_of(self, alone), self.recent.seen)
        self.recent.keep_batches(earlier.batches, earlier.seen)
        name, found = "", earlier.release
        if found is None:
            batch = self.recent.batch_with(digest(self.asked(purchases[question])))
            if batch is None:
                return None
            name, found = batch[1], self.analyst.release(batch[0])
        if found is None or name not in found.release:  # what was asked beside a question
            return None
        query, left = purchases[question].query, self.snapshot.remaining
        return Answer.from_json(found.release[name], query, remaining=left, entry=found.entry)


def record_of(context: Context, purchases: Mapping[str, Purchase]) -> dict[str, Any]:
    """The question as the ledger keeps it, whether it is one or a batch."""
    return {key: context.asked(purchase) for key, purchase in purchases.items()}


def record_in_words(record: Mapping[str, Any], about: Dataset | None = None) -> str:
    """What `record_of` keeps, for people; InvalidInput if it is something else.

    With the titles that the dataset has now. A kind may be that of a package which is gone.
    """
    schema = None if about is None else about.schema
    titled = {} if schema is None else schema.declared.titled

    def words(asked: Mapping[str, Any]) -> str:
        unit, kind = asked["unit"], asked["query"]["kind"]
        try:
            query = query_from(asked["query"])
        except FarthingError:
            return f"A question of the kind {kind}, which is not installed"
        return query.caption(unit, DeclaredValues(asked.get("bounds", {}), titled=titled))

    try:
        return "; ".join(map(words, record.values()))
    except (AttributeError, KeyError, TypeError):
        raise InvalidInput("this is not a question as a ledger keeps it") from None
