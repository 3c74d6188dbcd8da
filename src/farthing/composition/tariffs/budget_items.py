"""What can be bought with a budget: offers, which of them are allowed, and which matter."""

from __future__ import annotations

from dataclasses import dataclass

from farthing.errors import NotCertified, Unsupported
from farthing.guarantees.kinds import Guarantee
from farthing.guarantees.losses import loss_of
from farthing.guarantees.losses.base import Loss
from farthing.guarantees.notation import format_guarantee
from farthing.numerics.curves import Grid

#: Beyond this ε floats end, and so does privacy.
FARTHEST = 500.0
#: Losses below this one are counted as this one; grids are not finer than a tenth of it.
NEGLIGIBLE = 1e-7


@dataclass(frozen=True, slots=True)
class Offer:
    """The losses of one purchase without its δ, and its price.

    `losses` are the loss with the unit and the loss without it.
    """

    losses: tuple[Loss, Loss]
    farthings: int
    delta_units: int

    @staticmethod
    def of(guarantee: Guarantee, farthings: int, delta_units: int) -> Offer:
        """What a guarantee does for this price."""
        with_unit, without_unit = (
            loss_of(guarantee, with_unit=way).whole().without_leak() for way in (True, False)
        )
        return Offer((with_unit, without_unit), farthings, delta_units)

    @property
    def text(self) -> str:
        """The short text of what is bought."""
        return format_guarantee(self.losses[0].guarantee)

    @property
    def epsilon(self) -> float | None:
        """The ε of ε-DP, if it has one."""
        return self.losses[0].pure_epsilon

    @property
    def carried(self) -> Loss:
        """The loss with the unit, large enough for floats: for grids and costs."""
        return self.losses[0].carried(NEGLIGIBLE)

    def replaces(self, other: Offer) -> bool:
        """Whether buying this, perhaps several times, makes `other` useless at the same price.

        V stays the same supremum (docs/theory/tariffs.md). The relation has no cycles, so all
        offers that are replaced can be left out.
        """
        times = other.farthings // self.farthings
        return self.delta_units == 0 and self.losses[0].replaces(other.losses[0], times)

    def require_useful(self) -> None:
        """Refuse offers that protect nobody, and noise that cannot be enumerated."""
        if self.losses[0].worst_epsilon() > FARTHEST:
            raise NotCertified(
                f"one {self.text} lets an analyst reach an epsilon of {FARTHEST:g} "
                "and more, which protects nobody; sell something smaller"
            )
        if (why := self.losses[0].why_not_sold()) is not None:
            raise Unsupported(why)

    def nanoseconds(self, grid: Grid, delta: float) -> float:
        """About how many nanoseconds one application takes, on both sides."""
        loss = self.carried
        if loss.chosen_range is not None:
            return 2e5 + 6 * grid.size * loss.chosen_range / grid.step
        if loss.shifts is not None:
            return 3e5 + 15 * loss.shifts * grid.size
        atoms = 2 * loss.reach(delta * 1e-7) / grid.step
        return 3e5 + atoms * (1e4 + 6 * grid.size)
