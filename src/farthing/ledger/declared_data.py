"""What an owner declares about data: its unit, columns, limits and version, and where it is.

A budget belongs to the data, not to a name. So a dataset has a location:

    file:/data/events.parquet        a file
    file:/data/folder                everything in a folder
    file:/data/base.duckdb#table     a table in a file
    postgresql:SYSTEM/database/schema.table
    spark:catalog.database.table
    spark:s3a://bucket/folder        everything in a folder elsewhere
    several:["file:/a.csv", "file:/b.csv"]    tables that are read as one, sorted

Whoever reads the data resolves the path (links, relative parts) or asks the server for its name.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import Any, TypeAlias

from farthing.errors import InvalidInput, require_choice, require_count
from farthing.ledger.records import require_name
from farthing.schema import ROW, TEXT, Column, Schema, schema_from_json

#: The only neighbouring relation that the theorems here speak about.
RELATION = "add or remove one unit"
#: What the unit `ROW` means.
EACH_ROW = "each row is protected on its own: a person with several rows is not"
#: What the first format called `contribution_limit`.
_OLD_CONTRIBUTION_LIMIT = "keys"
_FILE, _SEVERAL = "file:", "several:"
#: Longer paths than this exist nowhere.
_LONGEST = 5000


#: What a unit is: a column of the rows, several together, or each row. None: nobody said it.
Unit: TypeAlias = str | Sequence[str] | None


def with_unit(schema: Schema, unit: Unit) -> tuple[Schema, str]:
    """The schema with the column that says whose row it is, and the name of that column.

    Several columns, as a sequence or as the text a,b, are one unit together. `ROW` is no column.
    """
    if unit is None:
        raise InvalidInput(f"{missing_unit(schema.kinds)} must be given")
    if unit == ROW:
        called = next((name for name in schema.kinds if name.casefold() == ROW), None)
        if called is None:
            return schema, ROW
        raise InvalidInput(
            f"unit = {ROW} says that {EACH_ROW}; but there is a column called {called}: leave it "
            "out of the schema, or give it another name if it says whose row it is"
        )
    if isinstance(unit, str):
        if unit in schema or "," not in unit:
            if schema[unit].lookup is not None or schema[unit].expression is not None:
                raise InvalidInput(f"the unit must be a column of the rows, {unit} is not")
            return schema, unit
        unit = [part.strip() for part in unit.split(",")]
    if len(unit) == 1:
        return with_unit(schema, unit[0])
    made = Column(unit_name(unit), TEXT, parts=tuple(unit))
    if made.name not in schema:
        return Schema((*schema.columns, made)), made.name
    if schema[made.name].untitled != made:
        raise InvalidInput(f"the column {made.name!r:.60} is another one than the unit")
    return schema, made.name


def unit_name(unit: str | Sequence[str]) -> str:
    """What a unit of one or several columns is called."""
    return unit if isinstance(unit, str) else ",".join(unit)


def missing_unit(names: Iterable[str]) -> str:
    """What must be said about the unit of data with these columns."""
    return (
        f"unit, the column that says whose row it is ({', '.join(names):.200}), or unit = {ROW} "
        f"({EACH_ROW}),"
    )


def rows_are_units(schema: Schema, unit: str) -> bool:
    """Whether each row is a unit. A book may be older than that: then `row` is a column."""
    return unit == ROW and ROW not in schema


def unit_columns(schema: Schema, unit: str) -> tuple[str, ...]:
    """The stored columns that say whose row it is; none where each row is a unit."""
    return () if rows_are_units(schema, unit) else schema[unit].parts or (unit,)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of one unit may count: keys, and rows of each key. None: as each question says."""

    contribution_limit: int | None = None
    per_key_limit: int | None = None

    def __post_init__(self) -> None:
        for name, value in self.to_json().items():
            if value is not None:
                require_count(name, value, at_least=1)

    def to_json(self) -> dict[str, int | None]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Dataset:
    """What is protected, as its owner declares it: nothing here is read off the rows.

    `location` says which data it is, `version` which state of the rows. Without a version the rows
    are live, and no earlier answer is ever shown again.
    """

    name: str
    unit: str
    owner: str
    schema: Schema | None = field(default=None, repr=False)
    limits: Limits = Limits()  # frozen
    location: str | None = None
    version: str | None = None
    relation: str = RELATION

    def __post_init__(self) -> None:
        require_name("the dataset's name", self.name)
        require_name("the dataset's unit", self.unit)
        require_name("the dataset's owner", self.owner)
        require_choice("relation", self.relation, (RELATION,))
        if self.location is not None:
            require_location(self.location)
        if self.version is not None:
            require_name("the version", self.version)

    @property
    def declared_schema(self) -> Schema:
        """The columns that exist for an analyst; InvalidInput if none were declared."""
        if self.schema is None:
            raise InvalidInput(f"{self.name} has no declared columns; its owner describes it")
        return self.schema

    @property
    def rows_are_units(self) -> bool:
        """Whether each row is protected on its own, and nobody with all of theirs."""
        return self.schema is not None and rows_are_units(self.schema, self.unit)

    @property
    def protects(self) -> str:
        """The unit, in words that no column is mistaken for."""
        return f"{self.unit} ({EACH_ROW})" if self.rows_are_units else self.unit

    def to_json(self) -> dict[str, Any]:
        schema = None if self.schema is None else self.schema.to_json()
        plain = ("name", "unit", "owner", "relation", "location", "version")
        said = {name: getattr(self, name) for name in plain}
        return {**said, "schema": schema, "limits": self.limits.to_json()}

    def __repr__(self) -> str:
        return f"<Dataset {self.name}: unit {self.unit}, version {self.version or 'live'}>"


