"""From a purchase to what runs: one statement, one mechanism, and the same limits in both."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from farthing.canonical import digest
from farthing.engine.computed.columns import with_computed
from farthing.engine.computed.compile import with_columns
from farthing.engine.context import Context
from farthing.engine.errors import ChargeMismatch
from farthing.engine.kinds.base import Query, Rows, one_row_per_unit, used_columns
from farthing.engine.purchase import Purchase
from farthing.engine.sources.base import Source
from farthing.engine.sql.bounding import Bounded, largest
from farthing.engine.sql.statement import Statement, Texts
from farthing.mechanisms import Contribution, Mechanism
from farthing.schema import Schema


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


def step_for(context: Context, purchase: Purchase) -> Step:
    """What runs for a purchase."""
    return Step(purchase, purchase.query.mechanism_for(purchase.paid), context)


def statement_of(
    context: Context, query: Query, candidates: int | None = None
) -> tuple[Statement, Contribution]:
    """The statement of a query, and what it makes of one unit at most."""
    rows = _rows(context, query)
    return _stated(context, rows, query.bounded(rows), candidates)


def comparison_of(context: Context, query: Query, value: int) -> tuple[Statement, Contribution]:
    """The statement of the one number that says on which side of this value a query lies."""
    rows = _rows(context, query)
    return _stated(context, rows, query.ranks_at(rows, value))


def _rows(context: Context, query: Query) -> Rows:
    secret = context.analyst.secret()
    return rows_of(context.source, context.schema, context.about.unit, secret, query)


def rows_of(source: Source, declared: Schema, unit: str, secret: str, query: Query) -> Rows:
    """The rows that a query is about, with the columns that it computes."""
    schema, table, texts = (
        with_computed(declared, used_columns(query)),
        source.declared(declared),
        Texts(),
    )
    computed = [name for name in sorted(used_columns(query)) if schema[name].expression]
    if computed:
        units = one_row_per_unit(query, declared)
        table = with_columns(table, declared, unit, computed, texts, units=units)
    bounds = {n: pair for n, pair in schema.declared.bounds.items() if n in table.columns}
    return Rows(table, unit, schema.kinds, secret, texts, bounds).where(query.filter)


def _stated(
    context: Context, rows: Rows, bounded: Bounded, candidates: int | None = None
) -> tuple[Statement, Contribution]:
    expression = bounded.expression
    if candidates is not None:
        expression = largest(expression, candidates + 1)
    limited = Contribution(
        bounded.contribution_limit, bounded.per_key_limit, bounded.others, bounded.total
    )
    return context.source.statement(expression, rows.texts), limited
