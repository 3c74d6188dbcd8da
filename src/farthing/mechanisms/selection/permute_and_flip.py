"""Permute-and-flip [MS20]: a selection that is ε-DP and never worse than the exponential one."""

from __future__ import annotations

from fractions import Fraction

from numpy.typing import ArrayLike

from farthing.guarantees.kinds import PermuteAndFlip
from farthing.mechanisms.noise.exact_sampling import Acceptance, system_bits
from farthing.mechanisms.protocol import Uses
from farthing.mechanisms.selection.exponential import ByScore, score_array


class PermuteAndFlipMechanism(ByScore):
    """Candidates in random order, each kept with probability e^(ε·(u(y) − best)/score_range).

    The first one that is kept is the answer; the best one always is. It costs `PermuteAndFlip(ε)`,
    which is more than ε-bounded range: for many selections the exponential mechanism is cheaper,
    for a single one this is more accurate. `accuracy` is that of the exponential mechanism with
    the same rate, which is never better [MS20, Thm 2].
    """

    __slots__ = ()

    @property
    def guarantees(self) -> Uses:
        """One draw."""
        return ((PermuteAndFlip(self.epsilon), 1),)

    def run(self, scores: ArrayLike) -> int:
        """The position of the chosen score, drawn exactly: floats are the numbers that they are."""
        values, source = score_array(scores).tolist(), system_bits()
        coins, best, left = Acceptance(self.rate), max(values), list(range(len(values)))
        while True:
            place = source.below(len(left))
            left[place], left[-1] = left[-1], left[place]
            chosen = left.pop()
            if coins.accepts(Fraction(best) - Fraction(values[chosen]), source):
                return chosen
