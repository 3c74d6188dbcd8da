"""What a question is asked in (`Context`), and what runs for it there (`Step`): one statement and
one mechanism. `Context.earlier` finds a release of the same question.

An analyst's last statements are cached, and the bounded rows that they gave. Which keys of a unit
are kept is decided by an order that does not change (`sql.bounding`). So one question about one
version of the rows has one bounded histogram, whatever is paid for it, and only the noise is drawn
again. Each analyst has a cache of their own: response times and evictions tell nobody what others
asked.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Event
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from farthing.canonical import digest
from farthing.engine.answer import Answer
from farthing.engine.computed.columns import ComputedColumns
from farthing.engine.computed.compile import with_columns
from farthing.engine.errors import ChargeMismatch
from farthing.engine.kinds import query_from
from farthing.engine.kinds.base import Query
from farthing.engine.kinds.completed import (
    completed_query,
    computed_columns,
    one_row_per_unit,
    renamed_query,
    schema_of,
    used_columns,
)
from farthing.engine.purchase import Purchase
from farthing.engine.sources.base import Source
from farthing.engine.sql.bounding import largest
from farthing.engine.sql.conditions import Rows, condition
from farthing.engine.sql.statement import PASSING, Select, Statement, Texts
from farthing.errors import FarthingError, InvalidInput
from farthing.guarantees.notation import format_guarantee
from farthing.ledger import Analyst, Dataset, RowsChanged, Snapshot
from farthing.ledger.declared_data import rows_are_units
from farthing.mechanisms import Contribution, Mechanism
from farthing.optional import Later
from farthing.schema import ROW, DeclaredValues, Schema

if TYPE_CHECKING:
    import ibis
    import ibis.expr.types as ir
    import pyarrow as pa
else:
    ibis = Later("ibis")

T = TypeVar("T")

#: Questions of an analyst, and how large the rows of each may be.
MOST, LARGEST_BYTES = 16, 1 << 16


class StatementCache:
    """Statements by what was asked, and their rows. Safe to share between threads."""

    def __init__(self) -> None:
        self._statements = ExpiringCache[tuple[Statement, Contribution]](MOST)
        self._main_parts = ExpiringCache[tuple[Select, Contribution]](MOST)
        self._rows = ExpiringCache["pa.Table"](MOST)
        self._batches: dict[str, tuple[int, str]] = {}
        #: The entry up to which batches were read.
        self.seen = 0

    def statement(
        self, asked: Hashable, write: Callable[[], tuple[Statement, Contribution]]
    ) -> tuple[Statement, Contribution]:
        """The statement for what is asked, and how much one unit can change its rows."""
        return self._statements.made(asked, write)

    def main_part(
        self, asked: Hashable, write: Callable[[], tuple[Select, Contribution]]
    ) -> tuple[Select, Contribution]:
        """What follows the filter in a statement, and how much one unit can change its rows."""
        return self._main_parts.made(asked, write)

    def rows(
        self, statement: Statement, state: Hashable | None, run: Callable[[Statement], pa.Table]
    ) -> pa.Table:
        """The rows of a statement about data in this state. None: the state is not known, and
        nothing is cached."""
        if state is None:
            return run(statement)
        rows = self._rows.get((statement, state))
        if rows is None:
            rows = run(statement)
            if rows.nbytes <= LARGEST_BYTES:
                self._rows.keep((statement, state), rows)
        return rows

    def keep_batches(self, batches: Iterable[tuple[int, Mapping[str, Any]]], seen: int) -> None:
        """Questions by name that were answered together, and the entry of each batch."""
        for entry, questions in batches:
            for name, question in questions.items():
                self._batches[digest(question)] = entry, name
        self.seen = max(self.seen, seen)

    def batch_with(self, asked: str) -> tuple[int, str] | None:
        """The entry of the batch in which this was answered, and the name it had there."""
        return self._batches.get(asked)


class ExpiringCache(Generic[T]):
    """The values used last, each for so many seconds. Safe to share between threads."""

    def __init__(self, most: int, seconds: float = math.inf) -> None:
        self._most = most
        self._seconds = seconds
        self._values: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()
        self._turn = threading.Lock()

    def get(self, key: Hashable) -> T | None:
        """The value, if it is still kept."""
        with self._turn:
            until, value = self._values.get(key, (-math.inf, None))
            if until < time.monotonic():
                return None
            self._values.move_to_end(key)
            return value

    def made(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value, made if it is not kept."""
        value = self.get(key)
        if value is None:
            value = make()
            self.keep(key, value)
        return value

    def keep(self, key: Hashable, value: T) -> None:
        """Keep it; the value that was not used for longest is dropped."""
        with self._turn:
            self._values[key] = time.monotonic() + self._seconds, value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)


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
        return self._declared_as(self.analyst.about())

    def at_this_moment(self) -> Context:
        """The same with everything that a plan looks at, read from the ledger at once."""
        self.require_open()
        snapshot = self.analyst.snapshot()
        return replace(self._declared_as(snapshot.about), _snapshot=snapshot)

    def _declared_as(self, about: Dataset) -> Context:
        if self.source.location is None and about.version != self.about.version:
            raise RowsChanged(about.name)
        return replace(self, about=about)

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
        return schema_of(query, self.schema)

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
        names = computed_columns(query, self.schema)
        used |= ComputedColumns(self.schema).reached(names) if names else frozenset()
        applied = {name: list(bounds[name]) for name in sorted(used) if name in bounds}
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
        has_row = schema is not None and ROW in schema
        declared = DeclaredValues(asked.get("bounds", {}), titled=titled, has_row=has_row)
        return query.caption(unit, declared)

    try:
        return "; ".join(map(words, record.values()))
    except (AttributeError, KeyError, TypeError):
        raise InvalidInput("this is not a question as a ledger keeps it") from None


