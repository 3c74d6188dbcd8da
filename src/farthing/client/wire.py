"""Requests that may be lost on the way: sent again, charged once, waited for.

What costs something carries an `Idempotency-Key`, so that sending it again is safe: the service
answers the second request with what came of the first. A run that takes long becomes a job of the
service; it is followed to its end, and goes on there if this process ends. A refusal becomes the
error that the same call raises without a service:

FarthingError
└── ServiceRefused    what only a service refuses: tokens, rates, keys, time (.status, .kind)
"""

from __future__ import annotations

import json
import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import httpx

from farthing.composition.tariffs.tariff import Price
from farthing.engine.errors import EngineFailure, EngineSilent
from farthing.errors import FarthingError, InvalidInput, NotCertified, Unsupported
from farthing.interactive import ConversationOver
from farthing.ledger import errors


class ServiceRefused(FarthingError):
    """The service refuses by itself: `status` for HTTP, `kind` for programs."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        self.status = status
        self.kind = kind
        super().__init__(message)

    def __reduce__(self) -> tuple[type[ServiceRefused], tuple[object, ...]]:
        return ServiceRefused, (self.status, self.kind, str(self))


#: By the word of the service: the error, from its message and the dataset. What a service does not
#: tell an analyst (the numbers of accounts, what others left) is 0 or empty.
_ERRORS: Mapping[str, Callable[[str, str], FarthingError]] = {
    "already_there": lambda message, _: errors.AlreadyThere(message),
    "does_not_fit": lambda message, _: refused_price(Price(0), Price(0), message),
    "data_unavailable": lambda *_: EngineSilent(),
    "engine_failed": lambda *_: EngineFailure(),
    "invalid": lambda message, _: InvalidInput(message),
    "not_certified": lambda message, _: NotCertified(message),
    "not_found": lambda message, _: errors.NotInLedger(message),
    "over": lambda message, _: ConversationOver(message),
    "read_only": lambda _, dataset: errors.ReadOnly(dataset),
    "refused": lambda message, _: errors.LedgerError(message),
    "rows_changed": lambda _, dataset: errors.RowsChanged(dataset),
    "tariff_changed": lambda message, _: _in_the_words_of(message, errors.TariffChanged(0, 0)),
    "unavailable": lambda message, _: errors.Unavailable(message),
    "unsupported": lambda message, _: Unsupported(message),
}


def _error_in(told: Mapping[str, Any], status: int, words: str, dataset: str) -> FarthingError:
    """The error for a refusal about this dataset; `words` if it has none of its own."""
    error = told.get("error") or {}
    kind, message = str(error.get("kind") or "failed"), str(error.get("message") or words)
    made = _ERRORS.get(kind)
    return ServiceRefused(status, kind, message) if made is None else made(message, dataset)


def refused_price(requested: Price, remaining: Price, message: str) -> FarthingError:
    """In the words of the service, which tells of the own purse alone."""
    return _in_the_words_of(message, errors.DoesNotFit(requested, remaining, {}))


def _in_the_words_of(message: str, error: FarthingError) -> FarthingError:
    error.args = (message,)
    return error


#: How long a request that got no answer is sent again, and a run that nobody finished is asked for.
PATIENCE_SECONDS = 60.0
#: How long somewhere that never answered is tried: long enough for a restart, short for a slip.
FIRST_PATIENCE_SECONDS = 5.0
#: Between attempts, at first and at most.
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
#: What a proxy says when the service is not there; the service itself says why.
_ABSENT = (502, 503, 504)


@cache
def _certificates() -> ssl.SSLContext:
    """Which certificates are trusted; read once, because that takes time and memory."""
    return httpx.create_ssl_context()


class Wire:
    """One service, one token. Safe to share between threads."""

    def __init__(self, url: str, token: str, patience: float = PATIENCE_SECONDS) -> None:
        if not url.startswith(("https://", "http://")):
            raise InvalidInput(f"the address must begin with https:// or http://, got {url!r:.60}")
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise InvalidInput("the token must be one that the service's owner gave out")
        self.url = url.rstrip("/")
        self._patience = patience
        self._reached = False
        self._client = httpx.Client(
            base_url=self.url,
            timeout=_TIMEOUT,
            headers={"Authorization": f"Bearer {token}"},
            verify=_certificates(),
        )

    def send(
        self,
        method: str,
        path: str,
        dataset: str = "",
        *,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        once: bool = False,
    ) -> dict[str, Any]:
        """What comes of it; with `once` it is charged once however often it has to be sent."""
        headers = {"Idempotency-Key": uuid.uuid4().hex} if once else {}
        response = self._sent(method, path, json=body, params=params or {}, headers=headers)
        status, told = response.status_code, _json_of(response)
        if status == 202 and "job" in told:
            status, told = self._followed(str(told["job"]["id"]))
        if status >= 400 or "error" in told:
            raise _error_in(told, status, f"the service answered with status {status}", dataset)
        return told

    def shut(self) -> None:
        """Give the connections back."""
        self._client.close()

    def _sent(self, method: str, path: str, **how: Any) -> httpx.Response:
        """The first answer that is one: lost requests are sent again, and too early ones later."""
        for pause in self._pauses():
            try:
                response = self._client.request(method, path, **how)
            except httpx.TransportError:
                time.sleep(pause)
                continue
            self._reached = True
            if not _too_early(response):
                return response
            time.sleep(max(pause, _asked_to_wait(response)))
        if not self._reached:
            raise errors.Unavailable(
                f"no service answers at {self.url}: it must be running there (farthing serve), and "
                "the address and port must be the ones that it printed"
            )
        raise errors.Unavailable(
            f"{self.url} gave no answer; what was sent may have been charged, and then its release "
            "is kept: ask the same again"
        )

    def _pauses(self) -> Iterator[float]:
        pause, begun = FIRST_PAUSE, time.monotonic()
        unknown = min(self._patience, FIRST_PATIENCE_SECONDS)
        while time.monotonic() < begun + (self._patience if self._reached else unknown):
            yield pause
            pause = min(2 * pause, LONGEST_PAUSE)

    def _followed(self, job: str) -> tuple[int, dict[str, Any]]:
        """What came of a job, by its events; a stream that ends early is taken up again."""
        while True:
            for pause in self._pauses():
                try:
                    ended = self._end_in_stream(job)
                    break
                except httpx.TransportError:
                    time.sleep(pause)
            else:
                raise errors.Unavailable(f"{self.url} went away; the job {job} goes on there")
            if ended is not None:
                if ended["result"] is None:
                    words = f"the run was {ended['state']}; what was reserved stays spent"
                    return 408, {"error": {"kind": ended["state"], "message": words}}
                return int(ended["status"]), ended["result"]

    def _end_in_stream(self, job: str) -> dict[str, Any] | None:
        """The job as its `end` event shows it; None if the stream ended before."""
        with self._client.stream("GET", f"/v1/jobs/{job}/events") as response:
            if response.status_code != 200:
                response.read()
                told = _json_of(response)
                raise _error_in(told, response.status_code, "the job cannot be followed", "")
            ends = False
            for line in response.iter_lines():
                if line.startswith("event:"):
                    ends = line.removeprefix("event:").strip() == "end"
                elif ends and line.startswith("data:"):
                    found: dict[str, Any] = json.loads(line.removeprefix("data:"))["job"]
                    return found
        return None


def _too_early(response: httpx.Response) -> bool:
    """Nothing was done, or it is still being done: the same request may be sent again."""
    if response.status_code == 429:
        return True
    body = _json_of(response)
    if response.status_code in _ABSENT:
        return "error" not in body
    return response.status_code == 409 and body.get("error", {}).get("kind") == "key_in_use"


def _asked_to_wait(response: httpx.Response) -> float:
    told = response.headers.get("Retry-After", "")
    return min(float(told), LONGEST_PAUSE) if told.isdigit() else 0.0


def _json_of(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
