"""How Spark reads columns. Text is checked to be UTF-8 and loses its collation first."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from farthing.engine.sources.base import (
    BYTES,
    DAY,
    DAYS,
    FALSE,
    INSTANT,
    LONGEST_TEXT,
    MOMENT,
    NUMBER,
    OTHER,
    TRUE,
    UNIVERSAL,
    WHOLE,
    WIDE,
    Readers,
)
from farthing.engine.sources.tables import Physical
from farthing.engine.sql.statement import Dialect
from farthing.schema import BOOLEAN, DATE, DECIMAL, INTEGER, REAL, TEXT, TIMESTAMP


@contextmanager
def without_warnings() -> Iterator[None]:
    """PySpark warns about the version of pandas; we take Arrow from it, never pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        yield


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
_SIGN = "CASE WHEN {x} = 0 THEN false WHEN {x} = 1 THEN true END"
#: Not so far away that no zone has a day for it.
_NEAR = (
    "{x} BETWEEN TIMESTAMP '0000-12-29 00:00:00' "
    "AND TIMESTAMP '9999-12-31 23:59:59.999999' + INTERVAL '2' DAY"
)
#: What a text says without its zone.
_CLOCK = f"try_cast(regexp_replace(trim({{x}}), '{UNIVERSAL}', '') AS TIMESTAMP_NTZ)"


def _matching(pattern: str, read: str, of: str = "{x}") -> str:
    """`read` where the text matches; raw, so that nothing in the pattern is an escape."""
    return f"CASE WHEN {of} RLIKE r'\\A(?:{pattern})\\z' THEN {read} END"


READERS: Readers = {
    (INTEGER, INTEGER): "CAST({x} AS BIGINT)",
    (INTEGER, WIDE): "CASE WHEN {x} = floor({x}) THEN try_cast({x} AS BIGINT) END",
    (INTEGER, REAL): _WHOLE_REAL,
    (INTEGER, BOOLEAN): "CAST({x} AS BIGINT)",
    (INTEGER, TEXT): _matching(WHOLE, "try_cast(try_cast(trim({x}) AS DECIMAL(38, 0)) AS BIGINT)"),
    (INTEGER, OTHER): "CAST({x} AS BIGINT)",
    (REAL, INTEGER): "CAST({x} AS DOUBLE)",
    (REAL, WIDE): "CAST({x} AS DOUBLE)",
    (REAL, REAL): "CASE WHEN NOT isnan({x}) THEN CAST({x} AS DOUBLE) END",
    (REAL, BOOLEAN): "CAST({x} AS DOUBLE)",
    (REAL, TEXT): _matching(
        NUMBER,
        "CASE WHEN abs(try_cast(trim({x}) AS DOUBLE)) <= 1.7976931348623157E308D "
        "THEN try_cast(trim({x}) AS DOUBLE) END",
    ),
    (REAL, OTHER): "CAST({x} AS DOUBLE)",
    (DECIMAL, INTEGER): _DECIMAL,
    (DECIMAL, WIDE): _DECIMAL,
    (DECIMAL, REAL): _DECIMAL,
    (DECIMAL, BOOLEAN): "try_cast(CAST({x} AS INT) AS DECIMAL(18, {places}))",
    (DECIMAL, TEXT): _matching(NUMBER, "try_cast(trim({x}) AS DECIMAL(18, {places}))"),
    (DECIMAL, OTHER): "CAST({x} AS DECIMAL(18, {places}))",
    (TEXT, INTEGER): "CAST({x} AS STRING)",
    (TEXT, WIDE): _WIDE_TEXT,
    (TEXT, REAL): _REAL_TEXT,
    (TEXT, BOOLEAN): "CASE WHEN {x} THEN 'true' WHEN NOT {x} THEN 'false' END",
    (TEXT, TEXT): "{x}",
    (TEXT, BYTES): f"CASE WHEN octet_length({{x}}) <= {LONGEST_TEXT} "
    "THEN try_validate_utf8(CAST({x} AS STRING)) END",
    (TEXT, DATE): f"CASE WHEN {{x}} BETWEEN {DAYS} THEN CAST({{x}} AS STRING) END",
    (TEXT, OTHER): "CAST({x} AS STRING)",
    (BOOLEAN, BOOLEAN): "{x}",
    (BOOLEAN, INTEGER): _SIGN,
    (BOOLEAN, WIDE): _SIGN,
    (BOOLEAN, REAL): _SIGN,
    (BOOLEAN, TEXT): f"CASE WHEN lower(trim({{x}})) IN {TRUE} THEN true "
    f"WHEN lower(trim({{x}})) IN {FALSE} THEN false END",
    (BOOLEAN, OTHER): "CAST({x} AS BOOLEAN)",
    (DATE, DATE): "{x}",
    (DATE, TIMESTAMP): "CASE WHEN {x} BETWEEN TIMESTAMP_NTZ '0001-01-01 00:00:00' "
    "AND TIMESTAMP_NTZ '9999-12-31 23:59:59.999999' THEN CAST({x} AS DATE) END",
    (DATE, INSTANT): f"CASE WHEN {_NEAR} "
    "THEN CAST(from_utc_timestamp({x}, '{zone}') AS DATE) END",
    (DATE, TEXT): _matching(DAY, "try_cast(substring(trim({x}), 1, 10) AS DATE)", of="trim({x})"),
    (DATE, OTHER): "CAST({x} AS DATE)",
    (TIMESTAMP, TIMESTAMP): "{x}",
    (TIMESTAMP, INSTANT): f"CASE WHEN {_NEAR} "
    "THEN CAST(from_utc_timestamp({x}, '{zone}') AS TIMESTAMP_NTZ) END",
    (TIMESTAMP, DATE): "CASE WHEN {x} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' "
    "THEN CAST({x} AS TIMESTAMP_NTZ) END",
    (TIMESTAMP, TEXT): _matching(
        MOMENT,
        f"CASE WHEN trim({{x}}) RLIKE '{UNIVERSAL}' "
        f"THEN CAST(from_utc_timestamp(CAST({_CLOCK} AS TIMESTAMP), '{{zone}}') AS TIMESTAMP_NTZ) "
        f"ELSE {_CLOCK} END",
        of="trim({x})",
    ),
    (TIMESTAMP, OTHER): "CAST({x} AS TIMESTAMP_NTZ)",
}

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
