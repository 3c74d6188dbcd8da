"""How a reservation ends: closed, or abandoned. Nothing comes back because of an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from farthing.composition.tariff import Price
from farthing.errors import InvalidInput
from farthing.ledger.errors import AlreadySettled
from farthing.ledger.lookups import accounts_of
from farthing.ledger.months import month_number
from farthing.ledger.open_book import OpenBook
from farthing.ledger.records import BATCH, TARIFF, Entry, Reservation, require_name
from farthing.ledger.remaining import unused_of
from farthing.ledger.store import statements


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

    def give_back(connection: Connection) -> None:
        if unused and mode != TARIFF:
            statements.return_to_lots(connection, row, account, unused)
        elif unused:
            month = month_number(held.fact["month"])
            statements.give_back(connection, row, account, held.fact["analyst"], back, month)

    amounts = {"unused": unused, "farthings": -back.farthings, "delta_units": -back.delta_units}
    fact = _settled(book, "close", held, {**amounts, **kept})

    def work(connection: Connection, token: str) -> Entry:
        entry = _append_once(connection, row, fact, token)
        give_back(connection)
        return entry

    return book.write(reservation.dataset, work)


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
