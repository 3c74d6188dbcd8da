"""What a price means: a share of the budget, and what everything spent so far proves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from farthing.composition.accounts.account_profiles import reading_by_moments, stated_delta
from farthing.composition.tariffs.tariff import Price
from farthing.engine.errors import EngineFailure, PaidInPart
from farthing.engine.show.sheet import amount
from farthing.errors import FarthingError
from farthing.ledger import Snapshot
from farthing.numerics.rounding import shown_up


@dataclass(frozen=True, slots=True)
class Spending:
    """A price as a share of all farthings of the dataset, and ε before and after at some δ.

    ε is what the analyst has been told so far under the tariff in force, upper bounds that hold
    at any moment (docs/theory/odometer.md); None where that depends on others, or on accounts
    besides it: the owner's statement says it then.
    """

    share: float
    epsilon_before: float | None
    epsilon_after: float | None
    delta: float | None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def of_part(self, price: Price, whole: Price) -> Spending:
        """The share of one of several questions that were paid for together."""
        return replace(self, share=self.share * price.farthings / max(whole.farthings, 1))

    def following(self, first: Spending) -> Spending:
        """Both together, where `first` was paid just before."""
        return replace(self, share=first.share + self.share, epsilon_before=first.epsilon_before)

    @property
    def of_budget(self) -> str:
        """The share in words."""
        share = 100 * self.share
        return f"{share:.0f}% of the budget" if share >= 9.95 else f"{share:.2g}% of the budget"

    @property
    def so_far(self) -> str | None:
        """What is proved once it is paid, in words."""
        if self.epsilon_after is None:
            return None
        return f"everything so far within ε = {_shown(self.epsilon_after)} at δ = {self.delta:g}"

    @property
    def before_and_after(self) -> str | None:
        """What is proved, before and after, in words."""
        if self.epsilon_before is None or self.epsilon_after is None:
            return None
        before, after = _shown(self.epsilon_before), _shown(self.epsilon_after)
        return f"ε ≤ {before}, afterwards ε ≤ {after}, at δ = {self.delta:g}"


def spending_of(snapshot: Snapshot, price: Price, *, paid: bool) -> Spending:
    """What this price means at this moment, before it is paid or (`paid`) just after."""
    certificate = snapshot.certificate
    share = price.farthings / certificate.tariff.farthings
    spent, delta = snapshot.spent_alone, stated_delta(certificate)
    if spent is None or delta is None:
        return Spending(share, None, None, None)
    start = spent - price.farthings if paid else spent
    ends = [min(start + more, certificate.tariff.farthings) for more in (0, price.farthings)]
    before, after = (reading_by_moments(certificate, at, delta) for at in ends)
    return Spending(share, before, after, delta)


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


@contextmanager
def spent_if_interrupted(
    price: Price, *, at_most: bool = False, listed: str | None = None
) -> Iterator[None]:
    """An interrupt inside says that this price is spent, besides what was spent inside."""
    try:
        yield
    except Interrupted as inner:
        unsure = at_most or inner.at_most
        raise Interrupted(price + inner.price, at_most=unsure, listed=inner.listed) from None
    except KeyboardInterrupt:
        if price == Price(0) and listed is None:
            raise
        raise Interrupted(price, at_most=at_most, listed=listed) from None


@contextmanager
def paid_before(price: Price) -> Iterator[None]:
    """A refusal or an interrupt inside says that this price was paid before."""
    try:
        with spent_if_interrupted(price):
            yield
    except EngineFailure:
        raise  # it was paid for too
    except FarthingError as error:
        if price == Price(0):
            raise
        raise PaidInPart(price) from error


def _shown(epsilon: float) -> str:
    return shown_up(epsilon, digits=2)
