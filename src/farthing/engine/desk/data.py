"""Datasets: what an owner declares about them, where their ledger is, and what it says of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from farthing.composition.tariffs.prices import EpsilonDelta, is_ladder_for
from farthing.composition.tariffs.verification import certificate_from_json
from farthing.engine.computed.columns import checked_schema
from farthing.engine.desk.operations import Given, Office, operation
from farthing.engine.sources.base import Source
from farthing.errors import InvalidInput
from farthing.ledger import Dataset, Ledger, Limits, NotInLedger, Purse
from farthing.ledger.declared_data import (
    Unit,
    dataset_from_json,
    overlap,
    places_in,
    rows_are_units,
    unit_columns,
    with_unit,
)
from farthing.schema import KEYS, Column, Schema, schema_from_json

#: The version of the rows when data is added, unless another one is given.
FIRST_VERSION = "1"
#: What a ledger beside some data is called.
SUFFIX = ".farthing.db"
#: The variable of the environment that names a ledger for everything that is not told one.
VARIABLE = "FARTHING_LEDGER"
_FILE = "file:"


def require_in_force(budget: EpsilonDelta, ledger: Ledger, dataset: str, account: int) -> None:
    """Opening signs nothing: the same budget may be named again, another one is refused."""
    reader = ledger.reader()
    signed = certificate_from_json(reader.document(dataset, account))
    if not is_ladder_for(signed, epsilon=budget.epsilon, delta=budget.delta):
        stated = ", ".join(f"ε ≤ {b.upper:.4g} at δ = {d:g}" for d, b in signed.epsilons)
        raise InvalidInput(
            f"the budget of {dataset} was signed before, for {stated}; it cannot become "
            f"epsilon = {budget.epsilon:g} at delta = {budget.delta:g} by opening it: leave "
            "epsilon and delta out, or let the owner sign another tariff"
        )


def require_no_other_budget(source: Source, ledger: Ledger) -> None:
    """No ledger that is kept near the data has it, unless this one knows it: a book may have moved.

    Of what this ledger knows it says itself what may be added.
    """
    identity = ledger.reader().identity()
    for place in () if source.location is None else places_in(source.location):
        for path in () if ledger.datasets_at(place) else _ledgers_near(place):
            with Ledger.open(path, upgrade=False) as other:
                reader = other.reader()
                if reader.identity() == identity:
                    continue
                for name in reader.datasets():
                    if any(overlap(known, place) for known in reader.places(name)):
                        raise InvalidInput(
                            f"{place} has a budget already, in {path} as {name}: a budget belongs "
                            "to the data; use that ledger, or the one in which its book goes on, "
                            "or move it with `farthing owner move`"
                        )


def _ledgers_near(place: str) -> Iterator[Path]:
    """Those beside a file, beside the folders that hold it, and within it if it is a folder."""
    if not place.startswith(_FILE):
        return
    path = _path_of(place)
    beside = (_beside(one) for one in (path, *path.parents) if one.name)
    yield from (one for one in beside if one.is_file())
    if path.is_dir():
        yield from path.rglob(f"*{SUFFIX}")


def _path_of(place: str) -> Path:
    return Path(place.removeprefix(_FILE).partition("#")[0])


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.stem}{SUFFIX}")


def ledger_beside(source: Source, name: str | None) -> Path:
    """Where the ledger of some data is kept if nobody says: beside the file, or here."""
    if source.location is None:
        return Path.cwd() / f"{name or source.name}{SUFFIX}"
    if len(places_in(source.location)) > 1:
        raise InvalidInput(
            "several tables have no ledger beside them: say where it is, ledger=…; it must be the "
            "one that would know each of them by itself, so that no row has two budgets"
        )
    if not source.location.startswith(_FILE):
        raise InvalidInput(f"{source.name} is no file: say where its ledger is, ledger=…")
    return _beside(_path_of(source.location))


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the owner says about data when it is added.

    Without a `schema` the one is taken that the engine's own types propose. `version` names the
    state of the rows; None says that they change without notice, and nothing is answered from
    the past. A `unit` of several columns is a tuple of their names; a row with one of them missing
    has no unit and does not count. With the unit "row" each row is protected on its own.
    """

    unit: Unit
    schema: Schema | None = None
    limits: Limits | None = None
    version: str | None = FIRST_VERSION

    def require_possible(self, source: Source) -> tuple[Schema, str]:
        """The columns and the unit, if this source has them; else InvalidInput."""
        schema = self.schema or Schema(source.proposed_schema().columns)
        schema, unit = with_unit(schema, self.unit)
        source.require_everywhere(*unit_columns(schema, unit))
        if not rows_are_units(schema, unit) and schema[unit].kind not in KEYS:
            raise InvalidInput(
                f"the unit must be {' or '.join(KEYS)}, but {unit} is {schema[unit].kind}"
            )
        for column in schema.columns:
            _require_within(column)
        return checked_schema(schema, unit), unit


def _require_within(column: Column) -> None:
    """Categories lie within the bounds: a value outside is moved, and would never be counted."""
    lower = -math.inf if column.lower is None else column.lower
    upper = math.inf if column.upper is None else column.upper
    for label in column.categories or ():
        if isinstance(label, int) and not lower <= label <= upper:
            raise InvalidInput(
                f"the categories of {column.name} must lie within its bounds, got {label}"
            )


