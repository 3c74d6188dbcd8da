"""Certificates: what a tariff proves, in a file that can be checked again later.

A certificate is data: the tariff, pairs (ε, δ) with both sides, the profile, the assumptions in
words, the theorem, the versions that computed it, and a digest over all of it. `verify` checks
the digest and proves every claim again from scratch, on a finer grid.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections import deque
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np

from farthing.canonical import digest as digest_of
from farthing.composition.tariff import THEOREM, Spending, Tariff, spendings
from farthing.errors import InvalidInput, NotCertified, require_real
from farthing.guarantees.bracket import Bracket
from farthing.guarantees.notation import format_guarantee, parse_guarantee
from farthing.numerics.curves import UNIT

USUAL_DELTAS = (1e-3, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12)
USUAL_EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0)
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
#: Points of the profile that are kept; the chords between them are still an upper bound.
PROFILE_POINTS = 600


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a tariff and a number of farthings prove."""

    tariff: Tariff
    tolerance: float
    epsilons: tuple[tuple[float, Bracket], ...]
    deltas: tuple[tuple[float, Bracket], ...]
    profile: tuple[tuple[float, float], ...]
    theorem: str
    versions: tuple[tuple[str, str], ...]

    def epsilon_at(self, delta: float) -> float:
        """A certified ε at this δ: a stated claim, or the stored profile."""
        delta = require_real("delta", delta, above=0, below=1)
        claimed = [b.upper for at, b in self.epsilons if at <= delta]
        inner = (delta - self.tariff.leak) / (1 - self.tariff.leak) * (1 - 8 * UNIT)
        points = [x for x, value in self.profile if x >= 0 and value <= inner]
        if not claimed and not points:
            raise NotCertified(f"the certificate proves nothing at delta = {delta:g}")
        return min(claimed + points[:1])

    def delta_at(self, epsilon: float) -> float:
        """A certified δ at this ε, read off the stored profile: the chord in z = e^ε."""
        epsilon = require_real("epsilon", epsilon, at_least=0)
        claimed = [b.upper for at, b in self.deltas if at <= epsilon]
        xs = np.array([x for x, _ in self.profile])
        values = np.array([value for _, value in self.profile])
        place = int(np.searchsorted(xs, epsilon, side="right")) - 1
        if place >= len(xs) - 1:
            inner = float(values[-1])
        else:
            weight = math.expm1(epsilon - xs[place]) / math.expm1(xs[place + 1] - xs[place])
            inner = float((1 - weight) * values[place] + weight * values[place + 1])
        read = self.tariff.leak + (1 - self.tariff.leak) * inner * (1 + 64 * UNIT)
        return min([*claimed, min(1.0, read * (1 + 8 * UNIT))])

    @property
    def digest(self) -> str:
        """SHA-256 over everything else, in canonical JSON."""
        return digest_of(self._body())

    def to_json(self) -> dict[str, object]:
        """The certificate as plain data, with its digest."""
        body = self._body()
        return {**body, "digest": digest_of(body)}

    def _body(self) -> dict[str, object]:
        return {
            "format": FORMAT,
            "tariff": tariff_to_json(self.tariff),
            "tolerance": self.tolerance,
            "epsilon_at": [_claim("delta", at, b) for at, b in self.epsilons],
            "delta_at": [_claim("epsilon", at, b) for at, b in self.deltas],
            "profile": [list(point) for point in self.profile],
            "theorem": self.theorem,
            "assumptions": list(ASSUMPTIONS),
            "versions": dict(self.versions),
        }

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file whole or not at all."""
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"
        target = Path(path)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def certify(
    tariff: Tariff,
    *,
    tolerance: float = 5e-3,
    deltas: tuple[float, ...] = USUAL_DELTAS,
    epsilons: tuple[float, ...] = USUAL_EPSILONS,
) -> Certificate:
    """Prove what a tariff guarantees, with both sides of each claim.

    `tolerance` is the relative width of ε that is aimed at for the smallest of `deltas`. A δ at
    or below what the δ units add has no finite ε and is left out; below a hundredth of the
    smallest δ the grid is not accurate, and nothing smaller is claimed.
    """
    tolerance = require_real("tolerance", tolerance, above=0, below=1)
    leak = tariff.leak
    wanted = sorted({require_real("delta", d, above=0, below=1) for d in deltas}, reverse=True)
    usable = [delta for delta in wanted if delta > leak]
    if not usable:
        raise InvalidInput(
            f"some delta must exceed the {leak:g} that the delta units add, got {max(wanted):g}"
        )
    end = _last(tariff, 0.8 * tolerance, (usable[-1] - leak) / (1 - leak))
    claims = []
    for delta in usable:
        inner = (delta - leak) / (1 - leak)
        lower = end.lower.last_above(delta)
        upper = end.upper.first_below(inner * (1 - 8 * UNIT))
        if upper is not None:
            claims.append((delta, Bracket(min(lower, upper), upper, THEOREM)))
    other, smallest = [], usable[-1] / 100
    for epsilon in sorted({require_real("epsilon", e, at_least=0) for e in epsilons}):
        inner = max(end.upper.at(epsilon), smallest)
        upper = min(1.0, (leak + (1 - leak) * inner) * (1 + 8 * UNIT))
        other.append((epsilon, Bracket(min(end.lower.at(epsilon), upper), upper, THEOREM)))
    return Certificate(
        tariff=tariff,
        tolerance=tolerance,
        epsilons=tuple(claims),
        deltas=tuple(other),
        profile=_thinned(end),
        theorem=THEOREM,
        versions=tuple((name, metadata.version(name)) for name in _COMPUTED_BY),
    )


def verify(path: str | os.PathLike[str]) -> Certificate:
    """Read a certificate and prove it again; raises if any claim is not proved."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} is not a readable certificate: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InvalidInput(f"{path} must be a file of format {FORMAT!r}")
    stated = data.pop("digest", None)
    if stated != digest_of(data):
        raise NotCertified(f"the digest of {path} does not match: the file was changed")
    try:
        claimed = _from_json(data)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"{path} is not a complete certificate: {error!r}") from None
    _prove_again(claimed)
    return claimed