@dataclass(frozen=True)
class Step:
    """What was bought, the mechanism, the statement, and what it makes of one unit.

    A price needs no statement, and writing one takes longer than all the rest of a plan: it is
    written when somebody runs the plan, before anything is paid.
    """

    purchase: Purchase
    mechanism: Mechanism[Any]
    _context: Context = field(repr=False, compare=False)

    @property
    def statement(self) -> Statement:
        """What the engine runs: its rows are the bounded histogram, or one number."""
        return self._stated[0]

    def charge(self) -> dict[str, int]:
        """The items once more, from the mechanism's own guarantees.

        The purchase counted them from what was asked; a difference is a mistake in one of the
        two. So is a statement that limits a unit less than the mechanism assumes.
        """
        if not self._stated[1].within(self.mechanism.assumes):
            raise ChargeMismatch("the statement does not enforce the limits that are assumed")
        return self.purchase.charge(self.mechanism.guarantees)

    @cached_property
    def _stated(self) -> tuple[Statement, Contribution]:
        """A mechanism that looks at the largest counts only gets those, and one beyond."""
        context, query, candidates = self._context, self.purchase.query, self.mechanism.candidates
        asked = context.about, query, digest(query.to_json()), candidates  # 1 is no True
        return context.recent.statement(asked, lambda: statement_of(context, query, candidates))


@dataclass(frozen=True, slots=True)
class Asked:
    """A query with names of ours for what it computes, and the rows that it is about.

    `passing` computes the columns and keeps the rows that pass the filter, which compares what is
    stored; `texts` are its values. `rows` are what a kind of question makes its expression of.
    """

    query: Query
    passing: ir.Table
    texts: Texts
    rows: Rows

    @classmethod
    def of(cls, source: Source, declared: Schema, unit: str, secret: str, query: Query) -> Asked:
        """Of rows of this source, read through the declared schema."""
        owner = None if rows_are_units(declared, unit) else unit
        table, texts, schema = source.declared(declared), Texts(), schema_of(query, declared)
        names = {n: f"computed {i}" for i, n in enumerate(computed_columns(query, declared))}
        if names:
            units = one_row_per_unit(query, declared)
            most = getattr(query, "contribution_limit", None)
            table = with_columns(table, declared, owner, names, texts, units=units, most=most)
            query = renamed_query(query, lambda name: names.get(name, name))
        kinds = {names.get(name, name): kind for name, kind in schema.kinds.items()}
        bounds = {names.get(name, name): pair for name, pair in schema.declared.bounds.items()}
        if query.filter is not None:
            table = table.filter(condition(table, query.filter, kinds, texts))
        used = query.columns() | ({unit} if owner is not None else frozenset())
        kept = [table[name] for name in table.columns if name in used]
        passing = table.select(*(kept or [ibis.literal(1).name(ROW)]))
        bounds = {name: pair for name, pair in bounds.items() if name in used}
        rows = Rows(
            ibis.table(passing.schema(), name=PASSING), owner, kinds, secret, Texts(), bounds
        )
        return cls(query, passing, texts, rows.clipped())

    def statement(self, source: Source, expression: ir.Table) -> Statement:
        """The statement for an expression over its rows."""
        main = source.main_part(self.passing, expression, self.rows.texts)
        return source.statement(self.passing, self.texts, main)


def statement_of(
    context: Context, query: Query, candidates: int | None = None, *, value: int | None = None
) -> tuple[Statement, Contribution]:
    """The statement of a query, and what it makes of one unit at most.

    With `candidates` of so many of its largest counts, and one beyond. With `value` of the one
    number that says on which side of this value the query lies. What follows the filter is the same
    for every filter: it is written once.
    """
    source, about = context.source, context.about
    asked = Asked.of(source, context.schema, about.unit, context.analyst.secret(), query)
    query, rows = asked.query, asked.rows

    def write() -> tuple[Select, Contribution]:
        bounded = query.bounded(rows) if value is None else query.ranks_at(rows, value)
        expression = bounded.expression
        if candidates is not None:
            expression = largest(expression, candidates + 1)
        limited = Contribution(
            bounded.contribution_limit, bounded.per_key_limit, bounded.others, bounded.total
        )
        return source.main_part(asked.passing, expression, rows.texts), limited

    unfiltered = digest(query.changed(where=None).to_json())  # 1 is no True
    columns = [
        (n, rows.kinds.get(n), t, rows.bounds.get(n)) for n, t in asked.passing.schema().items()
    ]
    main, limited = context.recent.main_part(
        (about, unfiltered, tuple(columns), candidates, value), write
    )
    return source.statement(asked.passing, asked.texts, main), limited
