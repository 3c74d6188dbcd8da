"""Write about accounts: open one, grant and revoke purses, retire."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from sqlalchemy import delete, insert, select, update

from farthing.canonical import canonical, digest
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.tariff import Price
from farthing.composition.tariffs.verification import verify_document
from farthing.errors import InvalidInput, require_choice, require_count
from farthing.ledger import registered_lists
from farthing.ledger.entries.accounts import Grant, OpenList, OpenTariff, Retire, Revoke
from farthing.ledger.errors import AlreadyThere, NotInLedger
from farthing.ledger.records import (
    EVERYBODY,
    LARGEST,
    MONTHLY,
    TARIFF,
    Account,
    Purse,
    month_name,
    month_of,
    require_name,
)
from farthing.ledger.store.open_book import InForce, Writing
from farthing.ledger.store.queries import accounts_of, next_share, purse_of, purses_of
from farthing.ledger.store.tables import accounts, lots, new_amounts, purses


@dataclass(frozen=True, slots=True)
class NewAccount:
    """An account to be opened: its entry without its number, and its cap or its lots."""

    name: str
    mode: str
    entry: Callable[..., OpenTariff | OpenList]
    analyst: str | None = None
    cap: Price | None = None
    lots: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_name("the account's name", self.name)


def tariff_account(certificate: Certificate, name: str) -> NewAccount:
    """The account of a certificate, which is proved here and now."""
    document, tariff = certificate.to_json(), certificate.tariff
    if max(tariff.farthings, tariff.delta_units) > LARGEST:
        raise InvalidInput(f"a tariff in a ledger has at most {LARGEST} farthings")
    prove_certificate(document)
    entry = partial(OpenTariff, name=name, certificate=document)
    return NewAccount(name, TARIFF, entry, cap=Price(tariff.farthings, tariff.delta_units))


def prove_certificate(document: Mapping[str, Any]) -> None:
    """Prove every claim of a certificate from its tariff, or NotCertified.

    A proof takes seconds, so a document that was proved is cached by its text.
    """
    _prove(canonical(document))


@lru_cache(maxsize=64)
def _prove(written: str) -> None:
    verify_document(json.loads(written))


def list_account(listed: registered_lists.Registered, name: str, analyst: str) -> NewAccount:
    """The account of a list that is fixed in advance, which this analyst may run."""
    require_name("the analyst", analyst)
    document = registered_lists.document(listed)
    signed = {**document, "digest": digest(document)}
    entry = partial(OpenList, name=name, mode=listed.mode, document=signed, analyst=analyst)
    return NewAccount(name, listed.mode, entry, analyst, lots=listed.lots)


def open_account(writing: Writing, new: NewAccount) -> Account:
    """Write an account; if it is a tariff, the one before it is retired."""
    run, row = writing.connection.execute, writing.row
    known = accounts_of(writing.connection, row)
    if new.name in {account.name for account in known}:
        raise AlreadyThere(
            f"{writing.dataset} has an account {new.name}; give this one another name"
        )
    number = len(known) + 1
    share = next_share(writing.connection, writing.dataset)
    entry = writing.append(new.entry(**writing.stamp(), account=number, share=share))
    account: dict[str, Any] = {
        "number": number,
        "mode": new.mode,
        "name": new.name,
        "analyst": new.analyst,
        "entry": entry.number,
    }
    run(insert(accounts).values(dataset_id=row, **account))
    key = {"dataset_id": row, "account": number}
    cap = new.cap or Price(0)
    amounts = new_amounts(cap.farthings, cap.delta_units)
    if new.cap is not None:
        run(update(purses).filter_by(dataset_id=row, analyst=EVERYBODY).values(open=0))
        run(insert(purses).values(**key, analyst=EVERYBODY, **amounts))
    for item, granted in new.lots.items():
        run(insert(lots).values(**key, item=item, granted=granted, spent=0))
    return Account(**{**account, **amounts, "open": True})


@dataclass(frozen=True, slots=True)
class WantedGrant:
    """Farthings for an analyst. Without `delta_units` as many come along as are in proportion."""

    analyst: str
    farthings: int
    delta_units: int | None
    renewal: str | None = None

    def __post_init__(self) -> None:
        require_name("the analyst", self.analyst)
        for name in ("farthings", "delta_units"):
            if name == "farthings" or self.delta_units is not None:
                object.__setattr__(self, name, require_count(name, getattr(self, name)))
        if max(self.farthings, self.delta_units or 0) > LARGEST:
            raise InvalidInput(f"a grant is at most {LARGEST} farthings, got {self.farthings}")
        if self.renewal is not None:
            require_choice("renewal", self.renewal, (MONTHLY,))


def grant(writing: Writing, in_force: InForce, wanted: WantedGrant) -> Purse:
    """Put farthings into a purse; a second grant adds to the first."""
    run, now = writing.connection.execute, writing.book.clock()
    tariff, account = in_force.terms.tariff, in_force.terms.account
    units = wanted.delta_units
    if units is None:  # as many as in the tariff itself
        units = min(tariff.delta_units, tariff.delta_units * wanted.farthings // tariff.farthings)
    month = None if wanted.renewal is None else month_of(now)
    key = {"dataset_id": writing.row, "account": account, "analyst": wanted.analyst}
    row = run(select(purses).filter_by(**key)).one_or_none()
    if row is None:
        run(insert(purses).values(**key, **new_amounts(0, 0), month=month))
    elif (row.month is not None) != (wanted.renewal is not None):
        raise InvalidInput("a purse keeps the renewal it was first granted with")
    elif max(row.farthings + wanted.farthings, row.delta_units + units) > LARGEST:
        raise InvalidInput(f"a purse holds at most {LARGEST} farthings")
    raised = run(
        update(purses)
        .filter_by(**key)
        .values(
            farthings=purses.c.farthings + wanted.farthings,
            delta_units=purses.c.delta_units + units,
            open=1,
        )
        .returning(purses)
    )
    purse = purse_of(raised.one()).in_month(month_of(now))
    writing.append(
        Grant(
            **writing.stamp(now),
            account=account,
            analyst=wanted.analyst,
            farthings=wanted.farthings,
            delta_units=units,
            renewal=wanted.renewal,
            month=None if month is None else month_name(month),
        )
    )
    return purse


def revoke(writing: Writing, analyst: str) -> Price:
    """Take away what is left of a purse under the tariff in force; gives how much that was."""
    account, now = writing.in_force().terms.account, writing.book.clock()
    own = purses_of(writing.connection, writing.row, account, analyst)
    if not own:
        raise NotInLedger(f"{analyst} has no purse under the tariff in force")
    purse = own[0].in_month(month_of(now))
    if not purse.open:
        raise InvalidInput(f"the purse of {analyst} was revoked before")
    left = purse.left()
    closed: dict[str, Any] = {"open": 0}
    if purse.renewal is None:  # else it keeps its rate
        closed |= {"farthings_spent": purses.c.farthings, "delta_units_spent": purses.c.delta_units}
    key = {"dataset_id": writing.row, "account": account, "analyst": analyst}
    writing.connection.execute(update(purses).filter_by(**key).values(**closed))
    writing.append(
        Revoke(
            **writing.stamp(now),
            account=account,
            analyst=analyst,
            farthings=left.farthings,
            delta_units=left.delta_units,
        )
    )
    return left


def retire(writing: Writing, name: str | None) -> tuple[str, ...]:
    """Close the account with this name, or all that are open; gives their names."""
    known = accounts_of(writing.connection, writing.row)
    named = [account for account in known if name in (None, account.name)]
    if name is not None and not named:
        raise NotInLedger(f"{writing.dataset} has no account {name!r:.60}")
    retired = [account for account in named if account.open]
    if not retired:
        raise InvalidInput(f"{name or writing.dataset} was retired before, or was never opened")
    for account in retired:
        writing.append(Retire(**writing.stamp(), account=account.number))
        key = {"dataset_id": writing.row, "account": account.number}
        writing.connection.execute(
            update(purses).filter_by(**key, analyst=EVERYBODY).values(open=0)
            if account.mode == TARIFF
            else delete(lots).filter_by(**key)
        )
    return tuple(account.name for account in retired)
