"""Purses: farthings of the tariff in force for an analyst, and what is left of them taken away."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from farthing.composition.tariffs.tariff import Price
from farthing.errors import InvalidInput, require_choice, require_count
from farthing.ledger.entries import Entry, Grant, Revoke
from farthing.ledger.errors import NotInLedger
from farthing.ledger.months import month_name, month_of
from farthing.ledger.records import LARGEST, MONTHLY, Purse, require_name
from farthing.ledger.remaining import as_of, in_proportion, left_of
from farthing.ledger.store import commands
from farthing.ledger.store.open_book import InForce, OpenBook, lock_dataset
from farthing.ledger.store.queries import purse_of, purses_of
from farthing.ledger.store.tables import new_amounts, purses


@dataclass(frozen=True, slots=True)
class WantedGrant:
    """Farthings for an analyst; None for δ units: in proportion."""

    analyst: str
    farthings: int
    delta_units: int | None
    renewal: str | None

    @staticmethod
    def of(
        analyst: str, farthings: int, delta_units: int | None, renewal: str | None
    ) -> WantedGrant:
        """Checked before anything is locked."""
        require_name("the analyst", analyst)
        farthings = require_count("farthings", farthings)
        units = None if delta_units is None else require_count("delta_units", delta_units)
        if max(farthings, units or 0) > LARGEST:
            raise InvalidInput(f"a grant is at most {LARGEST} farthings, got {farthings}")
        if renewal is not None:
            require_choice("renewal", renewal, (MONTHLY,))
        return WantedGrant(analyst, farthings, units, renewal)


def write_grant(
    book: OpenBook,
    connection: Connection,
    token: str,
    dataset: str,
    found: InForce,
    wanted: WantedGrant,
) -> tuple[Purse, Entry]:
    """The purse with more in it, and the entry that says so; the book is locked."""
    now = book.clock()
    units = wanted.delta_units
    if units is None:
        units = in_proportion(found.terms.tariff, wanted.farthings)
    month = None if wanted.renewal is None else month_of(now)
    account, analyst = found.terms.account, wanted.analyst
    key = {"dataset_id": found.row, "account": account, "analyst": analyst}
    row = connection.execute(select(purses).filter_by(**key)).one_or_none()
    if row is None:
        connection.execute(insert(purses).values(**key, **new_amounts(0, 0), month=month))
    elif (row.month is not None) != (wanted.renewal is not None):
        raise InvalidInput("a purse keeps the renewal it was first granted with")
    elif max(row.farthings + wanted.farthings, row.delta_units + units) > LARGEST:
        raise InvalidInput(f"a purse holds at most {LARGEST} farthings")
    raised = connection.execute(
        update(purses)
        .filter_by(**key)
        .values(
            farthings=purses.c.farthings + wanted.farthings,
            delta_units=purses.c.delta_units + units,
            open=1,
        )
        .returning(purses)
    )
    purse = as_of(purse_of(raised.one()), month_of(now))
    fact = Grant(
        **book.stamp(dataset, now),
        account=account,
        analyst=analyst,
        farthings=wanted.farthings,
        delta_units=units,
        renewal=wanted.renewal,
        month=None if month is None else month_name(month),
    )
    return purse, commands.append(connection, found.row, fact, token)


def revoke(book: OpenBook, dataset: str, analyst: str) -> Price:
    """Take away what is left of a purse under the tariff in force; says how much."""
    taken: list[Price] = []

    def work(connection: Connection, token: str) -> Entry:
        lock_dataset(connection, dataset)
        found = book.current(connection, dataset)
        account = found.terms.account
        own = purses_of(connection, found.row, account, analyst)
        if not own:
            raise NotInLedger(f"{analyst} has no purse under the tariff in force")
        now = book.clock()
        purse = as_of(own[0], month_of(now))
        if not purse.open:
            raise InvalidInput(f"the purse of {analyst} was revoked before")
        taken.append(left_of(purse, purse))
        key = {"dataset_id": found.row, "account": account, "analyst": analyst}
        gone = {} if purse.renewal is not None else {
            "farthings_spent": purses.c.farthings,
            "delta_units_spent": purses.c.delta_units,
        }  # fmt: skip # one choice
        connection.execute(update(purses).filter_by(**key).values(open=0, **gone))
        fact = Revoke(
            **book.stamp(dataset, now),
            account=account,
            analyst=analyst,
            farthings=taken[-1].farthings,
            delta_units=taken[-1].delta_units,
        )
        return commands.append(connection, found.row, fact, token)

    book.write(dataset, work)
    return taken[-1]
