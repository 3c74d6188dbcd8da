"""Bearer tokens of an OpenID provider: signed JWTs of one issuer, for this audience, not expired.

Keys are those that the issuer's discovery document leads to. They are kept, and asked for again
when they are old or when a token names a key that is not among them, but never more often than
strangers who make up names of keys could make the service ask. What a token says becomes a caller
as the configuration says; one that does not say it is nobody's, like one that is forged.

Nothing here can be withdrawn before it expires: let the provider give them a short life.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt

from farthing.errors import InvalidInput
from farthing.ledger.records import require_name
from farthing.server.access.callers import AnalystCaller, Caller, NoEntry, OwnerCaller
from farthing.server.problems import Refused
from farthing.server.settings import OidcSettings

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

    def caller(self, token: str) -> Caller | None:
        """The caller of this token; None if it is rejected."""
        found = self.admit(token)
        return None if isinstance(found, NoEntry) else found

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
