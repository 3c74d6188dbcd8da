"""The way in: open a table with a budget, ask questions, get releases.

request → plan → reserve → bounded histogram → mechanism → release → entry closed
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from farthing.composition.certificate import Certificate
from farthing.composition.tariff import Tariff
from farthing.engine.answers import Answer
from farthing.engine.buying import Purchase, buy
from farthing.engine.columns import KEYS, require_kind
from farthing.engine.compiling import check_query, compile_query
from farthing.engine.plans import Plan, cheapest, expectation_of
from farthing.engine.prepared import Prepared, check_charge
from farthing.engine.procedures import procedure_for
from farthing.engine.queries import (
    CountQuery,
    HistogramQuery,
    Label,
    QuantileQuery,
    Query,
    SumQuery,
    TopKQuery,
    query_from,
    query_to_json,
)
from farthing.engine.sources import Source
from farthing.guarantees.notation import format_guarantee
from farthing.mechanisms.accuracy import DEFAULT_CONFIDENCE, require_confidence

if TYPE_CHECKING:
    from farthing.engine.batches import Dashboard
    from farthing.engine.spending import Spending
    from farthing.ledger.book import Ledger

#: Anything a filter can be written as: nodes, or a table of conditions.
Where = Any


class Data:
    """One table, one unit of privacy, one analyst's purse."""

    def __init__(self, source: Source, spending: Spending, *, unit: str, confidence: float) -> None:
        self.source = source
        self.spending = spending
        self.unit = unit
        self.confidence = confidence

    def count(self, *, where: Where = None, **options: Any) -> Question:
        """How many units pass the filter. Options are the fields of `CountQuery`."""
        return Question(self, CountQuery(where=where, **options))

    def histogram(
        self,
        by: str | Iterable[str],
        *,
        categories: Iterable[Label] | None = None,
        where: Where = None,
        **options: Any,
    ) -> Question:
        """How many units have each label. Options are the fields of `HistogramQuery`."""
        query = HistogramQuery(by=_key(by), categories=_given(categories), where=where, **options)
        return Question(self, query)

    def top_k(
        self,
        by: str | Iterable[str],
        k: int = 10,
        *,
        categories: Iterable[Label] | None = None,
        where: Where = None,
        counts: bool = True,
        **options: Any,
    ) -> Question:
        """The k most frequent labels. Options are the fields of `TopKQuery`."""
        known = _given(categories)
        return Question(
            self,
            TopKQuery(by=_key(by), k=k, categories=known, where=where, counts=counts, **options),
        )

    def quantile(
        self,
        column: str,
        probability: float = 0.5,
        *,
        lower: float,
        upper: float,
        where: Where = None,
        **options: Any,
    ) -> Question:
        """A value near a quantile. Options are the fields of `QuantileQuery`."""
        return Question(
            self,
            QuantileQuery(
                column=column,
                probability=probability,
                lower=lower,
                upper=upper,
                where=where,
                **options,
            ),
        )

    def sum(
        self, column: str, *, lower: float, upper: float, where: Where = None, **options: Any
    ) -> Question:
        """The sum of a column, each unit's part limited. Options are the fields of `SumQuery`."""
        return Question(
            self, SumQuery(column=column, lower=lower, upper=upper, where=where, **options)
        )

    def ask(self, query: Query | Mapping[str, Any]) -> Question | Dashboard:
        """A question from a query, or from its plain data; a batch from the data of one."""
        if isinstance(query, Mapping) and query.get("kind") == "batch":
            queries = query.get("queries")
            return self.batch(queries if isinstance(queries, Mapping) else {})
        return Question(self, query_from(query))

    def batch(self, questions: Mapping[str, Any]) -> Dashboard:
        """Several questions, queries or plain data, fixed in advance and run together."""
        from farthing.engine.batches import Dashboard

        asked = {
            name: one if isinstance(one, Question) else Question(self, query_from(one))
            for name, one in questions.items()
        }
        return Dashboard(self, asked)

    def remaining(self) -> Any:
        """Farthings and δ units that are left."""
        return self.spending.remaining()

    def shut(self) -> None:
        """Give back what the engine holds, and the ledger if it was opened here."""
        self.source.shut()
        self.spending.shut()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()


