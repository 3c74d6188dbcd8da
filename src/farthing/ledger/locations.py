"""Which data a dataset is: a budget belongs to the data, not to a name.

    file:/data/events.parquet        a file
    file:/data/folder                everything in a folder
    file:/data/base.duckdb#table     a table in a file
    postgresql:SYSTEM/database/schema.table
    spark:catalog.database.table
    spark:s3a://bucket/folder        everything in a folder elsewhere

Whoever reads the data resolves the path (links, relative parts) or asks the server who it is.
"""

from __future__ import annotations

import posixpath

from farthing.errors import InvalidInput

_FILE = "file:"
#: Longer paths than this exist nowhere.
_LONGEST = 5000


def require_location(location: object) -> str:
    """A location that can be compared as text, or InvalidInput."""
    if (
        not isinstance(location, str)
        or not location.isprintable()
        or len(location) > _LONGEST
        or not all(location.partition(":"))
    ):
        raise InvalidInput(f"a location must look like file:/data/events.parquet, got {location!r}")
    path = location.removeprefix(_FILE)
    resolved = path.startswith("/") and posixpath.normpath(path.lstrip("/")) == path[1:]
    if path not in (location, "/") and not resolved:
        raise InvalidInput(f"a file's location must be a resolved absolute path, got {path!r}")
    return location


def overlap(one: str, other: str) -> bool:
    """Whether two locations share data: the same, or one file or folder holds the other."""
    return one == other or _holds(one, other) or _holds(other, one)


def _holds(outer: str, inner: str) -> bool:
    """A folder holds what is below it, a file the tables in it."""
    is_path = outer.startswith(_FILE) or "://" in outer
    return is_path and inner.startswith((outer.removesuffix("/") + "/", outer + "#"))
