"""What SQL has no words for, in a clause of its own at the end.

    SELECT … GROUP BY yearID OPTIONS (contribution_limit = 3, categories = (2014, 2015, NULL))

The names are fields of the question. Values are written as in conditions; a list of labels stands
in brackets, and so does a label of several columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import TokenType
from sqlglot import expressions as sge

from farthing.engine.sql.keys import Label
from farthing.engine.where_text.parsing import SqlText, shown
from farthing.engine.where_text.reading import ConditionReader
from farthing.engine.where_text.writing import name_in_sql, value_in_sql
from farthing.errors import InvalidInput

_WORD = "OPTIONS"


def split_options(sql: SqlText) -> tuple[SqlText, dict[str, Any]]:
    """The statement, and the options at its end."""
    place = _opening(sql)
    if place is None:
        return sql, {}
    options: dict[str, Any] = {}
    for first, last in _parts(sql, place + 2, len(sql.tokens) - 1):
        name, value = _option(sql, first, last)
        if name in options:
            raise InvalidInput(f"the option {shown(name)} is given twice")
        options[name] = value
    return sql.part(0, place), options


def options_in_sql(options: Mapping[str, Any]) -> str:
    """The clause, with a space before it; nothing if there are none."""
    if not options:
        return ""
    listed = (f"{name_in_sql(name)} = {_written(value)}" for name, value in options.items())
    return f" {_WORD} ({', '.join(listed)})"


def _opening(sql: SqlText) -> int | None:
    """Where the clause begins: its bracket closes where the text ends."""
    depth = 0
    for place in range(len(sql.tokens) - 1, 0, -1):
        kind = sql.tokens[place].token_type
        depth += (kind == TokenType.R_PAREN) - (kind == TokenType.L_PAREN)
        if depth <= 0:
            word = sql.tokens[place - 1]
            ours = word.token_type == TokenType.VAR and word.text.upper() == _WORD
            return place - 1 if ours and kind == TokenType.L_PAREN else None
    return None


def _parts(sql: SqlText, first: int, last: int) -> list[tuple[int, int]]:
    """The places between the commas that are not inside of brackets."""
    parts, depth, start = [], 0, first
    for place in range(first, last):
        kind = sql.tokens[place].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if kind == TokenType.COMMA and depth == 0:
            parts.append((start, place))
            start = place + 1
    return [*parts, (start, last)]


def _option(sql: SqlText, first: int, last: int) -> tuple[str, Any]:
    said = sql.part(first, last)
    if len(said.tokens) < 3 or said.tokens[1].token_type != TokenType.EQ:
        raise InvalidInput(f"an option is written name = value, got {shown(said.text)}")
    value = sql.part(first + 2, last)
    return said.tokens[0].text, _value(value, value.parsed(sge.Condition))


def _value(sql: SqlText, node: sge.Expr) -> Any:
    match node:
        case sge.Tuple():
            return [_label(sql, label) for label in node.expressions]
        case sge.Paren():
            return [_label(sql, node.this)]
        case sge.Null():
            return None
    return ConditionReader(sql).value(node)


def _label(sql: SqlText, node: sge.Expr) -> Label:
    reader = ConditionReader(sql)
    if isinstance(node, sge.Tuple):
        return tuple(
            None if isinstance(part, sge.Null) else reader.value(part) for part in node.expressions
        )
    return None if isinstance(node, sge.Null) else reader.value(node)


def _written(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_written, value))})"
    return value_in_sql(value)