@dataclass(frozen=True, slots=True)
class Question:
    """A query asked of some data. Nothing happens until `plan` or `run`."""

    data: Data = field(repr=False)
    query: Query

    def plan(self, *, half_width: float | None = None) -> Plan:
        """Price, accuracy and what remains; looks at column types, never at rows.

        With `half_width`: the cheapest way to intervals that narrow.
        """
        check_query(self.query, self.data.source, self.data.unit)
        self.data.source.require_unchanged()
        tariff = self.data.spending.tariff
        query = self.query
        if half_width is not None:
            query = cheapest(query, tariff, half_width=half_width, confidence=self.data.confidence)
        purchase = buy(query, tariff)
        question = Question(self.data, purchase.query)
        return Plan(
            query=purchase.query,
            items=purchase.items,
            price=tariff.price_of(purchase.items),
            remaining=self.data.spending.remaining(),
            expectation=expectation_of(purchase, self.data.confidence),
            known=question.earlier(purchase),
            question=question,
        )

    def run(self, *, again: bool = False) -> Answer:
        """The release. What was asked before is given out again at no cost, unless `again`."""
        prepared = self.prepare()
        known = None if again else self.earlier(prepared.purchase)
        if known is not None:
            return known
        spending = self.data.spending
        held = spending.reserve(
            prepared.purchase.items, self.asked(prepared.purchase), under=prepared.account
        )
        try:
            check_charge([prepared], dict(held.items), held.price, spending.tariff_of(held))
            answer, used = prepared.release(self.data.source, confidence=self.data.confidence)
        except BaseException as error:
            spending.abandon(held, reason=type(error).__name__)
            raise
        keep = self.data.source.version is not None
        spending.close(held, answer.to_json(), used=used, keep=keep)
        return answer.left_with(spending.remaining())

    def prepare(self) -> Prepared:
        """Everything that can be refused is refused here, before anything is paid."""
        data = self.data
        check_query(self.query, data.source, data.unit)
        data.source.require_unchanged()
        terms = data.spending.terms
        purchase = buy(self.query, terms.tariff)
        procedure = procedure_for(purchase)
        compiled = compile_query(
            purchase.query,
            data.source,
            unit=data.unit,
            secret=data.spending.secret,
            candidates=procedure.candidates,
        )
        return Prepared(terms.tariff, terms.account, purchase, compiled, procedure)

    def asked(self, purchase: Purchase) -> dict[str, Any]:
        """What the ledger keeps: the query, what its items guarantee, the version of the rows."""
        version = self.data.source.version
        secret = self.data.spending.secret
        return {
            "query": query_to_json(purchase.query),
            "guarantees": {n: format_guarantee(g) for n, g in purchase.guarantees.items()},
            "unit": self.data.unit,
            "confidence": self.data.confidence,
            "version": None
            if version is None
            else hashlib.sha256(f"{secret} {version}".encode()).hexdigest(),
        }

    def earlier(self, purchase: Purchase) -> Answer | None:
        """The release of the same question about the same rows, if this analyst has one."""
        if self.data.source.version is None:
            return None
        spending = self.data.spending
        kept = spending.earlier(self.asked(purchase))
        if kept is None:
            return None
        return Answer.from_json(kept, remaining=spending.remaining(), cached=True)


def open(  # noqa: A001 # farthing.open is the name people will look for
    data: Any,
    *,
    unit: str,
    ledger: Ledger | str | os.PathLike[str],
    tariff: Tariff | Certificate | str | os.PathLike[str] | None = None,
    farthings: int | None = None,
    delta_units: int | None = None,
    analyst: str = "analyst",
    owner: str = "owner",
    dataset: str | None = None,
    table: str | None = None,
    spark: Any = None,
    version: str | None = None,
    memory: str | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
) -> Data:
    """A table with a budget.

    `data` is a path (Parquet, CSV, a DuckDB or SQLite file with `table`), a pandas, Polars or
    Arrow table, or postgresql://… with `table`. With `spark` (a session, sc://host:port or
    "local[2]") it is a path or a table of Spark's catalogue. `unit` is the column that says whose
    row it is.

    `ledger` keeps the budget. The first time, give a `tariff` (it is certified and signed) and
    the `farthings` that this analyst may spend; later both may be left out. `version` says which
    state of the rows this is; files and tables in memory have one of their own. `memory` is what
    DuckDB may use before it spills to disk, such as "8GB".
    """
    from farthing.engine.opening import open_source

    level = require_confidence(confidence)
    source = open_source(
        data, table=table, spark=spark, name=dataset, version=version, memory=memory
    )
    try:
        from farthing.engine.spending import open_spending

        source.require_columns(frozenset((unit,)))
        require_kind(unit, source.kinds[unit], KEYS, "the unit")
        spending = open_spending(
            ledger,
            dataset=source.name,
            unit=unit,
            owner=owner,
            analyst=analyst,
            tariff=tariff,
            farthings=farthings,
            delta_units=delta_units,
        )
    except BaseException:
        source.shut()
        raise
    return Data(source, spending, unit=unit, confidence=level)


def _key(by: Any) -> Any:
    return tuple(by) if isinstance(by, Iterable) and not isinstance(by, str) else by


def _given(categories: Any) -> Any:
    """A list of labels of any kind; a text is no list, and the query will say so."""
    if isinstance(categories, str | bytes | Mapping) or not isinstance(categories, Iterable):
        return categories
    return tuple(categories)
