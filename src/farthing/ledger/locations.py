"""Which data a dataset is: a budget belongs to the data, not to a name.

    file:/data/events.parquet        a file
    file:/data/folder                everything in a folder
    file:/data/base.duckdb#table     a table in a file
    postgresql:SYSTEM/database/schema.table
    spark:catalog.database.table
    spark:s3a://bucket/folder        everything in a folder elsewhere
    several:["file:/a.csv", "file:/b.csv"]    tables that are read as one, in the order of the text

Whoever reads the data resolves the path (links, relative parts) or asks the server who it is.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable
from itertools import combinations

from farthing.errors import InvalidInput

_FILE, _SEVERAL = "file:", "several:"
#: Longer paths than this exist nowhere.
_LONGEST = 5000


def require_location(location: object) -> str:
    """A location that can be compared as text, or InvalidInput."""
    if isinstance(location, str) and location.startswith(_SEVERAL):
        if location_of_several(places_in(location)) != location:
            raise InvalidInput("the location of several tables must name each once, in order")
        return location
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


def location_of_several(places: Iterable[str]) -> str:
    """The location of tables that are read as one, whichever order they were named in."""
    ordered = sorted(map(require_location, places))
    if len(ordered) < 2 or any(place.startswith(_SEVERAL) for place in ordered):
        raise InvalidInput("several tables must be two or more single ones")
    for one, other in combinations(ordered, 2):
        if overlap(one, other):
            raise InvalidInput(f"each row must be there once, but {one} and {other} share data")
    return _SEVERAL + json.dumps(ordered, ensure_ascii=False)


def places_in(location: str) -> tuple[str, ...]:
    """The places that a location is made of: itself, or those of several tables."""
    if not location.startswith(_SEVERAL):
        return (location,)
    try:
        found = json.loads(location.removeprefix(_SEVERAL))
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(place, str) for place in found):
        raise InvalidInput("the location of several tables must be a list of texts")
    return tuple(found)


def overlap(one: str, other: str) -> bool:
    """Whether two locations share data: places that are the same, or one of which holds another."""
    return any(
        mine == theirs or _holds(mine, theirs) or _holds(theirs, mine)
        for mine in places_in(one)
        for theirs in places_in(other)
    )


def _holds(outer: str, inner: str) -> bool:
    """A folder holds what is below it, a file the tables in it."""
    is_path = outer.startswith(_FILE) or "://" in outer
    return is_path and inner.startswith((outer.removesuffix("/") + "/", outer + "#"))
