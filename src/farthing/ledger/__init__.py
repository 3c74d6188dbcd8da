"""A durable budget that several analysts share and nobody can overspend."""

try:
    import sqlalchemy  # noqa: F401 # only to say clearly what is missing
except ModuleNotFoundError as error:
    from farthing.optional import explained

    raise explained(error) or error from None

from farthing.canonical import digest
from farthing.ledger.analyst import Analyst
from farthing.ledger.backups import back_up, restore
from farthing.ledger.coalition import Coalition, coalition
from farthing.ledger.declared_data import Dataset, Limits
from farthing.ledger.durable_conversation import DurableConversation
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
from farthing.ledger.export import export_lines
from farthing.ledger.history import Asked, history
from farthing.ledger.importing import import_lines
from farthing.ledger.ledger import Ledger
from farthing.ledger.moving import move
from farthing.ledger.odometer import Reading, odometer
from farthing.ledger.owner import Owner
from farthing.ledger.reader import Reader
from farthing.ledger.records import (
    Account,
    Answered,
    Entry,
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
from farthing.ledger.statement import statement
from farthing.ledger.statement_page import markdown
from farthing.ledger.verify import Verified, verify

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
