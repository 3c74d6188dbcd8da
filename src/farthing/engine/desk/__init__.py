"""The owner's desk: data with a schema, tariffs, purses, registered lists, versions, the book.

`operations` says what an operation is; `data`, `budgets` and `book` have all of them. In one
process a desk is a guard against accidents: whoever can open the ledger's file can sit down here. A
service in front of it is the boundary (docs/known-limits.md).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

from farthing.engine.desk import book, budgets, data
from farthing.engine.desk.budgets import TariffLike, certificate_of, matching_tariff
from farthing.engine.desk.data import (
    FIRST_VERSION,
    Declaration,
    declared_dataset,
    require_no_other_budget,
)
from farthing.engine.desk.operations import Method, Office, Operation
from farthing.engine.sources.base import Source
from farthing.engine.sources.misfits import Misfits, misfits_of
from farthing.errors import InvalidInput
from farthing.ledger import Dataset, Ledger
from farthing.ledger.declared_data import unit_columns

__all__ = ["FIRST_VERSION", "Declaration", "Desk", "certificate_of", "matching_tariff"]


class Desk:
    """What an owner decides and sees: of a ledger here, or of a service (`farthing.connect`)."""

    datasets = Method(data.datasets)
    dataset = Method(data.dataset)
    proposed_columns = Method(data.proposed_columns)
    declare = Method(data.declare)
    declare_version = Method(data.declare_version)
    certify = Method(budgets.certify)
    sign = Method(budgets.sign)
    init = Method(budgets.init)
    grant = Method(budgets.grant)
    revoke = Method(budgets.revoke)
    register = Method(budgets.register)
    register_items = Method(budgets.register_items)
    retire = Method(budgets.retire)
    purses = Method(budgets.purses)
    accounts = Method(budgets.accounts)
    largest_number = Method(budgets.largest_number)
    tokens = Method(budgets.tokens)
    mint_token = Method(budgets.mint_token)
    withdraw_token = Method(budgets.withdraw_token)
    statement = Method(book.statement)
    verify = Method(book.verify)
    history = Method(book.history)
    budget_over_time = Method(book.budget_over_time)
    odometer = Method(book.odometer)
    profile = Method(book.profile)
    certificate = Method(book.certificate)
    abandon = Method(book.abandon)
    end_conversation = Method(book.end_conversation)
    seal = Method(book.seal)
    move = Method(book.move)
    upgrade = Method(book.upgrade)
    back_up = Method(book.back_up)
    restore = Method(book.restore)

    def __init__(
        self,
        ledger: Ledger | None,
        *,
        owner: str = "owner",
        sources: Mapping[str, Source] | None = None,
        tokens: Any = None,
    ) -> None:
        self._office = Office(ledger, owner, sources or {}, tokens)

    @classmethod
    def open(cls, target: str | os.PathLike[str], *, owner: str = "owner") -> Self:
        """The desk of the ledger in this file or at this address; a new one if there is none."""
        return cls(Ledger.open(target), owner=owner)

    @property
    def office(self) -> Office:
        """What the operations of a desk here work with."""
        return self._office

    @property
    def ledger(self) -> Ledger:
        """The ledger."""
        return self.office.ledger

    def perform(self, operation: Operation, given: Mapping[str, Any]) -> Any:
        """Do an operation, and give its result."""
        return operation.function(self.office, **given)

    def name_of(self, source: Source, name: str | None = None) -> str | None:
        """The dataset that this data is in the ledger, under this name if one is given."""
        reader, wanted = self.office.reader, name or source.name
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
        source: Source | str,
        declared: Declaration,
        *,
        name: str | None = None,
        beside: str | None = None,
    ) -> Dataset:
        """A new dataset. `beside` names one on the same data, which then share one statement.

        A text is the name of a dataset in the configuration of a service.
        """
        opened = self.office.source(source) if isinstance(source, str) else source
        known_as = source if name is None and isinstance(source, str) else name
        dataset = declared_dataset(self.office, opened, declared, known_as)
        self.office.owner.add(dataset, beside=beside)
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
        dataset = declared_dataset(self.office, source, declared, name)
        self.office.owner.begin(
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
        """Declare what a dataset is that was added before there were schemas; its budget stays."""
        dataset = declared_dataset(self.office, source, declared, name)
        self.office.owner.describe(dataset, beside=beside)
        return dataset

    def relocate(self, dataset: str, source: Source) -> None:
        """Declare that the data moved to this place; its budget stays."""
        if source.location is None:
            raise InvalidInput("data moves to a file or a table in a database, not into memory")
        about = self.office.reader.dataset(dataset)
        source.require_everywhere(*unit_columns(about.declared_schema, about.unit))
        require_no_other_budget(source, self.ledger)
        self.office.owner.relocate(dataset, source.location)

    def is_described(self, name: str) -> bool:
        """False for a dataset that was added before there were schemas."""
        reader = self.office.reader
        return name not in reader.datasets() or reader.dataset(name).schema is not None

    def misfits(self, source: Source, name: str) -> tuple[Misfits, ...]:
        """Which values are not as declared. For the owner alone: no analyst may be told."""
        return misfits_of(source, self.office.reader.dataset(name).declared_schema)

    def shut(self) -> None:
        """Give the ledger back."""
        self.ledger.shut()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()
