"""How a reservation ends: closed, or abandoned. Nothing comes back because of an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from farthing.composition.tariffs.tariff import Price
from farthing.errors import InvalidInput
from farthing.ledger.entries import Abandon, Close, Entry, Reserve, Revoke, Settlement
from farthing.ledger.errors import AlreadySettled
from farthing.ledger.months import month_number
from farthing.ledger.records import BATCH, EVERYBODY, TARIFF, Reservation, Use, require_name
from farthing.ledger.remaining import unused_of
from farthing.ledger.store import commands
from farthing.ledger.store.open_book import OpenBook, lock_dataset
from farthing.ledger.store.queries import accounts_of, entry_of, purses_of
from farthing.ledger.store.tables import entries


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a reservation: the digest of its release, what was run, and what is kept."""

    release_digest: str
    use: Use | None = None
    release: Any = None


def close(
    book: OpenBook,
    reservation: Reservation,
    used: Mapping[str, int] | None,
    outcome: Outcome,
    alongside: Callable[[Connection], None],
) -> Entry:
    """The mechanism ran; what its output shows was not used comes back.

    `alongside` is done in the same transaction, after everything else.
    """
    unused = unused_of(reservation.items, used)

    def work(connection: Connection, token: str) -> Entry:
        row = lock_dataset(connection, reservation.dataset)
        entry, held = book.held(connection, row, reservation)
        mode = accounts_of(connection, row)[held.account - 1].mode
        if mode == BATCH and unused:
            raise InvalidInput("a batch runs once and whole; nothing of it is unused")
        back, revoked = Price(0), None
        if unused and mode == TARIFF:
            tariff = book.tariff(connection, reservation.dataset, row, held.account)
            back, revoked = tariff.price_of(unused), _revoked_since(connection, row, entry, held)
        closed = Close(
            **book.stamp(reservation.dataset),
            **_repeated(entry, held),
            unused=unused,
            farthings=-back.farthings,
            delta_units=-back.delta_units,
            release_digest=outcome.release_digest,
            release=outcome.release,
            use=None if outcome.use is None else outcome.use.to_json(),
            revoked=revoked,
        )
        written = _append_once(connection, row, closed, token)
        if unused and mode != TARIFF:
            commands.return_to_lots(connection, row, held.account, unused)
        elif unused:
            whom = held.analyst if revoked is None else EVERYBODY
            month = month_number(held.month or "")
            commands.give_back(connection, row, held.account, whom, back, month)
        alongside(connection)
        return written

    return book.write(reservation.dataset, work)


def _revoked_since(connection: Connection, row: int, reserved: Entry, held: Reserve) -> int | None:
    """The entry that took away what the purse of this reservation had left, if there is one.

    What was revoked does not come back to its analyst, only to everybody. A purse that renews
    keeps its rate.
    """
    own = purses_of(connection, row, held.account, held.analyst)
    if any(purse.renewal is not None for purse in own):
        return None
    later = connection.execute(
        select(entries)
        .filter_by(dataset_id=row, kind=Revoke.kind)
        .where(entries.c.number > reserved.number)
        .order_by(entries.c.number)
    )
    for entry in map(entry_of, later):
        fact = entry.fact
        if isinstance(fact, Revoke) and fact.is_of(held.account, held.analyst):
            return entry.number
    return None


def abandon(book: OpenBook, reservation: Reservation, reason: str) -> Entry:
    """Nothing was released, or nobody knows. What was reserved stays spent."""

    def work(connection: Connection, token: str) -> Entry:
        row = lock_dataset(connection, reservation.dataset)
        entry, held = book.held(connection, row, reservation)
        return _append_once(connection, row, abandoned(book, entry, held, reason), token)

    return book.write(reservation.dataset, work)


def abandoned(book: OpenBook, entry: Entry, held: Reserve, reason: str) -> Abandon:
    """What the entry says that abandons the reservation of this one."""
    words = require_name("reason", reason)
    stamp = book.stamp(held.dataset)
    return Abandon(**stamp, **_repeated(entry, held), unused={}, reason=words)


class _Repeated(TypedDict):
    account: int
    analyst: str
    question_digest: str | None
    settles: int


def _repeated(entry: Entry, held: Reserve) -> _Repeated:
    """What every settlement repeats of its reservation."""
    return {
        "account": held.account,
        "analyst": held.analyst,
        "question_digest": held.question_digest,
        "settles": entry.number,
    }


def _append_once(connection: Connection, row: int, fact: Settlement, token: str) -> Entry:
    """An index of the database lets only one entry settle a reservation."""
    try:
        return commands.append(connection, row, fact, token)
    except IntegrityError:
        raise AlreadySettled(
            f"the reservation in entry {fact.settles} was closed or abandoned before"
        ) from None
