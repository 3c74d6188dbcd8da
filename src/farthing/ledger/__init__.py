"""A durable budget that several analysts share and nobody can overspend."""

try:
    import sqlalchemy  # noqa: F401 # only to say clearly what is missing
except ImportError:
    from farthing.errors import Unsupported

    raise Unsupported("the ledger needs SQLAlchemy; install farthing[ledger]") from None

from farthing.canonical import digest
from farthing.ledger.book import Ledger
from farthing.ledger.errors import (
    AlreadySettled,
    AlreadyThere,
    Damaged,
    DoesNotFit,
    LedgerError,
    NotInLedger,
    TariffChanged,
    Unavailable,
    WrongSchema,
)
from farthing.ledger.export import export_lines, import_lines
from farthing.ledger.facts import Account, Dataset, Entry, Lot, Purse, Reservation
from farthing.ledger.lists import Batch, Setwise
from farthing.ledger.odometer import Reading, odometer
from farthing.ledger.page import markdown
from farthing.ledger.reading import Terms
from farthing.ledger.statement import statement
from farthing.ledger.verify import Verified, verify

__all__ = [
    "Account",
    "AlreadySettled",
    "AlreadyThere",
    "Batch",
    "Damaged",
    "Dataset",
    "DoesNotFit",
    "Entry",
    "Ledger",
    "LedgerError",
    "Lot",
    "NotInLedger",
    "Purse",
    "Reading",
    "Reservation",
    "Setwise",
    "TariffChanged",
    "Terms",
    "Unavailable",
    "Verified",
    "WrongSchema",
    "digest",
    "export_lines",
    "import_lines",
    "markdown",
    "odometer",
    "statement",
    "verify",
]
