"""The largest δ over all t, one for each bounded-range parameter that is fixed in advance.

Two bounds work together. An adversary who may be adaptive inside a box of t costs one recursion in
any number of dimensions and shrinks the box around the best place (composition/boxed_adversary.py).
What is left is settled by boxes that are exact to the second order (composition/sheared_boxes.py),
halved until none can hold more than a value that was found (docs/theory/in-advance.md).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from itertools import count as counting

from farthing.composition.boxed_adversary import BoxedAdversary
from farthing.composition.sheared_boxes import Box, Frame, Outcomes, Place, Ranges
from farthing.numerics.rounding import inflated
from farthing.progress import tell_between

#: Boxes of one search while their outcomes are few: about ten seconds at most.
MOST_BOXES = 60_000.0
#: So many outcomes take as long as what a box takes besides.
FEW = 4_000


@dataclass(slots=True)
class BoxSearch:
    """Ends when no ceiling exceeds the best value by more than `relative`, or `threshold`; when
    the best value exceeds `threshold`; or when it has taken too long."""

    outcomes: Outcomes
    adversary: BoxedAdversary | None
    x: float
    threshold: float
    relative: float
    place: Place
    value: float = field(init=False)
    left: float = field(init=False, default=MOST_BOXES)

    def __post_init__(self) -> None:
        self.value = self.outcomes.at(self.x, self.place)

    def ceiling(self) -> float:
        """What no t exceeds, rounded up; `place` and `value` are the best that were met."""
        limits: Ranges = tuple((0.0, epsilon) for epsilon, _ in self.outcomes.ranged)
        most, dropped = 1.0, 0.0
        if self.adversary is not None:
            limits, dropped = self.adversary.shrunk(self.x, limits, self.place, self._enough)
            most = self.adversary.ceiling(self.x, limits)
        if most > self._enough:
            most = self._by_boxes(limits, most)
        return inflated(max(dropped, most, self.value), 8)

    @property
    def _enough(self) -> float:
        """What need not be told apart from the best value."""
        return max(
            self.value * (1 + self.relative), self.threshold if self.threshold < math.inf else 0.0
        )

    @property
    def _ended(self) -> bool:
        return self.value > self.threshold or self.left < 0

    def _by_boxes(self, limits: Ranges, top: float) -> float:
        """What no t inside the limits exceeds, where it is at most `top`; highest boxes first."""
        number, each, dropped = counting(), 1 + len(self.outcomes.logs) / FEW, 0.0
        frame = Frame.at(self.outcomes, self.x, self.place)
        boxes = [(-top, next(number), Box.around(self.outcomes, frame, limits))]
        while boxes and not self._ended and -boxes[0][0] > self._enough:
            above, _, box = heapq.heappop(boxes)
            tell_between("δ", self.value, -above)
            for half in box.cut():
                ceiling = min(-above, half.monotone(self.x))
                self.left -= 0.5 * each
                if ceiling > self._enough:
                    self._meet(half.place)
                    ceiling = min(ceiling, half.curved(self.x))
                    self.left -= 0.5 * each
                if ceiling > self._enough:
                    heapq.heappush(boxes, (-ceiling, next(number), half))
                else:
                    dropped = max(dropped, ceiling)
        return max(dropped, -boxes[0][0] if boxes else 0.0)

    def _meet(self, place: Place) -> None:
        inside = zip(place, self.outcomes.ranged, strict=True)
        if all(0 < t < epsilon for t, (epsilon, _) in inside):
            value = self.outcomes.at(self.x, place)
            if value > self.value:
                self.value, self.place = value, place
