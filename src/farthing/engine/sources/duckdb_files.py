"""A DuckDB in memory: how it reads columns, and the tables of files in it.

Parquet files of one physical schema are read together, others by themselves: a type that is common
to all files would be decided by each of them. What a path says, /user=01/, is text of that file
alone, whatever the paths of other files say.
"""

from __future__ import annotations

import itertools
import re
import shutil
import tempfile
import weakref
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import PurePath
from typing import Any

from farthing.engine.sources.base import Source, without_trace
from farthing.engine.sources.copies import (
    CSV,
    MARKS,
    OBJECTS,
    SQLITE,
    TYPED,
    UNTYPED,
    Copied,
    csv_rows,
    sqlite_rows,
    sqlite_table,
)
from farthing.engine.sources.files import files_of, location_of, selection_of, title_of
from farthing.engine.sources.tables import (
    BYTES,
    INSTANT,
    LONGEST_TEXT,
    OBJECT,
    OTHER,
    UNIVERSAL,
    WIDE,
    Physical,
    Readers,
    SourcePart,
    SourceTable,
    shared_readers,
)
from farthing.engine.sql.statement import Dialect, filled
from farthing.errors import InvalidInput
from farthing.optional import required
from farthing.schema import BOOLEAN, DATE, DECIMAL, INTEGER, KINDS, REAL, TEXT, TIMESTAMP

