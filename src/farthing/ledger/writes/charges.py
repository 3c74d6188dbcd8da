"""Farthings are taken from a purse and from the cap, together with the entry that says for what.

One transaction, or nothing at all: for a reservation and for the opening of a conversation alike.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Integer, String, bindparam, literal_column, select

from farthing.canonical import digest
from farthing.composition.tariffs.tariff import Price
from farthing.ledger.entries import Charge, Entry, Reserve
from farthing.ledger.errors import (
    DoesNotFit,
    LedgerError,
    NotInLedger,
    TariffChanged,
    Unavailable,
)
from farthing.ledger.months import month_name, month_number, month_of
from farthing.ledger.records import EVERYBODY, LARGEST
from farthing.ledger.remaining import as_of, largest_that_fits, left_of
from farthing.ledger.store import commands
from farthing.ledger.store.commands import Runs
from farthing.ledger.store.connection import PATIENCE_SECONDS, sqlstate_of
from farthing.ledger.store.fast_path import FastTransaction
from farthing.ledger.store.open_book import InForce, OpenBook, lock_dataset
from farthing.ledger.store.queries import no_cap, purse_of
from farthing.ledger.store.retry import Patience
from farthing.ledger.store.tables import purses

#: What else is written in the transaction of a charge.
Alongside = Callable[[Runs, InForce, Entry], None]


@dataclass(frozen=True, slots=True)
class Request:
    """Items that an analyst buys.

    `under` is the account that it was planned with, if it matters. `entry` makes the entry from
    what every charge says; what else it says is there already.
    """

    dataset: str
    analyst: str
    items: Mapping[str, int]
    question: Any = field(repr=False)
    under: int | None = None
    entry: Callable[..., Charge] = Reserve


@dataclass(frozen=True, slots=True)
class _Obstacle:
    """What stood in the way of a charge, if it may work another time.

    `retired`: the tariff that was remembered is no longer in force. `month`: the purse has seen
    this later month, which is the one to charge. Neither: somebody else was there just then.
    """

    retired: bool = False
    month: int | None = None


def charge(book: OpenBook, request: Request, alongside: Alongside | None = None) -> Entry:
    """The entry of a charge that was made, or an error and nothing has changed."""
    patience = Patience(PATIENCE_SECONDS)
    month = 0
    while True:
        found, price = _quote(book, request)
        now = book.clock()
        month = max(month, month_of(now))
        fact = request.entry(
            **book.stamp(request.dataset, now),
            account=found.terms.account,
            analyst=request.analyst,
            items=dict(request.items),
            farthings=price.farthings,
            delta_units=price.delta_units,
            month=month_name(month),
            question=request.question,
            question_digest=question_digest(request.question),
        )
        outcome = _Attempt(book, found, fact, month).make(alongside)
        if isinstance(outcome, Entry):
            return book.noted(request.dataset, outcome)
        if isinstance(outcome, LedgerError):
            raise outcome
        if outcome.retired:
            book.forget(request.dataset)
        elif outcome.month is not None:
            month = outcome.month
        elif patience.is_over:
            raise Unavailable(f"the ledger at {book.store.name} is too busy")
        else:
            patience.wait()


def question_digest(question: Any) -> str | None:
    """By which a release is found again; None if nothing was stated."""
    return None if question is None else digest(question)


def no_purse(analyst: str, dataset: str) -> NotInLedger:
    """An analyst to whom nothing was granted."""
    return NotInLedger(
        f"{analyst} has no purse under the tariff in force for {dataset}: ask as an analyst who "
        "has one, or let the owner grant one"
    )


def _quote(book: OpenBook, request: Request) -> tuple[InForce, Price]:
    """The tariff in force and the price of these items, from memory if that will do."""
    found, under = book.remembered(request.dataset), request.under
    if (
        found is None
        or under not in (None, found.terms.account)
        or not request.items.keys() <= found.terms.tariff.items.keys()
    ):
        found = book.in_force(request.dataset)
    if under not in (None, found.terms.account):
        raise TariffChanged(under, found.terms.account)
    return found, found.terms.tariff.price_of(request.items)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One attempt."""

    book: OpenBook
    found: InForce
    fact: Charge
    month: int

    def make(self, alongside: Alongside | None) -> Entry | LedgerError | _Obstacle:
        """Purse, cap and entry in one transaction, or nothing at all and why."""
        store, token = self.book.store, commands.new_token()
        spend = commands.Spend.of(self.fact, token, self.found.row, self.month)
        done = self.book.finder(self.fact.dataset, token)
        if max(self.fact.farthings, self.fact.delta_units) > LARGEST:
            return store.write_fast(self._why_not, done=done)
        if store.is_sqlite:
            return store.write_fast(
                lambda run: self._step_by_step(run, spend, alongside), done=done
            )
        if alongside is None:
            return store.write_fast(lambda run: self._at_once(run, spend), done=done)
        entry = store.write(lambda run: self._one_by_one(run, spend, alongside), done=done)
        return entry or store.write_fast(self._why_not, done=done)

    def _one_by_one(
        self, run: Connection, spend: commands.Spend, alongside: Alongside
    ) -> Entry | None:
        """A transaction of PostgreSQL; locked in the order of everybody else."""
        lock_dataset(run, self.fact.dataset)
        return self._all_or_nothing(run, spend, alongside)

    def _step_by_step(
        self, run: FastTransaction, spend: commands.Spend, alongside: Alongside | None
    ) -> Entry | LedgerError | _Obstacle:
        """A transaction of SQLite, perhaps one of several that share a flush."""
        entry = self._all_or_nothing(run, spend, alongside)
        if entry is None:
            run.undo()  # one of the two may have had room
        return entry or self._why_not(run)

    def _all_or_nothing(
        self, run: Runs, spend: commands.Spend, alongside: Alongside | None
    ) -> Entry | None:
        entry = spend.make(run)
        if entry is not None and alongside is not None:
            alongside(run, self.found, entry)
        return entry

    def _at_once(
        self, run: FastTransaction, spend: commands.Spend
    ) -> Entry | LedgerError | _Obstacle:
        """One statement of PostgreSQL, which is its own transaction."""
        try:
            entry = spend.make_at_once(run)
        except self.book.store.driver_error as error:
            if sqlstate_of(error) != commands.NO_ROOM:
                raise
            entry = None
        return entry or self._why_not(run)

    def _why_not(self, run: Runs) -> LedgerError | _Obstacle:
        """What stands in the way of a charge that was not made."""
        found, fact, price = self.found, self.fact, self.fact.price
        key = {"dataset": found.row, "in_account": found.terms.account, "who": fact.analyst}
        rows: list[Any] = [_PurseRow(*row) for row in run.execute(_BOTH, key).fetchall()]
        if not rows or not rows[0].writable:
            commands.require_writable(run, found.row)
        by_name = {row.analyst: purse_of(row) for row in rows}
        cap, purse = by_name.get(EVERYBODY), by_name.get(fact.analyst)
        if cap is None:
            return no_cap(found.terms.account)
        if not cap.open:
            return _Obstacle(retired=True)
        if purse is None:
            return no_purse(fact.analyst, fact.dataset)
        if purse.month is not None and month_number(purse.month) > self.month:
            return _Obstacle(month=month_number(purse.month))
        left = left_of(as_of(purse, self.month), cap)
        if price.within(left):
            return _Obstacle()
        fits = largest_that_fits(found.terms.tariff, fact.items, left)
        return DoesNotFit(price, left, fits)


_PurseRow = namedtuple("_PurseRow", [*purses.c.keys(), "writable"])  # type: ignore[misc] # columns
#: Both purses, and whether their book can be written at all, in one round trip.
_BOTH = select(purses, commands.IS_WRITABLE).where(
    purses.c.dataset_id == bindparam("dataset", type_=Integer),
    purses.c.account == bindparam("in_account", type_=Integer),
    purses.c.analyst.in_([literal_column(f"'{EVERYBODY}'"), bindparam("who", type_=String)]),
)
