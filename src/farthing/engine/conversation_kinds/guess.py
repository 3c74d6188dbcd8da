"""Tell me which of my guesses are wrong, and correct some of them."""

from __future__ import annotations

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
from farthing.interactive import Guess, GuessAndCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessWatch(ConversationKind):
    """A conversation that says which guesses are off by more than `tolerance`.

    It corrects up to `corrections` of them; right guesses are not limited. `item` pays for
    checking, `value_item` (the same one if None) for each correction. One unit may change a number
    by at most `per_unit`.
    """

    tolerance: Annotated[int, "How far off a guess may be and still is right."]
    corrections: Annotated[int, "How many wrong guesses it corrects."] = 1
    item: Item = None
    value_item: ValueItem = None
    per_unit: PerUnit = 1

    against = "guess"
    described = "watch over guesses"
    runs = GuessAndCheck

    def mechanism_for(self, tariff: Tariff) -> GuessAndCheck:
        checking, correcting = self._names(tariff)
        return GuessAndCheck.from_epsilons(
            epsilon_of(tariff, checking),
            epsilon_of(tariff, correcting),
            corrections=self.corrections,
            tolerance=self.tolerance,
            sensitivity=self.per_unit,
        )

    def items_for(self, tariff: Tariff) -> dict[str, int]:
        """One item for checking, one for each correction."""
        checking, correcting = self._names(tariff)
        bought = Counter({checking: 1})
        bought[correcting] += self.corrections
        return dict(bought)

    def _names(self, tariff: Tariff) -> tuple[str, str]:
        checking = paying_item(tariff, self.item)
        return checking, checking if self.value_item is None else self.value_item

    @classmethod
    def require_askable(cls, query: Query, _: Watcher) -> None:
        if query.in_ranks:
            raise InvalidInput(
                f"a {query.kind} is watched over thresholds; a guess of it has no error"
            )

    @classmethod
    def units(cls, number: Fraction) -> int:
        return round(number)

    @classmethod
    def asked(cls, number: int, units: int) -> Guess:
        return Guess(number, units)
