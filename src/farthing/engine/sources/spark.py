"""Spark, for data past one machine: Parquet files, tables of its catalogue, and data frames.

Text is checked to be UTF-8 and loses its collation before anything else is made of it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from farthing.engine.sources.base import Source, without_trace
from farthing.engine.sources.files import (
    is_path_for_spark,
    local_path,
    location_of_table,
    require_inside,
    spark_location,
    spark_selection,
    title_of,
)
from farthing.engine.sources.spark_session import (
    force,
    is_address,
    quiet,
    session_of,
    without_warnings,
)
from farthing.engine.sources.tables import (
    BYTES,
    INSTANT,
    LONGEST_TEXT,
    OTHER,
    UNIVERSAL,
    WIDE,
    Physical,
    PublicJoin,
    SourcePart,
    SourceTable,
    shared_readers,
)
from farthing.engine.sql.statement import Dialect, Statement
from farthing.errors import InvalidInput
from farthing.schema import BOOLEAN, DATE, DECIMAL, INTEGER, REAL, TEXT, TIMESTAMP

if TYPE_CHECKING:
    import pyarrow as pa

_Opened = TypeVar("_Opened")
#: A data frame, its name, and location and selection of its rows.
_Frame: TypeAlias = tuple[Any, str, str | None, str | None]


@cache
def _compiler() -> Any:
    import ibis
    from ibis.backends.sql.compilers import PySparkCompiler

    with without_warnings():
        _ = ibis.pyspark  # loads the options that the compiler looks at
    return PySparkCompiler()


DIALECT = Dialect(
    name="pyspark",
    compiler=_compiler,
    quote="`",
    text=":p{n}",
    one_of_texts="({x}) IN (SELECT EXPLODE(FROM_JSON(:p{n}, 'array<string>')))",
    one_of_numbers="({x}) IN (SELECT EXPLODE(FROM_JSON(:p{n}, 'array<bigint>')))",
    as_bytes="{x}",
    digest="CAST(conv(left(md5({x}), 7), 16, 10) AS BIGINT)",
    common_table="AS",
)

_WHOLE_REAL = (
    "CASE WHEN {x} = rint({x}) AND {x} >= -9.223372036854775808E18D "
    "AND {x} < 9.223372036854775808E18D THEN try_cast({x} AS BIGINT) END"
)
_DECIMAL = "try_cast({x} AS DECIMAL(18, {places}))"
#: Whole numbers are written without a fraction, and exact ones without zeros at the end, as on the
#: other engines.
_REAL_TEXT = (
    "CASE WHEN {x} = rint({x}) AND abs({x}) < 9007199254740992D "
    "THEN CAST(try_cast({x} AS BIGINT) AS STRING) ELSE CAST(CAST({x} AS DOUBLE) AS STRING) END"
)
_WIDE_TEXT = (
    "CASE WHEN {x} = 0 THEN '0' WHEN CAST({x} AS STRING) RLIKE r'\\A[^E]*[.][^E]*\\z' "
    "THEN rtrim('.', rtrim('0', CAST({x} AS STRING))) ELSE CAST({x} AS STRING) END"
)
_NEAR = (
    "{x} BETWEEN TIMESTAMP '0000-12-29 00:00:00' "
    "AND TIMESTAMP '9999-12-31 23:59:59.999999' + INTERVAL '2' DAY"
)
_LOCAL = "CAST(from_utc_timestamp({x}, '{zone}') AS TIMESTAMP_NTZ)"


READERS = shared_readers(
    {
        (INTEGER, WIDE): "CASE WHEN {x} = floor({x}) THEN try_cast({x} AS BIGINT) END",
        (INTEGER, REAL): _WHOLE_REAL,
        (INTEGER, TEXT): "try_cast(try_cast(trim({x}) AS DECIMAL(38, 0)) AS BIGINT)",
        (REAL, WIDE): "CAST({x} AS DOUBLE)",
        (REAL, REAL): "CASE WHEN NOT isnan({x}) THEN CAST({x} AS DOUBLE) END",
        (REAL, TEXT): "CASE WHEN abs(try_cast(trim({x}) AS DOUBLE)) <= 1.7976931348623157E308D "
        "THEN try_cast(trim({x}) AS DOUBLE) END",
        **{(DECIMAL, family): _DECIMAL for family in (INTEGER, WIDE, REAL)},
        (DECIMAL, TEXT): _DECIMAL.replace("{x}", "trim({x})"),
        (TEXT, WIDE): _WIDE_TEXT,
        (TEXT, REAL): _REAL_TEXT,
        (TEXT, BYTES): f"CASE WHEN octet_length({{x}}) <= {LONGEST_TEXT} "
        "THEN try_validate_utf8(CAST({x} AS STRING)) END",
        (DATE, TEXT): "try_cast(substring(trim({x}), 1, 10) AS DATE)",
        (TIMESTAMP, TEXT): f"try_cast(regexp_replace(trim({{x}}), '{UNIVERSAL}', '') "
        "AS TIMESTAMP_NTZ)",
    },
    matching="{x} RLIKE r'\\A(?:{pattern})\\z'",  # raw: nothing in the pattern is an escape
    text="STRING",
    double="DOUBLE",
    clock="TIMESTAMP_NTZ",
    near=_NEAR,
    local=_LOCAL,
    utc="CAST({x} AS TIMESTAMP)",
)

_FAMILIES = {
    "boolean": BOOLEAN,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), INTEGER),
    **dict.fromkeys(("float", "double"), REAL),
    "binary": BYTES,
    "date": DATE,
    "timestamp_ntz": TIMESTAMP,
    "timestamp": INSTANT,
}
_EXACT = re.compile(r"decimal\(\d+,(\d+)\)")
_TEXT = re.compile(r"string( collate .*)?|(var)?char\(\d+\)( collate .*)?")


def physical_column(name: str, declared: str) -> Physical:
    """A column by its declared type."""
    sql = DIALECT.identifier(name)
    exact = _EXACT.fullmatch(declared)
    if exact is not None:
        return Physical(name, declared, WIDE, sql, int(exact[1]))
    if _TEXT.fullmatch(declared):
        plain = f"try_validate_utf8(collate(CAST({sql} AS STRING), 'UTF8_BINARY'))"
        short = f"CASE WHEN octet_length({sql}) <= {LONGEST_TEXT} THEN {plain} END"
        return Physical(name, declared, TEXT, short)
    return Physical(name, declared, _FAMILIES.get(declared, OTHER), sql)


class SparkSource(Source):
    """Tables in a Spark session."""

    dialect = DIALECT
    readers = READERS
    instant = "TIMESTAMP '2000-01-01 00:00:00'"
    clock = "TIMESTAMP_NTZ"

    def __init__(self, session: Any, frames: Sequence[_Frame], *, own: bool) -> None:
        self._session = session
        self._own = own
        self._views: list[str] = []
        super().__init__([self._table(*frame) for frame in frames])

    def _table(
        self, frame: Any, name: str, location: str | None, selection: str | None
    ) -> SourceTable:
        """Our own name for the table, which goes with the source."""
        view = f"farthing_source_{id(self):x}_{len(self._views)}"
        frame.createOrReplaceTempView(view)
        self._views.append(view)
        failing = _stored_in_milliseconds(frame)
        columns = (
            Physical(field.name, "timestamp in milliseconds", OTHER, "NULL")
            if field.name in failing
            else physical_column(field.name, field.dataType.simpleString())
            for field in frame.schema.fields
        )
        return SourceTable(name, location, (SourcePart(view, tuple(columns)),), selection)

    def public_table(self, join: PublicJoin) -> SourceTable:
        place = join.table
        frame, _, location, selection = _in_words(place, lambda: _opened(self._session, place))
        if selection is not None:
            raise InvalidInput(f"a public table must be a file or a table, got {place:.200}")
        if location is not None and location.startswith("file:") and is_path_for_spark(place):
            place = location.removeprefix("file:")
        return self._table(frame, place, location, None)

    @staticmethod
    def literal(text: str) -> str:
        """Written as bytes: nothing in it can be an escape."""
        return f"CAST(X'{text.encode().hex()}' AS STRING)"

    def fetch(self, statement: Statement) -> pa.Table:
        given = {
            f"p{i}": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for i, value in enumerate(statement.parameters, 1)
        }
        with quiet:
            force(self._session)
            return self._session.sql(statement.sql, args=given).toArrow()

    def shut(self) -> None:
        """A session at an address goes; any other belongs to whoever made it, and only our names
        for the tables go."""
        for view in self._views:
            self._session.catalog.dropTempView(view)
        if self._own:
            self._session.stop()


def open_spark(given: Sequence[Any], spark: Any) -> SparkSource:
    """A source from Parquet files, tables of the catalogue, or a Spark data frame."""
    texts = [os.fspath(data) for data in given if isinstance(data, str | os.PathLike)]
    shown = " and ".join(map(title_of, texts)) or "the data frame"

    def opened() -> SparkSource:
        session = session_of(spark)
        force(session)
        frames = [
            _opened(session, os.fspath(data))
            if isinstance(data, str | os.PathLike)
            else (data, "table", None, None)
            for data in given
        ]
        return SparkSource(session, frames, own=is_address(spark))

    return _in_words(shown, opened)


def _in_words(shown: str, opened: Callable[[], _Opened]) -> _Opened:
    """What is opened, or InvalidInput without a word of what Spark said."""

    def quietly() -> _Opened:
        with quiet:
            return opened()

    failed = InvalidInput(f"{shown} could not be read by Spark; the owner's log says why")
    return without_trace(quietly, failed, f"the source {shown} could not be opened")


def _opened(session: Any, text: str) -> _Frame:
    if is_path_for_spark(text):
        folder, pattern = spark_location(text), spark_selection(text)
        frame = session.read.parquet(text)
        require_inside(map(spark_location, frame.inputFiles()), folder)
        return frame, title_of(text), folder, pattern
    frame, name = session.table(text), text.split(".")[-1].strip("`")
    return frame, name, *location_of_table(session, frame, text)


def _stored_in_milliseconds(frame: Any) -> frozenset[str]:
    """Columns of local Parquet files that Spark may fail to read.

    It multiplies milliseconds by a thousand and raises an error where that is too much, before
    any function of ours sees the value. So the type is refused: it fits no kind.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    failing: set[str] = set()
    for file in map(local_path, frame.inputFiles()):
        if not os.path.isfile(file):
            continue
        try:
            schema = pq.read_schema(file)
        except pa.ArrowException:  # not a Parquet file
            continue
        failing |= {
            field.name
            for field in schema
            if pa.types.is_timestamp(field.type) and field.type.unit in ("s", "ms")
        }
    return frozenset(failing)
