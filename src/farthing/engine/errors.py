"""What the engine raises besides the errors of `farthing.errors`.

FarthingError
├── EngineFailure     the database failed while it ran; the farthings stay spent
├── EngineSilent      the database does not answer; nothing was reserved
└── ChargeMismatch    the compiled plan costs something else than was reserved; nothing ran
"""

from __future__ import annotations

from farthing.errors import FarthingError


class EngineFailure(FarthingError):
    """The data could not be processed. Why is in the owner's log, never in this message."""

    def __init__(self) -> None:
        super().__init__(
            "the data engine failed; the reason is in the data owner's log, because it may quote "
            "the data"
        )


class EngineSilent(FarthingError):
    """The engine was asked before anything was reserved, and did not answer."""

    def __init__(self) -> None:
        super().__init__("the data cannot be reached at the moment; nothing was paid, try again")


class ChargeMismatch(FarthingError):
    """The charge derived from the compiled plan is not the charge that was reserved."""
