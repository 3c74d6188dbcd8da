"""The ledger: who may spend how much of what, and everything that was spent.

with Ledger.open("budget.db") as ledger:
    ledger.add(Dataset("events", unit="member_id", owner="data-team"))
    ledger.sign("events", tariff.certify())
    ledger.grant("events", "ann", farthings=100)
    held = ledger.reserve("events", "ann", {"select": 10}, question={"top_k": 10})
    …                                          # run the mechanism
    ledger.close(held, release_digest)         # or abandon(held): nothing comes back
"""

from __future__ import annotations

import os
from collections import namedtuple
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Self

from sqlalchemy import Connection, Integer, String, bindparam, literal_column, select
from sqlalchemy.exc import IntegrityError

from farthing.canonical import digest
from farthing.composition.tariff import Price
from farthing.errors import InvalidInput
from farthing.ledger import lists, moves
from farthing.ledger.errors import AlreadySettled, DoesNotFit, NotInLedger, TariffChanged
from farthing.ledger.facts import (
    BATCH,
    LARGEST,
    TARIFF,
    Account,
    Entry,
    Reservation,
    require_items,
    require_name,
)
from farthing.ledger.months import month_name, month_number, month_of
from farthing.ledger.owning import Owner
from farthing.ledger.pricing import as_of, largest_that_fits, left_of, unused_of
from farthing.ledger.quick import Quick
from farthing.ledger.reading import Terms, utc_now
from farthing.ledger.rows import accounts_of, no_cap, purse_of, reservation_of
from farthing.ledger.schema import EVERYBODY, purses
from farthing.ledger.store import Again, Store
from farthing.ledger.upgrade import ensure_schema


class Retired(Exception):
    """The tariff that was remembered is no longer in force."""


class Later(Exception):
    """The purse has seen a later month than this clock: that one is charged."""

    def __init__(self, month: int) -> None:
        self.month = month


class Refused(Exception):
    """A list does not have what was asked of it; undoes what was taken."""


