"""How much a quality score can change: its sensitivity Δu and its range Δ̃u.

The exponential mechanism draws y with probability ∝ exp(ε·u(x, y)/Δ̃u) and is ε-bounded range
[DDR20, Prop. 2]. The range never exceeds 2Δu, and equals Δu when the score is monotone, so
scaling by the range never adds noise and often saves half of it (Prop. 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from farthing.errors import InvalidInput

Dataset = TypeVar("Dataset")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class ScoreBounds:
    """Δu, Δ̃u and whether adding a unit moves all scores in one direction."""

    sensitivity: float
    range: float
    monotone: bool

    @property
    def scale(self) -> float:
        """What to divide the score by: the range, which is never worse than 2·sensitivity."""
        return self.range

    @property
    def applies(self) -> str:
        """Which statement of Proposition 1 gives the scale, in words."""
        if self.monotone:
            return "monotone score: the range equals the sensitivity [DDR20, Prop. 1]"
        if self.range < 2 * self.sensitivity:
            return "the range is below twice the sensitivity [DDR20, Prop. 1]"
        return "the range is twice the sensitivity [DDR20, Prop. 1]"


def score_bounds(scores: npt.ArrayLike, neighbours: Iterable[tuple[int, int]]) -> ScoreBounds:
    """Bounds of a table of scores, one row per dataset and one column per outcome.

    `neighbours` are pairs of row numbers (x, x′) where x′ has one unit more than x; each pair
    is read in both directions for sensitivity and range.
    """
    try:
        table = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("scores must be a table of numbers, rows of equal length") from None
    if table.ndim != 2 or table.shape[1] == 0:
        raise InvalidInput(
            f"scores must be a table with at least one outcome, got shape {table.shape}"
        )
    if not np.all(np.isfinite(table)):
        raise InvalidInput("scores must be finite, got a table with nan or infinity")
    pairs = list(neighbours)
    if not pairs:
        raise InvalidInput("at least one pair of neighbours is needed, got none")
    if not all(0 <= row < len(table) for pair in pairs for row in pair):
        raise InvalidInput(f"neighbours must be row numbers below {len(table)}")
    changes = np.array([table[after] - table[before] for before, after in pairs])
    return ScoreBounds(
        sensitivity=float(np.max(np.abs(changes))),
        range=float(np.max(changes.max(axis=1) - changes.min(axis=1))),
        monotone=bool(np.all(changes >= 0) or np.all(changes <= 0)),
    )


def score_bounds_of(
    score: Callable[[Dataset, Outcome], float],
    datasets: Sequence[Dataset],
    outcomes: Sequence[Outcome],
    *,
    larger_by_one: Callable[[Dataset, Dataset], bool],
) -> ScoreBounds:
    """Bounds of a score given as a function, by trying every dataset of a small domain.

    `larger_by_one(x, x′)` says that x′ is x with one unit added.
    """
    table = [[score(dataset, outcome) for outcome in outcomes] for dataset in datasets]
    pairs = [
        (i, j)
        for (i, x), (j, y) in product(enumerate(datasets), repeat=2)
        if i != j and larger_by_one(x, y)
    ]
    return score_bounds(table, pairs)
