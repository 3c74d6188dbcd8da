"""The owner's desk: data with a schema, tariffs, purses, registered lists, versions.

In one process this is a guard against accidents: whoever can open the ledger's file can sit down
here. A service in front of it is the boundary (docs/known-limits.md).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.tariff import Price, Tariff
from farthing.composition.tariffs.verification import certificate_in, tariff_in
from farthing.engine.epsilon_budget import require_no_other_budget
from farthing.engine.kinds import query_from
from farthing.engine.kinds.base import completed_query
from farthing.engine.loss_measurement import with_loss_questions
from farthing.engine.purchase import buy
from farthing.engine.sources.base import Source
from farthing.engine.sources.misfits import Misfits, misfits_of
from farthing.errors import InvalidInput
from farthing.ledger import Account, Dataset, Ledger, Limits, Purse, RegisteredBatch
from farthing.ledger.declared_data import overlap
from farthing.schema import KEYS, Column, Schema, with_unit

#: A tariff, its certificate, or the file it is in.
TariffLike = Tariff | Certificate | str | os.PathLike[str]
#: What the state of the rows is called in which data is added, if nobody says.
FIRST_VERSION = "1"


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the owner says about data when it is added.

    Without a `schema` the one is taken that the engine's own types propose. `version` names the
    state of the rows; None says that they change without notice, and nothing is answered from
    the past. A `unit` of several columns is a tuple of their names; a row with one of them missing
    has no unit and does not count.
    """

    unit: str | Sequence[str]
    schema: Schema | None = None
    limits: Limits | None = None
    version: str | None = FIRST_VERSION

    def require_possible(self, source: Source) -> tuple[Schema, str]:
        """The columns and the unit, if this source has them; else InvalidInput."""
        schema = self.schema or Schema(source.proposed_schema().columns)
        schema, unit = with_unit(schema, self.unit)
        source.require_everywhere(*(schema[unit].parts or (unit,)))
        if schema[unit].kind not in KEYS:
            raise InvalidInput(
                f"the unit must be {' or '.join(KEYS)}, but {unit} is {schema[unit].kind}"
            )
        for column in schema.columns:
            _require_within(column)
        return schema, unit


def _require_within(column: Column) -> None:
    """Categories lie within the bounds: a value outside is moved, and would never be counted."""
    lower = -math.inf if column.lower is None else column.lower
    upper = math.inf if column.upper is None else column.upper
    for label in column.categories or ():
        if isinstance(label, int) and not lower <= label <= upper:
            raise InvalidInput(
                f"the categories of {column.name} must lie within its bounds, got {label}"
            )


