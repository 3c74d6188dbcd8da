"""One shape for everything that is refused or fails:

{"error": {"kind": "does_not_fit", "message": "…", "field": null}}

`kind` is for programs, `message` for people: what must hold, what was given, what to do. What
nobody foresaw is "failed", with no word about it: what it says may quote the data.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from farthing.composition.tariffs.tariff import Price
from farthing.engine.errors import ChargeMismatch, EngineFailure, EngineSilent, PaidInPart
from farthing.errors import FarthingError, InvalidInput, NotCertified
from farthing.interactive import ConversationOver
from farthing.ledger import errors
from farthing.wording import many

log = logging.getLogger("farthing.server")

#: The first match counts. Without a message the error's own is sent.
_KINDS: tuple[tuple[type[FarthingError], int, str, str | None], ...] = (
    (errors.DoesNotFit, 402, "does_not_fit", None),
    (errors.NotInLedger, 404, "not_found", None),
    (errors.AlreadyThere, 409, "already_there", None),
    (errors.TariffChanged, 409, "tariff_changed", "another tariff is in force now; plan again"),
    (errors.RowsChanged, 409, "rows_changed", None),
    (errors.AlreadySettled, 409, "over", None),
    (ConversationOver, 409, "over", None),
    (errors.ReadOnly, 409, "read_only", "nothing can be spent of this dataset here any more"),
    (EngineFailure, 500, "engine_failed", None),
    (PaidInPart, 500, "paid_in_part", None),
    (EngineSilent, 503, "data_unavailable", None),
    (ChargeMismatch, 500, "failed", "the service failed; nothing was released"),
    (errors.Damaged, 503, "unavailable", "the ledger cannot be used; its owner's log says why"),
    (errors.WrongSchema, 503, "unavailable", "the ledger cannot be used; its owner's log says why"),
    (errors.Unavailable, 503, "unavailable", "the ledger cannot be reached; try again later"),
    (errors.LedgerError, 409, "refused", None),
    (InvalidInput, 422, "invalid", None),
    (NotCertified, 422, "not_certified", None),
    (FarthingError, 422, "unsupported", None),
)
#: The words of `plain_problem`.
_PLAIN = {
    400: ("invalid", "the request could not be read"),
    404: ("not_found", "there is nothing here by this name for you"),
    405: ("not_allowed", "this address does not know this method"),
    413: ("too_large", "the body is too large"),
}


class Refused(FarthingError):
    """A refusal of the service itself: `status` for HTTP, `kind` for programs."""

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.kind = kind
        self.field = field
        self.headers = dict(headers or {})
        super().__init__(message)


def nothing_here() -> Refused:
    """The same refusal for what does not exist and for what belongs to others."""
    return Refused(404, *_PLAIN[404])


def does_not_fit(requested: Price, left: Price) -> Refused:
    """A price above what is left; if the cap refuses, as if nothing were left."""
    shown = Price(0) if requested.within(left) else left
    return Refused(
        402,
        "does_not_fit",
        f"the price must fit what is left: asked {_amount(requested)}, left {_amount(shown)}",
    )


def _amount(price: Price) -> str:
    units = f" and {many(price.delta_units, 'δ unit')}" if price.delta_units else ""
    return many(price.farthings, "farthing") + units


def body_of(kind: str, message: str, field: str | None = None) -> dict[str, Any]:
    """The body of an error."""
    return {"error": {"kind": kind, "message": message, "field": field}}


def plain_problem(status: int) -> dict[str, Any]:
    """The body for a status without an error of ours."""
    return body_of(*_PLAIN.get(status, ("refused", "the request was refused")))


def problem_of(error: Exception) -> tuple[int, dict[str, Any]]:
    """Status and body for an error. Unexpected errors are logged with their place."""
    if isinstance(error, Refused):
        return error.status, body_of(error.kind, str(error), error.field)
    for kind, status, name, words in _KINDS:
        if isinstance(error, kind):
            if status >= 500:
                note(error)
            return status, body_of(name, _sendable(words or str(error)))
    note(error)
    return 500, body_of("failed", "the service failed; what was reserved stays spent")


def note(error: Exception) -> None:
    """Log type and place of an error, never its message."""
    trace, place = error.__traceback__, "nowhere"
    while trace is not None:
        place = f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"
        trace = trace.tb_next
    log.error("%s at %s", type(error).__name__, place)


def _sendable(text: str) -> str:
    """The text as UTF-8 can write it, whatever the request had in it."""
    return text.encode("utf-8", "replace").decode("utf-8")


def handle_errors(app: FastAPI) -> None:
    """Give every error the same shape; `Protection` handles unexpected ones."""

    def farthing_error(_: Request, error: Exception) -> JSONResponse:
        status, body = problem_of(error)
        return JSONResponse(body, status, error.headers if isinstance(error, Refused) else None)

    def wrong_shape(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"][1:]) or None
        return JSONResponse(body_of("invalid", str(first["msg"]), field), 422)

    def http_error(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return JSONResponse(plain_problem(error.status_code), error.status_code, error.headers)

    app.add_exception_handler(FarthingError, farthing_error)
    app.add_exception_handler(RequestValidationError, wrong_shape)
    app.add_exception_handler(HTTPException, http_error)
