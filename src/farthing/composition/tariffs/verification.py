"""Reading certificates back, and proving them again.

Everything that can be read from a certificate follows from single numbers: an ε at a δ, a δ at
an ε, a point of the profile. The profile is convex in z and decreasing, so chords between points
that lie above it, and the last value beyond them, are bounds whichever points are stated. So
`verify` proves every number again, and the rest of the file must match the format word for word.
The proof is the same computation that `certify` made. If that does not give every number (another
version may choose another grid), a second one on a finer grid may.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from farthing.canonical import digest as digest_of
from farthing.composition.bounds import Bracket
from farthing.composition.tariffs.certificate import (
    COMPUTED_BY,
    FORMAT,
    THEOREM,
    Certificate,
    Proof,
    ProofGrid,
)
from farthing.composition.tariffs.tariff import USUAL_DELTAS, Tariff, read_tariff, tariff_from_json
from farthing.errors import InvalidInput, NotCertified, require_count, require_real

#: Certificates with more claims or points than this are refused.
MOST_NUMBERS = 10_000
#: A second proof is made this much finer.
FINER = 4
#: Stated points may bend the wrong way by this much relative, which is rounding.
BENT = 1e-6


def certificate_in(path: str | os.PathLike[str]) -> Certificate:
    """What the tariff in a file proves; a certificate, in JSON, is proved again."""
    if Path(path).suffix == ".json":
        return verify(path)
    return read_tariff(path).certify()


def tariff_in(path: str | os.PathLike[str]) -> Tariff:
    """The tariff in a file, or that of a certificate in JSON; nothing is proved."""
    if Path(path).suffix == ".json":
        return certificate_from_json(_document(path)).tariff
    return read_tariff(path)


def verify(path: str | os.PathLike[str]) -> Certificate:
    """Read a certificate and prove it again; raises if any claim is not proved."""
    return verify_document(_document(path))


def _document(path: str | os.PathLike[str]) -> object:
    try:
        text = Path(path).read_text(encoding="utf-8")
        return json.loads(text, object_pairs_hook=_without_repetition)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not a readable certificate: {error}") from None


def verify_document(data: object) -> Certificate:
    """Prove a certificate again, given as plain data; raises if anything is not proved.

    It takes as long as certifying once, if this version made the certificate.
    """
    certificate = certificate_from_json(data)
    _prove_again(certificate)
    return certificate


def certificate_from_json(data: object) -> Certificate:
    """A certificate from plain data: checked for completeness and its digest, not proved again."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise InvalidInput(f"a certificate must be of format {FORMAT!r}")
    body = {key: value for key, value in data.items() if key != "digest"}
    stated = data.get("digest")
    if stated != digest_of(body):
        raise NotCertified("the digest of the certificate does not match: it was changed")
    try:
        certificate = Certificate(
            tariff=tariff_from_json(body["tariff"]),
            tolerance=require_real("tolerance", body["tolerance"], above=0, below=1),
            epsilons=_claims(body["epsilon_at"], "delta"),
            deltas=_claims(body["delta_at"], "epsilon"),
            profile=_profile(body["profile"]),
            grid=_grid(body["grid"]) if "grid" in body else None,  # the first ones had none
            theorem=str(body["theorem"]),
            versions=tuple(body["versions"].items()),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"this is not a complete certificate: {error!r:.200}") from None
    if certificate.theorem != THEOREM:
        raise NotCertified(f"{certificate.theorem!r:.100} is not a known theorem")
    _require_versions(certificate.versions)
    if certificate.digest != stated:
        raise NotCertified("the certificate contains something that does not belong to its format")
    return certificate


def _prove_again(stated: Certificate) -> None:
    budget, leak = stated.tariff.budget, stated.tariff.leak
    deltas = [delta for delta, _ in stated.epsilons] or list(USUAL_DELTAS)
    smallest = min((delta for delta in deltas if delta > leak), default=None)
    if smallest is None:
        raise NotCertified(f"the certificate proves nothing for a delta above {leak:g}")
    proofs: list[Proof] = []
    for finer in (1, FINER):
        proofs.append(Proof.of(budget, leak, stated.tolerance / finer, smallest))
        wrong = next(_unproved(stated, proofs), None)
        if wrong is None:
            return
    raise NotCertified(f"{wrong} is not proved again")


