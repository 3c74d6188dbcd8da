"""Who asks, and which datasets an analyst knows of.

Owner and analyst are types: a route takes one or the other, and cannot mix them up. One statement
finds all datasets of an analyst, whichever is asked for: that one does not exist takes as long to
find out as that it is somebody else's.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, bindparam, case, literal_column, select

from farthing.ledger import Ledger
from farthing.ledger.store.tables import datasets, purses
from farthing.server.access.store import AccessStore
from farthing.server.access.tokens import OWNER, find, identity_in, is_genuine

#: How long a worker remembers that a secret was right; whether the token is still valid is looked
#: up every time.
REMEMBERED_SECONDS = 300.0
#: Secrets that are cached at most.
MOST = 10_000
_OWN = (
    select(datasets.c.name)
    .join(purses, purses.c.dataset_id == datasets.c.id)
    .where(purses.c.analyst == bindparam("analyst"))
    .distinct()
    .order_by(datasets.c.name)
)
_ONE: ColumnElement[int] = literal_column("1")
_NONE: ColumnElement[int] = literal_column("0")
_IS_OWN = purses.c.analyst == bindparam("analyst")
#: Of each purse what was granted, and of the own ones what is spent: never what others spent.
_GRANTS = (
    select(
        datasets.c.declared,
        purses.c.account,
        case((_IS_OWN, _ONE), else_=_NONE),
        purses.c.farthings,
        purses.c.delta_units,
        case((_IS_OWN, purses.c.farthings_spent), else_=_NONE),
        case((_IS_OWN, purses.c.delta_units_spent), else_=_NONE),
        case((_IS_OWN, purses.c.month), else_=_NONE),
        purses.c.open,
    )
    .join(purses, purses.c.dataset_id == datasets.c.id)
    .where(datasets.c.name == bindparam("dataset"))
    .order_by(purses.c.account, purses.c.analyst)
)

#: What an analyst may be told of a dataset depends on this, and on nothing that others spend.
CallerGrants: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class OwnerCaller:
    """An owner, who decides about budgets."""

    name: str
    token: str

    @property
    def key(self) -> str:
        """The key of the caller in caches and tables."""
        return f"owner:{self.name}"


@dataclass(frozen=True, slots=True)
class AnalystCaller:
    """An analyst. `datasets` None: every dataset with a purse of this name."""

    name: str
    token: str
    datasets: tuple[str, ...] | None = None

    @property
    def key(self) -> str:
        """The key of the caller in caches and tables."""
        return f"analyst:{self.name}"

    def may_see(self, dataset: str) -> bool:
        """Whether the token covers this dataset."""
        return self.datasets is None or dataset in self.datasets


Caller: TypeAlias = OwnerCaller | AnalystCaller


@dataclass(frozen=True, slots=True)
class NoEntry:
    """Why a token was rejected: for the audit log, never for the sender.

    `token` is the id of a token that was minted here.
    """

    reason: str
    token: str | None = None


class Doorkeeper:
    """Finds the caller of a token. Caches hashes of tokens whose secret was right."""

    def __init__(
        self, store: AccessStore, elsewhere: Callable[[str], Caller | NoEntry] | None = None
    ) -> None:
        self._store = store
        #: Who holds a token that was not minted here.
        self._elsewhere = elsewhere
        self._right: OrderedDict[bytes, float] = OrderedDict()
        self._turn = threading.Lock()

    def caller(self, token: str) -> Caller | None:
        """The caller of this token; None if it is forged, expired or revoked."""
        found = self.admit(token)
        return None if isinstance(found, NoEntry) else found

    def admit(self, token: str) -> Caller | NoEntry:
        """The caller of this token, or why it is rejected."""
        identity = identity_in(token)
        if identity is None and self._elsewhere is not None:
            return self._elsewhere(token)
        if identity is None:
            return NoEntry("it does not look like a token")
        genuine = self._is_genuine(token)
        record = find(self._store, identity)
        if record is None:
            return NoEntry("no token with this id was minted here")
        if not genuine:
            return NoEntry("the secret is wrong", record.id)
        if record.revoked is not None:
            return NoEntry("it was withdrawn", record.id)
        if not record.is_valid:
            return NoEntry("it has expired", record.id)
        if record.role == OWNER:
            return OwnerCaller(record.name, record.id)
        return AnalystCaller(record.name, record.id, record.datasets)

    def is_quick(self, token: str) -> bool:
        """Whether `admit` is fast: no hashing, and one read of a local file."""
        return self._store.is_file and self._was_right(_fingerprint(token))

    def _is_genuine(self, token: str) -> bool:
        seen = _fingerprint(token)
        if self._was_right(seen):
            return True
        genuine = is_genuine(self._store, token)
        if genuine:
            with self._turn:
                self._right[seen] = time.monotonic() + REMEMBERED_SECONDS
                while len(self._right) > MOST:
                    self._right.popitem(last=False)
        return genuine

    def _was_right(self, seen: bytes) -> bool:
        with self._turn:
            return self._right.get(seen, 0.0) > time.monotonic()


def _fingerprint(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def granted(ledger: Ledger, caller: AnalystCaller) -> list[str]:
    """Names of the datasets that were granted to this caller, in order."""
    rows = ledger.book.store.look_up(_OWN, {"analyst": caller.name})
    return [name for (name,) in rows if caller.may_see(name)]


def grants_of(ledger: Ledger, caller: AnalystCaller, dataset: str) -> CallerGrants | None:
    """What is declared, granted and spent by the caller; None without a purse."""
    wanted = {"analyst": caller.name, "dataset": dataset}
    rows = ledger.book.store.look_up(_GRANTS, wanted)
    known = caller.may_see(dataset) and any(row[2] for row in rows)
    return tuple(map(tuple, rows)) if known else None
