"""What can be opened as a conversation about numbers of a table, and the items that pay for it.

`per_unit` is how much one unit may change any number that will be asked about: 1 for counts of
units, the limit for counts of rows, the larger bound for sums in units of their last decimal place,
max(a, b − a) times the rows that count of a unit for the quantile a/b.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeAlias

from farthing.composition.tariffs.tariff import Tariff
from farthing.errors import InvalidInput
from farthing.guarantees.kinds import PureDP
from farthing.guarantees.notation import format_guarantee
from farthing.interactive import GuessAndCheck, SparseVector, require_chargeable

#: What runs in a conversation that was opened here.
Watcher: TypeAlias = SparseVector | GuessAndCheck


#: What the standard item of a conversation is called.
PURE = "pure"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdWatch:
    """Tell me when a number reaches a threshold, `positives` times.

    `item` pays for each noisy threshold, which serves `refresh_after` positive answers (all of
    them if None); with `value_item` a positive answer comes with a number, paid for each time.
    With `monotone` only numbers may be asked about that never fall when a unit is added, and the
    noise is half as wide.
    """

    positives: int = 1
    item: str | None = None
    value_item: str | None = None
    refresh_after: int | None = None
    per_unit: int = 1
    monotone: bool = True
    kind: ClassVar[str] = "watch over thresholds"

    def mechanism_for(self, tariff: Tariff) -> SparseVector:
        """What runs, paid with items of this tariff."""
        value = None if self.value_item is None else _epsilon_of(tariff, self.value_item)
        return SparseVector.from_epsilon(
            _epsilon_of(tariff, _item(tariff, self.item)),
            positives=self.positives,
            sensitivity=self.per_unit,
            monotone=self.monotone,
            refresh_after=self.refresh_after,
            value_epsilon=value,
        )

    def items_for(self, tariff: Tariff) -> dict[str, int]:
        """One item for each threshold, one for each number."""
        bought = Counter({_item(tariff, self.item): self.mechanism_for(tariff).thresholds})
        if self.value_item is not None:
            bought[self.value_item] += self.positives
        return dict(bought)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessWatch:
    """Tell me which guesses are off by more than `tolerance`, and correct `corrections` of them.

    `item` pays for checking, `value_item` (the same one if None) for each correction.
    """

    tolerance: int
    corrections: int = 1
    item: str | None = None
    value_item: str | None = None
    per_unit: int = 1
    kind: ClassVar[str] = "watch over guesses"

    def mechanism_for(self, tariff: Tariff) -> GuessAndCheck:
        """What runs, paid with items of this tariff."""
        checking, correcting = self._names(tariff)
        return GuessAndCheck.from_epsilons(
            _epsilon_of(tariff, checking),
            _epsilon_of(tariff, correcting),
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
        checking = _item(tariff, self.item)
        return checking, checking if self.value_item is None else self.value_item

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}


WatchKind: TypeAlias = ThresholdWatch | GuessWatch


def guarantees_of(tariff: Tariff, items: Mapping[str, int]) -> dict[str, str]:
    """What each item guarantees, in words that the ledger keeps."""
    return {name: format_guarantee(tariff.items[name][0]) for name in items}


def _item(tariff: Tariff, named: str | None) -> str:
    """The item that is named, or the one called pure, or the cheapest that can pay."""
    if named is not None:
        return named
    pure = [n for n, (g, _) in tariff.items.items() if isinstance(g, PureDP) and g.epsilon > 0]
    if not pure:
        raise InvalidInput("a conversation needs a pure-DP item (dp:ε), and the tariff sells none")
    return PURE if PURE in pure else min(pure, key=lambda n: (tariff.price(n).farthings, n))


def _epsilon_of(tariff: Tariff, name: str) -> float:
    tariff.price(name)  # refuses a name that is not there
    guarantee = tariff.items[name][0]
    require_chargeable(((guarantee, 1),))
    if not isinstance(guarantee, PureDP):
        raise InvalidInput(
            f"a conversation needs a pure-DP item (dp:ε), but {name} is "
            f"{format_guarantee(guarantee)}"
        )
    return guarantee.epsilon
