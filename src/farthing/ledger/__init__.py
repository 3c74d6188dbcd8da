"""A durable budget that several analysts share and nobody can overspend."""

try:
    import sqlalchemy  # noqa: F401 # only to say clearly what is missing
except ModuleNotFoundError as error:
    from farthing.optional import explained

    raise explained(error) or error from None

from farthing.canonical import digest
from farthing.ledger.declared_data import Dataset, Limits
from farthing.ledger.entries.fact import Entry
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
from farthing.ledger.reports.budget import Coalition, Reading, coalition, odometer
from farthing.ledger.reports.history import Asked, history
from farthing.ledger.reports.registry import as_yaml, registry_entry
from farthing.ledger.reports.statement import markdown, statement
from farthing.ledger.reports.verify import Verified, verify
from farthing.ledger.roles.analyst import Analyst, Snapshot
from farthing.ledger.roles.conversations import DurableConversation
from farthing.ledger.roles.owner import Owner
from farthing.ledger.roles.reader import Reader
from farthing.ledger.transfer import back_up, export_lines, import_lines, move, restore

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
    "as_yaml",
    "back_up",
    "coalition",
    "digest",
    "export_lines",
    "history",
    "import_lines",
    "markdown",
    "move",
    "odometer",
    "registry_entry",
    "restore",
    "statement",
    "verify",
]
