"""Parquet files on DuckDB: files of one physical schema are read together, others by themselves.

A type that is common to all files would be decided by each of them. And what a path says,
/user=01/, is text of that file alone, whatever the paths of other files say.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from farthing.engine.sources.duckdb_reading import DIALECT, physical_column, text_literals
from farthing.engine.sources.tables import SourcePart

#: Bytes that are no text are read as question marks; the detour keeps DuckDB from comparing with
#: the file's statistics, which are about the bytes: whether a row passes a filter may not depend
#: on the rows around it. Not a number is not in the statistics either.
_TEXT = "decode(encode({x}))"
_OPTIONS = "utf8_validation = 'replace', can_have_nan = true"
#: What decides how a column of a file is read.
_FACTS = (
    "name, type, type_length, num_children, converted_type, scale, precision, logical_type, "
    "CASE WHEN repetition_type = 'REPEATED' THEN 1 END"
)
_PARTITION = re.compile(r"([^=]+)=([^=]*)")


def parquet_parts(connection: Any, files: Sequence[str], view: str) -> list[SourcePart]:
    """A view for each physical schema, and what its columns are."""
    parts = []
    for i, (names, group) in enumerate(_groups(connection, files)):
        options = f"{_OPTIONS}, hive_partitioning = {'true' if names else 'false'}"
        if names:
            types = ", ".join(f"{DIALECT.identifier(name)}: VARCHAR" for name in names)
            options += f", hive_types_autocast = false, hive_types = {{{types}}}"
        relation = f"{view}{i or ''}"
        rows = f"read_parquet({text_literals(group)}, {options})"
        connection.execute(f"CREATE VIEW {relation} AS SELECT * FROM {rows}")
        described = connection.execute(f"DESCRIBE {relation}").fetchall()
        columns = (
            physical_column(row[0], DIALECT.identifier(row[0]), row[1], _TEXT) for row in described
        )
        parts.append(SourcePart(relation, tuple(columns)))
    return parts


def _groups(connection: Any, files: Sequence[str]) -> list[tuple[tuple[str, ...], list[str]]]:
    """Files by what they hold and by the names in their paths, with those names."""
    found: dict[object, tuple[tuple[str, ...], list[str]]] = {}
    schemas = _schemas(connection, files)
    for file in files:
        own = {str(fact[0]).casefold() for fact in schemas[file]}
        names = _partitions(file)
        if len({name.casefold() for name in names} - own) != len(names):
            names = ()  # a column in the file is the file's
        key = (names, tuple(schemas[file]))
        found.setdefault(key, (names, []))[1].append(file)
    return list(found.values())


def _schemas(connection: Any, files: Sequence[str]) -> dict[str, list[tuple[Any, ...]]]:
    asked = f"SELECT file_name, {_FACTS} FROM parquet_schema({text_literals(files)})"
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for file, *facts in connection.execute(asked).fetchall():
        found[file].append(tuple(facts))
    return found


def _partitions(file: str) -> tuple[str, ...]:
    """The names in the folders of a path such as /data/year=2013/month=1/rows.parquet."""
    parts = (_PARTITION.fullmatch(part) for part in PurePath(file).parts[:-1])
    return tuple(part[1] for part in parts if part is not None)
