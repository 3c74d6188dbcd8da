"""The database of the service, and the tokens in it: `fth_<id>_<secret>`, shown once.

It has tokens, jobs, and requests that were answered under a key. Nothing here is a budget: if it is
lost, tokens are minted anew and nothing is overspent.

A token is kept as an Argon2 hash. The secret has 256 random bits, so the hash need not be slow to
be safe; and it must not be, or whoever knows an id could keep the service busy with wrong secrets.
An id that does not exist is refused without hashing anything: that it is refused sooner tells
whether an id exists, and nobody finds one of 2⁶⁴ by asking.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from sqlalchemy import (
    Column,
    Connection,
    Executable,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    bindparam,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from farthing.errors import InvalidInput, require_choice
from farthing.ledger.errors import NotInLedger, Unavailable
from farthing.ledger.records import require_name, require_names
from farthing.ledger.store.connection import Store

T = TypeVar("T")

metadata = MetaData()

tokens = Table(
    "farthing_access_tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("hash", String(200), nullable=False),
    Column("role", String(10), nullable=False),
    Column("name", String(200), nullable=False),
    Column("datasets", Text, nullable=False),  # JSON: a list of names, or null for all granted
    Column("created", String(40), nullable=False),
    Column("expires", String(40)),
    Column("revoked", String(40)),
)

jobs = Table(
    "farthing_access_jobs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("caller", String(220), nullable=False),
    Column("dataset", String(200)),
    Column("what", String(40), nullable=False),
    Column("state", String(10), nullable=False),
    Column("created", Float, nullable=False),
    Column("beat", Float, nullable=False),  # when its worker was last alive
    Column("finished", Float),
    Column("status", Integer),
    Column("body", Text),
)
Index("farthing_access_jobs_of", jobs.c.caller, jobs.c.created)

answered = Table(
    "farthing_access_answered",
    metadata,
    Column("caller", String(220), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("at", Float, nullable=False),
    Column("status", Integer),  # NULL until it is answered
    Column("body", Text),
)

#: One row: the key for names of releases.
keys = Table(
    "farthing_access_key",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("secret", String(64), nullable=False),
)

#: Seconds to wait for a lock: less than the ledger waits.
PATIENCE_SECONDS = 20.0


def written_now() -> str:
    """Now in UTC, as rows have it."""
    return _now().isoformat(timespec="seconds")


def _now() -> datetime:
    return datetime.now(UTC)


class AccessStore(Store):
    """The database, open. Safe to share between threads; each process opens its own."""

    def __init__(self, target: str) -> None:
        super().__init__(target, create=True)
        try:
            self.do(metadata.create_all)
        except Unavailable:  # another worker made the same tables at this moment
            self.do(metadata.create_all)
        self.add(keys, {"id": 1, "secret": secrets.token_hex(32)})
        self.secret = str(self.ask(lambda connection: connection.scalar(select(keys.c.secret))))

    def add(self, table: Table, row: Mapping[str, Any]) -> bool:
        """A new row, unless there is one with this key already."""
        added = sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)
        made = added.values(**row).on_conflict_do_nothing().returning(*table.primary_key)
        return len(self.do(lambda connection: list(connection.execute(made)))) == 1

    def change(self, statement: Executable) -> None:
        """One statement that writes."""
        self.do(lambda connection: connection.execute(statement))

    def do(self, work: Callable[[Connection], T]) -> T:
        """The result of `work` in one transaction, which is committed."""
        done = self.write(lambda connection: (work(connection),), patience=PATIENCE_SECONDS)
        assert done is not None
        return done[0]


PREFIX = "fth"
OWNER, ANALYST = "owner", "analyst"
ROLES = (OWNER, ANALYST)

_hasher = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
#: Characters of a token at most.
_LONGEST = 200
#: Everything but the hash, in the order of `TokenRecord`.
_KNOWN = select(*(tokens.c[name] for name in (
    "id", "role", "name", "datasets", "created", "expires", "revoked"
)))  # fmt: skip # one list
_BY_ID = _KNOWN.where(tokens.c.id == bindparam("identity"))


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """The record of a token, without its secret. `datasets` None: all that are granted."""

    id: str
    role: str
    name: str
    datasets: tuple[str, ...] | None
    created: str
    expires: str | None
    revoked: str | None

    @property
    def is_valid(self) -> bool:
        """Neither revoked nor expired."""
        expired = self.expires is not None and datetime.fromisoformat(self.expires) <= _now()
        return self.revoked is None and not expired

    def lets_in(self, analyst: str, dataset: str) -> bool:
        """Whether it gives this analyst access to this dataset."""
        theirs = (self.role, self.name) == (ANALYST, analyst) and self.is_valid
        return theirs and (self.datasets is None or dataset in self.datasets)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "datasets": None if self.datasets is None else list(self.datasets)}


def mint(
    store: AccessStore,
    role: str,
    name: str,
    *,
    datasets: Iterable[str] | None = None,
    expires: datetime | None = None,
) -> tuple[str, TokenRecord]:
    """A new token, which is stored nowhere, and its record."""
    require_choice("role", role, ROLES)
    require_name("the name", name)
    limited = None if datasets is None else require_names("a dataset", datasets)
    if expires is not None and expires.tzinfo is None:
        raise InvalidInput("expires must have a time zone, such as 2027-01-01T00:00:00Z")
    identity, secret = secrets.token_hex(8), secrets.token_hex(32)
    until = None if expires is None else expires.astimezone(UTC).isoformat(timespec="seconds")
    record = TokenRecord(identity, role, name, limited, written_now(), until, None)
    row = {**record.to_json(), "datasets": json.dumps(limited), "hash": _hasher.hash(secret)}
    store.add(tokens, row)
    return f"{PREFIX}_{identity}_{secret}", record


def find(store: AccessStore, identity: str) -> TokenRecord | None:
    """The record of the token with this id."""
    found = store.look_up(_BY_ID, {"identity": identity})
    return _record(found[0]) if found else None


def listed(store: AccessStore) -> list[TokenRecord]:
    """Every token, the latest first."""
    ordered = _KNOWN.order_by(tokens.c.created.desc(), tokens.c.id)
    return store.ask(lambda connection: [_record(row) for row in connection.execute(ordered)])


def withdraw(store: AccessStore, identity: str) -> TokenRecord:
    """Revoke a token, on every worker."""
    found = find(store, identity)
    if found is None:
        raise NotInLedger(f"there is no token {identity!r:.40}")
    one = update(tokens).filter_by(id=identity).where(tokens.c.revoked.is_(None))
    store.change(one.values(revoked=written_now()))
    return find(store, identity) or found


@dataclass(frozen=True, slots=True)
class StoredTokens:
    """The tokens of a store, for an owner's desk."""

    store: AccessStore

    def mint(self, role: str, name: str, **limits: Any) -> dict[str, Any]:
        """A new token, and what is kept of it."""
        token, record = mint(self.store, role, name, **limits)
        return {"token": token, **record.to_json()}

    def listed(self) -> list[dict[str, Any]]:
        """Every token, the latest first."""
        return [record.to_json() for record in listed(self.store)]

    def withdraw(self, identity: str) -> dict[str, Any]:
        """The token is refused from now on."""
        return withdraw(self.store, identity).to_json()

    def valid_for(self, analyst: str, dataset: str) -> list[str]:
        """Ids of the tokens with which this analyst may ask about this dataset."""
        return [one.id for one in listed(self.store) if one.lets_in(analyst, dataset)]


def identity_in(token: str) -> str | None:
    """The id in a well-formed token."""
    parts = token.split("_")
    shaped = len(token) <= _LONGEST and len(parts) == 3 and parts[0] == PREFIX
    return parts[1] if shaped and parts[1].isalnum() and parts[1].isascii() else None


def is_genuine(store: AccessStore, token: str) -> bool:
    """Whether the secret belongs to the id; Argon2 compares in constant time."""
    identity = identity_in(token)
    if identity is None:
        return False
    found = store.ask(
        lambda connection: connection.scalar(select(tokens.c.hash).filter_by(id=identity))
    )
    if found is None:
        return False
    try:
        return _hasher.verify(found, token.rpartition("_")[2])
    except (Argon2Error, InvalidHashError):
        return False


def _record(row: Any) -> TokenRecord:
    identity, role, name, datasets, *times = row
    limited = json.loads(datasets)
    return TokenRecord(identity, role, name, None if limited is None else tuple(limited), *times)
