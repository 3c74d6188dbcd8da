"""Where Spark's rows are: files by their own address, whichever name they were asked for by."""

from __future__ import annotations

import posixpath
from typing import Any
from urllib.parse import unquote, urlsplit

from farthing.engine.sources.files import WILD, location_of
from farthing.errors import InvalidInput

#: Names of one store, and the port that an address leaves out.
_SAME = {"s3": "s3a", "s3n": "s3a", "wasbs": "wasb", "abfss": "abfs"}
_PORTS = {"hdfs": ":8020"}


def spark_location(path: str) -> str:
    """As DuckDB has it for files of this machine; elsewhere the address in one spelling.

    For a pattern it is the folder that the pattern looks into, whether or not a file is called
    like the pattern: Spark does not ask.
    """
    parts = urlsplit(path)
    if "\\" in path:
        raise InvalidInput("an address for Spark cannot have a backslash in it")
    scheme = parts.scheme.lower()
    if scheme in ("", "file"):
        return location_of(_without_pattern(path))
    if not parts.netloc:
        raise InvalidInput(f"an address must name its host, as in {scheme}://host/folder")
    # what urlsplit takes for a query is a pattern or a part of a name
    whole = path.split("//", 1)[-1].partition("/")[2]
    resolved = posixpath.normpath("/" + _without_pattern(unquote(whole)).lstrip("/"))
    host = parts.netloc.lower().removesuffix(_PORTS.get(scheme, ":"))
    return f"spark:{_SAME.get(scheme, scheme)}://{host}{resolved.rstrip('/')}"


def spark_selection(path: str) -> str | None:
    """A pattern, as it was given; None for a file or a folder."""
    return path if set(path) & WILD else None


def location_of_table(session: Any, frame: Any, name: str) -> tuple[str | None, str | None]:
    """Location and selection of a table or view of the catalogue.

    A table of files is its folder. A view is somewhere in the folder that has all of its files; a
    view of no files that only this session has is nowhere.
    """
    found = session.catalog.getTable(name)
    full = "spark:" + ".".join(
        [part for part in (found.catalog, *(found.namespace or []), found.name) if part]
    )
    if found.tableType in ("MANAGED", "EXTERNAL"):
        rows = session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        folder = next((row[1] for row in reversed(rows) if row[0] == "Location"), None)
        return (full, None) if folder is None else (spark_location(folder), None)
    files = [spark_location(file) for file in frame.inputFiles()]
    if files:
        return _common(files), full
    return (None if found.isTemporary else full), None


def _common(locations: list[str]) -> str:
    """The file, or the folder that has all of these files."""
    kept = []
    for parts in zip(*(location.split("/") for location in locations), strict=False):
        if len(set(parts)) != 1:
            break
        kept.append(parts[0])
    if kept == ["file:"]:
        return "file:/"
    if not kept or not kept[-1]:
        raise InvalidInput("a view must be of files in one place")
    return "/".join(kept)


def _without_pattern(path: str) -> str:
    """The folder that a pattern looks into; any other path as it is."""
    parts = path.split("/")
    wild = next((i for i, part in enumerate(parts) if set(part) & WILD), None)
    return path if wild is None else "/".join(parts[:wild]) or ("/" if path[0] == "/" else ".")
