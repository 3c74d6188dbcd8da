"""How DuckDB reads columns: its dialect, its own total functions, and its types by family."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from farthing.engine.sources.frames import (
    DAYS_MARK,
    ENCODED_WORDS,
    EXACT,
    FLOAT,
    LOCAL,
    TRUTH,
    WORDS,
    ZONED,
)
from farthing.engine.sources.readers import (
    BYTES,
    DAY,
    INSTANT,
    LONGEST_TEXT,
    MOMENT,
    NUMBER,
    OBJECT,
    OTHER,
    UNIVERSAL,
    WHOLE_NUMBER,
    WIDE,
    Readers,
    shared_readers,
)
from farthing.engine.sources.tables import Physical
from farthing.engine.sql.statement import Dialect, filled
from farthing.schema import BOOLEAN, DATE, DECIMAL, INTEGER, KINDS, REAL, TEXT, TIMESTAMP


@cache
def _compiler() -> Any:
    from ibis.backends.sql.compilers import DuckDBCompiler

    return DuckDBCompiler()


DIALECT = Dialect(
    name="duckdb",
    compiler=_compiler,
    quote='"',
    text="${n}",
    one_of_texts="({x}) IN (SELECT UNNEST(CAST(${n} AS VARCHAR[])))",
    one_of_numbers="({x}) IN (SELECT UNNEST(CAST(${n} AS BIGINT[])))",
    as_bytes="{x}",
    digest="CAST('0x' || left(md5({x}), 7) AS BIGINT)",
    common_table="AS NOT MATERIALIZED",
)

_WHOLE_REAL = "{x} = trunc({x}) AND {x} >= -9223372036854775808.0 AND {x} < 9223372036854775808.0"
_DECIMAL = "TRY_CAST({x} AS DECIMAL(18, {places}))"
#: Whole numbers are written without a fraction, so that a column that became real because one
#: value is missing is the same text.
_REAL_TEXT = (
    "CASE WHEN {x} = trunc({x}) AND abs({x}) < 9007199254740992 "
    "THEN CAST(TRY_CAST({x} AS BIGINT) AS VARCHAR) ELSE CAST(CAST({x} AS DOUBLE) AS VARCHAR) END"
)
#: Without zeros at the end, which are of the type and not of the value.
_WIDE_TEXT = (
    "CASE WHEN contains(CAST({x} AS VARCHAR), '.') "
    "THEN rtrim(rtrim(CAST({x} AS VARCHAR), '0'), '.') ELSE CAST({x} AS VARCHAR) END"
)
_NEAR = (
    "{x} BETWEEN TIMESTAMPTZ '0001-01-01 00:00:00+00' - INTERVAL 2 DAY "
    "AND TIMESTAMPTZ '9999-12-31 00:00:00+00' + INTERVAL 2 DAY"
)
#: What a text says without its zone.
_CLOCK = f"TRY_CAST(regexp_replace(trim({{x}}), '{UNIVERSAL}', '') AS TIMESTAMP)"


def _matching(pattern: str, read: str, of: str = "{x}") -> str:
    """`read` where the text matches."""
    return f"CASE WHEN regexp_full_match({of}, '{pattern}') THEN {read} END"


_OWN: Readers = {
    (INTEGER, WIDE): "CASE WHEN {x} = trunc({x}) THEN TRY_CAST({x} AS BIGINT) END",
    (INTEGER, REAL): f"CASE WHEN {_WHOLE_REAL} THEN TRY_CAST({{x}} AS BIGINT) END",
    (INTEGER, TEXT): _matching(WHOLE_NUMBER, "TRY_CAST({x} AS BIGINT)"),
    (REAL, WIDE): "TRY_CAST({x} AS DOUBLE)",
    (REAL, REAL): "CASE WHEN NOT isnan({x}) THEN CAST({x} AS DOUBLE) END",
    (REAL, TEXT): f"CASE WHEN regexp_full_match({{x}}, '{NUMBER}') "
    "AND isfinite(TRY_CAST({x} AS DOUBLE)) THEN TRY_CAST({x} AS DOUBLE) END",
    **{(DECIMAL, family): _DECIMAL for family in (INTEGER, WIDE, REAL)},
    (DECIMAL, TEXT): _matching(NUMBER, _DECIMAL),
    (TEXT, WIDE): _WIDE_TEXT,
    (TEXT, REAL): _REAL_TEXT,
    (TEXT, BYTES): f"CASE WHEN octet_length({{x}}) <= {LONGEST_TEXT} THEN TRY(decode({{x}})) END",
    (DATE, TIMESTAMP): "TRY_CAST({x} AS DATE)",  # times in nanoseconds have no year 1
    (DATE, TEXT): _matching(DAY, "TRY_CAST(left(trim({x}), 10) AS DATE)", of="trim({x})"),
    (TIMESTAMP, TIMESTAMP): "TRY_CAST({x} AS TIMESTAMP)",
    (TIMESTAMP, TEXT): _matching(
        MOMENT,
        f"CASE WHEN regexp_matches(trim({{x}}), '{UNIVERSAL}') "
        f"THEN timezone('{{zone}}', timezone('UTC', {_CLOCK})) ELSE {_CLOCK} END",
        of="trim({x})",
    ),
}
_TYPED = shared_readers(
    _OWN,
    text="VARCHAR",
    double="DOUBLE",
    clock="TIMESTAMP",
    near=_NEAR,
    local="timezone('{zone}', {x})",
)

#: What each mark says about the text behind it, and how that becomes a value of this family.
_MARKED = (
    (WORDS, TEXT, "substr({x}, 2)"),
    (EXACT, TEXT, "substr({x}, 2)"),
    (ENCODED_WORDS, BYTES, "encode(substr({x}, 2))"),
    (TRUTH, BOOLEAN, "({x} = 'btrue')"),
    (FLOAT, REAL, "TRY_CAST(substr({x}, 2) AS DOUBLE)"),
    (DAYS_MARK, DATE, "TRY_CAST(substr({x}, 2) AS DATE)"),
    (LOCAL, TIMESTAMP, "TRY_CAST(substr({x}, 2) AS TIMESTAMP)"),
    (ZONED, INSTANT, "TRY_CAST(substr({x}, 2) AS TIMESTAMPTZ)"),
)


def _of_objects(kind: str) -> str:
    """Every value as a column of its own type is read."""
    cases = (
        f"WHEN '{mark}' THEN {_TYPED[kind, family].replace('{x}', value)}"
        for mark, family, value in _MARKED
        if (kind, family) in _TYPED
    )
    return f"CASE left({{x}}, 1) {' '.join(cases)} END"


READERS: Readers = {**_TYPED, **{(kind, OBJECT): _of_objects(kind) for kind in KINDS}}

_FAMILIES = {
    "BOOLEAN": BOOLEAN,
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), INTEGER),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER"), INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE"), REAL),
    **dict.fromkeys(("VARCHAR", "JSON", "UUID", "BIGNUM"), TEXT),
    "BLOB": BYTES,
    "DATE": DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), TIMESTAMP),
    "TIMESTAMP WITH TIME ZONE": INSTANT,
}


_EXACT_TYPE = re.compile(r"DECIMAL\(\d+,(\d+)\)")


def physical_column(name: str, sql: str, declared: str, text: str) -> Physical:
    """A column by its declared type; `text` is a template that makes plain text of its text."""
    decimal = _EXACT_TYPE.fullmatch(declared.replace(" ", ""))
    if decimal is not None:
        return Physical(name, declared, WIDE, sql, int(decimal[1]))
    if declared in ("UBIGINT", "HUGEINT", "UHUGEINT"):
        return Physical(name, declared, WIDE, sql, 0)
    if declared == "TIMESTAMPTZ_NS":
        return Physical(name, declared, INSTANT, f"TRY_CAST({sql} AS TIMESTAMPTZ)")
    if declared.startswith("ENUM("):
        return Physical(name, "ENUM", TEXT, f"CAST({sql} AS VARCHAR)")
    family = _FAMILIES.get(declared, OTHER)
    if family == TEXT:
        plain = sql if declared == "VARCHAR" else f"CAST({sql} AS VARCHAR)"
        short = f"CASE WHEN strlen({plain}) <= {LONGEST_TEXT} THEN {filled(text, x=plain)} END"
        return Physical(name, declared, TEXT, short)
    return Physical(name, declared, family, sql)


def text_literal(value: str) -> str:
    """A text of the owner's, such as the path of a file, as SQL."""
    return "'" + value.replace("'", "''") + "'"


def text_literals(values: Sequence[str]) -> str:
    """A list of them."""
    return "[" + ", ".join(map(text_literal, values)) + "]"
