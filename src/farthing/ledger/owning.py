"""What the owner of a dataset decides: what is kept about it, tariffs, lists, purses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Update, insert, select, update
from sqlalchemy.exc import IntegrityError

from farthing.canonical import digest
from farthing.composition.certificate import Certificate
from farthing.composition.tariff import Price
from farthing.errors import InvalidInput, require_choice, require_count
from farthing.ledger import chain, lists, moves
from farthing.ledger.errors import AlreadyThere, NotInLedger
from farthing.ledger.facts import (
    LARGEST,
    MONTHLY,
    TARIFF,
    Account,
    Dataset,
    Entry,
    Purse,
    require_name,
)
from farthing.ledger.months import month_name, month_of
from farthing.ledger.pricing import as_of
from farthing.ledger.reading import Reader
from farthing.ledger.rows import accounts_of, entry_of, purse_of
from farthing.ledger.schema import EVERYBODY, accounts, datasets, entries, lots, purses

#: How many levels of spending the odometer distinguishes (docs/theory/odometer.md).
LEVELS = 16


class Owner(Reader):
    """A ledger in which facts are written, all but spending."""

    def add(self, dataset: Dataset) -> Entry:
        """A new dataset, with an empty book."""
        fact = self._fact("dataset", dataset.name, description=dataset.to_json())

        def work(connection: Connection, token: str) -> Entry:
            try:
                made = connection.execute(
                    insert(datasets).values(
                        name=dataset.name, number=0, previous=chain.GENESIS, hash=chain.GENESIS
                    )
                )
            except IntegrityError:
                raise AlreadyThere(f"dataset {dataset.name} exists") from None
            assert made.inserted_primary_key is not None
            return moves.append(connection, made.inserted_primary_key[0], fact, token)

        return self._write(dataset.name, work)

    def sign(self, dataset: str, certificate: Certificate, *, name: str = "tariff") -> Account:
        """Put a certified tariff in force; its farthings become the cap of the dataset.

        A tariff that was in force is retired: nothing can be reserved under it any more, what
        was spent stays spent, and the two accounts compose. Its purses do not carry over.
        """
        document = certificate.to_json()
        tariff = certificate.tariff
        if max(tariff.farthings, tariff.delta_units) > LARGEST:
            raise InvalidInput(f"a tariff in a ledger has at most {LARGEST} farthings")
        return self._open_account(
            dataset,
            {"mode": TARIFF, "name": name, "certificate": document, "levels": LEVELS},
            cap=Price(tariff.farthings, tariff.delta_units),
        )

    def register(
        self, dataset: str, name: str, listed: lists.Registered, *, analyst: str
    ) -> Account:
        """An account for a list that is fixed in advance, which this analyst may run."""
        require_name("the analyst", analyst)
        document = lists.document(listed)
        signed = {**document, "digest": digest(document)}
        return self._open_account(
            dataset,
            {"mode": listed.mode, "name": name, "document": signed, "analyst": analyst},
            lots_of=listed.lots,
        )

    def grant(
        self,
        dataset: str,
        analyst: str,
        *,
        farthings: int,
        delta_units: int = 0,
        renewal: str | None = None,
    ) -> Purse:
        """Give an analyst farthings of the tariff in force; a second grant adds to the first.

        With renewal "monthly" the purse holds that much anew in each calendar month (UTC). The
        lifetime guarantee of the dataset stays its cap.
        """
        require_name("the analyst", analyst)
        farthings = require_count("farthings", farthings)
        delta_units = require_count("delta_units", delta_units)
        if max(farthings, delta_units) > LARGEST:
            raise InvalidInput(f"a grant is at most {LARGEST} farthings, got {farthings}")
        if renewal is not None:
            require_choice("renewal", renewal, (MONTHLY,))

        granted: list[Purse] = []

        def work(connection: Connection, token: str) -> Entry:
            self._lock(connection, dataset)
            terms = self._current(connection, dataset)
            key = {"dataset_id": terms.identity, "account": terms.account, "analyst": analyst}
            now = self._clock()
            month = None if renewal is None else month_of(now)
            row = connection.execute(select(purses).filter_by(**key)).one_or_none()
            if row is None:
                connection.execute(insert(purses).values(**key, **_amounts(0, 0), month=month))
            elif (row.month is not None) != (renewal is not None):
                raise InvalidInput("a purse keeps the renewal it was first granted with")
            elif max(row.farthings + farthings, row.delta_units + delta_units) > LARGEST:
                raise InvalidInput(f"a purse holds at most {LARGEST} farthings")
            raised = connection.execute(
                update(purses)
                .filter_by(**key)
                .values(
                    farthings=purses.c.farthings + farthings,
                    delta_units=purses.c.delta_units + delta_units,
                )
                .returning(purses)
            )
            granted.append(as_of(purse_of(raised.one()), month_of(now)))
            fact = self._fact(
                "grant",
                dataset,
                at=now,
                account=terms.account,
                analyst=analyst,
                farthings=farthings,
                delta_units=delta_units,
                renewal=renewal,
                month=None if month is None else month_name(month),
            )
            return moves.append(connection, terms.identity, fact, token)

        self._write(dataset, work)
        return granted[-1]

    def _open_account(
        self,
        dataset: str,
        what: dict[str, Any],
        *,
        cap: Price | None = None,
        lots_of: Mapping[str, int] | None = None,
    ) -> Account:
        name = require_name("the account's name", what["name"])

        def work(connection: Connection, token: str) -> Entry:
            identity = self._lock(connection, dataset)
            books = accounts_of(connection, identity)
            if name in {book.name for book in books}:
                raise AlreadyThere(f"{dataset} has an account {name}; give this one another name")
            number = len(books) + 1
            fact = self._fact("account", dataset, account=number, **what)
            entry = moves.append(connection, identity, fact, token)
            key = {"dataset_id": identity, "account": number}
            connection.execute(
                insert(accounts).values(
                    dataset_id=identity,
                    number=number,
                    mode=what["mode"],
                    name=name,
                    analyst=what.get("analyst"),
                    entry=entry.number,
                )
            )
            if cap is not None:
                caps = update(purses).filter_by(dataset_id=identity, analyst=EVERYBODY)
                connection.execute(caps.values(open=0))
                amounts = _amounts(cap.farthings, cap.delta_units)
                connection.execute(insert(purses).values(**key, analyst=EVERYBODY, **amounts))
            for item, granted in (lots_of or {}).items():
                connection.execute(insert(lots).values(**key, item=item, granted=granted, spent=0))
            return entry

        opened = self._write(dataset, work)
        self._terms.pop(dataset, None)
        return Account(
            number=opened.fact["account"],
            mode=what["mode"],
            name=name,
            entry=opened.number,
            open=True,
            farthings=0 if cap is None else cap.farthings,
            delta_units=0 if cap is None else cap.delta_units,
            farthings_spent=0,
            delta_units_spent=0,
            analyst=what.get("analyst"),
        )

    def _lock(self, connection: Connection, dataset: str) -> int:
        """Keep every other writer of a dataset out, and give its number."""
        found = connection.scalar(_touched(dataset).returning(datasets.c.id))
        if found is None:
            raise NotInLedger(f"there is no dataset {dataset!r:.60}")
        return int(found)

    def _fact(
        self, kind: str, dataset: str, *, at: datetime | None = None, **more: Any
    ) -> dict[str, Any]:
        time = (at or self._clock()).astimezone(UTC).isoformat(timespec="microseconds")
        return {"kind": kind, "dataset": dataset, "time": time, **more}

    def _write(self, dataset: str, work: Callable[[Connection, str], Entry]) -> Entry:
        """One write under a token of its own, by which it is found if nobody acknowledges it."""
        token = moves.new_token()
        done = self._finder(dataset, token)
        entry = self.store.write(lambda connection: work(connection, token), done=done)
        self._seen[dataset] = entry.number
        return entry

    def _finder(self, dataset: str, token: str) -> Callable[[Connection], Entry | None]:
        """Looks for the entry that a write about to begin leaves, should nobody acknowledge it.

        It comes after all that were seen before, so the whole book need not be searched; and a
        server that is still at it is waited for. One that has not yet begun cannot be: should
        it run the statement later, there are two entries with this token, both spent.
        """
        seen = self._seen.get(dataset, 0)

        def find(connection: Connection) -> Entry | None:
            connection.execute(_touched(dataset))
            row = connection.execute(
                select(entries)
                .join(datasets)
                .where(
                    datasets.c.name == dataset,
                    entries.c.number > seen,
                    entries.c.fact.contains(token),
                )
                .order_by(entries.c.number)
            ).first()
            return None if row is None else entry_of(row)

        return find


def _touched(dataset: str) -> Update:
    """Changes nothing, and waits for whoever is writing."""
    return update(datasets).filter_by(name=dataset).values(number=datasets.c.number)


def _amounts(farthings: int, delta_units: int) -> dict[str, int]:
    granted = {"farthings": farthings, "delta_units": delta_units}
    return {**granted, "farthings_spent": 0, "delta_units_spent": 0, "open": 1}
