"""Statements: the SQL of one engine, with the values of the question beside it.

Ibis writes the SQL. Values of the question, and functions that Ibis does not have, are calls of
marker functions in its expressions. Before the tree becomes text, each marker is replaced by what
the engine has for it. Rows are read through the schema in a common table expression in front:

    WITH declared0 AS (SELECT …total functions of the columns… FROM …),
         passing AS (SELECT …computed columns… FROM declared0 WHERE …the filter…)
    SELECT label, n FROM (…what a question makes of the rows that pass…)

The last part is the same for every filter, so it is written once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from farthing.errors import InvalidInput

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

#: What an engine is handed beside a statement: a text, or a list of texts or of whole numbers.
Parameter: TypeAlias = str | tuple[str | int, ...]

#: A marker function is called this and the field of `Dialect` that says what engines have for it.
_MARK = "farthing_"
_PART = re.compile(r"\{([a-z]+)\}")
_COLUMN = "farthing_column"
#: What the rows that pass the filter are called.
PASSING = "passing"


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL of one engine; the placeholders stand for `parameters`, in their order.

    `gives` are the columns of its rows: a source returns exactly these names and types, whatever
    the rows are, and no missing value where none is allowed.
    """

    sql: str
    gives: pa.Schema
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class Dialect:
    """What engines write differently.

    The templates hold {x} for an expression and {n} for the number of a parameter, from 1.
    """

    name: str
    compiler: Callable[[], Any]
    quote: str
    text: str
    one_of_texts: str
    one_of_numbers: str
    as_bytes: str
    digest: str
    common_table: str

    def identifier(self, name: str) -> str:
        """The quoted name of a column or a table."""
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """The part of a statement that reads rows through a schema, and the values it needs.

    In `sql` the parameters are numbered from 1.
    """

    name: str
    sql: str
    parameters: tuple[Parameter, ...]


class Texts:
    """The values of one statement. They travel as parameters, never inside its text."""

    def __init__(self) -> None:
        self._values: list[Parameter] = []

    @property
    def values(self) -> tuple[Parameter, ...]:
        """Every value so far; a marker holds its place in this list."""
        return tuple(self._values)

    def literal(self, value: str) -> Any:
        """An expression that is this text."""
        return _marker("text", ("int64",), "string")(self._keep(require_unicode(value)))

    def one_of(self, column: Any, values: Iterable[str] | Iterable[int]) -> Any:
        """Whether a column of texts or of whole numbers has one of these values."""
        if column.type().is_string():
            texts = self._keep(tuple(map(require_unicode, values)))
            return _marker("one_of_texts", ("string", "int64"), "boolean")(column, texts)
        numbers = self._keep(tuple[str | int, ...](values))
        return _marker("one_of_numbers", ("int64", "int64"), "boolean")(column, numbers)

    def _keep(self, value: Parameter) -> int:
        self._values.append(value)
        return len(self._values) - 1


def require_unicode(value: object) -> str:
    """A text that has UTF-8, or InvalidInput."""
    if not isinstance(value, str):
        raise InvalidInput(f"a value must be text, got {type(value).__name__}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput("a text must be Unicode without lone surrogates") from None
    return value


def as_bytes(text: Any) -> Any:
    """A text that is compared and ordered by its bytes, whatever it was made from."""
    return _marker("as_bytes", ("string",), "string")(text)


def keyed_number(text: Any) -> Any:
    """The first 28 bits of the MD5 of a text, as a whole number."""
    return _marker("digest", ("string",), "int64")(text)


@dataclass(frozen=True, slots=True)
class Select:
    """A part of a statement: an expression as SQL, and the values it needs.

    In `sql` they are numbered from `first`.
    """

    sql: str
    gives: pa.Schema
    parameters: tuple[Parameter, ...]
    first: int

    @property
    def end(self) -> int:
        """The number of the next parameter."""
        return self.first + len(self.parameters)


def select(expression: ir.Table, texts: Texts, dialect: Dialect, first: int) -> Select:
    """An expression as SQL, its parameters numbered from `first`."""
    compiler = dialect.compiler()
    tree = compiler.to_sqlglot(expression).copy()  # Ibis uses one node in several places
    _replace_markers(tree, dialect, first)
    sql = tree.sql(dialect=compiler.dialect)
    return Select(sql, expression.schema().to_pyarrow(), texts.values, first)


def written(
    reading: ColumnReading, dialect: Dialect, main: Select, passing: Select | None = None
) -> Statement:
    """The statement of `main` over the rows of `reading`, or over those that `passing` gives."""
    named = {reading.name: reading.sql} | ({} if passing is None else {PASSING: passing.sql})
    tables = (
        f"{dialect.identifier(name)} {dialect.common_table} ({sql})" for name, sql in named.items()
    )
    columns = ", ".join(map(dialect.identifier, main.gives.names))
    sql = (
        f"WITH {', '.join(tables)} SELECT {columns} FROM ({main.sql}) "
        f"AS {dialect.identifier('answered')}"
    )
    more = () if passing is None else passing.parameters
    return Statement(sql, main.gives, reading.parameters + main.parameters + more)


def filled(template: str, **parts: str) -> str:
    """A template with its parts in place; what is inside a part is left alone."""
    return _PART.sub(lambda name: parts[name[1]], template)


@cache
def _marker(field: str, inputs: tuple[str, ...], output: str) -> Any:
    """A function that no engine has: `written` replaces it by a template of the dialect."""
    import ibis

    marker = ibis.udf.scalar.builtin(name=_MARK + field, signature=(inputs, output))
    return marker((lambda _given: None) if len(inputs) == 1 else (lambda _given, _place: None))


def _replace_markers(tree: Any, dialect: Dialect, first: int) -> None:
    """Every marker becomes what the engine has for it, the inner ones before the outer ones.

    Where the template holds {n}, the last argument is the place of a parameter, counted on from
    `first`.
    """
    import sqlglot.expressions as sge

    for node in reversed(list(tree.find_all(sge.Anonymous))):
        name, given = node.name.lower(), node.expressions
        if name.startswith(_MARK):
            template = getattr(dialect, name.removeprefix(_MARK))
            n = first + int(given[-1].name) if "{n}" in template else 0
            node.replace(_parsed(filled(template, x=_COLUMN, n=str(n)), dialect, given[0]))


def _parsed(sql: str, dialect: Dialect, column: Any) -> Any:
    """Our own SQL as a tree, with `column` in its place."""
    import sqlglot
    import sqlglot.expressions as sge

    tree = sqlglot.parse_one(sql, dialect=dialect.compiler().dialect)
    for node in list(tree.find_all(sge.Column)):
        if node.name == _COLUMN:
            if node is tree:
                return column.copy()
            node.replace(column.copy())
    return tree