def declared_dataset(
    office: Office, source: Source, declared: Declaration, name: str | None
) -> Dataset:
    """The dataset that this declaration makes of this source; InvalidInput if it cannot be."""
    if name is None and source.location is None:
        raise InvalidInput('name must be given for a table in memory, such as name="salaries"')
    schema, unit = declared.require_possible(source)
    _require_public(office, source, schema)
    require_no_other_budget(source, office.ledger)
    return Dataset(
        name or source.name,
        unit=unit,
        owner=office.name,
        schema=source.with_public_tables(schema),
        limits=declared.limits or Limits(),
        location=source.location,
        version=declared.version,
    )


def _require_public(office: Office, source: Source, schema: Schema) -> None:
    """A public table is nobody's private data, as far as this ledger knows."""
    public_tables, reader = source.public_locations(schema), office.reader
    known = [(name, place) for name in reader.datasets() for place in reader.places(name)]
    for name, private in [(source.name, source.location), *known]:
        for public in public_tables:
            if private is not None and overlap(private, public):
                raise InvalidInput(
                    f"{public} cannot be joined as a public table: {name} is private data"
                )


def overview(office: Office, name: str) -> dict[str, Any]:
    """What the configuration and the ledger say of a dataset."""
    reader = office.reader
    if name not in reader.datasets():
        if name not in office.sources:
            raise NotInLedger(f"there is no dataset {name!r:.60}")
        return {"name": name, "served": True, "declared": False}
    return {
        **reader.dataset(name).to_json(),
        "dataset": name,
        "served": name in office.sources,
        "declared": True,
        "accounts": [asdict(account) for account in reader.accounts(name)],
        "grants": [purse_data(purse) for purse in reader.purses(name)],
        "open_reservations": len(reader.open_reservations(name)),
        "open_conversations": sum(talk.open for talk in reader.conversations(name)),
    }


def purse_data(purse: Purse) -> dict[str, Any]:
    """A purse as an owner sees it, with what is left of it."""
    return {**asdict(purse), "left": asdict(purse.left())}


def _overview_of(office: Office, given: Mapping[str, Any], _: object) -> dict[str, Any]:
    return overview(office, given.get("dataset") or given["name"])


def _dataset_back(answer: dict[str, Any]) -> Dataset:
    names = ("name", "unit", "owner", "relation", "schema", "limits", "location", "version")
    return dataset_from_json({name: answer[name] for name in names})


@operation("GET /datasets", under="datasets")
def datasets(office: Office) -> list[dict[str, Any]]:
    """Every dataset of the configuration and of the ledger."""
    names = {*office.reader.datasets(), *office.sources}
    return [overview(office, name) for name in sorted(names)]


@operation("GET /datasets/{dataset}")
def dataset(office: Office, dataset: str) -> dict[str, Any]:
    """Declaration, accounts and purses."""
    return overview(office, dataset)


@operation("GET /datasets/{dataset}/schema")
def proposed_columns(office: Office, dataset: str) -> dict[str, Any]:
    """The columns that the engine's own types propose, to be checked and changed."""
    proposal = office.source(dataset).proposed_schema()
    return {
        "columns": [column.to_json() for column in proposal.columns],
        "left_out": [{"name": name, "type": kind} for name, kind in proposal.left_out],
    }


@operation(
    "POST /datasets",
    once=True,
    answer=_overview_of,
    back=_dataset_back,
    fields={
        "name": Given("Its name in the configuration.", example="events"),
        "columns": Given("Empty: those that are proposed.", sent=list[dict[str, Any]] | None),
    },
)
def declare(
    office: Office,
    name: str,
    unit: str | None = None,
    *,
    columns: Sequence[Mapping[str, Any]] | None = None,
    contribution_limit: int | None = None,
    per_key_limit: int | None = None,
    version: str | None = FIRST_VERSION,
    beside: str | None = None,
) -> Dataset:
    """Declare a dataset of the configuration: unit, columns, limits, version."""
    # the configuration says what the service reads: nobody has it read another file from afar
    schema = None if columns is None else schema_from_json(columns)
    if schema is not None and any(column.lookup is not None for column in schema.columns):
        raise InvalidInput(
            "columns from public tables are declared where the data is: farthing owner add"
        )
    limits = Limits(contribution_limit, per_key_limit)
    declared = Declaration(unit=unit, schema=schema, limits=limits, version=version)
    dataset = declared_dataset(office, office.source(name), declared, name)
    office.owner.add(dataset, beside=beside)
    return dataset


def _version_words(answer: dict[str, Any]) -> str:
    version = answer["version"]
    state = "live" if version is None else f"version {version}"
    return f"the rows of {answer['dataset']} are {state}"


@operation(
    "POST /datasets/{dataset}/versions",
    command="owner refresh",
    answer=_overview_of,
    back=lambda _: None,
    said=_version_words,
    fields={
        "version": Given(
            "A new name for the state of the rows, when they have changed.",
            "New version",
            "2",
            argument="[VERSION]",
            nothing="live",
        )
    },
)
def declare_version(office: Office, dataset: str, version: str | None) -> None:
    """Declare that the rows have changed: earlier releases are not given out again."""
    office.owner.declare_version(dataset, version)
