"""What a contribution limit left out of an answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from farthing.mechanisms.protocol import Interval


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
        pairs, share = data["pairs_interval"], data["share_interval"]
        ends = {"pairs_interval": tuple(pairs), "share_interval": share and tuple(share)}
        return cls(**{**data, **ends})


def _share(part: float, rest: float) -> float:
    return part / (part + rest) if part + rest > 0 else 0.0
