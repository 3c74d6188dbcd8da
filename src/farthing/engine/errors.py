"""What the engine raises besides the errors of `farthing.errors`.

FarthingError
├── EngineFailure     the database failed while it ran; the farthings stay spent
├── EngineSilent      the database does not answer; nothing was reserved
├── PaidInPart        a limit was found and paid for, and the question after it refused (.price)
└── ChargeMismatch    the compiled plan costs something else than was reserved; nothing ran

KeyboardInterrupt
└── Interrupted       Ctrl-C after something was reserved, which stays spent (.price)
"""

from __future__ import annotations

from farthing.composition.tariffs.tariff import Price
from farthing.engine.show.sheet import amount
from farthing.errors import FarthingError
from farthing.wording import many


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


class PaidInPart(FarthingError):
    """What had to be found first was paid for; then the question itself was refused."""

    def __init__(self, price: Price) -> None:
        self.price = price
        was = "was" if price.farthings == 1 else "were"
        super().__init__(
            f"{many(price.farthings, 'farthing')} {was} paid to find a limit, then the question "
            "itself was refused; nothing more was paid. Ask again: unless the data is live, the "
            "limit is not paid for twice"
        )

    def __reduce__(self) -> tuple[type[PaidInPart], tuple[Price]]:
        return PaidInPart, (self.price,)


class ChargeMismatch(FarthingError):
    """The charge derived from the compiled plan is not the charge that was reserved."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C after something was reserved. What was reserved stays spent.

    `price` is what stays spent; with `at_most` it may be less, because the ledger was being
    written. A registered list that was taken is `listed`.
    """

    def __init__(self, price: Price, *, at_most: bool = False, listed: str | None = None) -> None:
        self.price, self.at_most, self.listed = price, at_most, listed
        told = amount(price) if listed is None else f"the registered list {listed}"
        stay = "stays" if listed is not None or price.farthings == 1 else "stay"
        super().__init__(f"interrupted; {'at most ' if at_most else ''}{told} {stay} spent")
