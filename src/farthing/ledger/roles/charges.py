"""Write about charges: reserve before a mechanism runs, then close or abandon.

A charge takes farthings from a purse and from the cap, together with the entry that says for what,
in one transaction or not at all. Nothing comes back because of an error.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from farthing.canonical import digest
from farthing.composition.tariffs.tariff import Price, Tariff
from farthing.errors import InvalidInput, require_count
from farthing.ledger.entries.analyst import Abandon, Charge, Close, Reserve, Settlement
from farthing.ledger.entries.fact import Entry, written_fact
from farthing.ledger.entries.owner import Revoke
from farthing.ledger.errors import (
    AlreadySettled,
    DoesNotFit,
    LedgerError,
    NotInLedger,
    TariffChanged,
    Unavailable,
)
from farthing.ledger.records import (
    BATCH,
    EVERYBODY,
    LARGEST,
    TARIFF,
    Reservation,
    Use,
    month_name,
    month_number,
    month_of,
    require_items,
    require_name,
    require_small,
)
from farthing.ledger.registered_lists import EVERYTHING
from farthing.ledger.store import commands, queries
from farthing.ledger.store.commands import Runs
from farthing.ledger.store.connection import PATIENCE_SECONDS, sqlstate_of
from farthing.ledger.store.fast_path import FastTransaction, Patience
from farthing.ledger.store.open_book import InForce, OpenBook, Stamp, Writing, lock_dataset
from farthing.ledger.store.tables import accounts, purses

S = TypeVar("S", bound=Settlement)
#: What else is written in the transaction of a charge.
Alongside = Callable[[Runs, InForce, Entry], None]


@dataclass(frozen=True, slots=True)
class Request:
    """Items that an analyst buys.

    `under` is the account that it was planned with, or None. `entry` makes the entry from the
    fields of a charge; its other fields are already bound.
    """

    dataset: str
    analyst: str
    items: Mapping[str, int]
    question: Any = field(repr=False)
    under: int | None = None
    entry: Callable[..., Charge] = Reserve

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", require_items(self.items))
        require_small(self.question)


@dataclass(frozen=True, slots=True)
class _Obstacle:
    """Why a charge failed, if it may succeed in another attempt.

    `retired`: the tariff from the cache is no longer in force. `month`: the purse has seen this
    later month, which must be charged. Neither: somebody else was in the way.
    """

    retired: bool = False
    month: int | None = None


def charge(book: OpenBook, request: Request, alongside: Alongside | None = None) -> Entry:
    """Make a charge and give its entry, or raise and change nothing."""
    patience = Patience(PATIENCE_SECONDS)
    month = 0
    while True:
        in_force, price = _quote(book, request)
        now = book.clock()
        month = max(month, month_of(now))
        fact = request.entry(
            **book.stamp(request.dataset, now),
            account=in_force.terms.account,
            analyst=request.analyst,
            items=dict(request.items),
            farthings=price.farthings,
            delta_units=price.delta_units,
            month=month_name(month),
            question=request.question,
            question_digest=_digest(request.question),
        )
        outcome = _attempt(book, in_force, fact, month, alongside)
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


def _digest(question: Any) -> str | None:
    """The digest by which a release is found again; None without a question."""
    return None if question is None else digest(question)


def no_purse(analyst: str, dataset: str) -> NotInLedger:
    """The error for an analyst to whom nothing was granted."""
    return NotInLedger(
        f"{analyst} has no purse under the tariff in force for {dataset}: ask as an analyst who "
        "has one, or let the owner grant one"
    )


def _quote(book: OpenBook, request: Request) -> tuple[InForce, Price]:
    """The tariff in force and the price of these items, from the cache if it is good enough."""
    in_force, under = book.remembered(request.dataset), request.under
    if (
        in_force is None
        or under not in (None, in_force.terms.account)
        or not request.items.keys() <= in_force.terms.tariff.items.keys()
    ):
        in_force = book.in_force(request.dataset)
    if under not in (None, in_force.terms.account):
        raise TariffChanged(under, in_force.terms.account)
    return in_force, in_force.terms.tariff.price_of(request.items)


def _attempt(
    book: OpenBook, in_force: InForce, fact: Charge, month: int, alongside: Alongside | None
) -> Entry | LedgerError | _Obstacle:
    """Write purse, cap and entry in one transaction, or nothing; then says why not."""
    store, token = book.store, commands.new_token()
    spend = commands.Spend.of(fact, token, in_force.row, month)
    done = book.finder(fact.dataset, token)

    def all_or_nothing(run: Runs) -> Entry | None:
        entry = spend.make(run)
        if entry is not None and alongside is not None:
            alongside(run, in_force, entry)
        return entry

    def why_not(run: Runs) -> LedgerError | _Obstacle:
        return _why_not(run, in_force, fact, month)

    def on_sqlite(run: FastTransaction) -> Entry | LedgerError | _Obstacle:
        """A transaction, perhaps one of several that share a flush."""
        entry = all_or_nothing(run)
        if entry is None:
            run.undo()  # purse or cap may have had room
        return entry or why_not(run)

    def at_once(run: FastTransaction) -> Entry | LedgerError | _Obstacle:
        """One command of PostgreSQL, which is its own transaction."""
        try:
            entry = spend.make_at_once(run)
        except store.driver_error as error:
            if sqlstate_of(error) != commands.NO_ROOM:
                raise
            entry = None
        return entry or why_not(run)

    def several(run: Connection) -> Entry | None:
        """Several commands of PostgreSQL."""
        lock_dataset(run, fact.dataset)  # the order in which everybody else locks
        return all_or_nothing(run)

    if max(fact.farthings, fact.delta_units) > LARGEST:
        return store.write_fast(why_not, done=done)
    if store.is_sqlite or alongside is None:
        return store.write_fast(on_sqlite if store.is_sqlite else at_once, done=done)
    return store.write(several, done=done) or store.write_fast(why_not, done=done)


def _why_not(run: Runs, in_force: InForce, fact: Charge, month: int) -> LedgerError | _Obstacle:
    """What stands in the way of a charge that was not made."""
    terms, price = in_force.terms, fact.price
    key = {"dataset": in_force.row, "in_account": terms.account, "who": fact.analyst}
    rows: list[Any] = [_PurseRow(*row) for row in run.execute(commands.READ_BOTH, key).fetchall()]
    if not rows or not rows[0].writable:
        commands.require_writable(run, in_force.row)
    by_name = {row.analyst: queries.purse_of(row) for row in rows}
    cap, purse = by_name.get(EVERYBODY), by_name.get(fact.analyst)
    if cap is None:
        return queries.no_cap(terms.account)
    if not cap.open:
        return _Obstacle(retired=True)
    if purse is None:
        return no_purse(fact.analyst, fact.dataset)
    if purse.month is not None and month_number(purse.month) > month:
        return _Obstacle(month=month_number(purse.month))
    left = purse.in_month(month).left(cap)
    if price.within(left):
        return _Obstacle()
    return DoesNotFit(price, left, largest_that_fits(terms.tariff, fact.items, left))


_PurseRow = namedtuple("_PurseRow", [*purses.c.keys(), "writable"])  # type: ignore[misc] # columns


def largest_that_fits(tariff: Tariff, items: Mapping[str, int], left: Price) -> dict[str, int]:
    """The largest request in about the same proportions that fits; {} if there is none.

    10 selections and 10 counts shrink to 7 and 7; 100 selections and one threshold to 43 and
    one, because no item can be bought less than once.
    """
    most = max(items.values())

    def part(size: int) -> dict[str, int]:
        return {name: -(-times * size // most) for name, times in items.items()}

    def too_much(size: int) -> bool:
        return not tariff.price_of(part(size)).within(left)

    largest = min(most, left.farthings)  # nothing is cheaper than a farthing
    size = bisect_left(range(1, largest + 1), True, key=too_much)
    return part(size) if size > 0 else {}


def own_list(connection: Connection, row: int, dataset: str, analyst: str, name: str) -> Any:
    """The account of a list of this analyst; one error for lists of others and for tariffs."""
    account = connection.execute(
        select(accounts).filter_by(dataset_id=row, name=name, analyst=analyst)
    ).one_or_none()
    if account is None or account.mode == TARIFF:
        raise NotInLedger(f"{analyst} has no list {name!r:.60} for {dataset}")
    return account


def reserve_list(
    writing: Writing, analyst: str, name: str, items: Mapping[str, int] | None, question: Any
) -> None:
    """Take from a registered list: a batch whole, without `items`; else these items."""
    account = own_list(writing.connection, writing.row, writing.dataset, analyst, name)
    if account.mode == BATCH and items is not None:
        raise InvalidInput("a batch is reserved whole; leave the items out")
    wanted = {EVERYTHING: 1} if account.mode == BATCH else require_items(items)
    writing.append(
        Reserve(
            **writing.stamp(),
            account=account.number,
            analyst=analyst,
            items=wanted,
            farthings=0,
            delta_units=0,
            month=None,
            question=question,
            question_digest=_digest(question),
        )
    )
    fits = max(wanted.values()) <= LARGEST
    if not (fits and commands.take_lots(writing.connection, writing.row, account.number, wanted)):
        raise _list_refusal(writing, account, wanted)


def _list_refusal(
    writing: Writing, account: Any, wanted: Mapping[str, int]
) -> DoesNotFit | InvalidInput:
    lots = queries.lots_of(writing.connection, writing.row, account.number)
    left = {lot.item: lot.granted - lot.spent for lot in lots}
    if not left:
        return InvalidInput(f"the list {account.name} was retired; nothing is left of it")
    unknown = set(wanted) - set(left)
    if unknown:
        return InvalidInput(f"the list {account.name} has {', '.join(left)}, not {min(unknown)}")
    fits = {item: min(times, left[item]) for item, times in wanted.items() if left[item] > 0}
    return DoesNotFit(wanted, left, fits)


def close(
    writing: Writing,
    reservation: Reservation,
    used: Mapping[str, int] | None,
    *,
    release_digest: str,
    use: Use | None,
    release: Any,
) -> None:
    """The mechanism ran; what its output shows was not used comes back."""
    connection, row = writing.connection, writing.row
    unused = _unused(reservation.items, used)
    entry, held = _held(writing, reservation)
    mode = queries.accounts_of(connection, row)[held.account - 1].mode
    if mode == BATCH and unused:
        raise InvalidInput("a batch runs once and whole; nothing of it is unused")
    back, revoked = Price(0), None
    if unused and mode == TARIFF:
        signed = writing.book.certificate(connection, writing.dataset, row, held.account)
        back, revoked = signed.tariff.price_of(unused), _revoked_since(writing, entry, held)
    settling = _settling(Close, writing.stamp(), entry, held)
    closed = settling(
        unused=unused,
        farthings=-back.farthings,
        delta_units=-back.delta_units,
        release_digest=release_digest,
        release=release,
        use=None if use is None else use.to_json(),
        revoked=revoked,
    )
    _append_once(writing, closed)
    if unused and mode != TARIFF:
        commands.return_to_lots(connection, row, held.account, unused)
    elif unused:
        whom = held.analyst if revoked is None else EVERYBODY
        commands.give_back(
            connection, row, held.account, whom, back, month_number(held.month or "")
        )


def _unused(reserved: Mapping[str, int], used: Mapping[str, int] | None) -> dict[str, int]:
    """The part of a reservation that was not used."""
    if used is None:
        return {}
    counts = {name: require_count(f"used {name}", times) for name, times in used.items()}
    if set(counts) != set(reserved):
        raise InvalidInput(
            f"used must say how often each of {', '.join(reserved)} was used, "
            f"got {', '.join(counts) or 'nothing'}"
        )
    over = [name for name, times in counts.items() if times > reserved[name]]
    if over:
        raise InvalidInput(
            f"at most {reserved[over[0]]} x {over[0]} was reserved, got {counts[over[0]]} used"
        )
    unused = {name: times - counts[name] for name, times in reserved.items()}
    return {name: times for name, times in unused.items() if times > 0}


def _revoked_since(writing: Writing, reserved: Entry, held: Reserve) -> int | None:
    """The entry that revoked the purse of this reservation after it was made, if there is one.

    What was revoked returns to the cap only. A purse that renews keeps its rate.
    """
    own = queries.purses_of(writing.connection, writing.row, held.account, held.analyst)
    if any(purse.renewal is not None for purse in own):
        return None
    kinds, after = (Revoke.kind,), reserved.number
    with queries.entry_rows(writing.connection, writing.row, kinds, after=after) as rows:
        for number, fact in ((row.number, written_fact(row.fact)) for row in rows):
            purse = (fact.account, fact.analyst) if isinstance(fact, Revoke) else None
            if purse == (held.account, held.analyst):
                return int(number)
    return None


def abandon(writing: Writing, reservation: Reservation, reason: str) -> None:
    """Nothing was released, or nobody knows. What was reserved stays spent."""
    entry, held = _held(writing, reservation)
    _append_once(writing, abandoned(writing.stamp(), entry, held, reason))


def abandoned(stamp: Stamp, entry: Entry, held: Reserve, reason: str) -> Abandon:
    """The fact that abandons the reservation of this entry."""
    words = require_name("reason", reason)
    return _settling(Abandon, stamp, entry, held)(unused={}, reason=words)


def _held(writing: Writing, reservation: Reservation) -> tuple[Entry, Reserve]:
    """The entry of a reservation, if it is the one that was made."""
    entry = queries.entry_at(writing.connection, writing.row, reservation.entry)
    if not isinstance(entry.fact, Reserve) or queries.reservation_of(entry) != reservation:
        raise NotInLedger(f"entry {reservation.entry} is not the reservation that was given")
    return entry, entry.fact


def _settling(kind: type[S], stamp: Stamp, entry: Entry, held: Reserve) -> Callable[..., S]:
    """A settlement, with what it repeats of its reservation."""
    return partial(
        kind,
        **stamp,
        account=held.account,
        analyst=held.analyst,
        question_digest=held.question_digest,
        settles=entry.number,
    )


def _append_once(writing: Writing, fact: Settlement) -> None:
    """Write a settlement; an index of the database allows one for each reservation."""
    try:
        writing.append(fact)
    except IntegrityError:
        raise AlreadySettled(
            f"the reservation in entry {fact.settles} was closed or abandoned before"
        ) from None