def dataset_from_json(data: Mapping[str, Any]) -> Dataset:
    """A dataset from the data of an entry, in this format or the first one."""
    given = dict(data)
    old = given.pop("contribution_limits", None)
    limits = given.pop("limits", None)
    if limits is None:
        limits = {"contribution_limit": dict(old or {}).get(_OLD_CONTRIBUTION_LIMIT)}
    schema = given.pop("schema", None)
    return Dataset(
        schema=None if schema is None else schema_from_json(schema),
        limits=Limits(**limits),
        **given,
    )


def require_only_more(before: Dataset, after: Dataset) -> None:
    """What was declared stays. What was not may be declared, titles and the version anew."""
    old, new = (_untitled(dataset).to_json() for dataset in (before, after))
    for name in ("name", "unit", "owner", "relation", "schema", "location"):
        if old[name] is not None and new[name] != old[name]:
            raise InvalidInput(f"the {name} of {before.name} was declared and stays as it is")
    for name, limit in old["limits"].items():
        if limit is not None and new["limits"][name] != limit:
            raise InvalidInput(f"the {name} of {before.name} was declared and stays {limit}")


def _untitled(dataset: Dataset) -> Dataset:
    """Titles are only words, and an owner may find better ones."""
    return replace(dataset, schema=None if dataset.schema is None else dataset.schema.untitled)


@dataclass(frozen=True, slots=True)
class Declared:
    """What an owner declares about a dataset, and which other datasets share its data.

    `former` are the places where the data was before it was relocated. They still belong to this
    dataset, so that a copy that was left there gets no budget of its own.
    """

    dataset: Dataset
    beside: tuple[str, ...]
    former: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[str, ...]:
        """Where the data is, and where it was."""
        here = self.dataset.location
        return self.former if here is None else tuple(dict.fromkeys((here, *self.former)))

    def relocated(self, location: str | None) -> Declared:
        """The same data in another place; the old place stays known."""
        was = self.dataset.location
        if was is None or location in (None, was):
            raise InvalidInput(
                f"data is relocated from one place to another: {self.dataset.name} is at "
                f"{was or 'no place that was declared'}, got {location or 'none'}"
            )
        former = tuple(dict.fromkeys((*self.former, was)))
        return Declared(replace(self.dataset, location=location), self.beside, former)

    def to_json(self) -> dict[str, Any]:
        """The data of its entry."""
        former = {"former": list(self.former)} if self.former else {}
        return {"description": self.dataset.to_json(), "beside": list(self.beside), **former}


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
    """The location of tables that are read as one, in whichever order they are named."""
    ordered = sorted(map(require_location, places))
    if len(ordered) < 2 or any(place.startswith(_SEVERAL) for place in ordered):
        raise InvalidInput("several tables must be two or more single ones")
    for first, second in combinations(ordered, 2):
        if overlap(first, second):
            raise InvalidInput(f"each row must be there once, but {first} and {second} share data")
    return _SEVERAL + json.dumps(ordered, ensure_ascii=False)


def places_in(location: str) -> tuple[str, ...]:
    """The single places of a location: itself, or those of several tables."""
    if not location.startswith(_SEVERAL):
        return (location,)
    try:
        places = json.loads(location.removeprefix(_SEVERAL))
    except ValueError:
        places = None
    if not isinstance(places, list) or not all(isinstance(place, str) for place in places):
        raise InvalidInput("the location of several tables must be a list of texts")
    return tuple(places)


def overlap(one: str, other: str) -> bool:
    """Whether two locations share data: the same place, or one inside the other."""
    return any(
        mine == theirs or _holds(mine, theirs) or _holds(theirs, mine)
        for mine in places_in(one)
        for theirs in places_in(other)
    )


def _holds(outer: str, inner: str) -> bool:
    """A folder holds what is below it, a file the tables in it."""
    is_path = outer.startswith(_FILE) or "://" in outer
    return is_path and inner.startswith((outer.removesuffix("/") + "/", outer + "#"))
