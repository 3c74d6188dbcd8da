"""What was revealed so far by guarantees that are chosen as you go."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from threading import Lock

from farthing.composition.accounts.accountant import Accountant
from farthing.errors import InvalidInput, require_real
from farthing.guarantees.kinds import Guarantee
from farthing.guarantees.losses import loss_of
from farthing.numerics.rounding import float_down, float_up


class Odometer:
    """Spends on guarantees that are chosen as you go; `epsilon` may be read at any time.

    Accountants with these ε stand side by side and everything is spent from all of them. One that
    refuses has ended. The reading is the least ε whose accountant has not, or the sum of all pure ε
    where that is less. If you read, or stop, at a time that you choose from the answers, then

        P[S] ≤ ∫_S e^reading dQ + δ

    for every event S and add/remove neighbours (docs/theory/filter.md). The last ε has half of δ,
    the others divide the rest. `leaks` and `mostly` are those of `Accountant`.
    """

    def __init__(
        self,
        epsilons: Sequence[float],
        delta: float,
        *,
        leaks: float = 0.0,
        mostly: Guarantee | None = None,
    ) -> None:
        levels = [require_real("epsilon", one, at_least=0) for one in epsilons]
        if not levels or any(one >= other for one, other in pairwise(levels)):
            raise InvalidInput(f"epsilons must increase, and there must be one, got {epsilons!r}")
        self.delta = require_real("delta", delta, at_least=0, below=1)
        leaks = require_real("leaks", leaks, at_least=0)
        rest = Fraction(self.delta) - Fraction(leaks)
        if rest < 0:
            raise InvalidInput(f"leaks must be at most delta = {self.delta:g}, got {leaks:g}")
        others = len(levels) - 1
        shares = [rest / (2 * others) for _ in range(others)] + [rest / (2 if others else 1)]
        self._accountants = tuple(  # leaks are the same event for all of them
            Accountant(level, float_down(Fraction(leaks) + share), leaks=leaks, mostly=mostly)
            for level, share in zip(levels, shares, strict=True)
        )
        self._lock = Lock()
        self._pure: Fraction | None = Fraction(0)

    def spend(self, guarantee: Guarantee, count: int = 1) -> None:
        """Charge for `count` mechanisms, before they run.

        BudgetExceeded if they fit into no accountant that is left; then nothing is charged.
        """
        with self._lock:
            kept = tuple(one for one in self._accountants if one.would_fit(guarantee, count))
            for one in kept or self._accountants[-1:]:
                one.spend(guarantee, count)
            self._accountants = kept
            pure = _pure_epsilon(guarantee)
            before, self._pure = self._pure, None
            if before is not None and pure is not None:
                self._pure = before + count * pure

    @property
    def epsilon(self) -> float:
        """The reading."""
        with self._lock:
            level = self._accountants[0].epsilon
            return level if self._pure is None else min(level, float_up(self._pure))

    def how_many(self, guarantee: Guarantee) -> int:
        """The largest count that would still fit."""
        with self._lock:
            return max(one.how_many(guarantee) for one in self._accountants)

    def __repr__(self) -> str:
        most = self._accountants[-1].epsilon
        return f"Odometer(epsilon={self.epsilon!r} so far, at most {most!r})"


def _pure_epsilon(guarantee: Guarantee) -> Fraction | None:
    """The ε of one, without its leak; the larger of both directions."""
    ways = [loss_of(guarantee, with_unit=way).whole().without_leak() for way in (True, False)]
    known = [Fraction(way.pure_epsilon) for way in ways if way.pure_epsilon is not None]
    return max(known) if len(known) == len(ways) else None
