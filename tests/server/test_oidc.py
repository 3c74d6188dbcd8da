"""Tokens of a real OpenID provider: who comes in, who does not, and whose keys are believed."""

from __future__ import annotations

import hmac
import json
import subprocess
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

import farthing as fa
from farthing.errors import InvalidInput
from farthing.server import callers as oidc
from farthing.server.callers import AnalystCaller, Caller, NoEntry, OwnerCaller
from farthing.server.problems import Refused
from farthing.server.settings import OidcSettings, settings_from
from tests.server.deployment import Deployment, free_port

HERE = Path(__file__).parent
BROUGHT = HERE / ".provider"
AUDIENCE = "farthing-test"


class Issuer(oidc.Issuer):
    def caller(self, token: str) -> Caller | None:
        found = self.admit(token)
        return None if isinstance(found, NoEntry) else found


class Provider:
    """The provider's process, and what it hands out."""

    def __init__(self, port: int) -> None:
        self.issuer = f"http://127.0.0.1:{port}"

    def token(self, who: str, resource: str = "https://farthing.example") -> str:
        asked = {
            "grant_type": "client_credentials",
            "client_id": who,
            "client_secret": f"secret of {who}",
            "resource": resource,
        }
        answer = httpx.post(f"{self.issuer}/token", data=asked)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])

    def settings(self, **more: object) -> OidcSettings:
        given = {"issuer": self.issuer, "audience": AUDIENCE, "name_claim": "person", "leeway": 0}
        return OidcSettings(**{**given, **more})


