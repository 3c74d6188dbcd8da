"""A query with everything said: expressions in their one spelling, the owner's limits, the labels
and bounds of the schema. All of it is decided from the schema, never from the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from farthing.engine.computed.columns import ComputedColumns, spelled, with_computed
from farthing.engine.filters import columns_of
from farthing.engine.kinds.base import Query
from farthing.engine.kinds.fields import AUTO, help_of
from farthing.engine.kinds.labels import KeyQuery
from farthing.engine.sql.conditions import check_filter, require_possible
from farthing.errors import InvalidInput, within_reason
from farthing.ledger.declared_data import Limits, rows_are_units
from farthing.schema import Schema


@within_reason
def completed_query(query: Query, declared: Schema, unit: str, limits: Limits) -> Query:
    """The query with everything said that the schema and the owner's limits say, and checked.

    What nobody says about how much of a unit counts is asked for: nothing is dropped by default.
    Where a unit has one value, as in a column that is computed per unit, nothing can be dropped.
    """
    rows = rows_are_units(declared, unit)
    if rows and query.about_limits:
        raise InvalidInput(f"a {query.kind} is about several rows of a unit, and each row is one")
    if computed_columns(query, declared):
        query = renamed_query(query, lambda name: spelled(declared, name))
    if rows or computed_columns(query, declared):
        query = query.changed(**_certain_limits(query, declared, rows=rows))
    schema = check_query(query, declared, unit)
    require_possible(query.filter, schema)
    whole = query.within(limits).completed(schema)
    if rows and getattr(whole, "contribution_limit", None) == AUTO:
        raise InvalidInput("a limit on the labels of a split text must be a number here, not auto")
    for name, words in whole.needed_limits.items():
        if getattr(whole, name) is None:
            raise InvalidInput(
                f"{name} must be given: {words}. Nothing is dropped by default: ask with {name}, "
                "or let the owner declare it as a limit of the data"
            )
    return whole


def renamed_query(query: Query, rename: Callable[[str], str]) -> Query:
    """The query with other names for its columns, in all fields that hold columns."""
    given = {
        name: one.holds.renamed(getattr(query, name), rename)
        for name, one in help_of(type(query)).items()
        if one.holds is not None and getattr(query, name) is not None
    }
    return query.changed(**given)


def used_columns(query: Query) -> frozenset[str]:
    """The columns that a query looks at."""
    return query.columns() | columns_of(query.filter)


def computed_columns(query: Query, declared: Schema) -> list[str]:
    """The columns of a query that are computed, by the owner's declaration or its own."""
    used = sorted(used_columns(query))
    return [name for name in used if name not in declared or declared[name].expression is not None]


def schema_of(query: Query, declared: Schema) -> Schema:
    """The schema with the columns that a query computes."""
    computed = computed_columns(query, declared)
    return with_computed(declared, computed) if computed else declared


def check_query(query: Query, declared: Schema, unit: str) -> Schema:
    """The declared columns can be used like this; nothing is known about the rows. Gives the
    schema with the columns that the query computes."""
    used, schema = used_columns(query), schema_of(query, declared)
    if computed_columns(query, declared):
        columns = ComputedColumns(declared)
        used |= columns.stored(used)
        if any(map(columns.splits, columns_of(query.filter))):
            raise InvalidInput("split(…) gives labels to group by; in a filter, use like")
    if unit in used:
        raise InvalidInput(
            f"{unit} is the unit of privacy: it cannot be filtered, grouped or added up"
        )
    own = {name: f"computed {i}" for i, name in enumerate(computed_columns(query, declared))}
    if own and used_columns(renamed_query(query, lambda name: own.get(name, name))) & own.keys():
        known = [name for name, one in help_of(type(query)).items() if one.holds is not None]
        raise InvalidInput(f"a {query.kind} takes expressions in {', '.join(known)} alone")
    check_filter(query.filter, schema.kinds)
    query.check_columns(schema)
    return schema


def _certain_limits(query: Query, declared: Schema, *, rows: bool) -> dict[str, Any]:
    """Limits that no unit can exceed: it has one value in each column that is per unit. If each row
    is a unit, it has one value in every column that is not split."""
    names, columns = query.field_names(), ComputedColumns(declared)
    key = query.limited if isinstance(query, KeyQuery) else frozenset()
    limits: dict[str, Any] = {}
    one_label = key and all(map(columns.is_per_unit, key)) and not query.about_limits
    if rows:
        limited = key or "contribution_limit" in query.needed_limits
        one_label = limited and not any(map(columns.splits, query.columns()))
    if one_label and "contribution_limit" in names:
        limits["contribution_limit"] = 1
    if (one_label or rows) and "measure_loss" in names:
        limits["measure_loss"] = False
    if (rows or one_row_per_unit(query, declared)) and "per_key_limit" in names:
        limits["per_key_limit"] = 1
    return limits


def one_row_per_unit(query: Query, declared: Schema) -> bool:
    """Whether the question is about units: all of its columns are per unit, and it counts or
    measures units, not rows."""
    used, columns = used_columns(query), ComputedColumns(declared)
    measures = "column" in query.field_names()
    counts_units = measures or getattr(query, "per_key_limit", 1) == 1
    return bool(used) and counts_units and all(map(columns.is_per_unit, used))
