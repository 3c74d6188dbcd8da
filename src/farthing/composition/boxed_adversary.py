"""What is not exceeded by an adversary who chooses adaptively, but only inside a box of t.

Whoever fixes one t per parameter inside the box is such an adversary, so this bounds their optimum
in the box. It costs a short recursion, whatever the number of parameters, and lies a few per cent
above the optimum in δ however large the box: so one recursion discards everything with one t
far from its best place and all the others free (docs/theory/in-advance.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from farthing.composition.fixed_sums import responses_of
from farthing.composition.grid_choice import Layout
from farthing.composition.items import Items
from farthing.composition.operators import BoundedRangeChoice, Kernel
from farthing.composition.sheared_boxes import Groups, Place, Ranges
from farthing.guarantees.kinds import BoundedRange, PureDP
from farthing.numerics.ball import in_balls
from farthing.numerics.curves import Chords

#: About the relative error in ε of the grid, and the cells that one recursion may evaluate.
FINENESS, MOST_WORK = 2e-3, 3e7
#: Halvings that look for the end of what is discarded, and rounds of that at most.
HALVINGS, ROUNDS = 3, 8
#: A round that leaves more than this share of the box was the last one.
LITTLE = 0.8


@dataclass(frozen=True, slots=True)
class BoxedAdversary:
    """Bounded-range mechanisms, (ε, count) each, and the profile of the ε-DP ones."""

    ranged: Groups
    later: Chords

    @staticmethod
    @in_balls
    def of(ranged: Groups, pure: Groups, delta: float) -> BoxedAdversary | None:
        """Where δ is about `delta`; None if a recursion would take too long."""
        pairs = ((BoundedRange(e), n) for e, n in ranged), ((PureDP(e), n) for e, n in pure)
        items = Items((*pairs[0], *pairs[1]))
        layout = Layout.of(items, FINENESS, delta, whole=False)
        if layout is None or layout.blocked or layout.work(items, "adaptive") > MOST_WORK:
            return None
        profile = Chords.of_nothing(layout.grid)
        for epsilon, count in pure:
            known = responses_of(PureDP(epsilon), count, layout.grid.step)
            assert known is not None  # two losses each
            profile = Kernel.of(known[0], layout.grid).apply(profile)
        return BoxedAdversary(ranged, profile)

    def ceiling(self, x: float, ranges: Ranges) -> float:
        """δ at x, rounded up. Large ε come first, which is the least of all orders or nearly."""
        profile = self.later
        for (epsilon, count), (low, high) in sorted(zip(self.ranged, ranges, strict=True)):
            choice = BoundedRangeChoice(epsilon)
            for _ in range(count):
                profile = choice.above_between(profile, low, high)
        return profile.at(x)

    def shrunk(self, x: float, ranges: Ranges, place: Place, enough: float) -> tuple[Ranges, float]:
        """Ranges around `place` outside of which no t of these ranges has more than `enough`, and
        the largest δ that may have been discarded."""
        dropped = 0.0
        for _ in range(ROUNDS):
            share = 1.0
            for k, t in enumerate(place):
                for side in (0, 1):
                    before = ranges[k][1] - ranges[k][0]
                    ranges, most = self._without_end(x, ranges, (k, side, t), enough)
                    dropped = max(dropped, most)
                    share *= (ranges[k][1] - ranges[k][0]) / before if before > 0 else 1.0
            if share > LITTLE:
                break
        return ranges, dropped

    def _without_end(
        self, x: float, ranges: Ranges, end: tuple[int, int, float], enough: float
    ) -> tuple[Ranges, float]:
        """One parameter's range cut at one end, about as near to its place as possible."""
        k, side, near = end
        outer, dropped = ranges[k][side], 0.0
        far = outer
        for _ in range(HALVINGS):
            cut = 0.5 * (far + near)
            part = (outer, cut) if side == 0 else (cut, outer)
            most = self.ceiling(x, (*ranges[:k], part, *ranges[k + 1 :]))
            if most <= enough:
                far, dropped = cut, most
            else:
                near = cut
        kept = (far, ranges[k][1]) if side == 0 else (ranges[k][0], far)
        return (*ranges[:k], kept, *ranges[k + 1 :]), dropped
