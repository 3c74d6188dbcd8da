"""Refusals of a service as the errors that the same call raises without one.

FarthingError
└── ServiceRefused    what only a service refuses: tokens, rates, keys, time (.status, .kind)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from farthing.composition.tariffs.tariff import Price
from farthing.engine.errors import EngineFailure, EngineSilent
from farthing.errors import FarthingError, InvalidInput, NotCertified, Unsupported
from farthing.interactive import ConversationOver
from farthing.ledger.errors import (
    AlreadyThere,
    DoesNotFit,
    LedgerError,
    NotInLedger,
    ReadOnly,
    RowsChanged,
    TariffChanged,
    Unavailable,
)


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
    "already_there": lambda message, _: AlreadyThere(message),
    "does_not_fit": lambda message, _: refused_price(Price(0), Price(0), message),
    "data_unavailable": lambda *_: EngineSilent(),
    "engine_failed": lambda *_: EngineFailure(),
    "invalid": lambda message, _: InvalidInput(message),
    "not_certified": lambda message, _: NotCertified(message),
    "not_found": lambda message, _: NotInLedger(message),
    "over": lambda message, _: ConversationOver(message),
    "read_only": lambda _, dataset: ReadOnly(dataset),
    "refused": lambda message, _: LedgerError(message),
    "rows_changed": lambda _, dataset: RowsChanged(dataset),
    "tariff_changed": lambda message, _: _in_the_words_of(message, TariffChanged(0, 0)),
    "unavailable": lambda message, _: Unavailable(message),
    "unsupported": lambda message, _: Unsupported(message),
}


def error_from(status: int, kind: str, message: str, dataset: str) -> FarthingError:
    """The error for a refusal of this kind about this dataset."""
    made = _ERRORS.get(kind)
    return ServiceRefused(status, kind, message) if made is None else made(message, dataset)


def refused_price(requested: Price, remaining: Price, message: str) -> FarthingError:
    """In the words of the service, which tells of the own purse alone."""
    return _in_the_words_of(message, DoesNotFit(requested, remaining, {}))


def _in_the_words_of(message: str, error: FarthingError) -> FarthingError:
    error.args = (message,)
    return error
