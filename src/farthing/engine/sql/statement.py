"""From an expression to the statement that runs, with its values beside it.

Ibis writes the SQL; before it becomes text its tree is searched for our marks, and each becomes
what the engine has for it. Rows are read through the schema in a part of its own in front:

    WITH declared0 AS (SELECT …total functions of the columns… FROM …) SELECT label, n FROM (…)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farthing.engine.sql.functions import BYTES_MARK, DIGEST_MARK, LIST_MARK, TEXT_MARK
from farthing.engine.sql.texts import Parameter, Texts

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa


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
        """A name of a column or a table, quoted."""
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """The part of a statement that reads rows through a schema, and the values it needs.

    In `sql` the parameters are numbered from 1.
    """

    name: str
    sql: str
    parameters: tuple[Parameter, ...]


def written(
    expression: ir.Table, texts: Texts, reading: ColumnReading, dialect: Dialect
) -> Statement:
    """The statement for an expression over the table that `reading` describes."""
    compiler = dialect.compiler()
    tree = compiler.to_sqlglot(expression).copy()  # Ibis uses one node in several places
    _replace_marks(tree, dialect, texts.values, len(reading.parameters) + 1)
    gives = expression.schema().to_pyarrow()
    names = ", ".join(map(dialect.identifier, gives.names))
    sql = (
        f"WITH {dialect.identifier(reading.name)} {dialect.common_table} ({reading.sql}) "
        f"SELECT {names} FROM ({tree.sql(dialect=compiler.dialect)}) "
        f"AS {dialect.identifier('answered')}"
    )
    return Statement(sql, gives, reading.parameters + texts.values)


def filled(template: str, **parts: str) -> str:
    """A template with its parts in place; what is inside a part is left alone."""
    return _PART.sub(lambda found: parts[found[1]], template)


def _replace_marks(tree: Any, dialect: Dialect, values: tuple[Parameter, ...], first: int) -> None:
    """Every mark becomes what the engine has for it, the inner ones before the outer ones."""
    import sqlglot.expressions as sge

    for node in reversed(list(tree.find_all(sge.Anonymous))):
        name, given = node.name.lower(), node.expressions
        if name == BYTES_MARK:
            node.replace(_parsed(dialect.as_bytes, dialect, given[0]))
        elif name == DIGEST_MARK:
            node.replace(_parsed(dialect.digest, dialect, given[0]))
        elif name == TEXT_MARK:
            place = int(given[0].name)
            node.replace(_parsed(filled(dialect.text, n=str(first + place)), dialect))
        elif name == LIST_MARK:
            place = int(given[1].name)
            numbers = values[place] != () and isinstance(values[place][0], int)
            template = dialect.one_of_numbers if numbers else dialect.one_of_texts
            sql = filled(template, n=str(first + place), x=_COLUMN)
            node.replace(_parsed(sql, dialect, given[0]))


def _parsed(sql: str, dialect: Dialect, column: Any = None) -> Any:
    """Our own SQL as a tree, with `column` where it says {x}."""
    import sqlglot
    import sqlglot.expressions as sge

    tree = sqlglot.parse_one(filled(sql, x=_COLUMN), dialect=dialect.compiler().dialect)
    for node in list(tree.find_all(sge.Column)):
        if node.name == _COLUMN:
            if node is tree:
                return column.copy()
            node.replace(column.copy())
    return tree


_PART = re.compile(r"\{([a-z]+)\}")
_COLUMN = "farthing_column"
