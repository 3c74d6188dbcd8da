"""How many pairs of a unit and a label a limit leaves out."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass
from typing import Annotated, Any, ClassVar

from farthing.engine.kinds.fields import (
    By,
    Categories,
    CountItem,
    QuestionEpsilon,
    Repeats,
    Where,
    require_number,
)
from farthing.engine.kinds.labels import KeyQuery
from farthing.engine.kinds.rows import Rows
from farthing.engine.kinds.single_counts import SingleCountQuery
from farthing.engine.sql.bounding import Bounded, labels_of_units, pairs_above
from farthing.errors import InvalidInput
from farthing.mechanisms.accuracy import Interval

#: Of each unit so many times its limit are looked at, unless the question says.
_TIMES = 4


@dataclass(frozen=True, slots=True)
class LossQuery(SingleCountQuery, KeyQuery):
    """How many pairs of a unit and a label are above a limit of labels per unit.

    Of each unit at most `most` labels are looked at (4 times the limit unless told), so one unit
    adds at most most − contribution_limit (docs/theory/mechanisms.md, section 12).
    """

    by: By
    _: KW_ONLY
    contribution_limit: Annotated[int, "Labels of a unit below the limit."]
    most: Annotated[int | None, "Labels of a unit that are looked at."] = None
    categories: Categories = None
    where: Where = None
    count: CountItem = None
    epsilon: QuestionEpsilon = None
    repeats: Repeats = 1
    kind: ClassVar[str] = "loss"
    label: ClassVar[str] = "pairs"

    def check_fields(self) -> None:
        KeyQuery.check_fields(self)
        require_number(self.contribution_limit, self.kind)
        if self.looked_at <= self.contribution_limit:
            raise InvalidInput(
                "nothing can be above the limit: of a unit at most "
                f"{self.looked_at} labels are looked at, and the limit is {self.contribution_limit}"
            )

    @property
    def looked_at(self) -> int:
        """How many labels of a unit are looked at."""
        most = _TIMES * self.contribution_limit if self.most is None else self.most
        return most if self.size is None else min(most, self.size)

    @property
    def sensitivity(self) -> int:
        """How much one unit can add."""
        return self.looked_at - self.contribution_limit

    def bounded(self, rows: Rows) -> Bounded:
        rows, keys = self.keyed(rows)
        units = labels_of_units(rows.table, rows.owner, keys, self.looked_at)
        return pairs_above(units, self.contribution_limit, self.looked_at)

    def subject(self, unit: str) -> str:
        key, limit = self.key_words, self.contribution_limit
        return f"pairs of {unit} and {key} above {limit} {key} of each {unit}"

    @property
    def title(self) -> str:
        return f"pairs above {self.contribution_limit} {self.key_words}"

    @property
    def counted(self) -> str | None:
        return f"the first {self.looked_at} looked at"

    @property
    def contribution(self) -> str:
        return f"at most {self.sensitivity} pairs"

    @property
    def headings(self) -> tuple[str, ...]:
        return ("what",)


@dataclass(frozen=True, slots=True)
class Loss:
    """What a limit left out of an answer: (unit, label) pairs above it.

    `share` is that of the pairs that are counted in the answer or above the limit, where the
    answer shows all labels; both intervals hold with the answer's confidence. Of each unit
    `looked_at` labels were looked at: pairs beyond them are in no number.
    """

    pairs: float
    pairs_interval: Interval
    share: float | None
    share_interval: Interval | None
    looked_at: int

    @classmethod
    def beside(
        cls, pairs: float, interval: Interval, kept: tuple[float, Interval] | None, looked_at: int
    ) -> Loss:
        """From a noisy number of pairs above the limit and one of those that were kept.

        a/(a + k) grows with a and falls with k, so its extremes are at the corners.
        """
        low, high = max(0.0, interval[0]), max(0.0, interval[1])
        if kept is None:
            return cls(pairs, (low, high), None, None, looked_at)
        total, (least, most) = kept
        ends = (_share(low, max(most, 0.0)), _share(high, max(least, 0.0)))
        middle = min(max(_share(max(pairs, 0.0), max(total, 0.0)), ends[0]), ends[1])
        return cls(pairs, (low, high), middle, ends, looked_at)

    def in_words(self, confidence: str) -> str:
        """One sentence."""
        if self.share is None or self.share_interval is None:
            low, high = self.pairs_interval
            said = f"About {max(self.pairs, 0):.0f} pairs ({low:.0f} to {high:.0f} at {confidence})"
        else:
            low, high = self.share_interval
            said = f"About {self.share:.0%} ({low:.1%} to {high:.1%} at {confidence}) of the pairs"
        return f"{said} were above the limit; of each unit {self.looked_at} labels were looked at."

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Loss:
        """The inverse of `to_json`."""
        share = data["share_interval"]
        return cls(
            data["pairs"],
            (data["pairs_interval"][0], data["pairs_interval"][1]),
            data["share"],
            None if share is None else (share[0], share[1]),
            data["looked_at"],
        )


def _share(part: float, rest: float) -> float:
    return part / (part + rest) if part + rest > 0 else 0.0
