"""Tariffs, and the certificates they prove.

A tariff names guarantees and gives each a whole-number price in farthings. However an analyst
spends b farthings (which item, which mechanism of that guarantee, when to stop, all depending
on earlier answers), the interaction is (ε, V_b(ε))-DP for every ε (tariff_recursion.py;
the proof is in docs/theory/tariffs.md). The δ of approximate items is counted in its own whole
units: D units of size u add at most D·u, and an item with a δ is bought only while units last.
"""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

from farthing.composition.tariffs.budget import Budget, Offer
from farthing.composition.tariffs.certificate import (
    COMPUTED_BY,
    THEOREM,
    Certificate,
    Proof,
    outward,
)
from farthing.composition.tariffs.tariff_recursion import TariffProfile
from farthing.errors import InvalidInput, NotCertified, Unsupported, require_count, require_real
from farthing.guarantees.kinds import Guarantee
from farthing.guarantees.losses import loss_of
from farthing.guarantees.notation import format_guarantee, parse_guarantee
from farthing.whole_files import whole_file

#: The size of a δ unit may be off by this much relative, so that decimal fractions divide evenly.
UNIT_SLACK = 1e-9
#: Farthings, prices and units are at most this.
MOST_FARTHINGS = 10**18

USUAL_DELTAS = (1e-3, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12)
USUAL_EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0)
USUAL_TOLERANCE = 5e-3


@dataclass(frozen=True, slots=True)
class Price:
    """What one use of an item costs: farthings, and units of δ."""

    farthings: int
    delta_units: int = 0

    def within(self, other: Price) -> bool:
        """Whether `other` is enough to pay it."""
        return self.farthings <= other.farthings and self.delta_units <= other.delta_units

    def __add__(self, other: Price) -> Price:
        return Price(self.farthings + other.farthings, self.delta_units + other.delta_units)

    def __sub__(self, other: Price) -> Price:
        return Price(self.farthings - other.farthings, self.delta_units - other.delta_units)


@lru_cache(maxsize=1024)
def _delta_units(guarantee: Guarantee, delta_unit: float) -> float:
    """How many units of δ one use takes, not rounded yet: asked for with every price."""
    return loss_of(guarantee).leak / delta_unit * (1 - UNIT_SLACK / 2)


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
            if not loss_of(guarantee).sold:
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
        units = _delta_units(guarantee, self.delta_unit)
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
            Offer.of(guarantee, price, self.price(name).delta_units)
            for name, (guarantee, price) in self.items.items()
        ]
        return Budget.of(offers, self.farthings, self.delta_units)

    def to_json(self) -> dict[str, object]:
        """The tariff as plain data."""
        return {
            "farthings": self.farthings,
            "delta_units": self.delta_units,
            "delta_unit": self.delta_unit,
            "items": {
                name: {"guarantee": format_guarantee(guarantee), "price": price}
                for name, (guarantee, price) in self.items.items()
            },
        }

    def to_toml(self) -> str:
        """The text that `read_tariff` reads back as the same tariff."""
        data = self.to_json()
        items = data.pop("items")
        assert isinstance(items, dict)
        lines = [f"{key} = {value!r}" for key, value in data.items()]
        for name, entry in items.items():
            # a string of TOML's basic kind is written like one of JSON, except for DEL
            quoted = json.dumps(name).replace("\x7f", "\\u007f")
            lines += ["", f"[items.{quoted}]"]
            lines += [f'guarantee = "{entry["guarantee"]}"', f"price = {entry['price']}"]
        return "\n".join(lines) + "\n"

    def write(self, path: str | os.PathLike[str]) -> None:
        """A TOML file that `read_tariff` reads back as the same tariff."""
        with whole_file(path) as file:
            file.write(self.to_toml())

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
        while (proof := Proof.of(self.budget, self.leak, tolerance, usable[0])).epsilon_at(
            usable[0]
        ) is None:
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


def tariff_profiles(
    tariff: Tariff, fineness: float, delta: float, *, lower: bool = True
) -> Iterator[TariffProfile]:
    """V_0, V_1, V_2, … on one grid, accurate where they are about `delta`; at most `farthings`.

    Without `lower` only the upper sides are computed.
    """
    recursion = tariff.budget.recursion(fineness, delta)
    if not lower:
        recursion = recursion.upper_only()
    for profile in recursion:
        last = min(profile.farthings + recursion.farthing_step, tariff.farthings + 1)
        for spent in range(profile.farthings, last):
            yield replace(profile, farthings=spent)


def tariff_from_json(data: object) -> Tariff:
    """A tariff from plain data, as in a TOML file or a certificate."""
    if not isinstance(data, dict):
        raise InvalidInput("a tariff must be a table with farthings and items")
    unknown = set(data) - {"farthings", "items", "delta_units", "delta_unit"}
    if unknown:
        raise InvalidInput(f"a tariff has no field {', '.join(sorted(map(str, unknown)))}")
    items = data.get("items")
    if not isinstance(items, dict):
        raise InvalidInput("a tariff needs [items.NAME] tables with guarantee and price")
    parsed = {}
    for name, entry in items.items():
        if not isinstance(entry, dict) or set(entry) != {"guarantee", "price"}:
            raise InvalidInput(f"item {name} must have exactly a guarantee and a price")
        if not isinstance(entry["guarantee"], str):
            raise InvalidInput(f'the guarantee of {name} must be text such as "br:0.1"')
        parsed[name] = parse_guarantee(entry["guarantee"]), entry["price"]
    if "farthings" not in data:
        raise InvalidInput("a tariff must say how many farthings there are")
    return Tariff(
        parsed,
        farthings=data["farthings"],
        delta_units=data.get("delta_units", 0),
        delta_unit=data.get("delta_unit", 1e-12),
    )


def read_tariff(path: str | os.PathLike[str]) -> Tariff:
    """A tariff from a TOML file."""
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not a readable tariff: {error}") from None
    return tariff_from_json(data)


def _whole(name: str, value: object, *, at_least: int = 0) -> int:
    number = require_count(name, value, at_least=at_least)
    if number > MOST_FARTHINGS:
        raise InvalidInput(f"{name} must be at most {MOST_FARTHINGS:g}")
    return number
