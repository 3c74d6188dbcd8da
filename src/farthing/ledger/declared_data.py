"""What an owner declares about data: its unit, its columns, its limits, its version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from farthing.errors import InvalidInput, require_choice, require_count
from farthing.ledger.locations import require_location
from farthing.ledger.records import require_name
from farthing.schema import Schema, schema_from_json

#: The only neighbouring relation that the theorems here speak about.
RELATION = "add or remove one unit"
#: How the first format named the one limit that is a limit today.
_OLD_CONTRIBUTION_LIMIT = "keys"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of one unit may count: keys, and rows of each key. None: as each question says."""

    contribution_limit: int | None = None
    per_key_limit: int | None = None

    def __post_init__(self) -> None:
        for name, value in (
            ("contribution_limit", self.contribution_limit),
            ("per_key_limit", self.per_key_limit),
        ):
            if value is not None:
                require_count(name, value, at_least=1)

    def to_json(self) -> dict[str, int | None]:
        return {
            "contribution_limit": self.contribution_limit,
            "per_key_limit": self.per_key_limit,
        }


@dataclass(frozen=True, slots=True)
class Dataset:
    """What is protected, as its owner declares it: nothing here is read off the rows.

    `location` says which data it is (locations.py), `version` which state of the rows: None means
    live rows, about which nothing earlier is ever told again.
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
        """What exists for an analyst; InvalidInput if nothing was declared."""
        if self.schema is None:
            raise InvalidInput(f"{self.name} has no declared columns; its owner describes it")
        return self.schema

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit": self.unit,
            "owner": self.owner,
            "relation": self.relation,
            "schema": None if self.schema is None else self.schema.to_json(),
            "limits": self.limits.to_json(),
            "location": self.location,
            "version": self.version,
        }

    def __repr__(self) -> str:
        return f"<Dataset {self.name}: unit {self.unit}, version {self.version or 'live'}>"


def dataset_from_json(data: Mapping[str, Any]) -> Dataset:
    """A dataset from what its first entry says, also if the first format wrote it."""
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
    """What an owner declares about a dataset, and which others are on the same data.

    `former` are the places where the data was before it was relocated. They stay this
    dataset's, so that a copy that was left there gets no budget of its own.
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
        """The same data in another place; where it was stays known."""
        was = self.dataset.location
        if was is None or location in (None, was):
            raise InvalidInput(
                f"data is relocated from one place to another: {self.dataset.name} is at "
                f"{was or 'no place that was declared'}, got {location or 'none'}"
            )
        former = tuple(dict.fromkeys((*self.former, was)))
        return Declared(replace(self.dataset, location=location), self.beside, former)

    def to_json(self) -> dict[str, Any]:
        """What an entry says of it."""
        former = {"former": list(self.former)} if self.former else {}
        return {"description": self.dataset.to_json(), "beside": list(self.beside), **former}
