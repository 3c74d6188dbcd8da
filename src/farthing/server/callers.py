"""Who asks, and which datasets an analyst knows of.

Owner and analyst are types: a route takes one or the other, and cannot mix them up. One statement
finds all datasets of an analyst, whichever is asked for: that one does not exist takes as long to
find out as that it is somebody else's.

Tokens are minted here, or signed by an OpenID provider: JWTs of one issuer, for this audience, not
expired. Its keys are those that the discovery document leads to. They are kept, and asked for again
when they are old or when a token names a key that is not among them, but never more often than
strangers who make up names of keys could make the service ask. Claims become a caller as the
configuration says. Such a token cannot be withdrawn: let the provider give it a short life.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import httpx
import jwt
from sqlalchemy import ColumnElement, bindparam, case, literal_column, select

from farthing.engine.context import ExpiringCache
from farthing.errors import InvalidInput
from farthing.ledger import Ledger
from farthing.ledger.records import require_name
from farthing.ledger.store.tables import datasets, purses
from farthing.server.access import OWNER, AccessStore, find, identity_in, is_genuine
from farthing.server.problems import Refused
from farthing.server.settings import OidcSettings

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
        self._right = ExpiringCache[bool](MOST, REMEMBERED_SECONDS)

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
        """Whether `admit` is fast: no hashing, and a read that waits for no writer."""
        return self._store.is_sqlite and bool(self._right.get(_fingerprint(token)))

    def _is_genuine(self, token: str) -> bool:
        seen = _fingerprint(token)
        if not self._right.get(seen):
            if not is_genuine(self._store, token):
                return False
            self._right.keep(seen, True)
        return True


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


#: Public keys only: with a shared secret whoever can check a token could make one.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
#: Keys are asked for again after so long, and not more often than that.
OLD_SECONDS, AGAIN_SECONDS = 3600.0, 30.0
#: Characters of a token at most.
LONGEST = 8192
_WELL_KNOWN = "/.well-known/openid-configuration"
_TIMEOUT = 5.0


class Issuer:
    """One OpenID provider. Safe to share between threads."""

    def __init__(self, settings: OidcSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._asked = self._got = float("-inf")
        self._turn = threading.Lock()

    def admit(self, token: str) -> Caller | NoEntry:
        """The caller of this token, or why it is rejected, without quoting the token."""
        if len(token) > LONGEST or token.count(".") != 2 or not token.isascii():
            return NoEntry("it does not look like a token")
        try:
            header = jwt.get_unverified_header(token)
            key = self._key(header)
            if key is None or header.get("alg") not in ALGORITHMS:
                return NoEntry("the OpenID provider has no such key")
            claims = jwt.decode(
                token,
                key,
                algorithms=[str(header["alg"])],
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                leeway=self._settings.leeway,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.ExpiredSignatureError:
            return NoEntry("it has expired")
        except jwt.InvalidAudienceError:
            return NoEntry("it is for another audience")
        except jwt.InvalidIssuerError:
            return NoEntry("it is from another issuer")
        except (jwt.PyJWTError, ValueError, TypeError):
            return NoEntry("it is not a genuine token of the OpenID provider")
        named = caller_from(claims, self._settings)
        return named or NoEntry("its claims name nobody who may come in, or both roles")

    def look(self) -> int:
        """How many keys the provider has now; Refused if it cannot be reached."""
        with self._turn:
            self._fetch()
            return len(self._keys)

    def _key(self, header: Mapping[str, Any]) -> jwt.PyJWK | None:
        """The key that a token names, or the only one."""
        name = header.get("kid")
        if name is not None and not isinstance(name, str):
            return None
        with self._turn:
            now = self._clock()
            missing = name not in self._keys if name is not None else not self._keys
            if (missing or now - self._got > OLD_SECONDS) and now - self._asked > AGAIN_SECONDS:
                try:
                    self._fetch()
                except Refused:
                    if not self._keys:
                        raise
            if not self._keys and now - self._got > OLD_SECONDS:
                raise _unreachable()
            if name is None:
                return next(iter(self._keys.values())) if len(self._keys) == 1 else None
            return self._keys.get(name)

    def _fetch(self) -> None:
        self._asked = self._clock()
        issuer = self._settings.issuer
        found = _document(issuer.rstrip("/") + _WELL_KNOWN)
        address = found.get("jwks_uri")
        if found.get("issuer") != issuer or not isinstance(address, str) or not is_safe(address):
            raise _unreachable()
        try:
            keys = jwt.PyJWKSet.from_dict(_document(address)).keys
        except jwt.PyJWTError:
            raise _unreachable() from None
        kept = [key for key in keys if key.key_type != "oct" and key.public_key_use != "enc"]
        self._keys = {key.key_id or "": key for key in kept}
        self._got = self._asked


def caller_from(claims: Mapping[str, Any], settings: OidcSettings) -> Caller | None:
    """The caller with these claims; None if they grant both roles or neither."""
    for name, wanted in settings.required.items():
        if claims.get(name) != wanted:
            return None
    roles = set(_several(claims.get(settings.role_claim)))
    owns = bool(roles & set(settings.owner_values))
    if owns == bool(roles & set(settings.analyst_values)):
        return None
    try:
        who = require_name("the name", claims.get(settings.name_claim))
    except InvalidInput:
        return None
    subject = f"{claims['iss']}\n{claims['sub']}".encode()
    identity = f"oidc-{hashlib.sha256(subject).hexdigest()[:16]}"
    if owns:
        return OwnerCaller(who, identity)
    if settings.datasets_claim is None:
        return AnalystCaller(who, identity)
    return AnalystCaller(who, identity, _several(claims.get(settings.datasets_claim)))


def is_safe(address: str) -> bool:
    """HTTPS, or an address of this machine."""
    parts = urlsplit(address)
    near = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")
    return parts.scheme == "https" or near


def _several(claim: object) -> tuple[str, ...]:
    """A list of names, or names separated by spaces; else none."""
    if isinstance(claim, str):
        return tuple(claim.split())
    if isinstance(claim, list):
        return tuple(one for one in claim if isinstance(one, str))
    return ()


def _document(address: str) -> dict[str, Any]:
    try:
        answer = httpx.get(address, timeout=_TIMEOUT, follow_redirects=False)
        found = answer.json() if answer.status_code == 200 else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        found = None
    if not isinstance(found, dict):
        raise _unreachable()
    return found


def _unreachable() -> Refused:
    return Refused(503, "unavailable", "the OpenID provider cannot be used now; try again later")
