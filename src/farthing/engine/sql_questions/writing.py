"""A question, written as the SELECT that asks it."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from farthing.engine.kinds.base import Query
from farthing.engine.kinds.completed import check_query
from farthing.engine.sql_questions.clauses import (
    COUNT,
    aggregate_in_sql,
    key_in_sql,
    options_in_sql,
)
from farthing.engine.sql_questions.questions import SAID, select_in
from farthing.engine.where_text.writing import (
    condition_in_sql,
    name_in_sql,
    part_in_sql,
    value_in_sql,
)
from farthing.errors import InvalidInput
from farthing.ledger.declared_data import Dataset

_LABELS = ("histogram", "top_k", "rollup")


def query_in_sql(query: Query, about: Dataset) -> str:
    """The statement that asks this question of this data.

    What SQL has no words for is in OPTIONS. The statement is read back, to be sure it says it all.
    """
    if about.schema is not None:
        check_query(query, about.schema, about.unit)
    values = {name: getattr(query, name) for name in query.field_names()}
    counts = query.kind in _LABELS or query.kind == COUNT
    function = aggregate_in_sql(COUNT if counts else query.kind, values, about.unit)
    if function is None:
        raise InvalidInput(f"a {query.kind} question has no SQL")
    statement = _statement(query, values, function, about)
    options = _options(query, values)
    if counts and values["per_key_limit"] == 1:
        options.pop("per_key_limit", None)
    if _listed(values) is not None:
        options.pop("categories")
    for more in ({}, {"categories": None}):  # values that the filter lists may be no labels
        written = statement + options_in_sql({**options, **more})
        if _read(written, about) == query:
            return written
    raise InvalidInput(f"this {query.kind} question cannot be written as SQL")


def _read(text: str, about: Dataset) -> Query | None:
    try:
        queries, view = select_in(text, about, {})
    except InvalidInput:
        return None
    return next(iter(queries.values())) if view is None and len(queries) == 1 else None


def _statement(query: Query, values: dict[str, Any], function: str, about: Dataset) -> str:
    keys = [key_in_sql(key) for key in values.get("by") or ()]
    told = [function] if values.get("counts", True) else []
    text = f"SELECT {', '.join([*keys, *told])} FROM {name_in_sql(about.name)}"
    listed = _listed(values)
    if listed is not None:
        text += f" WHERE {listed}"
        text += "" if query.filter is None else f" AND {part_in_sql(query.filter)}"
    elif query.filter is not None:
        text += f" WHERE {condition_in_sql(query.filter)}"
    if keys:
        grouped = "ROLLUP ({})" if query.kind == "rollup" else "{}"
        text += f" GROUP BY {grouped.format(', '.join(keys))}"
    if "k" in values:
        text += f" ORDER BY {function} DESC LIMIT {values['k']}"
    return text


def _listed(values: dict[str, Any]) -> str | None:
    """Labels of one column, none of them missing, as a list of values."""
    labels, keys = values.get("categories"), list(values.get("by") or ())
    column = keys[0] if len(keys) == 1 else None
    if labels is None or not isinstance(column, str) or None in labels:
        return None
    return f"{name_in_sql(column)} IN ({', '.join(map(value_in_sql, labels))})"


def _options(query: Query, values: dict[str, Any]) -> dict[str, Any]:
    """Every other field that has not its default."""
    defaults = {f.name: f.default for f in fields(query)}
    return {
        name: value
        for name, value in values.items()
        if name not in SAID and (defaults[name] is MISSING or value != defaults[name])
    }
