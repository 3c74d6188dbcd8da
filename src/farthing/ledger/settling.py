"""How a reservation ends: closed, or abandoned. Nothing comes back because of an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from farthing.composition.tariffs.tariff import Price
from farthing.errors import InvalidInput
from farthing.ledger.errors import AlreadySettled
from farthing.ledger.lookups import accounts_of, entry_of, purses_of
from farthing.ledger.months import month_number
from farthing.ledger.open_book import OpenBook, lock_dataset
from farthing.ledger.records import BATCH, TARIFF, Entry, Reservation, require_name
from farthing.ledger.remaining import unused_of
from farthing.ledger.store import statements
from farthing.ledger.store.tables import EVERYBODY, entries


def close(
    book: OpenBook, reservation: Reservation, used: Mapping[str, int] | None, kept: dict[str, Any]
) -> Entry:
    """The mechanism ran; what its output shows was not used comes back."""
    row, held = book.held(reservation)
    account = held.fact["account"]

    def look(connection: Connection) -> tuple[str, Price]:
        mode = accounts_of(connection, row)[account - 1].mode
        if not unused or mode != TARIFF:
            return mode, Price(0)
        tariff = book.tariff(connection, reservation.dataset, row, account)
        return mode, tariff.price_of(unused)

    unused = unused_of(held.fact["items"], used)
    mode, back = book.store.ask(look)
    if mode == BATCH and unused:
        raise InvalidInput("a batch runs once and whole; nothing of it is unused")

    def give_back(connection: Connection, whom: str) -> None:
        if unused and mode != TARIFF:
            statements.return_to_lots(connection, row, account, unused)
        elif unused:
            month = month_number(held.fact["month"])
            statements.give_back(connection, row, account, whom, back, month)

    amounts = {"unused": unused, "farthings": -back.farthings, "delta_units": -back.delta_units}
    fact = _settled(book, "close", held, {**amounts, **kept})

    def work(connection: Connection, token: str) -> Entry:
        lock_dataset(connection, reservation.dataset)
        revoked = _revoked_since(connection, row, held) if unused and mode == TARIFF else None
        entry = _append_once(connection, row, {**fact, "revoked": revoked}, token)
        give_back(connection, held.fact["analyst"] if revoked is None else EVERYBODY)
        return entry

    return book.write(reservation.dataset, work)


def _revoked_since(connection: Connection, row: int, held: Entry) -> int | None:
    """The entry that took away what the purse of this reservation had left, if there is one.

    What was revoked does not come back to its analyst, only to everybody. A purse that renews
    keeps its rate.
    """
    account, analyst = held.fact["account"], held.fact["analyst"]
    if any(purse.renewal is not None for purse in purses_of(connection, row, account, analyst)):
        return None
    later = connection.execute(
        select(entries)
        .filter_by(dataset_id=row, kind="revoke")
        .where(entries.c.number > held.number)
        .order_by(entries.c.number)
    )
    facts = ((one.number, one.fact) for one in map(entry_of, later))
    own = (n for n, fact in facts if (fact["account"], fact["analyst"]) == (account, analyst))
    return next(own, None)


def abandon(book: OpenBook, reservation: Reservation, reason: str) -> Entry:
    """Nothing was released, or nobody knows. What was reserved stays spent."""
    row, held = book.held(reservation)
    fact = abandoned(book, held, reason)

    def work(connection: Connection, token: str) -> Entry:
        return _append_once(connection, row, fact, token)

    return book.write(reservation.dataset, work)


def abandoned(book: OpenBook, held: Entry, reason: str) -> dict[str, Any]:
    """What the entry says that abandons the reservation of this one."""
    nothing = {"unused": {}, "farthings": 0, "delta_units": 0}
    return _settled(book, "abandon", held, {**nothing, "reason": require_name("reason", reason)})


def _settled(book: OpenBook, kind: str, held: Entry, more: dict[str, Any]) -> dict[str, Any]:
    repeated = {key: held.fact[key] for key in ("dataset", "account", "analyst", "question_digest")}
    return book.fact(kind, settles=held.number, **repeated, **more)


def _append_once(connection: Connection, row: int, fact: dict[str, Any], token: str) -> Entry:
    """An index of the database lets only one entry settle a reservation."""
    try:
        return statements.append(connection, row, fact, token)
    except IntegrityError:
        raise AlreadySettled(
            f"the reservation in entry {fact['settles']} was closed or abandoned before"
        ) from None
