"""Tariffs, and the certificates they prove.

A tariff names guarantees and gives each a whole-number price in farthings. However an analyst
spends b farthings (which item, which mechanism of that guarantee, when to stop, all depending
on earlier answers), the interaction is (ε, V_b(ε))-DP for every ε (composition/ways_to_spend.py;
the proof is in docs/theory/tariffs.md). The δ of approximate items is counted in its own whole
units: D units of size u add at most D·u, and an item with a δ is bought only while units last.

A certificate is data: the tariff, pairs (ε, δ) with both sides, the profile, the assumptions in
words, the theorem, the versions that computed it, and a digest over all of it. What it states is
what was proved, moved outward by one part in 10⁹, so that another machine, whose last digits may
differ, proves it again (composition/certificate.py), and so does a program that shares nothing with
this one (checker.py), on the grid that the certificate names.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from types import MappingProxyType

import numpy as np

from farthing.canonical import digest as digest_of
from farthing.composition.budget import Budget
from farthing.composition.offers import Offer
from farthing.composition.tariff_proof import THEOREM, Proof, ProofGrid, outward
from farthing.errors import InvalidInput, NotCertified, Unsupported, require_count, require_real
from farthing.guarantees.bracket import Bracket
from farthing.guarantees.conversions import delta_of, without_delta
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    PureDP,
    Subsampled,
)
from farthing.guarantees.notation import format_guarantee
from farthing.numerics.rounding import UNIT, deflated, inflated
from farthing.whole_files import whole_file

#: Kinds with a known worst case and a short text that a certificate can carry.
SELLABLE = (PureDP, BoundedRange, ApproximateDP, Laplace, Gaussian, DiscreteGaussian, Subsampled)

#: The size of a δ unit may be off by this much relative, so that decimal fractions divide evenly.
UNIT_SLACK = 1e-9
#: Farthings, prices and units are at most this.
MOST_FARTHINGS = 10**18

USUAL_DELTAS = (1e-3, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12)
USUAL_EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0)
USUAL_TOLERANCE = 5e-3
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
class Price:
    """What one use of an item costs: farthings, and units of δ."""

    farthings: int
    delta_units: int = 0

    def within(self, other: Price) -> bool:
        """Whether somebody with `other` can pay it."""
        return self.farthings <= other.farthings and self.delta_units <= other.delta_units

    def __add__(self, other: Price) -> Price:
        return Price(self.farthings + other.farthings, self.delta_units + other.delta_units)

    def __sub__(self, other: Price) -> Price:
        return Price(self.farthings - other.farthings, self.delta_units - other.delta_units)


@dataclass(frozen=True)
class Tariff:
    """Named guarantees with prices, and how much there is to spend.

    `items` maps a name to (guarantee, price). `delta_units` of size `delta_unit` are granted
    for items with a δ; an item's price in units is its δ divided by the unit, rounded up.
    """

    items: Mapping[str, tuple[Guarantee, int]]
    farthings: int
    delta_units: int = 0
    delta_unit: float = 1e-12

    def __post_init__(self) -> None:
        if not isinstance(self.items, Mapping) or not self.items:
            raise InvalidInput("a tariff needs at least one item, got none")
        checked: dict[str, tuple[Guarantee, int]] = {}
        for name, entry in self.items.items():
            if not isinstance(name, str) or not name:
                raise InvalidInput(f"item names must be non-empty text, got {name!r:.60}")
            if not isinstance(entry, tuple) or len(entry) != 2:
                raise InvalidInput(f"item {name} must be (guarantee, price), got {entry!r:.60}")
            guarantee, price = entry
            if not isinstance(guarantee, Guarantee):
                raise InvalidInput(f"item {name} must have a guarantee, got {guarantee!r:.60}")
            if not isinstance(guarantee, SELLABLE):
                raise Unsupported(
                    f"item {name} has {format_guarantee(guarantee)}, whose worst case is not known "
                    "in closed form for add/remove neighbours; a tariff sells dp, br, adp, lap, "
                    "gauss, dgauss and poisson"
                )
            checked[name] = guarantee, _whole(f"price of {name}", price, at_least=1)
        object.__setattr__(self, "items", MappingProxyType(checked))
        object.__setattr__(self, "farthings", _whole("farthings", self.farthings, at_least=1))
        object.__setattr__(self, "delta_units", _whole("delta_units", self.delta_units))
        unit = require_real("delta_unit", self.delta_unit, above=0, below=1)
        object.__setattr__(self, "delta_unit", unit)
        if self.delta_units * unit * (1 + UNIT_SLACK) >= 1:
            raise InvalidInput(
                f"delta_units × delta_unit must be less than 1, got {self.delta_units * unit:g}"
            )

    def __hash__(self) -> int:
        items = frozenset(self.items.items())
        return hash((items, self.farthings, self.delta_units, self.delta_unit))

    def price(self, name: str, times: int = 1) -> Price:
        """What `times` uses of an item cost."""
        if not isinstance(name, str) or name not in self.items:
            raise InvalidInput(f"item must be one of {', '.join(self.items)}, got {name!r:.60}")
        times = require_count("times", times, at_least=1)
        guarantee, price = self.items[name]
        units = delta_of(guarantee) / self.delta_unit * (1 - UNIT_SLACK / 2)
        if math.isinf(units):
            raise InvalidInput(f"the delta of {name} is too many delta units to count")
        return Price(times * price, times * math.ceil(units))

    def price_of(self, items: Mapping[str, int]) -> Price:
        """What these items cost together."""
        return sum((self.price(name, times) for name, times in items.items()), Price(0))

    @property
    def leak(self) -> float:
        """What all δ units together add at most, rounded up."""
        return self.delta_units * self.delta_unit * (1 + UNIT_SLACK)

    @property
    def budget(self) -> Budget:
        """What can be bought, as the recursion sees it."""
        offers = [
            Offer(without_delta(guarantee), price, self.price(name).delta_units)
            for name, (guarantee, price) in self.items.items()
        ]
        return Budget.of(offers, self.farthings, self.delta_units)

    def certify(
        self,
        *,
        tolerance: float = USUAL_TOLERANCE,
        deltas: tuple[float, ...] = USUAL_DELTAS,
        epsilons: tuple[float, ...] = USUAL_EPSILONS,
    ) -> Certificate:
        """Prove what this tariff guarantees, with both sides of each claim.

        `tolerance` is the relative width of ε that is aimed at for the smallest of `deltas`. A δ
        at or below what the δ units add has no finite ε and is left out, and so is one that
        the grid does not reach. If everything on sale is pure, the largest Σε is one more claim,
        at exactly the δ that the units add.
        """
        tolerance = require_real("tolerance", tolerance, above=0, below=1)
        wanted = sorted({require_real("delta", d, above=0, below=1) for d in deltas})
        usable = [delta for delta in wanted if delta > self.leak]
        at = sorted({require_real("epsilon", e, at_least=0) for e in epsilons})
        if not usable:
            raise InvalidInput(
                f"some delta must exceed the {self.leak:g} that the delta units add, "
                f"got {max(wanted, default=0):g}"
            )
        while (proof := Proof.of(self, tolerance, usable[0])).epsilon_at(usable[0]) is None:
            usable = usable[1:]  # and on another grid, the one that `usable` now stands for
            if not usable:
                raise NotCertified("the grid does not reach any of the deltas")
        pairs = [(delta, proof.epsilon_at(delta)) for delta in (*reversed(usable), self.leak)]
        return Certificate(
            tariff=self,
            tolerance=tolerance,
            epsilons=tuple((d, outward(b, proof.most_epsilon)) for d, b in pairs if b is not None),
            deltas=tuple((e, outward(proof.delta_at(e), 1.0)) for e in at),
            profile=proof.points(),
            grid=proof.grid,
            theorem=THEOREM,
            versions=tuple((name, metadata.version(name)) for name in COMPUTED_BY),
        )


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
            "tariff": tariff_to_json(self.tariff),
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


def tariff_to_json(tariff: Tariff) -> dict[str, object]:
    """A tariff as plain data."""
    return {
        "farthings": tariff.farthings,
        "delta_units": tariff.delta_units,
        "delta_unit": tariff.delta_unit,
        "items": {
            name: {"guarantee": format_guarantee(guarantee), "price": price}
            for name, (guarantee, price) in tariff.items.items()
        },
    }


def _claim(at: str, value: float, bracket: Bracket) -> dict[str, float]:
    return {at: value, "lower": bracket.lower, "upper": bracket.upper}


def _whole(name: str, value: object, *, at_least: int = 0) -> int:
    number = require_count(name, value, at_least=at_least)
    if number > MOST_FARTHINGS:
        raise InvalidInput(f"{name} must be at most {MOST_FARTHINGS:g}")
    return number
