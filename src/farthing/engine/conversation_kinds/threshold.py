"""Tell me when a number reaches a threshold."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from farthing.composition.tariffs.tariff import Tariff
from farthing.engine.conversation_kinds.base import (
    ConversationKind,
    Item,
    PerUnit,
    ValueItem,
    Watcher,
    epsilon_of,
    paying_item,
)
from farthing.engine.kinds.base import Query
from farthing.errors import InvalidInput
from farthing.interactive import Exceeds, SparseVector


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdWatch(ConversationKind):
    """A conversation that tells when a number of this data reaches a threshold.

    It answers until `positives` answers were positive; negative ones are not limited. `item` pays
    for each noisy threshold, which serves `refresh_after` positive answers (all of them if None);
    with `value_item` a positive answer comes with a number, paid for each time. With `monotone`
    only numbers may be asked about that never fall when a unit is added, and the noise is half as
    wide. One unit may change a number by at most `per_unit`.
    """

    positives: Annotated[int, "How many positive answers it gives."] = 1
    item: Item = None
    value_item: ValueItem = None
    refresh_after: Annotated[
        int | None, "Positive answers of one noisy threshold; all if left out."
    ] = None
    per_unit: PerUnit = 1
    monotone: Annotated[bool, "Only numbers that never fall when a unit is added."] = True

    against = "threshold"
    described = "watch over thresholds"
    runs = SparseVector

    def mechanism_for(self, tariff: Tariff) -> SparseVector:
        value = None if self.value_item is None else epsilon_of(tariff, self.value_item)
        return SparseVector.from_epsilon(
            epsilon_of(tariff, paying_item(tariff, self.item)),
            positives=self.positives,
            sensitivity=self.per_unit,
            monotone=self.monotone,
            refresh_after=self.refresh_after,
            value_epsilon=value,
        )

    def items_for(self, tariff: Tariff) -> dict[str, int]:
        """One item for each threshold, one for each number."""
        bought = Counter({paying_item(tariff, self.item): self.mechanism_for(tariff).thresholds})
        if self.value_item is not None:
            bought[self.value_item] += self.positives
        return dict(bought)

    @classmethod
    def require_askable(cls, query: Query, mechanism: Watcher, /) -> None:
        if isinstance(mechanism, SparseVector) and mechanism.monotone and not query.monotone:
            raise InvalidInput(
                f"this {query.kind} may fall when a unit is added; open the watch with "
                "monotone=False"
            )

    @classmethod
    def units(cls, number: Fraction) -> int:
        """A threshold is reached from it on."""
        return math.ceil(number)

    @classmethod
    def asked(cls, number: int, units: int) -> Exceeds:
        return Exceeds(number, units)
