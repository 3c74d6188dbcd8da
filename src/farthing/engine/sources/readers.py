"""How columns are read: one total function for each kind of the schema and each type of an engine.

An engine's own types are sorted into families. For a kind and a family there is one template of
SQL that no value can make fail; a pair without a template is missing everywhere. Most templates
are the same on every engine and are written here; each engine adds its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from farthing.schema import BOOLEAN, DATE, DECIMAL, DIGITS, INTEGER, REAL, TEXT, TIMESTAMP

#: Families of types besides those that have the name of a kind. `OBJECT`: texts that start with a
#: mark of the type that each of them has. `OTHER`: everything that nobody can ask about.
WIDE, BYTES, INSTANT, OBJECT, OTHER = "wide", "bytes", "instant", "object", "other"
#: Text of more bytes than this is missing, so that no engine fails on what it makes of it.
LONGEST_TEXT = 1 << 20

#: (kind of the schema, family of the engine's type) → template with {x} for the column, {places},
#: {zone} and {edge} (what a decimal is less than) for what the schema says.
Readers: TypeAlias = Mapping[tuple[str, str], str]

#: What texts are read as numbers, whole numbers and days: the same on every engine.
NUMBER = "[ ]*[+-]?([0-9]{1,200}([.][0-9]{0,200})?|[.][0-9]{1,200})([eE][+-]?[0-9]{1,3})?[ ]*"
WHOLE_NUMBER = "[ ]*[+-]?[0-9]{1,200}([.]0{0,200})?[ ]*"
DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:.Z+-]*)?"
#: Times of no zone, and of UTC, which ends in Z or +00.
MOMENT = (
    "[0-9]{4}-[0-9]{2}-[0-9]{2}([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
    "(Z|[+]00(:?00)?)?)?"
)
UNIVERSAL = "(Z|[+]00(:?00)?)$"
#: The days that a date can be, and the times that a timestamp can be, as SQL.
DAYS = "DATE '0001-01-01' AND DATE '9999-12-31'"
TIMES = "{type} '0001-01-01 00:00:00' AND {type} '9999-12-31 23:59:59.999999'"
_TRUE, _FALSE = "('true', 't', 'yes', 'y', '1')", "('false', 'f', 'no', 'n', '0')"
_SIGN = "CASE WHEN {x} = 0 THEN false WHEN {x} = 1 THEN true END"


def shared_readers(
    own: Readers, *, text: str, double: str, clock: str, near: str, local: str
) -> Readers:
    """An engine's own templates, and those that are the same everywhere.

    `text`, `double` and `clock` are the engine's names of the types of text, 64-bit floats and
    times without a zone. `near` is true of instants for which every zone has a day; `local` is the
    time of an instant in {zone}. `own` must read numbers and texts as numbers, real numbers as
    text, and texts as days and times; what it says goes before what is said here.
    """
    types = {
        INTEGER: "BIGINT",
        REAL: double,
        DECIMAL: f"DECIMAL({DIGITS}, {{places}})",
        TEXT: text,
        BOOLEAN: "BOOLEAN",
        DATE: "DATE",
        TIMESTAMP: clock,
    }
    times = TIMES.replace("{type}", clock)
    return {
        **{(kind, OTHER): f"CAST(NULL AS {name})" for kind, name in types.items()},
        (INTEGER, INTEGER): "CAST({x} AS BIGINT)",
        (INTEGER, BOOLEAN): "CAST(CAST({x} AS INTEGER) AS BIGINT)",
        (REAL, INTEGER): f"CAST({{x}} AS {double})",
        (REAL, BOOLEAN): f"CAST(CAST({{x}} AS INTEGER) AS {double})",
        (DECIMAL, BOOLEAN): own[DECIMAL, INTEGER].replace("{x}", "CAST({x} AS INTEGER)"),
        (TEXT, INTEGER): f"CAST({{x}} AS {text})",
        (TEXT, BOOLEAN): "CASE WHEN {x} THEN 'true' WHEN NOT {x} THEN 'false' END",
        (TEXT, TEXT): "{x}",
        (TEXT, DATE): f"CASE WHEN {{x}} BETWEEN {DAYS} THEN CAST({{x}} AS {text}) END",
        (BOOLEAN, BOOLEAN): "{x}",
        **{(BOOLEAN, number): _SIGN for number in (INTEGER, WIDE, REAL)},
        (BOOLEAN, TEXT): f"CASE WHEN lower(trim({{x}})) IN {_TRUE} THEN true "
        f"WHEN lower(trim({{x}})) IN {_FALSE} THEN false END",
        (DATE, DATE): "{x}",
        (DATE, TIMESTAMP): f"CASE WHEN {{x}} BETWEEN {times} THEN CAST({{x}} AS DATE) END",
        (DATE, INSTANT): f"CASE WHEN {near} THEN CAST({local} AS DATE) END",
        (TIMESTAMP, TIMESTAMP): "{x}",
        (TIMESTAMP, INSTANT): f"CASE WHEN {near} THEN {local} END",
        (TIMESTAMP, DATE): f"CASE WHEN {{x}} BETWEEN {DAYS} THEN CAST({{x}} AS {clock}) END",
        **own,
    }
