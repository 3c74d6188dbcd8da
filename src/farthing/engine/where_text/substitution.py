"""Names for expressions: what an analyst calls a computed column, put in its place."""

from __future__ import annotations

from collections.abc import Mapping

from farthing.engine.filters import Filter, renamed
from farthing.engine.where_text.conditions import expression_in
from farthing.engine.where_text.expressions import Call, Case, Expression, Literal, Name, PerUnit
from farthing.engine.where_text.writing import Spelled
from farthing.errors import InvalidInput


def column_with(name: str, named: Mapping[str, Expression]) -> str:
    """A column that a question names, with other expressions in the place of these names."""
    try:
        expression = named[name] if name in named else substituted(expression_in(name), named)
    except InvalidInput:
        return name
    if isinstance(expression, Name | Literal):
        return expression.column if name in named and isinstance(expression, Name) else name
    return Spelled(expression)


def substituted(expression: Expression, named: Mapping[str, Expression]) -> Expression:
    """The expression with other expressions in the place of these names."""

    def inner(part: Expression) -> Expression:
        return substituted(part, named)

    def condition(where: Filter) -> Filter:
        return renamed(where, lambda name: column_with(name, named))

    match expression:
        case Name(name):
            return named.get(name, expression)
        case Call(function, arguments):
            return Call(function, tuple(map(inner, arguments)))
        case Case(cases, otherwise):
            made = tuple((condition(where), inner(value)) for where, value in cases)
            return Case(made, None if otherwise is None else inner(otherwise))
        case PerUnit(function, of, where):
            rows = None if where is None else condition(where)
            return PerUnit(function, None if of is None else inner(of), rows)
        case Literal():
            return expression
