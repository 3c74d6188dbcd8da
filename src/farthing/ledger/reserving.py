"""How farthings are set aside: one guarded transaction, or nothing and the reason."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Integer, String, bindparam, literal_column, select

from farthing.canonical import digest
from farthing.composition.tariff import Price
from farthing.errors import InvalidInput
from farthing.ledger.errors import (
    DoesNotFit,
    LedgerError,
    NotInLedger,
    TariffChanged,
    Unavailable,
)
from farthing.ledger.lookups import account_row, no_cap, purse_of, reservation_of, row_of_dataset
from farthing.ledger.months import month_name, month_number, month_of
from farthing.ledger.open_book import InForce, OpenBook
from farthing.ledger.records import BATCH, LARGEST, TARIFF, Entry, Reservation, require_items
from farthing.ledger.registered_lists import EVERYTHING
from farthing.ledger.remaining import as_of, largest_that_fits, left_of
from farthing.ledger.store import statements
from farthing.ledger.store.connection import PATIENCE_SECONDS, sqlstate_of
from farthing.ledger.store.fast_path import FastTransaction
from farthing.ledger.store.retry import Patience
from farthing.ledger.store.tables import EVERYBODY, lots, purses


@dataclass(frozen=True, slots=True)
class Request:
    """Who wants what of which dataset, and for which question."""

    dataset: str
    analyst: str
    items: Mapping[str, int] | None
    question: Any

    def fields(self) -> dict[str, Any]:
        """Who asks what, as an entry says it."""
        return {
            "analyst": self.analyst,
            "question": self.question,
            "question_digest": None if self.question is None else digest(self.question),
        }


@dataclass(frozen=True, slots=True)
class _Obstacle:
    """What stood in the way of a charge, if it may work another time.

    `retired`: the tariff that was remembered is no longer in force. `month`: the purse has seen
    this later month, which is the one to charge. Neither: somebody else was there just then.
    """

    retired: bool = False
    month: int | None = None


def reserve(book: OpenBook, request: Request, under: int | None) -> Reservation:
    """What these items cost under the tariff in force, from the purse and from the cap."""
    wanted, asked = require_items(request.items), request.fields()
    patience = Patience(PATIENCE_SECONDS)
    month = 0
    while True:
        found, price = _quote(book, request.dataset, wanted, under)
        now = book.clock()
        month = max(month, month_of(now))
        fact = book.fact(
            "reserve",
            request.dataset,
            at=now,
            account=found.terms.account,
            items=wanted,
            farthings=price.farthings,
            delta_units=price.delta_units,
            month=month_name(month),
            **asked,
        )
        outcome = _spend(book, found, fact, price, month)
        if isinstance(outcome, Entry):
            return reservation_of(book.noted(request.dataset, outcome))
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


def no_purse(analyst: str, dataset: str) -> NotInLedger:
    """Who was granted nothing can spend nothing."""
    return NotInLedger(f"{analyst} has no purse under the tariff in force for {dataset}")


def _quote(
    book: OpenBook, dataset: str, items: Mapping[str, int], under: int | None
) -> tuple[InForce, Price]:
    """The tariff in force and the price of these items, from memory if that will do."""
    found = book.remembered(dataset)
    if (
        found is None
        or under not in (None, found.terms.account)
        or not items.keys() <= found.terms.tariff.items.keys()
    ):
        found = book.in_force(dataset)
    if under not in (None, found.terms.account):
        raise TariffChanged(under, found.terms.account)
    return found, found.terms.tariff.price_of(items)


def _spend(
    book: OpenBook, found: InForce, fact: dict[str, Any], price: Price, month: int
) -> Entry | LedgerError | _Obstacle:
    """Purse, cap and entry in one transaction, or nothing at all and why."""
    store, token = book.store, statements.new_token()
    spend = statements.Spend.of(fact, token, found.row, price, month)

    def work(run: FastTransaction) -> Entry | LedgerError | _Obstacle:
        if max(price.farthings, price.delta_units) > LARGEST:
            return _why_not(run, found, fact, price, month)
        if store.is_sqlite:
            entry = spend.make(run)
            if entry is None:
                run.undo()  # one of the two may have had room
        else:
            entry = _at_once(spend, run, store.driver_error)
        return entry or _why_not(run, found, fact, price, month)

    return store.write_fast(work, done=book.finder(fact["dataset"], token))


def _at_once(
    spend: statements.Spend, run: FastTransaction, driver_error: type[Exception]
) -> Entry | None:
    try:
        return spend.make_at_once(run)
    except driver_error as error:
        if sqlstate_of(error) != statements.NO_ROOM:
            raise
        return None


def _why_not(
    run: FastTransaction, found: InForce, fact: dict[str, Any], price: Price, month: int
) -> LedgerError | _Obstacle:
    """What stands in the way of a charge that was not made."""
    statements.require_writable(run, found.row)
    analyst, account = fact["analyst"], found.terms.account
    key = {"dataset": found.row, "in_account": account, "who": analyst}
    rows: list[Any] = [_PurseRow(*row) for row in run.execute(_BOTH, key).fetchall()]
    by_name = {row.analyst: purse_of(row) for row in rows}
    cap, purse = by_name.get(EVERYBODY), by_name.get(analyst)
    if cap is None:
        return no_cap(account)
    if not cap.open:
        return _Obstacle(retired=True)
    if purse is None:
        return no_purse(analyst, fact["dataset"])
    if purse.month is not None and month_number(purse.month) > month:
        return _Obstacle(month=month_number(purse.month))
    left = left_of(as_of(purse, month), cap)
    if price.farthings <= left.farthings and price.delta_units <= left.delta_units:
        return _Obstacle()
    return DoesNotFit(price, left, largest_that_fits(found.terms.tariff, fact["items"], left))


def reserve_list(book: OpenBook, request: Request, name: str) -> Reservation:
    """A batch whole, or these items of a set-wise list."""

    def look(connection: Connection) -> tuple[int, Any]:
        row = row_of_dataset(connection, request.dataset)
        return row, own_list(connection, row, request.analyst, name)

    row, account = book.store.ask(look)
    if account.mode == BATCH and request.items is not None:
        raise InvalidInput("a batch is reserved whole; leave the items out")
    wanted = {EVERYTHING: 1} if account.mode == BATCH else require_items(request.items)
    fact = book.fact(
        "reserve",
        request.dataset,
        account=account.number,
        items=wanted,
        farthings=0,
        delta_units=0,
        month=None,
        **request.fields(),
    )

    def work(connection: Connection, token: str) -> Entry | None:
        entry = statements.append(connection, row, fact, token)
        fits = max(wanted.values()) <= LARGEST
        taken = fits and statements.take_lots(connection, row, account.number, wanted)
        return entry if taken else None

    entry = book.write_if_it_fits(request.dataset, work)
    if entry is None:
        raise _list_refusal(book, row, account, wanted)
    return reservation_of(entry)


def own_list(connection: Connection, row: int, analyst: str, name: str) -> Any:
    """The row of a list that is registered for this analyst."""
    found = account_row(connection, row, name)
    if found.mode == TARIFF:
        raise InvalidInput(f"{name} is a tariff, not a registered list")
    if found.analyst != analyst:
        raise NotInLedger(f"{analyst} has no list {name}")
    return found


def _list_refusal(
    book: OpenBook, row: int, account: Any, wanted: Mapping[str, int]
) -> DoesNotFit | InvalidInput:
    def look(connection: Connection) -> dict[str, int]:
        rows = connection.execute(
            select(lots).filter_by(dataset_id=row, account=account.number).order_by("item")
        )
        return {lot.item: lot.granted - lot.spent for lot in rows}

    left = book.store.ask(look)
    unknown = set(wanted) - set(left)
    if unknown:
        return InvalidInput(f"the list {account.name} has {', '.join(left)}, not {min(unknown)}")
    fits = {item: min(times, left[item]) for item, times in wanted.items() if left[item] > 0}
    return DoesNotFit(wanted, left, fits)


_PurseRow = namedtuple("_PurseRow", purses.c.keys())  # type: ignore[misc] # the columns of a row
_BOTH = select(purses).where(
    purses.c.dataset_id == bindparam("dataset", type_=Integer),
    purses.c.account == bindparam("in_account", type_=Integer),
    purses.c.analyst.in_([literal_column(f"'{EVERYBODY}'"), bindparam("who", type_=String)]),
)
