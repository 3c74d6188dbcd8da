"""The columns of a schema, and those that expressions compute from them.

Only the schema is looked at: what a column gives is decided before any row is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from farthing.engine.computed.rules import RULES, literal, of_unit, one_of, refused
from farthing.engine.filters import Filter, columns_of
from farthing.engine.keys import column_of, key_from, kind_of
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
from farthing.engine.where_text.writing import Spelled
from farthing.errors import InvalidInput, did_you_mean
from farthing.schema import DATE, KEYS, Column, Schema

#: The parts of one column's expression, and how deep they nest.
MOST_PARTS, DEEPEST = 300, 40
#: Aggregates per unit in aggregates per unit.
MOST_LEVELS = 3
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
        if isinstance(expression, Name | Literal):
            declared = ", ".join(self.schema.kinds)
            hint = did_you_mean(name, self.schema.kinds)
            written = f"; a text is written in single quotes: '{name:.20}'" if not hint else ""
            raise InvalidInput(
                f"there is no column {name:.60}; there are {declared:.120}{hint or why or written}"
            )
        return expression

    def column(self, name: str, depth: int = 0) -> Column:
        """The column of this name: declared, or computed by the expression that the name is."""
        if name in self.schema:
            return self.schema[name]
        expression = self.expression(name)
        assert expression is not None, "only declared columns are stored"
        given = self.typed(expression, depth + 1)
        return replace(given, name=name, expression=str(expression))

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
                return self.column(column, depth)
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
                    self._check(where, depth)
                parts = [value for _, value in cases]
                parts += [] if otherwise is None else [otherwise]
                return one_of(str(expression), [self.typed(part, depth + 1) for part in parts])
            case PerUnit(function, of, where):
                self._check(where, depth)
                given = None if of is None else self.typed(of, depth + 1)
                self._require_shallow(expression)
                return of_unit(str(expression), function, given)

    def _check(self, where: Filter | None, depth: int) -> None:
        kinds = {name: self.column(name, depth + 1).kind for name in columns_of(where)}
        check_filter(where, kinds)

    def _require_shallow(self, aggregate: PerUnit) -> None:
        """An aggregate is of columns, and aggregates nest a few times."""
        if aggregate.of is not None and not self._reached([aggregate.of]):
            raise refused(str(aggregate), "per_unit is for columns of the rows")
        if self.levels(aggregate) > MOST_LEVELS:
            raise refused(str(aggregate), f"per_unit nests at most {MOST_LEVELS} times")

    def levels(self, expression: Expression) -> int:
        """How many aggregates per unit are one in the other."""
        if isinstance(expression, Name):
            computed = self.expression(expression.column)
            return 0 if computed is None else self.levels(computed)
        below = max(map(self.levels, inside(expression)), default=0)
        return below + isinstance(expression, PerUnit)

    def splits(self, name: str) -> bool:
        """Whether a row has several labels in this column."""
        match self.expression(name):
            case None:
                return False
            case expression:
                self._require_whole(expression)
                return isinstance(expression, Call) and expression.function == "split"

    def _require_whole(self, expression: Expression) -> None:
        """Nothing is computed from labels that were split."""
        for part in inside(expression):
            named = isinstance(part, Name) and self.expression(part.column)
            found = named if named else part
            if isinstance(found, Call) and found.function == "split":
                raise InvalidInput("split(…) gives labels to group by, and nothing else")
            if not isinstance(found, Name):
                self._require_whole(found)

    def is_per_unit(self, name: str) -> bool:
        """Whether the column has one value for each unit, by what computes it."""
        expression = self.expression(name)
        return expression is not None and not self.splits(name) and self._one_value(expression)

    def _one_value(self, expression: Expression) -> bool:
        match expression:
            case PerUnit():
                return True
            case Name(column):
                return self.is_per_unit(column)
        return all(map(self._one_value, inside(expression)))

    def stored(self, names: Iterable[str]) -> frozenset[str]:
        """The stored columns that these are computed from."""
        return frozenset(name for name in self.reached(names) if self.expression(name) is None)

    def reached(self, names: Iterable[str]) -> frozenset[str]:
        """The declared columns, stored or computed, that these are computed from."""
        return self._reached(map(Name, names))

    def _reached(self, expressions: Iterable[Expression]) -> frozenset[str]:
        found: set[str] = set()
        waiting = list(expressions)
        while waiting:
            expression = waiting.pop()
            if not isinstance(expression, Name):
                waiting += inside(expression)
                continue
            if expression.column in found:
                continue
            if expression.column in self.schema:
                found.add(expression.column)
            computed = self.expression(expression.column)
            waiting += [] if computed is None else [computed]
        return frozenset(found)


def checked_schema(schema: Schema, unit: str) -> Schema:
    """The schema with the labels of its computed columns, which must be of the kind that they give,
    from stored columns and computed ones before them, and not from the unit."""
    for column in schema.columns:
        for text in () if column.lookup is None else column.lookup.wanted:
            lookup_key(schema, text)
    known = {column.name: column for column in schema.columns if column.expression is None}
    for column in schema.columns:
        if column.expression is None:
            continue
        computed = ComputedColumns(Schema(tuple(known.values())))
        given = computed.typed(expression_in(column.expression))
        if given.kind != column.kind:
            raise InvalidInput(
                f"{column.name!r:.60} is declared {column.kind}, but it is {given.kind}: "
                f"{column.expression:.90}"
            )
        if unit in computed.stored([column.expression]):
            raise InvalidInput(f"{column.name!r:.60} is computed from the unit, {unit}")
        if column.categories is not None:
            raise InvalidInput(f"the labels of {column.name!r:.60} follow from its expression")
        known[column.name] = replace(column, categories=given.categories)
    return Schema(tuple(known[column.name] for column in schema.columns))


def lookup_key(schema: Schema, text: str) -> Column:
    """What a public table is looked up by: a stored column, or what an expression of a row's own
    stored columns gives. Of a kind whose equality is the same on every engine."""
    if text in schema:
        return schema[text]
    own = Schema(tuple(column for column in schema.columns if column.is_stored))
    key = key_from(text)
    name, computed = column_of(key), ComputedColumns(own)
    if name not in own and (computed.splits(name) or computed.levels(Name(name))):
        raise InvalidInput(f"a public table is looked up by one value of a row, not by {text:.90}")
    kind = kind_of(key, with_computed(own, [name]))
    if kind not in KEYS:
        raise InvalidInput(
            f"what is looked up must be {' or '.join(KEYS)}, but {text:.90} is {kind}"
        )
    zone = own[name].time_zone if name in own and kind == DATE else None
    return Column(text, kind, time_zone=zone)


def spelled(schema: Schema, name: str) -> str:
    """A name, or the one spelling of an expression."""
    if name in schema:
        return name
    expression = ComputedColumns(schema).expression(name)
    return Spelled(expression)


def with_computed(schema: Schema, names: Collection[str]) -> Schema:
    """The schema, and the columns among these names that are expressions."""
    computed = ComputedColumns(schema)
    missing = sorted({name for name in names if name not in schema})
    if sum(map(computed.splits, {*names})) > 1:
        raise InvalidInput("a question splits one text into labels, got several")
    return Schema((*schema.columns, *map(computed.column, missing))) if missing else schema