class Desk:
    """What an owner of a ledger decides."""

    def __init__(self, ledger: Ledger, *, owner: str = "owner") -> None:
        self.ledger = ledger
        self._name = owner
        self._owner = ledger.owner()

    @classmethod
    def open(cls, target: str | os.PathLike[str], *, owner: str = "owner") -> Self:
        """The desk of the ledger in this file or at this address; a new one if there is none."""
        return cls(Ledger.open(target), owner=owner)

    def name_of(self, source: Source, name: str | None = None) -> str | None:
        """The dataset that this data is in the ledger, under this name if one is given."""
        reader, wanted = self.ledger.reader(), name or source.name
        if source.location is None:
            if wanted not in reader.datasets():
                return None
            if reader.dataset(wanted).location is not None:
                raise InvalidInput(f"{wanted} is data in another place, not a table in memory")
            return wanted
        known = self.ledger.datasets_at(source.location)
        if not known:
            if wanted in reader.datasets():
                where = reader.dataset(wanted).location or "no place that was declared"
                raise InvalidInput(
                    f"there is a dataset {wanted} already, at {where} and not at "
                    f"{source.location}: if the data moved, its owner says so with `farthing owner "
                    f"relocate {wanted} DATA`; if it is other data, give it another name"
                )
            return None
        if name is None and len(known) == 1:
            return known[0]
        if name in known:
            return name
        raise InvalidInput(
            f"this data is in the ledger as {' and '.join(known)}; a budget belongs to the data"
        )

    def add(
        self,
        source: Source,
        declared: Declaration,
        *,
        name: str | None = None,
        beside: str | None = None,
    ) -> Dataset:
        """A new dataset. `beside` names one on the same data, which then share one statement."""
        dataset = self._declared(source, declared, name)
        self._owner.add(dataset, beside=beside)
        return dataset

    def begin(
        self,
        source: Source,
        declared: Declaration,
        tariff: TariffLike,
        *,
        name: str | None = None,
        analyst: str,
        farthings: int,
        delta_units: int | None = None,
    ) -> Dataset:
        """A new dataset with a tariff in force and a first purse: all of it, or nothing."""
        dataset = self._declared(source, declared, name)
        self._owner.begin(
            dataset,
            certificate_of(tariff),
            analyst=analyst,
            farthings=farthings,
            delta_units=delta_units,
        )
        return dataset

    def describe(
        self, source: Source, declared: Declaration, name: str, *, beside: str | None = None
    ) -> Dataset:
        """Declares what was not declared before, or other titles. The budget goes on."""
        dataset = self._declared(source, declared, name)
        self._owner.describe(dataset, beside=beside)
        return dataset

    def relocate(self, dataset: str, source: Source) -> None:
        """The data moved and is in this place now; its budget goes on."""
        if source.location is None:
            raise InvalidInput("data moves to a file or a table in a database, not into memory")
        about = self.ledger.reader().dataset(dataset)
        source.require_everywhere(*(about.declared_schema[about.unit].parts or (about.unit,)))
        require_no_other_budget(source, self.ledger)
        self._owner.relocate(dataset, source.location)

    def is_described(self, name: str) -> bool:
        """False for a dataset that was added before there were schemas."""
        reader = self.ledger.reader()
        return name not in reader.datasets() or reader.dataset(name).schema is not None

    def misfits(self, source: Source, name: str) -> tuple[Misfits, ...]:
        """What of the rows is not as declared. For the owner's eyes: no analyst may be told."""
        return misfits_of(source, self.ledger.reader().dataset(name).declared_schema)

    def _declared(self, source: Source, declared: Declaration, name: str | None) -> Dataset:
        if name is None and source.location is None:
            raise InvalidInput('name must be given for a table in memory, such as name="salaries"')
        schema, unit = declared.require_possible(source)
        self._require_public(source, schema)
        require_no_other_budget(source, self.ledger)
        return Dataset(
            name or source.name,
            unit=unit,
            owner=self._name,
            schema=source.with_public_tables(schema),
            limits=declared.limits or Limits(),
            location=source.location,
            version=declared.version,
        )

    def _require_public(self, source: Source, schema: Schema) -> None:
        """What is looked up in is nobody's private data, as far as this ledger knows."""
        public_tables = source.public_locations(schema)
        reader = self.ledger.reader()
        known = [(name, place) for name in reader.datasets() for place in reader.places(name)]
        for name, private in [(source.name, source.location), *known]:
            for public in public_tables:
                if private is not None and overlap(private, public):
                    raise InvalidInput(
                        f"{public} cannot be looked up in as a public table: {name} is private data"
                    )

    def sign(self, dataset: str, tariff: TariffLike, *, name: str = "tariff") -> Account:
        """Put a tariff in force, certified and proved; one that was in force is retired."""
        return self._owner.sign(dataset, certificate_of(tariff), name=name)

    def grant(
        self,
        dataset: str,
        analyst: str,
        *,
        farthings: int,
        delta_units: int | None = None,
        renewal: str | None = None,
    ) -> Purse:
        """Give an analyst farthings; δ units in proportion unless told."""
        return self._owner.grant(
            dataset, analyst, farthings=farthings, delta_units=delta_units, renewal=renewal
        )

    def revoke(self, dataset: str, analyst: str) -> Price:
        """Take back what is left of a purse, and say how much it was."""
        return self._owner.revoke(dataset, analyst)

    def retire(self, dataset: str, account: str | None = None) -> tuple[str, ...]:
        """End a tariff or a registered list, or everything that is open; says what it was."""
        return self._owner.retire(dataset, account)

    def register(
        self, dataset: str, name: str, questions: Mapping[str, Any], *, analyst: str
    ) -> Account:
        """An account for exactly these questions, outside the tariff, which this analyst may run.

        Nothing about the list depends on answers, so it gets the bound of lists that are fixed
        in advance. It adds to what the dataset gives away, and runs once.
        """
        about = self.ledger.reader().dataset(dataset)
        schema = about.declared_schema
        tariff = self.ledger.analyst(dataset, analyst).terms().tariff
        listed, queries = {}, {}
        for key, given in questions.items():
            query = query_from(given)
            queries[key] = completed_query(query, schema, about.unit, about.limits)
        for key, query in with_loss_questions(queries).items():
            purchase = buy(query, tariff)
            mechanism = purchase.query.mechanism_for(purchase.paid)
            listed[purchase.listed_as(key)] = mechanism.guarantees
        return self._owner.register(dataset, name, RegisteredBatch(listed), analyst=analyst)

    def declare_version(self, dataset: str, version: str | None) -> None:
        """The rows are in another state now: earlier releases are not given out again."""
        self._owner.declare_version(dataset, version)

    def shut(self) -> None:
        """Give the ledger back."""
        self.ledger.shut()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()


def certificate_of(given: TariffLike) -> Certificate:
    """What is to be signed: given, or proved here."""
    _require_tariff(given)
    if isinstance(given, Certificate):
        return given
    return given.certify() if isinstance(given, Tariff) else certificate_in(given)


def tariff_of(given: TariffLike) -> Tariff:
    """The tariff that is meant."""
    _require_tariff(given)
    if isinstance(given, Tariff):
        return given
    return given.tariff if isinstance(given, Certificate) else tariff_in(given)


def _require_tariff(given: object) -> None:
    if not isinstance(given, Tariff | Certificate | str | os.PathLike):
        raise InvalidInput(
            "tariff must be a Tariff, a Certificate or the path of a file with one, got "
            f"{type(given).__name__}; fa.Tariff(items, farthings=…) makes one from a table of items"
        )


def matching_tariff(in_force: Tariff, given: TariffLike, dataset: str) -> None:
    """Opening signs nothing: a tariff may be named again, another one is refused."""
    if in_force.to_json() != tariff_of(given).to_json():
        raise InvalidInput(
            f"another tariff is in force for {dataset}; leave tariff out, or let the owner sign it"
        )
