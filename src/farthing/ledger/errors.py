"""The errors of a ledger.

    LedgerError
    ├── DoesNotFit       more was asked than is left (.requested, .remaining, …)
    ├── TariffChanged    planned under a tariff that is no longer in force (.planned, .in_force)
    ├── NotInLedger      no such dataset, purse, list or entry
    ├── AlreadyThere     it exists already, and is not overwritten
    ├── AlreadySettled   the reservation or the conversation was ended before
    ├── RowsChanged      a conversation whose guarantee is about rows that do not change (.dataset)
    ├── ReadOnly         the book is a copy for reading (.dataset)
    │   └── Sealed       the book has moved and goes on elsewhere (.dataset, .successor)
    ├── WrongSchema      the database was written by a newer or an older farthing
    ├── Damaged          the file, the chain or a balance is not what was written
    └── Unavailable      the database could not be reached, read or written

All of them leave the balances as they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farthing.composition.tariffs.tariff import Price
from farthing.errors import FarthingError


class LedgerError(FarthingError):
    """Base of every error of the ledger."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _copied, (type(self), self.args, self.__dict__)


class DoesNotFit(LedgerError):
    """More was asked than is left. Nothing was charged."""

    def __init__(
        self,
        requested: Price | Mapping[str, int],
        remaining: Price | Mapping[str, int],
        largest_that_fits: Mapping[str, int],
    ) -> None:
        self.requested = requested
        self.remaining = remaining
        self.largest_that_fits = largest_that_fits
        super().__init__(
            f"the request must fit what is left: asked {_shown(requested)}, "
            f"left {_shown(remaining)}; largest that fits: "
            f"{_shown(largest_that_fits) if largest_that_fits else 'nothing'}"
        )


class TariffChanged(LedgerError):
    """The tariff that a request was planned with is no longer in force. Nothing was charged."""

    def __init__(self, planned: int, in_force: int) -> None:
        self.planned = planned
        self.in_force = in_force
        super().__init__(
            f"the request was planned with account {planned}, but the tariff of account {in_force} "
            "is in force now; plan again"
        )


class NotInLedger(LedgerError):
    """No such dataset, purse, list or entry."""


class AlreadyThere(LedgerError):
    """It exists already, and is not overwritten."""


class AlreadySettled(LedgerError):
    """The reservation was closed or abandoned before."""


class ReadOnly(LedgerError):
    """Nothing can be written into this book: it is a copy, or goes on in another ledger."""

    def __init__(self, dataset: str, why: str = "is a copy for reading") -> None:
        self.dataset = dataset
        super().__init__(f"the book of {dataset} {why}")


class Sealed(ReadOnly):
    """The book has moved to the ledger whose identity is `successor`."""

    def __init__(self, dataset: str, successor: str) -> None:
        self.successor = successor
        super().__init__(dataset, f"is sealed here; it goes on in the ledger {successor}")


class RowsChanged(LedgerError):
    """The owner has declared another version of the rows. Nothing was answered.

    Either a question was planned for the earlier version, and nothing was charged; or a
    conversation ended, because its guarantee is about rows that do not change.
    """

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        super().__init__(
            f"the rows of {dataset} have another version now, or change without notice; plan "
            "again (if it is a table in memory, open the table again), or open another conversation"
        )


class WrongSchema(LedgerError):
    """The database was written by a newer or an older farthing; carries found and known."""

    def __init__(self, found: str | None, known: str, advice: str) -> None:
        self.found = found
        self.known = known
        self.advice = advice
        super().__init__(f"the ledger's schema must be {known}, found {found or 'none'}; {advice}")


class Damaged(LedgerError):
    """The file, the chain or a balance is not what was written; names the first bad entry."""

    def __init__(self, message: str, dataset: str | None = None, entry: int | None = None) -> None:
        self.dataset = dataset
        self.entry = entry
        super().__init__(message)


class Unavailable(LedgerError):
    """The database could not be reached, read or written.

    A write without acknowledgement may still have been written; then it is spent, and `entries`
    shows it. If `passes`, the database was locked or away, so it may help to wait.
    """

    def __init__(self, message: str, *, passes: bool = False) -> None:
        self.passes = passes
        super().__init__(message)


def _copied(cls: type[LedgerError], args: tuple[Any, ...], state: dict[str, Any]) -> LedgerError:
    """An error on the other side of a process, with all that it carries."""
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error


def _shown(amount: Price | Mapping[str, int]) -> str:
    if isinstance(amount, Price):
        units = f" and {amount.delta_units} delta units" if amount.delta_units else ""
        return f"{amount.farthings} farthings{units}"
    return ", ".join(f"{times} x {name}" for name, times in amount.items())
