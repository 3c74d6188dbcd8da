"""The columns of a schema, and those that expressions compute from them.

Only the schema is looked at: what a column gives is decided before any row is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from farthing.engine.computed.rules import RULES, literal, of_unit, one_of, refused
from farthing.engine.filters import Filter, columns_of
from farthing.engine.sql.conditions import check_filter
from farthing.engine.where_text.conditions import expression_in
from farthing.engine.where_text.expressions import (
    Call,
    Case,
    Expression,
    Literal,
    Name,
    PerUnit,
    inside,
)
from farthing.errors import InvalidInput, did_you_mean
from farthing.schema import Column, Schema

#: The parts of one column's expression, and how deep they nest.
MOST_PARTS, DEEPEST = 300, 24
#: Functions of a column and a value.
_OF_A_LITERAL = ("round", "left", "split", "like")


class ComputedColumns:
    """The columns of a schema, and those that expressions of them compute."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._typed: dict[Expression, Column] = {}
        self._parts = 0

    def expression(self, name: str) -> Expression | None:
        """What computes the column; None if it is stored."""
        if name in self.schema:
            text = self.schema[name].expression
            return None if text is None else expression_in(text)
        try:
            expression = expression_in(name)
        except InvalidInput as error:
            expression, why = Name(name), f"; as an expression: {error}"
            if name.isidentifier() or len(name) > 400:
                why = ""
        else:
            why = ""
        if isinstance(expression, Name):
            declared = ", ".join(self.schema.kinds)
            hint = did_you_mean(name, self.schema.kinds)
            written = f"; a text is written in single quotes: '{name:.20}'" if not hint else ""
            raise InvalidInput(
                f"there is no column {name:.60}; there are {declared:.120}{hint or why or written}"
            )
        return expression

    def column(self, name: str) -> Column:
        """The column of this name: declared, or computed by the expression that the name is."""
        if name in self.schema:
            return self.schema[name]
        expression = self.expression(name)
        assert expression is not None, "only declared columns are stored"
        return replace(self.typed(expression), name=name, expression=str(expression))

    def typed(self, expression: Expression, depth: int = 0) -> Column:
        """What an expression gives, or InvalidInput with the part that cannot be."""
        if expression not in self._typed:
            self._parts = self._parts + 1 if depth else 1
            if depth > DEEPEST or self._parts > MOST_PARTS:
                raise InvalidInput(
                    f"an expression has at most {MOST_PARTS} parts and nests at most {DEEPEST} "
                    "times, got more"
                )
            self._typed[expression] = self._type(expression, depth)
        return self._typed[expression]

    def _type(self, expression: Expression, depth: int) -> Column:
        match expression:
            case Name(column):
                computed = self.expression(column)
                if computed is not None and column not in self.schema:
                    return self.typed(computed, depth + 1)
                return self.schema[column]
            case Literal(value):
                return literal(value)
            case Call(function, arguments):
                rule = RULES.get(function)
                if rule is None:  # the reader knows the functions; this is for plain data
                    raise InvalidInput(f"there is no function {function!r:.60}")
                values = arguments[1:] if function in _OF_A_LITERAL else ()
                if not all(isinstance(part, Literal) for part in values):
                    raise refused(str(expression), "after the column, a value must stand here")
                return rule(str(expression), [self.typed(part, depth + 1) for part in arguments])
            case Case(cases, otherwise):
                for where, _ in cases:
                    self._check(where)
                parts = [value for _, value in cases]
                parts += [] if otherwise is None else [otherwise]
                return one_of(str(expression), [self.typed(part, depth + 1) for part in parts])
            case PerUnit(function, of, where):
                self._check(where)
                given = None if of is None else self.typed(of, depth + 1)
                return of_unit(str(expression), function, given)

    def _check(self, where: Filter | None) -> None:
        check_filter(where, {name: self.column(name).kind for name in columns_of(where)})

    def splits(self, name: str) -> bool:
        """Whether a row has several labels in this column."""
        match self.expression(name):
            case Call("split"):
                return True
            case None:
                return False
            case expression:
                self._require_whole(expression)
                return False

    def _require_whole(self, expression: Expression) -> None:
        """Nothing is computed from labels that were split."""
        for part in inside(expression):
            named = isinstance(part, Name) and self.expression(part.column)
            found = named if named else part
            if isinstance(found, Call) and found.function == "split":
                raise InvalidInput("split(…) gives labels to group or filter by, and nothing else")
            if not isinstance(found, Name):
                self._require_whole(found)

    def is_per_unit(self, name: str) -> bool:
        """Whether the column has one value for each unit, by what computes it."""
        expression = self.expression(name)
        return expression is not None and self._one_value(expression)

    def _one_value(self, expression: Expression) -> bool:
        match expression:
            case PerUnit():
                return True
            case Name(column):
                return self.is_per_unit(column)
        return all(map(self._one_value, inside(expression)))

    def stored(self, names: Iterable[str]) -> frozenset[str]:
        """The stored columns that these are computed from."""
        found: set[str] = set()
        waiting: list[Expression] = [Name(name) for name in names]
        while waiting:
            expression = waiting.pop()
            if isinstance(expression, Name):
                computed = self.expression(expression.column)
                if computed is None:
                    found.add(expression.column)
                else:
                    waiting.append(computed)
            else:
                waiting += inside(expression)
        return frozenset(found)


def check_declared(schema: Schema) -> None:
    """Computed columns that an owner declares: of stored columns and of computed ones before them,
    and of the kind that they give."""
    known = [column for column in schema.columns if column.expression is None]
    for column in schema.columns:
        if column.expression is not None:
            given = ComputedColumns(Schema(tuple(known))).typed(expression_in(column.expression))
            if given.kind != column.kind:
                raise InvalidInput(
                    f"{column.name!r:.60} is declared {column.kind}, but it is {given.kind}: "
                    f"{column.expression:.90}"
                )
            known.append(column)


def spelled(schema: Schema, name: str) -> str:
    """A name, or the one spelling of an expression."""
    if name in schema:
        return name
    expression = ComputedColumns(schema).expression(name)
    return str(expression)


def with_computed(schema: Schema, names: Collection[str]) -> Schema:
    """The schema, and the columns among these names that are expressions."""
    computed = ComputedColumns(schema)
    missing = sorted({name for name in names if name not in schema})
    if sum(map(computed.splits, {*names})) > 1:
        raise InvalidInput("a question splits one text into labels, got several")
    return Schema((*schema.columns, *map(computed.column, missing))) if missing else schema
