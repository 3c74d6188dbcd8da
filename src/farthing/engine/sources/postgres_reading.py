"""How PostgreSQL reads columns. It has no cast that cannot fail, so a CASE stands before each."""

from __future__ import annotations

from functools import cache
from typing import Any

from farthing.engine.sources.readers import (
    DAY,
    INSTANT,
    LONGEST_TEXT,
    MOMENT,
    NUMBER,
    OTHER,
    UNIVERSAL,
    WHOLE_NUMBER,
    WIDE,
    shared_readers,
)
from farthing.engine.sources.tables import Physical
from farthing.engine.sql.statement import Dialect
from farthing.schema import BOOLEAN, DATE, DECIMAL, INTEGER, REAL, TEXT, TIMESTAMP


@cache
def _compiler() -> Any:
    from ibis.backends.sql.compilers import PostgresCompiler

    return PostgresCompiler()


DIALECT = Dialect(
    name="postgres",
    compiler=_compiler,
    quote='"',
    text="CAST(${n} AS text)",
    one_of_texts="({x}) = ANY(CAST(${n} AS text[]))",
    one_of_numbers="({x}) = ANY(CAST(${n} AS bigint[]))",
    as_bytes='({x}) COLLATE "C"',
    digest="CAST(CAST('x0' || left(md5({x}), 7) AS bit(32)) AS bigint)",
    common_table="AS NOT MATERIALIZED",
)

_WHOLE_NUMERIC = (
    "CASE WHEN {x} BETWEEN -9223372036854775808 AND 9223372036854775807 "
    "THEN CASE WHEN {x} = trunc({x}) THEN CAST({x} AS bigint) END END"
)
_WHOLE_FLOAT = (
    "CASE WHEN {x} >= CAST(-9223372036854775808 AS float8) "
    "AND {x} < CAST(9223372036854775808 AS float8) "
    "THEN CASE WHEN {x} = trunc(CAST({x} AS float8)) THEN CAST({x} AS bigint) END END"
)
#: NaN and Infinity are larger than every number; what is too small for a float is 0.
_FLOAT = (
    "CASE WHEN abs({x}) < 1e-300 THEN CAST(0 AS float8) "
    "WHEN abs({x}) <= 1.7976931348623157e308 THEN CAST({x} AS float8) END"
)
_DECIMAL = (
    "CASE WHEN abs({x}) < {edge} THEN CASE WHEN abs(round(CAST({x} AS numeric), {places})) < {edge}"
    " THEN CAST({x} AS numeric(18, {places})) END END"
)
#: Whole numbers are written without a fraction, as on the other engines.
_REAL_TEXT = (
    "CASE WHEN {x} = trunc(CAST({x} AS float8)) AND abs({x}) < 9007199254740992 "
    "THEN CAST(CAST({x} AS bigint) AS text) ELSE CAST(CAST({x} AS float8) AS text) END"
)
_PARSED = "CAST(btrim({x}) AS numeric)"
_YEAR = "CAST(substr(btrim({x}), 1, 4) AS integer)"
_MONTH = "CAST(substr(btrim({x}), 6, 2) AS integer)"
_OF_MONTH = "CAST(substr(btrim({x}), 9, 2) AS integer)"
_LENGTH = (
    f"CASE WHEN {_MONTH} IN (4, 6, 9, 11) THEN 30 WHEN {_MONTH} <> 2 THEN 31 "
    f"WHEN {_YEAR} % 4 = 0 AND ({_YEAR} % 100 <> 0 OR {_YEAR} % 400 = 0) THEN 29 ELSE 28 END"
)
_IS_DAY = f"{_YEAR} >= 1 AND {_MONTH} BETWEEN 1 AND 12 AND {_OF_MONTH} BETWEEN 1 AND {_LENGTH}"
#: Not so far away that no zone has a day for it.
_NEAR = (
    "{x} BETWEEN TIMESTAMPTZ '0002-01-01 00:00:00+00 BC' AND TIMESTAMPTZ '10001-01-01 00:00:00+00'"
)
#: What a text says without its zone.
_CLOCK = f"CAST(replace(regexp_replace(btrim({{x}}), '{UNIVERSAL}', ''), 'T', ' ') AS timestamp)"