DIALECT = Dialect(
    name="duckdb",
    compiler=cache(lambda: required("ibis.backends.sql.compilers").DuckDBCompiler()),
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

_OWN: Readers = {
    (INTEGER, WIDE): "CASE WHEN {x} = trunc({x}) THEN TRY_CAST({x} AS BIGINT) END",
    (INTEGER, REAL): f"CASE WHEN {_WHOLE_REAL} THEN TRY_CAST({{x}} AS BIGINT) END",
    (INTEGER, TEXT): "TRY_CAST({x} AS BIGINT)",
    (REAL, WIDE): "TRY_CAST({x} AS DOUBLE)",
    (REAL, REAL): "CASE WHEN NOT isnan({x}) THEN CAST({x} AS DOUBLE) END",
    (REAL, TEXT): "CASE WHEN isfinite(TRY_CAST({x} AS DOUBLE)) THEN TRY_CAST({x} AS DOUBLE) END",
    **{(DECIMAL, family): _DECIMAL for family in (INTEGER, WIDE, REAL, TEXT)},
    (TEXT, WIDE): _WIDE_TEXT,
    (TEXT, REAL): _REAL_TEXT,
    (TEXT, BYTES): f"CASE WHEN octet_length({{x}}) <= {LONGEST_TEXT} THEN TRY(decode({{x}})) END",
    (DATE, TIMESTAMP): "TRY_CAST({x} AS DATE)",  # times in nanoseconds have no year 1
    (DATE, TEXT): "TRY_CAST(left(trim({x}), 10) AS DATE)",
    (TIMESTAMP, TIMESTAMP): "TRY_CAST({x} AS TIMESTAMP)",
    (TIMESTAMP, TEXT): f"TRY_CAST(regexp_replace(trim({{x}}), '{UNIVERSAL}', '') AS TIMESTAMP)",
}
_TYPED = shared_readers(
    _OWN,
    matching="regexp_full_match({x}, '{pattern}')",
    text="VARCHAR",
    double="DOUBLE",
    clock="TIMESTAMP",
    near=_NEAR,
    local="timezone('{zone}', {x})",
    utc="timezone('UTC', {x})",
)


def _of_objects(kind: str) -> str:
    """Every value as a column of its own type is read."""
    cases = (
        f"WHEN '{mark}' THEN {_TYPED[kind, family].replace('{x}', value)}"
        for mark, (family, value) in MARKS.items()
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


def text_literals(values: Sequence[str]) -> str:
    """Texts of the owner's, such as the paths of files, as SQL."""
    return "[" + ", ".join(map(Source.literal, values)) + "]"


PARQUET = (".parquet", ".pq")
DUCKDB = (".duckdb", ".ddb")
_ENDINGS = (*PARQUET, *CSV, *DUCKDB, *SQLITE)
#: Share of the machine's memory that DuckDB may use before it spills to disk.
MEMORY = "60%"
#: With much less, whether a statement fails could depend on a single row.
LEAST_MEMORY = 256e6

#: How text becomes plain text. In a Parquet file, bytes that are no text are read as question
#: marks; the detour keeps DuckDB from comparing with the file's statistics, which are about the
#: bytes: whether a row passes a filter may not depend on the rows around it.
_PLAIN, _OF_TABLE, _OF_PARQUET = "{x}", "({x} COLLATE c)", "decode(encode({x}))"
#: Not a number is not in the statistics either.
_OPTIONS = "utf8_validation = 'replace', can_have_nan = true"
#: What decides how a column of a Parquet file is read.
_FACTS = (
    "name, type, type_length, num_children, converted_type, scale, precision, logical_type, "
    "CASE WHEN repetition_type = 'REPEATED' THEN 1 END"
)
#: What is longer behind its mark is missing.
_LONGEST = LONGEST_TEXT + 1
_PARTITION = re.compile(r"([^=]+)=([^=]*)")


class Database:
    """A connection, the tables in it, and the folder that it spills to, which goes with it.

    `files` are those that it must go on reading.
    """

    def __init__(self, memory: str | None, threads: int | None = None) -> None:
        if memory is not None and not _enough(memory):
            raise InvalidInput(f'memory must be an amount of at least "256MB", got {memory!r:.40}')
        duckdb = required("duckdb")
        spill = tempfile.mkdtemp(prefix="farthing-spill-")
        self._clean = weakref.finalize(self, shutil.rmtree, spill, ignore_errors=True)
        config = {
            "temp_directory": spill,
            "autoinstall_known_extensions": "false",
            "default_collation": "",
            "memory_limit": memory or MEMORY,
            **({} if threads is None else {"threads": threads}),
        }
        try:
            self._connection = duckdb.connect(":memory:", config=config)
        except duckdb.Error:
            self._clean()
            raise InvalidInput(
                f'memory must be an amount such as "8GB", got {memory!r:.40}'
            ) from None
        self.execute, self.cursor = self._connection.execute, self._connection.cursor
        self.execute("SET TimeZone = 'UTC'")
        self.files: list[str] = []
        self._attached: dict[str, str] = {}
        self._tables = itertools.count()

    def close(self) -> None:
        """Close it, and remove what it spilled."""
        self._connection.close()
        self._clean()

    def lock(self) -> None:
        """From now on only `files` can be read, and no setting can be changed."""
        self.execute(f"SET allowed_paths = {text_literals(self.files)}")
        self.execute("SET enable_external_access = false")
        self.execute("SET lock_configuration = true")

    def table(self, path: str, table: str | None) -> SourceTable:
        """The table of a path, or InvalidInput."""
        files = files_of(path)
        ending = next((end for end in _ENDINGS if files[0].lower().endswith(end)), None)
        if ending is None:
            known = ", ".join(_ENDINGS)
            raise InvalidInput(f"a file must end in one of {known}, got {title_of(files[0])!r:.80}")
        if ending in DUCKDB + SQLITE and table is None:
            raise InvalidInput(
                f"{title_of(path)} is a database: say which of its tables to read with table= "
                "(--table on the command line)"
            )
        shown = title_of(path, table)
        return without_trace(
            lambda: self._opened(path, files, ending, table),
            InvalidInput(
                f"{shown} could not be read as {ending[1:]}: the file is damaged, or is something "
                "else, or may not be read; the owner's log says which (--log FILE)"
            ),
            f"the source {shown} could not be opened",
        )

    def copy(self, rows: Copied) -> SourcePart:
        """A table of our own, with columns c0, c1, …; text that is not UTF-8 is missing in it."""
        import pyarrow as pa

        relation, cursor = self._name(), self.cursor()
        cursor.register("given", pa.RecordBatchReader.from_batches(rows.schema, rows.parts))
        reads = [
            f"c{i}" if way == TYPED else f"TRY(decode(c{i})) AS c{i}"
            for i, way in enumerate(rows.ways)
        ]
        cursor.execute(f"CREATE TABLE {relation} AS SELECT {', '.join(reads)} FROM given")
        cursor.unregister("given")
        described = cursor.execute(f"DESCRIBE {relation}").fetchall()
        cursor.close()
        columns = tuple(
            Physical(
                column,
                "object",
                OBJECT,
                f"CASE WHEN strlen({row[0]}) <= {_LONGEST} THEN {row[0]} END",
            )
            if way == OBJECTS
            else physical_column(column, row[0], row[1], _PLAIN)
            for column, way, row in zip(rows.names, rows.ways, described, strict=True)
        )
        ways = zip(rows.names, rows.ways, strict=True)
        untyped = frozenset(column for column, way in ways if way in (UNTYPED, OBJECTS))
        return SourcePart(relation, columns, untyped)

    def _name(self) -> str:
        """Of a new relation: source, source_1_, …"""
        number = next(self._tables)
        return f"source_{number}_" if number else "source"

    def _opened(self, path: str, files: list[str], ending: str, table: str | None) -> SourceTable:
        location, name, selection = location_of(path), title_of(path, table), selection_of(path)
        if ending in CSV:
            return SourceTable(name, location, (self.copy(csv_rows(files)),), selection)
        if ending in SQLITE:
            spelled = sqlite_table(files[0], str(table))
            part = self.copy(sqlite_rows(files[0], spelled))
            return SourceTable(name, f"{location}#{spelled}", (part,))
        self.files += files
        if ending in PARQUET:
            return SourceTable(name, location, tuple(self._parquet_parts(files)), selection)
        schema, spelled, part = self._in_file(files[0], str(table))
        location += f"#{spelled}" if schema == "main" else f"#{schema}.{spelled}"
        return SourceTable(name, location, (part,), selection)

    def _in_file(self, file: str, table: str) -> tuple[str, str, SourcePart]:
        """Schema, name and rows of a table of a DuckDB file, which is attached once.

        Names are as the file spells them; case is not told apart.
        """
        if file not in self._attached:
            alias = f"file{len(self._attached)}"
            self.execute(f"ATTACH {Source.literal(file)} AS {alias} (READ_ONLY)")
            self._attached[file] = alias
        alias = self._attached[file]
        named = self.execute(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_catalog = $2 AND (lower(table_name) = lower($1) "
            "OR lower(table_schema || '.' || table_name) = lower($1)) "
            "ORDER BY table_schema = 'main' DESC, table_schema, table_name",
            [table, alias],
        ).fetchone()
        if named is None:
            raise InvalidInput(f"there is no table {table!r:.80}")
        schema, spelled = map(str, named)
        relation = f"{alias}.{DIALECT.identifier(schema)}.{DIALECT.identifier(spelled)}"
        return schema, spelled, self._described(relation, _OF_TABLE)

    def _described(self, relation: str, text: str) -> SourcePart:
        columns = (
            physical_column(row[0], DIALECT.identifier(row[0]), row[1], text)
            for row in self.execute(f"DESCRIBE {relation}").fetchall()
        )
        return SourcePart(relation, tuple(columns))

    def _parquet_parts(self, files: Sequence[str]) -> list[SourcePart]:
        """A view for each physical schema, and what its columns are."""
        parts, view = [], self._name()
        for i, (names, group) in enumerate(self._parquet_groups(files)):
            options = f"{_OPTIONS}, hive_partitioning = {'true' if names else 'false'}"
            if names:
                types = ", ".join(f"{DIALECT.identifier(name)}: VARCHAR" for name in names)
                options += f", hive_types_autocast = false, hive_types = {{{types}}}"
            relation = f"{view}{i or ''}"
            rows = f"read_parquet({text_literals(group)}, {options})"
            self.execute(f"CREATE VIEW {relation} AS SELECT * FROM {rows}")
            parts.append(self._described(relation, _OF_PARQUET))
        return parts

    def _parquet_groups(self, files: Sequence[str]) -> list[tuple[tuple[str, ...], list[str]]]:
        """Files by what they hold and by the names in their paths, with those names."""
        schemas: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        asked = f"SELECT file_name, {_FACTS} FROM parquet_schema({text_literals(files)})"
        for file, *facts in self.execute(asked).fetchall():
            schemas[file].append(tuple(facts))
        groups: dict[object, tuple[tuple[str, ...], list[str]]] = {}
        for file in files:
            own = {str(fact[0]).casefold() for fact in schemas[file]}
            names = _partitions(file)
            if len({name.casefold() for name in names} - own) != len(names):
                names = ()  # a column in the file is the file's
            groups.setdefault((names, tuple(schemas[file])), (names, []))[1].append(file)
        return list(groups.values())


def _partitions(file: str) -> tuple[str, ...]:
    """The names in the folders of a path such as /data/year=2013/month=1/rows.parquet."""
    parts = (_PARTITION.fullmatch(part) for part in PurePath(file).parts[:-1])
    return tuple(part[1] for part in parts if part is not None)


def _enough(memory: str) -> bool:
    """A share of the machine's memory, or an amount that is no trap for single rows."""
    amount = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%|[KMGT]i?B)\s*", memory, flags=re.IGNORECASE)
    if amount is None:
        return False
    number, unit = float(amount[1]), amount[2].upper()
    if unit == "%":
        return number >= 10
    return number * 1000.0 ** ("KMGT".index(unit[0]) + 1) >= LEAST_MEMORY