def _unproved(stated: Certificate, proofs: Sequence[Proof]) -> Iterator[str]:
    """What is stated and does not follow from any of the proofs."""
    for delta, bracket in stated.epsilons:
        proved = [b for b in (proof.epsilon_at(delta) for proof in proofs) if b is not None]
        yield from _missed(f"epsilon at delta = {delta!r}", bracket, proved)
    for epsilon, bracket in stated.deltas:
        proved = [proof.delta_at(epsilon) for proof in proofs]
        yield from _missed(f"delta at epsilon = {epsilon!r}", bracket, proved)
    # nobody reads it left of this; the first certificates had points there, exact to 1e-12
    first = max((x for x, _ in stated.profile if x <= 0), default=0.0)
    for x, value in stated.profile:
        if x >= first and value < min(proof.point_at(x) for proof in proofs):
            yield f"the profile at epsilon = {x!r}"
    last = stated.profile[-1][1]
    smallest = min(delta for delta, _ in stated.epsilons) if stated.epsilons else 0.0
    if last > max(smallest, *(1.001 * proof.last_value for proof in proofs)):
        yield f"that nothing is known once the profile is at {last!r}"


def _missed(what: str, stated: Bracket, proved: list[Bracket]) -> Iterator[str]:
    if not proved or stated.upper < min(bracket.upper for bracket in proved):
        yield f"{what} of at most {stated.upper!r}"
    elif stated.lower > min(bracket.upper for bracket in proved):
        yield f"{what} of at least {stated.lower!r}"


def _claims(entries: object, at: str) -> tuple[tuple[float, Bracket], ...]:
    """Claims in their order: δ falling, ε rising, none twice."""
    claims = []
    for entry in _list(entries):
        if set(entry) != {at, "lower", "upper"}:
            raise ValueError(f"a claim has {at}, lower and upper")
        below = 1.0 if at == "delta" else None
        place = require_real(at, entry[at], at_least=0, below=below)
        lower, upper = (require_real(side, entry[side], at_least=0) for side in ("lower", "upper"))
        claims.append((place, Bracket(lower, upper, THEOREM)))
    places = [place for place, _ in claims]
    if places != sorted(set(places), reverse=at == "delta"):
        raise ValueError(f"the claims must be in the order of {at}")
    return tuple(claims)


def _profile(entries: object) -> tuple[tuple[float, float], ...]:
    """Points of a function that is decreasing, and convex in e^x, from x ≤ 0 on."""
    points = []
    for entry in _list(entries):
        x, value = entry
        points.append((require_real("x", x), require_real("value", value, at_least=0)))
    if len(points) < 2 or points[0][0] > 0:
        raise ValueError("the profile must have two points at least and start at 0 or before")
    for (x, value), (y, later) in pairwise(points):
        if not x < y or later > value * (1 + BENT) or value > 1 + BENT:
            raise ValueError("the profile must decrease from at most 1, from left to right")
    for (x, first), (y, between), (z, last) in zip(points, points[1:], points[2:], strict=False):
        weight = math.expm1(min(y - x, 700)) / math.expm1(min(z - x, 700))
        if between > ((1 - weight) * first + weight * last) * (1 + BENT):
            raise ValueError("the profile must be convex")
    return tuple(points)


def _grid(entry: object) -> ProofGrid:
    """Anything on which something can be computed: what is proved there is proved."""
    if not isinstance(entry, dict) or set(entry) != {"step", "cells", "unit_step"}:
        raise ValueError("a grid has step, cells and unit_step")
    return ProofGrid(
        step=require_real("step", entry["step"], above=0),
        cells=require_count("cells", entry["cells"], at_least=1),
        unit_step=require_count("unit_step", entry["unit_step"], at_least=1),
    )


def _list(entries: object) -> list[Any]:
    if not isinstance(entries, list) or len(entries) > MOST_NUMBERS:
        raise ValueError("a list of claims or points")
    return entries


def _require_versions(versions: tuple[tuple[object, object], ...]) -> None:
    shaped = all(
        isinstance(version, str) and re.fullmatch(r"[0-9A-Za-z.+!_-]{1,40}", version)
        for _, version in versions
    )
    if not shaped or {name for name, _ in versions} != set(COMPUTED_BY):
        raise NotCertified(f"a certificate states the versions of {', '.join(COMPUTED_BY)}")


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a name is used twice")
    return dict(pairs)