class Ledger(Owner):
    """A durable budget. Safe to share between threads; processes each open their own."""

    @classmethod
    def open(
        cls,
        target: str | os.PathLike[str],
        *,
        upgrade: bool = True,
        clock: Callable[[], datetime] = utc_now,
    ) -> Self:
        """The ledger in this file or at this PostgreSQL address.

        With `upgrade` it is created if it is missing and migrated if it is old; without, both
        are errors. A newer schema than this farthing knows is always an error.
        """
        store = Store(target, create=upgrade)
        try:
            ensure_schema(store, upgrade=upgrade)
        except BaseException:
            store.shut()
            raise
        return cls(store, clock)

    def shut(self) -> None:
        """Give the database connections back."""
        self.store.shut()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()

    def reserve(
        self,
        dataset: str,
        analyst: str,
        items: Mapping[str, int] | None = None,
        *,
        question: Any = None,
        account: str | None = None,
        under: int | None = None,
    ) -> Reservation:
        """Set aside what these items cost, in one transaction, or raise and change nothing.

        `items` says how often each item of the tariff in force is bought. `under` is the
        account that the request was planned with (`in_force`); TariffChanged if another
        tariff is in force by now. With `account`, the name of a registered list, the items
        come from that list instead; a batch is always reserved whole, without `items`.
        """
        require_name("the analyst", analyst)
        question_digest = None if question is None else digest(question)
        asked = {"analyst": analyst, "question": question, "question_digest": question_digest}
        if account is not None:
            if under is not None:
                raise InvalidInput("a registered list never changes; leave under out")
            return self._reserve_listed(dataset, account, items, asked)
        wanted = require_items(items)
        month = 0
        while True:
            terms, price = self._quote(dataset, wanted, under)
            now = self._clock()
            month = max(month, month_of(now))
            fact = self._fact(
                "reserve",
                dataset,
                at=now,
                account=terms.account,
                items=wanted,
                farthings=price.farthings,
                delta_units=price.delta_units,
                month=month_name(month),
                **asked,
            )
            try:
                return reservation_of(self._spend(terms, fact, price, month))
            except Retired:
                self._terms.pop(dataset, None)
            except Later as purse:
                month = purse.month

    def _quote(
        self, dataset: str, items: Mapping[str, int], under: int | None
    ) -> tuple[Terms, Price]:
        """The tariff in force and the price of these items, from memory if that will do."""
        terms = self._terms.get(dataset)
        if terms is not None and under in (None, terms.account):
            try:
                return terms, terms.tariff.price_of(items)
            except InvalidInput:
                pass  # a tariff that was signed elsewhere may have these items
        terms = self._remember(dataset)
        if under not in (None, terms.account):
            raise TariffChanged(under, terms.account)
        return terms, terms.tariff.price_of(items)

    def _spend(self, terms: Terms, fact: dict[str, Any], price: Price, month: int) -> Entry:
        """Purse, cap and entry in one transaction, or an error and nothing at all."""
        dataset, token = fact["dataset"], moves.new_token()
        spend = moves.Spend.of(fact, token, terms.identity, price, month)

        def work(run: Quick) -> Entry:
            if max(price.farthings, price.delta_units) > LARGEST:
                raise self._refusal(run, terms, fact, price, month)
            if self.store.is_sqlite:
                entry = spend.make(run)
                if entry is None:
                    run.undo()  # one of the two may have had room
                    raise self._refusal(run, terms, fact, price, month)
                return entry
            try:
                return spend.make_at_once(run)
            except self.store.driver_error as error:
                if getattr(error, "sqlstate", None) != moves.NO_ROOM:
                    raise
                moves.require_schema(run)
                raise self._refusal(run, terms, fact, price, month) from None

        entry = self.store.write_quickly(work, done=self._finder(dataset, token))
        self._seen[dataset] = entry.number
        return entry

    def _refusal(
        self, run: Quick, terms: Terms, fact: dict[str, Any], price: Price, month: int
    ) -> Exception:
        """What stands in the way of a charge that was not made."""
        who = fact["analyst"]
        key = {"dataset": terms.identity, "in_account": terms.account, "who": who}
        rows: list[Any] = [_Purse(*row) for row in run.execute(_BOTH, key).fetchall()]
        found = {row.analyst: purse_of(row) for row in rows}
        cap, purse = found.get(EVERYBODY), found.get(who)
        if cap is None:
            return no_cap(terms.account)
        if not cap.open:
            return Retired()
        if purse is None:
            return NotInLedger(f"{who} has no purse under the tariff in force")
        if purse.month is not None and month_number(purse.month) > month:
            return Later(month_number(purse.month))
        left = left_of(as_of(purse, month), cap)
        if price.farthings <= left.farthings and price.delta_units <= left.delta_units:
            return Again()  # taken or returned by somebody else at this moment
        return DoesNotFit(price, left, largest_that_fits(terms.tariff, fact["items"], left))

    def _reserve_listed(
        self,
        dataset: str,
        name: str,
        items: Mapping[str, int] | None,
        asked: dict[str, Any],
    ) -> Reservation:
        def look(connection: Connection) -> tuple[int, Any]:
            identity = self._identity(connection, dataset)
            return identity, self._account_row(connection, identity, name)

        identity, row = self.store.ask(look)
        if row.mode == TARIFF:
            raise InvalidInput(f"{name} is a tariff; reserve from it without naming an account")
        if row.analyst != asked["analyst"]:
            raise NotInLedger(f"{asked['analyst']} has no list {name} for {dataset}")
        if row.mode == BATCH and items is not None:
            raise InvalidInput("a batch is reserved whole; leave the items out")
        wanted = {lists.EVERYTHING: 1} if row.mode == BATCH else require_items(items)

        fact = self._fact(
            "reserve",
            dataset,
            account=row.number,
            items=wanted,
            farthings=0,
            delta_units=0,
            month=None,
            **asked,
        )

        def work(connection: Connection, token: str) -> Entry:
            entry = moves.append(connection, identity, fact, token)
            fits = max(wanted.values()) <= LARGEST
            if not fits or not moves.take_lots(connection, identity, row.number, wanted):
                raise Refused
            return entry

        try:
            return reservation_of(self._write(dataset, work))
        except Refused:
            pass
        left = {lot.item: lot.granted - lot.spent for lot in self.lots(dataset, name)}
        unknown = set(wanted) - set(left)
        if unknown:
            raise InvalidInput(f"the list {name} has {', '.join(left)}, not {min(unknown)}")
        fits = {item: min(times, left[item]) for item, times in wanted.items() if left[item] > 0}
        raise DoesNotFit(wanted, left, fits)

    def close(
        self,
        reservation: Reservation,
        release_digest: str,
        *,
        used: Mapping[str, int] | None = None,
        release: Any = None,
    ) -> Entry:
        """The mechanism ran and its output was released.

        `used`, at most what was reserved, returns the rest. Give it only where the output
        itself shows what was used (pay-what-you-get); never because something failed. With
        `release` the output is kept and found again by its question.
        """
        require_name("release_digest", release_digest)
        kept = {"release_digest": release_digest, "release": release}
        return self._settle("close", reservation, used, kept)

    def abandon(self, reservation: Reservation, *, reason: str) -> Entry:
        """Nothing was released, or nobody knows. What was reserved stays spent."""
        return self._settle(
            "abandon", reservation, None, {"reason": require_name("reason", reason)}
        )

    def _settle(
        self,
        kind: str,
        reservation: Reservation,
        used: Mapping[str, int] | None,
        more: dict[str, Any],
    ) -> Entry:
        def look(connection: Connection) -> tuple[int, Entry, list[Account]]:
            identity = self._identity(connection, reservation.dataset)
            held = self._entry(connection, reservation.dataset, identity, reservation.entry)
            return identity, held, accounts_of(connection, identity)

        identity, held, books = self.store.ask(look)
        if held.kind != "reserve" or reservation_of(held) != reservation:
            raise NotInLedger(f"entry {reservation.entry} is not the reservation that was given")
        fact = held.fact
        unused = unused_of(fact["items"], used)
        back = Price(0)
        mode = books[fact["account"] - 1].mode
        if mode == TARIFF and unused:
            back = self.tariff(reservation.dataset, fact["account"]).price_of(unused)
        if mode == BATCH and unused:
            raise InvalidInput("a batch runs once and whole; nothing of it is unused")
        settled = self._fact(
            kind,
            reservation.dataset,
            settles=held.number,
            account=fact["account"],
            analyst=fact["analyst"],
            question_digest=fact["question_digest"],
            unused=unused,
            farthings=-back.farthings,
            delta_units=-back.delta_units,
            **more,
        )

        def work(connection: Connection, token: str) -> Entry:
            try:
                entry = moves.append(connection, identity, settled, token)
            except IntegrityError:
                raise AlreadySettled(
                    f"the reservation in entry {held.number} was closed or abandoned before"
                ) from None
            if unused and mode != TARIFF:
                moves.return_to_lots(connection, identity, fact["account"], unused)
            elif unused:
                month = month_number(fact["month"])
                moves.give_back(connection, identity, fact["account"], fact["analyst"], back, month)
            return entry

        return self._write(reservation.dataset, work)


_Purse = namedtuple("_Purse", purses.c.keys())  # type: ignore[misc] # the columns of a row
_BOTH = select(purses).where(
    purses.c.dataset_id == bindparam("dataset", type_=Integer),
    purses.c.account == bindparam("in_account", type_=Integer),
    purses.c.analyst.in_([literal_column(f"'{EVERYBODY}'"), bindparam("who", type_=String)]),
)