@contextmanager
def provided(port: int, seconds: int = 600) -> Iterator[Provider]:
    assert BROUGHT.is_dir(), "tests/bring.sh brings the provider"
    command = ["node", str(HERE / "provider.mjs"), str(BROUGHT), str(port), AUDIENCE, str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if b"ready" in line:
                    break
            assert process.poll() is None
            yield Provider(port)
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with provided(free_port()) as one:
        yield one


def test_claims_become_callers(provider: Provider) -> None:
    issuer = Issuer(provider.settings(datasets_claim="tables"))
    ann, narrow, team = (issuer.caller(provider.token(who)) for who in ("ann", "narrow", "team"))
    assert isinstance(ann, AnalystCaller)
    assert (ann.name, ann.datasets) == ("ann", ())  # for none: the claim is not there
    assert isinstance(narrow, AnalystCaller)
    assert (narrow.name, narrow.datasets) == ("ann", ("slow",))
    assert isinstance(team, OwnerCaller)
    assert ann.token != narrow.token
    everything = Issuer(provider.settings()).caller(provider.token("ann"))
    assert isinstance(everything, AnalystCaller)
    assert everything.datasets is None


@pytest.mark.parametrize("who", ["both", "nobody", "unnamed"])
def test_who_does_not_say_who_they_are_is_nobody(provider: Provider, who: str) -> None:
    assert Issuer(provider.settings()).caller(provider.token(who)) is None


def test_required_claims(provider: Provider) -> None:
    token = provider.token("ann")
    assert Issuer(provider.settings(required={"role": "analyst"})).caller(token) is not None
    assert Issuer(provider.settings(required={"role": "other"})).caller(token) is None
    assert Issuer(provider.settings(required={"email_verified": True})).caller(token) is None


def test_for_somebody_else_or_of_somebody_else(provider: Provider) -> None:
    issuer = Issuer(provider.settings())
    assert issuer.caller(provider.token("ann")) is not None
    assert issuer.caller(provider.token("ann", "https://other.example")) is None
    with provided(free_port()) as other:
        assert issuer.caller(other.token("ann")) is None


def test_forgeries(provider: Provider) -> None:
    issuer, token = Issuer(provider.settings()), provider.token("ann")
    assert issuer.caller(token) is not None
    header, body, signature = token.split(".")
    claims = jwt.decode(token, options={"verify_signature": False})
    named = {"kid": jwt.get_unverified_header(token)["kid"]}
    mine = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = httpx.get(f"{provider.issuer}/jwks").content
    shared = f"{_part({'alg': 'HS256', **named})}.{body}"
    mac = hmac.digest(public, shared.encode(), "sha256")
    owner = _part({**claims, "role": "owner"})
    forged = {
        "another key": jwt.encode(claims, mine, algorithm="RS256", headers=named),
        "no key": f"{_part({'alg': 'none', **named})}.{body}.",
        "the public key as a secret": f"{shared}.{_code(mac)}",
        "another role": f"{header}.{owner}.{signature}",
        "a key of its own": jwt.encode(
            claims, mine, algorithm="RS256", headers={"kid": "x", "jku": "https://evil.example"}
        ),
        "a key that is no name": f"{_part({'alg': 'RS256', 'kid': 'mine'})}.{body}.{signature}",
        "no end": jwt.encode(
            {name: one for name, one in claims.items() if name != "exp"}, mine, algorithm="RS256"
        ),
        "too long": token + "a" * oidc.LONGEST,
        "nothing": "..",
        "not a token": "a.b.c",
    }
    for what, one in forged.items():
        assert issuer.caller(one) is None, what


def test_expiry() -> None:
    with provided(free_port(), seconds=1) as brief:
        token = brief.token("ann")
        issuer, lenient = Issuer(brief.settings()), Issuer(brief.settings(leeway=60))
        assert lenient.caller(token) is not None
        ends = jwt.decode(token, options={"verify_signature": False})["exp"]
        while time.time() <= ends:
            time.sleep(0.1)
        assert issuer.caller(token) is None
        assert lenient.caller(token) is not None


def test_new_keys_are_found_and_strangers_cannot_ask_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, asked, port = [0.0], [], free_port()
    get = httpx.get

    def counted(address: str, **how: object) -> httpx.Response:
        asked.append(address)
        return get(address, **how)

    with provided(port) as first:
        issuer = Issuer(first.settings(), clock=lambda: now[0])
        old = first.token("ann")
        assert issuer.caller(old) is not None
    with provided(port) as second:  # with another key
        monkeypatch.setattr(oidc.httpx, "get", counted)
        new = second.token("ann")
        for _ in range(20):
            assert issuer.caller(new) is None  # asked a moment ago
        assert asked == []
        now[0] += oidc.AGAIN_SECONDS + 1
        assert issuer.caller(new) is not None
        assert issuer.caller(old) is None
        assert len(asked) == 2
    now[0] += oidc.OLD_SECONDS + 1  # the provider is gone, and its keys are still known
    assert issuer.caller(new) is not None
    with pytest.raises(Refused):
        Issuer(second.settings()).caller(new)


def test_through_the_service(provider: Provider, deploy: Callable[..., Deployment]) -> None:
    table = {
        "issuer": provider.issuer,
        "audience": AUDIENCE,
        "name_claim": "person",
    }
    inline = ", ".join(f"{name} = {json.dumps(value)}" for name, value in table.items())
    one = deploy(oidc=f"{{{inline}}}")
    with fa.connect(one.url, token=provider.token("ann"), dataset="events") as session:
        assert isinstance(session.count().run().value, int)
        assert session.purse().farthings_spent == 4
    with fa.connect(one.url, token=one.tokens["ann"], dataset="events") as session:
        assert session.purse().farthings_spent == 4  # the same purse
    bearer = {"Authorization": f"Bearer {provider.token('team')}"}
    assert httpx.get(f"{one.url}/v1/me", headers=bearer).json()["role"] == "owner"
    bearer = {"Authorization": f"Bearer {provider.token('both')}"}
    assert httpx.get(f"{one.url}/v1/me", headers=bearer).status_code == 401
    assert provider.token("ann").split(".")[2] not in one.log


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "http://login.example", "audience": "a"},
        {"issuer": "https://login.example"},
        {"issuer": "https://login.example", "audience": ""},
        {"issuer": "https://login.example", "audience": "a", "owner_values": ["analyst"]},
        {"issuer": "https://login.example", "audience": "a", "owner_values": "owner"},
        {"issuer": "https://login.example", "audience": "a", "required": 1},
        {"issuer": "https://login.example", "audience": "a", "audiance": "b"},
    ],
)
def test_settings_that_cannot_be_meant(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        settings_from({"ledger": "b.db", "oidc": wrong}, Path())


def _part(claims: dict[str, object]) -> str:
    return _code(json.dumps(claims).encode())


def _code(given: bytes) -> str:
    return urlsafe_b64encode(given).decode().rstrip("=")
