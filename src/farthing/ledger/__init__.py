"""A durable budget that several analysts share and nobody can overspend."""

try:
    import sqlalchemy  # noqa: F401 # only to say clearly what is missing
except ModuleNotFoundError as error:
    from farthing.optional import explained

    raise explained(error) or error from None

from farthing.canonical import digest
from farthing.ledger.declared_data import Dataset, Limits
from farthing.ledger.entries import Entry
from farthing.ledger.errors import (
    AlreadySettled,
    AlreadyThere,
    Damaged,
    DoesNotFit,
    LedgerError,
    NotInLedger,
    ReadOnly,
    RowsChanged,
    Sealed,
    TariffChanged,
    Unavailable,
    WrongSchema,
)
from farthing.ledger.ledger import Ledger
from farthing.ledger.records import (
    Account,
    Answered,
    KeptRelease,
    Lot,
    OpenedConversation,
    Purse,
    ReleaseSummary,
    Reservation,
    Terms,
    Use,
)
from farthing.ledger.registered_lists import RegisteredBatch, RegisteredSet
from farthing.ledger.reports.coalition import Coalition, coalition
from farthing.ledger.reports.history import Asked, history
from farthing.ledger.reports.odometer import Reading, odometer
from farthing.ledger.reports.statement import statement
from farthing.ledger.reports.statement_page import markdown
from farthing.ledger.reports.verify import Verified, verify
from farthing.ledger.roles.analyst import Analyst
from farthing.ledger.roles.owner import Owner
from farthing.ledger.roles.reader import Reader
from farthing.ledger.roles.snapshot import Snapshot
from farthing.ledger.transfer.backups import back_up, restore
from farthing.ledger.transfer.books import import_lines
from farthing.ledger.transfer.export import export_lines
from farthing.ledger.transfer.moving import move
from farthing.ledger.writes.durable_conversation import DurableConversation

__all__ = [
    "Account",
    "AlreadySettled",
    "AlreadyThere",
    "Analyst",
    "Answered",
    "Asked",
    "Coalition",
    "Damaged",
    "Dataset",
    "DoesNotFit",
    "DurableConversation",
    "Entry",
    "KeptRelease",
    "Ledger",
    "LedgerError",
    "Limits",
    "Lot",
    "NotInLedger",
    "OpenedConversation",
    "Owner",
    "Purse",
    "ReadOnly",
    "Reader",
    "Reading",
    "RegisteredBatch",
    "RegisteredSet",
    "ReleaseSummary",
    "Reservation",
    "RowsChanged",
    "Sealed",
    "Snapshot",
    "TariffChanged",
    "Terms",
    "Unavailable",
    "Use",
    "Verified",
    "WrongSchema",
    "back_up",
    "coalition",
    "digest",
    "export_lines",
    "history",
    "import_lines",
    "markdown",
    "move",
    "odometer",
    "restore",
    "statement",
    "verify",
]
