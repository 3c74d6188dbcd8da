"""Files, folders and patterns, and where they really are: on this machine and for Spark."""

from __future__ import annotations

import glob
import os
import posixpath
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from farthing.errors import InvalidInput

#: What is in a pattern and in no name of a file.
WILD = frozenset("*?[{}")
#: Names of one store for Spark, and the port that an address leaves out.
_SAME = {"s3": "s3a", "s3n": "s3a", "wasbs": "wasb", "abfss": "abfs"}
_PORTS = {"hdfs": ":8020"}


def files_of(path: str) -> list[str]:
    """The files that a path, a folder or a pattern stands for, in order."""
    if os.path.isdir(path):
        inside = os.path.join(glob.escape(path), "**", "*.parquet")
        named = sorted(glob.glob(inside, recursive=True))
    elif os.path.exists(path):
        named = [path]
    else:
        named = sorted(glob.glob(path, recursive=True))
    if not named:
        raise InvalidInput(f"there is no file {path!r:.200}")
    odd = next((file for file in named if set(file) & WILD), None)
    if odd is not None:
        raise InvalidInput(f"{odd} has one of * ? [ {{ }} in its name, which are for patterns")
    files = list(dict.fromkeys(os.path.realpath(file) for file in named))
    require_inside((f"file:{file}" for file in files), location_of(path))
    return files


def require_inside(files: Iterable[str], location: str) -> None:
    """Every file is where the location says, or InvalidInput: links do not lead out of it."""
    below = location.removesuffix("/") + "/"
    for file in files:
        if file != location and not file.startswith(below):
            raise InvalidInput(
                f"{title_of(location)} has links to files elsewhere; name the files where they are"
            )


def location_of(path: str) -> str:
    """The file or folder itself, links followed; for a pattern the folder it looks into."""
    path = local_path(path)
    if _is_pattern(path):
        path = _without_pattern(path)
    return f"file:{os.path.realpath(path)}"


def selection_of(path: str) -> str | None:
    """A pattern, as it was given; None for a file or a folder, which are read as a whole."""
    return path if _is_pattern(local_path(path)) else None


def _is_pattern(path: str) -> bool:
    return not os.path.exists(path) and bool(set(path) & WILD)


def is_path_for_spark(text: str) -> bool:
    """Whether Spark reads this as a path or an address; anything else is a table of its
    catalogue."""
    return "/" in text or "\\" in text or text.lower().endswith(".parquet")


def local_path(path: str) -> str:
    """A path on this machine from itself or from its address, file:///…"""
    parts = urlsplit(path)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return unquote(parts.path)
    return path


def title_of(path: str, table: str | None = None) -> str:
    """A name to show for the data: the last part of its path without its ending."""
    stem = Path(path.rstrip("/")).name.split(".")[0] or "table"
    return stem if table is None else f"{stem}.{table}"


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
    table = session.catalog.getTable(name)
    full = "spark:" + ".".join(
        [part for part in (table.catalog, *(table.namespace or []), table.name) if part]
    )
    if table.tableType in ("MANAGED", "EXTERNAL"):
        rows = session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        folder = next((row[1] for row in reversed(rows) if row[0] == "Location"), None)
        return (full, None) if folder is None else (spark_location(folder), None)
    files = [spark_location(file) for file in frame.inputFiles()]
    if files:
        return _common(files), full
    return (None if table.isTemporary else full), None


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
