"""PostgreSQL, by address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farthing.engine.bounding import LARGEST_EXACT, between
from farthing.engine.sources import Source, log
from farthing.errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    import pyarrow as pa


#: Numbers below one part in this many count as 0.
TINY = 10**15


class PostgresSource(Source):
    """A table in PostgreSQL; every query runs in a read-only transaction of its own."""

    dialect = "postgres"

    def __init__(self, connection: Any, table: str, *, name: str, version: str | None) -> None:
        import ibis

        self._connection = connection
        columns = {
            column: _type(kind, precision, scale)
            for column, kind, precision, scale in _columns(connection, table)
        }
        super().__init__(ibis.table(columns, name=table), name=name, version=version)

    def fetch(self, sql: str) -> pa.Table:
        import pyarrow as pa

        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute(sql)
            names = [column.name for column in cursor.description]
            rows = cursor.fetchall()
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        typed = {}
        for name, column in zip(names, columns, strict=True):
            kind = pa.string() if name == "label" else pa.decimal128(38, 0)
            typed[name] = pa.array(column, type=kind)
        return pa.table(typed)

    def real(self, column: Any) -> Any:
        """A numeric may be too large or too small for a float: moved, or taken for 0, before."""
        if not column.type().is_decimal():
            return column.cast("float64")
        tiny = column.abs() * TINY < 1
        return between(tiny.ifelse(0, column), -LARGEST_EXACT, LARGEST_EXACT).cast("float64")

    def order(self, label: Any) -> Any:
        """By the bytes, in hexadecimal: the database's collation may order text differently."""
        import ibis

        @ibis.udf.scalar.builtin(name="convert_to", signature=(("string", "string"), "binary"))
        def convert_to(text, encoding): ...  # type: ignore[no-untyped-def] # signature above

        @ibis.udf.scalar.builtin(name="encode", signature=(("binary", "string"), "string"))
        def encode(data, form): ...  # type: ignore[no-untyped-def] # signature above

        return encode(convert_to(label, "UTF8"), "hex")

    def shut(self) -> None:
        self._connection.close()


def open_postgres(
    url: str, *, table: str | None, name: str | None, version: str | None
) -> PostgresSource:
    """A source from a table at postgresql://…"""
    if table is None:
        raise InvalidInput("a database needs table=, the name of the table to read")
    try:
        import psycopg
    except ImportError:
        raise Unsupported("psycopg is not installed; install farthing[engine]") from None
    try:
        connection = psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://"))
        connection.read_only = True
        with connection.transaction():
            return PostgresSource(connection, table, name=name or table, version=version)
    except InvalidInput:
        raise
    except Exception:
        log.exception("the source %s could not be opened", name or table)
        raise InvalidInput(
            f"the table {table} could not be opened; the owner's log says why"
        ) from None


def _columns(connection: Any, table: str) -> list[tuple[str, str, int | None, int | None]]:
    found = connection.execute(
        "SELECT column_name, data_type, numeric_precision, numeric_scale "
        "FROM information_schema.columns WHERE table_schema = ANY(current_schemas(false)) "
        "AND table_name = %s ORDER BY ordinal_position",
        (table,),
    ).fetchall()
    if not found:
        raise InvalidInput(f"there is no table {table!r:.80}")
    return list(found)


def _type(kind: str, precision: int | None, scale: int | None) -> Any:
    import ibis

    known = {
        "smallint": "int16",
        "integer": "int32",
        "bigint": "int64",
        "text": "string",
        "character varying": "string",
        "boolean": "boolean",
        "date": "date",
        "real": "float32",
        "double precision": "float64",
    }
    if kind == "numeric":
        return ibis.dtype("decimal" if precision is None else f"decimal({precision}, {scale})")
    return ibis.dtype(known.get(kind, "binary"))
