"""Certificates: what a tariff and a number of farthings prove, as data, and the proof behind it.

A certificate holds the tariff, pairs (ε, δ) with both sides, the profile, the assumptions in words,
the theorem, the versions that computed it, and a digest over all of it. It states what was
proved, moved outward by one part in 10⁹. So another machine, whose last digits may differ, can
prove it again (verification.py), and so can a program that shares no code with this one
(checker.py), on the grid that the certificate names.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from farthing.canonical import digest as digest_of
from farthing.composition.bounds import Bracket
from farthing.composition.bounds.tradeoff import Tradeoff
from farthing.composition.compose import compose
from farthing.composition.tariffs.budget import Budget
from farthing.composition.tariffs.tariff_recursion import TariffProfile
from farthing.errors import NotCertified, require_real
from farthing.guarantees.kinds import PureDP
from farthing.guarantees.losses import loss_of
from farthing.guarantees.notation import format_guarantee
from farthing.numerics.rounding import UNIT, deflated, float_down, inflated
from farthing.whole_files import whole_file

if TYPE_CHECKING:
    from farthing.composition.tariffs.tariff import Tariff

THEOREM = "tariff filter: supremum over all ways to spend (docs/theory/tariffs.md)"
#: Points of the profile that are kept; the chords between them are still an upper bound.
PROFILE_POINTS = 600
#: What is stated is this much larger than what was proved, relative.
OUTWARD = 1e-9

FORMAT = "farthing certificate 1"
ASSUMPTIONS = (
    "Neighbouring datasets differ by adding or removing one unit.",
    "Every mechanism sold as an item has the guarantee the tariff names for it.",
    "Bounded-range items are mechanisms that answer once; interactive mechanisms are sold as "
    "(epsilon, delta)-DP items and charged in full when they are opened.",
    "Fresh randomness for every mechanism; nothing but their outputs is revealed.",
    "The prices of everything that ran, refused requests excepted, add up to at most the "
    "farthings and delta units stated here.",
)
COMPUTED_BY = ("farthing", "numpy", "numba", "python-flint")


@dataclass(frozen=True, slots=True)
class ProofGrid:
    """A grid on which what is stated can be proved: points up to cells·step, units in steps.

    Programs that check a certificate may use it (docs/theory/checking.md); no claim rests on it.
    """

    step: float
    cells: int
    unit_step: int


@dataclass(frozen=True, slots=True)
class Proof:
    """What one computation proves about a tariff, the δ units counted."""

    leak: float
    end: TariffProfile
    unit_step: int

    @staticmethod
    @lru_cache(maxsize=16)
    def of(budget: Budget, leak: float, tolerance: float, delta: float) -> Proof:
        """The proof on the grid for this tolerance at this δ; it always gives the same numbers.

        Cached, because certifying is often followed by proving again in the same process.
        """
        inner = (delta - leak) / (1 - leak)
        recursion = budget.recursion(0.8 * tolerance, inner)
        return Proof(leak, recursion.last(), recursion.unit_step)

    @property
    def grid(self) -> ProofGrid:
        """The grid on which others may repeat it."""
        grid = self.end.upper.grid
        return ProofGrid(grid.step, grid.above, self.unit_step)

    @property
    def most_epsilon(self) -> float:
        """From here on only the units count; infinite if there is no such ε."""
        most = self.end.epsilon_at_most(0.0)
        return math.inf if most is None else most

    def epsilon_at(self, delta: float) -> Bracket | None:
        """Both sides of ε at this δ; None if nothing is proved there."""
        if delta < self.leak:
            return None
        inner = deflated((delta - self.leak) / (1 - self.leak), 8)
        upper = self.end.epsilon_at_most(inner)
        if upper is None:
            return None
        exact = delta == 0 and self.end.most_epsilon is not None
        # the ε of a sample is rounded up
        lower = deflated(float_down(self.end.most_epsilon or Fraction(0)), 8) if exact else 0.0
        lower = max(lower, self.end.lower.last_above(delta))
        return Bracket(min(lower, upper), upper, THEOREM)

    def delta_at(self, epsilon: float) -> Bracket:
        """Both sides of δ at this ε."""
        inner = self.end.delta_at_most(epsilon)
        upper = min(1.0, inflated(self.leak + (1 - self.leak) * inner, 8))
        return Bracket(min(self.end.lower.at(epsilon), upper), upper, THEOREM)

    def point_at(self, x: float) -> float:
        """An upper bound on the profile at x, without units; at grid points what is stored."""
        curve = self.end.upper
        place = round(x / curve.grid.step) + curve.grid.below
        if 0 <= place < curve.grid.size and (place - curve.grid.below) * curve.grid.step == x:
            return float(curve.values[place])
        return self.end.delta_at_most(x)

    @property
    def last_value(self) -> float:
        """Where the profile ends on the grid."""
        return float(self.end.upper.values[-1])

    def points(self) -> tuple[tuple[float, float], ...]:
        """Some points of the upper side from ε = 0 on, moved outward, among them both ends."""
        grid = self.end.upper.grid
        xs, values = grid.points()[grid.below :], self.end.upper.values[grid.below :]
        zeros = np.flatnonzero(values[1:] == 0)  # the first one says it all
        last = int(zeros[0]) + 1 if len(zeros) > 0 else len(values) - 1
        stride = max(1, math.ceil(last / PROFILE_POINTS))
        kept = sorted({*range(0, last, stride), last})
        outward = 1 + OUTWARD
        return tuple((float(xs[i]) * outward, min(1.0, float(values[i]) * outward)) for i in kept)


def outward(bracket: Bracket, most: float) -> Bracket:
    """Wider by OUTWARD, but not beyond `most`, which is exact."""
    upper = min(bracket.upper * (1 + OUTWARD), most)
    return Bracket(min(bracket.lower * (1 - OUTWARD), upper), upper, bracket.theorem)


@dataclass(frozen=True, slots=True, repr=False)
class Certificate:
    """What a tariff and a number of farthings prove."""

    tariff: Tariff
    tolerance: float
    epsilons: tuple[tuple[float, Bracket], ...]
    deltas: tuple[tuple[float, Bracket], ...]
    profile: tuple[tuple[float, float], ...]
    grid: ProofGrid | None
    theorem: str
    versions: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        items = ", ".join(
            f"{name} {format_guarantee(guarantee)} for {price}"
            for name, (guarantee, price) in list(self.tariff.items.items())[:4]
        )
        more = ", …" if len(self.tariff.items) > 4 else ""
        claims = {delta: bracket.upper for delta, bracket in self.epsilons}
        chosen = [delta for delta in (1e-6, min(claims, default=0.0)) if delta in claims]
        shown = [f"ε ≤ {claims[delta]!r} at δ = {delta!r}" for delta in dict.fromkeys(chosen)]
        return (
            f"Certificate({items}{more};\n  {self.tariff.farthings} farthings, "
            f"{self.tariff.delta_units} δ units: {', '.join(shown)};\n"
            f"  digest {self.digest})"
        )

    def epsilon_at(self, delta: float) -> float:
        """A certified ε at this δ: a stated claim, or the stored profile."""
        delta = require_real("delta", delta, at_least=0, below=1)
        claimed = [b.upper for at, b in self.epsilons if at <= delta]
        claimed += [at for at, b in self.deltas if b.upper <= delta]
        inner = deflated((delta - self.tariff.leak) / (1 - self.tariff.leak), 8)
        points = [x for x, value in self._points() if x >= 0 and value <= inner]
        if not claimed and not points:
            raise NotCertified(f"the certificate proves nothing at delta = {delta:g}")
        return min(claimed + points[:1])

    def delta_at(self, epsilon: float) -> float:
        """A certified δ at this ε, read off the stored profile: the chord in z = e^ε."""
        epsilon = require_real("epsilon", epsilon, at_least=0)
        claimed = [b.upper for at, b in self.deltas if at <= epsilon]
        claimed += [at for at, b in self.epsilons if b.upper <= epsilon]
        xs, values = np.array(self._points()).T
        place = int(np.searchsorted(xs, epsilon, side="right")) - 1
        if place >= len(xs) - 1:
            inner = float(values[-1])
        else:
            weight = math.expm1(epsilon - xs[place]) / math.expm1(xs[place + 1] - xs[place])
            inner = float((1 - weight) * values[place] + weight * values[place + 1])
            inner += 32 * UNIT * float(values[place])
        read = self.tariff.leak + inflated((1 - self.tariff.leak) * inner, 64)
        return min([*claimed, min(1.0, inflated(read, 8))])

    def tradeoff(self) -> Tradeoff:
        """How well anybody can guess from everything that the tariff can ever sell.

        One side is the stored profile. The other is one way to spend: the cheapest item each time.
        """
        leak, held = self.tariff.leak, self.tariff.farthings
        stored = [(x, 0.0, inflated(leak + (1 - leak) * v, 16)) for x, v in self._points()]
        sold = [(price, g) for g, price in self.tariff.items.values() if 0 < price <= held]
        sold = [(price, g) for price, g in sold if loss_of(g).leak == 0]
        price, cheapest = min(sold, key=lambda item: item[0], default=(1, PureDP(0.0)))
        spent = compose([(cheapest, held // price)]).tradeoff()
        return Tradeoff(Tradeoff.of(stored, stored).above, spent.below, THEOREM)

    @property
    def guess(self) -> float:
        """The largest chance of guessing from all of it whether a unit is in the data, from even
        odds, rounded up."""
        return min(1.0, inflated((1 + self.delta_at(0.0)) / 2, 4))

    def _points(self) -> list[tuple[float, float]]:
        """The profile, its places rounded up: a float may lie just left of a grid point."""
        return [(x + 4 * UNIT * abs(x), value) for x, value in self.profile]

    @property
    def digest(self) -> str:
        """SHA-256 over everything else, in canonical JSON."""
        return digest_of(self._body())

    def to_json(self) -> dict[str, object]:
        """The certificate as plain data, with its digest."""
        body = self._body()
        return {**body, "digest": digest_of(body)}

    def _body(self) -> dict[str, object]:
        proposed = {} if self.grid is None else {"grid": asdict(self.grid)}
        return {
            "format": FORMAT,
            "tariff": self.tariff.to_json(),
            "tolerance": self.tolerance,
            "epsilon_at": [_claim("delta", at, b) for at, b in self.epsilons],
            "delta_at": [_claim("epsilon", at, b) for at, b in self.deltas],
            "profile": [list(point) for point in self.profile],
            **proposed,
            "theorem": self.theorem,
            "assumptions": list(ASSUMPTIONS),
            "versions": dict(self.versions),
        }

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file whole or not at all."""
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"
        with whole_file(path) as file:
            file.write(text)


def _claim(at: str, value: float, bracket: Bracket) -> dict[str, float]:
    return {at: value, "lower": bracket.lower, "upper": bracket.upper}
