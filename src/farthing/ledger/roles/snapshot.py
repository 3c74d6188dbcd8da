"""What an analyst may know at one moment, read in one transaction."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.tariff import Price
from farthing.ledger.declared_data import Dataset
from farthing.ledger.records import TARIFF, Account, Purse, Terms
from farthing.ledger.remaining import as_of, left_of
from farthing.ledger.store.open_book import OpenBook
from farthing.ledger.store.queries import (
    accounts_of,
    all_declared,
    datasets_beside,
    declared_of,
    purses_of,
    spent_and_revoked,
)
from farthing.ledger.writes.charges import no_purse


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The data as its owner declares it, the terms in force, and the analyst's purse.

    `remaining` is what is left of the purse or, if less, of the cap. `spent_alone` is what this
    analyst has spent, if that is all they were told of this data. It is None if there are other
    accounts, but for lists that are registered for somebody else, or data beside it, or if the cap
    can refuse what purses allow: what an analyst is told then depends on what others have spent.
    """

    about: Dataset
    terms: Terms
    certificate: Certificate
    purse: Purse
    remaining: Price
    spent_alone: int | None


@dataclass(frozen=True, slots=True)
class Settled:
    """The entry that closes a reservation, and what is true after it.

    `after` is None for an analyst without a purse, who ran a registered list.
    """

    entry: int
    after: Snapshot | None


def snapshot_of(
    book: OpenBook, connection: Connection, dataset: str, analyst: str, *, capped: bool
) -> Snapshot:
    """Everything at the moment of this connection; NotInLedger if the analyst has no purse.

    Unless `capped`, what remains is what is left of the purse alone.
    """
    found = book.current(connection, dataset)
    number = found.terms.account
    accounts = accounts_of(connection, found.row)
    purses = purses_of(connection, found.row, number)
    own = next((purse for purse in purses if purse.analyst == analyst), None)
    if own is None:
        raise no_purse(analyst, dataset)
    if not own.open:
        (own,) = spent_and_revoked(connection, found.row, [own])
    purse = as_of(own, book.this_month())
    cap, others = accounts[number - 1], accounts[: number - 1] + accounts[number:]
    alone = (
        all(account.mode != TARIFF and account.analyst != analyst for account in others)
        and len(datasets_beside(all_declared(connection), dataset)) == 1
        and _are_separate(purses, cap)
    )
    return Snapshot(
        about=declared_of(connection, found.row).dataset,
        terms=found.terms,
        certificate=book.certificate(connection, dataset, found.row, number),
        purse=purse,
        remaining=left_of(purse, cap if capped else purse),
        spent_alone=own.farthings_spent if alone else None,
    )


def _are_separate(purses: list[Purse], cap: Account) -> bool:
    """Whether nobody can be refused because of what others spent."""
    granted = Price(
        sum(purse.farthings for purse in purses), sum(purse.delta_units for purse in purses)
    )
    whole = Price(cap.farthings, cap.delta_units)
    return all(purse.renewal is None for purse in purses) and granted.within(whole)