def _numeric(pattern: str, template: str) -> str:
    """The template for numbers, behind a test that the text is one."""
    number = template.replace("{x}", _PARSED)
    return f"CASE WHEN {{x}} ~ '^{pattern}$' THEN {number} END"


READERS = shared_readers(
    {
        (INTEGER, WIDE): _WHOLE_NUMERIC,
        (INTEGER, REAL): _WHOLE_FLOAT,
        (INTEGER, TEXT): _numeric(WHOLE_NUMBER, _WHOLE_NUMERIC),
        (REAL, WIDE): _FLOAT,
        (REAL, REAL): "CASE WHEN {x} <> CAST('NaN' AS float8) THEN CAST({x} AS float8) END",
        (REAL, TEXT): _numeric(NUMBER, _FLOAT),
        (DECIMAL, INTEGER): _DECIMAL.replace("{x}", "CAST({x} AS numeric)"),
        (DECIMAL, WIDE): _DECIMAL,
        (DECIMAL, REAL): _DECIMAL,
        (DECIMAL, TEXT): _numeric(NUMBER, _DECIMAL),
        (TEXT, WIDE): "CAST(trim_scale({x}) AS text)",
        (TEXT, REAL): _REAL_TEXT,
        (DATE, TEXT): f"CASE WHEN btrim({{x}}) ~ '^{DAY}$' THEN CASE WHEN {_IS_DAY} "
        f"THEN make_date({_YEAR}, {_MONTH}, {_OF_MONTH}) END END",
        (TIMESTAMP, TEXT): f"CASE WHEN btrim({{x}}) ~ '^{MOMENT}$' THEN CASE WHEN {_IS_DAY} "
        f"THEN CASE WHEN btrim({{x}}) ~ '{UNIVERSAL}' "
        f"THEN timezone('{{zone}}', timezone('UTC', {_CLOCK})) ELSE {_CLOCK} END END END",
    },
    text="text",
    double="float8",
    clock="timestamp",
    near=_NEAR,
    local="timezone('{zone}', {x})",
)


def physical_column(name: str, declared: str, modifier: int, enum: bool) -> Physical:
    """A column by its declared type, without and with its modifier."""
    sql = DIALECT.identifier(name)
    if declared == "oid":  # it can be cast to few types
        return Physical(name, declared, INTEGER, f"CAST({sql} AS bigint)")
    family = TEXT if enum else _family(declared)
    if family == TEXT:
        text = f"CAST({sql} AS text)"
        short = f"CASE WHEN octet_length({text}) <= {LONGEST_TEXT} THEN {text} END"
        return Physical(name, declared, TEXT, f'({short} COLLATE "C")')
    if family == WIDE and modifier >= 4:
        # eleven bits with a sign: numeric(5, -3) has places too
        return Physical(name, declared, WIDE, sql, (((modifier - 4) & 2047) ^ 1024) - 1024)
    return Physical(name, declared, family, sql)


def _family(declared: str) -> str:
    """What Ibis makes of the type, in our families."""
    from ibis.backends.sql.datatypes import PostgresType

    if declared == "money":  # its text depends on a locale
        return OTHER
    try:
        kind = PostgresType.from_string(declared)
    except Exception:  # a type that Ibis cannot parse is one that nobody can ask about
        return OTHER
    if kind.is_timestamp():
        return INSTANT if kind.timezone is not None else TIMESTAMP
    tests = (
        (kind.is_boolean(), BOOLEAN),
        (kind.is_integer(), INTEGER),
        (kind.is_decimal(), WIDE),
        (kind.is_floating(), REAL),
        (kind.is_string() or kind.is_uuid(), TEXT),
        (kind.is_date(), DATE),
    )
    return next((family for holds, family in tests if holds), OTHER)