def _prove_again(claimed: Certificate) -> None:
    """Every upper side must follow from a computation on a grid twice as fine."""
    deltas = tuple(delta for delta, _ in claimed.epsilons)
    again = certify(
        claimed.tariff,
        tolerance=claimed.tolerance / 4,
        deltas=deltas or USUAL_DELTAS,
        epsilons=tuple(epsilon for epsilon, _ in claimed.deltas),
    )
    if claimed.theorem != THEOREM:
        raise NotCertified(f"the certificate names a theorem that is not known: {claimed.theorem}")
    pairs = [("epsilon", claimed.epsilons, again.epsilons), ("delta", claimed.deltas, again.deltas)]
    for what, old, new in pairs:
        proved = dict(new)
        for at, bracket in old:
            if at not in proved or bracket.upper < proved[at].upper:
                raise NotCertified(f"{what} <= {bracket.upper!r} at {at:g} is not proved again")
            if bracket.lower > proved[at].upper:
                raise NotCertified(f"{what} >= {bracket.lower!r} at {at:g} is refuted")
    end = _last(claimed.tariff, 0.2 * claimed.tolerance, min(deltas, default=1e-12) * 0.5)
    for x, value in claimed.profile:
        if value < end.lower.at(x):
            raise NotCertified(f"the profile at epsilon = {x:g} is below what an analyst achieves")


def _last(tariff: Tariff, fineness: float, delta: float) -> Spending:
    return deque(spendings(tariff, fineness, delta), maxlen=1)[0]


def _thinned(end: Spending) -> tuple[tuple[float, float], ...]:
    """Some grid points of the upper side, rounded outward, among them both ends."""
    points, values = end.upper.grid.points(), end.upper.values
    stride = max(1, math.ceil(len(points) / PROFILE_POINTS))
    kept = sorted({*range(0, len(points), stride), len(points) - 1})
    return tuple((float(points[i]), float(values[i]) * (1 + 8 * UNIT)) for i in kept)


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


def tariff_from_json(data: object) -> Tariff:
    """A tariff from plain data, as in a TOML file or a certificate."""
    if not isinstance(data, dict):
        raise InvalidInput("a tariff must be a table with farthings and items")
    unknown = set(data) - {"farthings", "items", "delta_units", "delta_unit"}
    if unknown:
        raise InvalidInput(f"a tariff has no {', '.join(sorted(unknown))}")
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


def _from_json(data: dict[str, object]) -> Certificate:
    def claims(key: str, at: str) -> tuple[tuple[float, Bracket], ...]:
        entries = data[key]
        assert isinstance(entries, list)
        return tuple((e[at], Bracket(e["lower"], e["upper"], THEOREM)) for e in entries)

    profile, versions, tolerance = data["profile"], data["versions"], data["tolerance"]
    if not isinstance(profile, list) or not isinstance(versions, dict):
        raise ValueError("profile and versions")
    return Certificate(
        tariff=tariff_from_json(data["tariff"]),
        tolerance=require_real("tolerance", tolerance, above=0, below=1),
        epsilons=claims("epsilon_at", "delta"),
        deltas=claims("delta_at", "epsilon"),
        profile=tuple((float(x), float(value)) for x, value in profile),
        theorem=str(data["theorem"]),
        versions=tuple((str(k), str(v)) for k, v in versions.items()),
    )


def _claim(at: str, value: float, bracket: Bracket) -> dict[str, float]:
    return {at: value, "lower": bracket.lower, "upper": bracket.upper}


_COMPUTED_BY = ("farthing", "numpy", "numba", "python-flint")
