"""Certificates: what a tariff and a number of farthings prove, as data.

The tariff, pairs (ε, δ) with both sides, the profile, the assumptions in words, the theorem, the
versions that computed it, and a digest over all of it. What it states is what was proved, moved
outward by one part in 10⁹, so that another machine, whose last digits may differ, proves it again
(verification.py), and so does a program that shares nothing with this one (checker.py),
on the grid that the certificate names.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.canonical import digest as digest_of
from farthing.composition.tariffs.proof import ProofGrid
from farthing.errors import NotCertified, require_real
from farthing.guarantees.bracket import Bracket
from farthing.guarantees.notation import format_guarantee
from farthing.numerics.rounding import UNIT, deflated, inflated
from farthing.whole_files import whole_file

if TYPE_CHECKING:
    from farthing.composition.tariffs.tariff import Tariff

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
