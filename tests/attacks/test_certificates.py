"""A certificate is what was proved: honest ones verify, and no number in one can be forged.

Before, a third of random honest certificates did not verify, because a finer grid may give a
slightly larger number, and points of a profile were held to the lower side only, those beyond the
grid to nothing.
"""

from __future__ import annotations

import contextlib
import copy
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import farthing as fa
from farthing import checker
from farthing.canonical import digest
from farthing.composition.tariffs.budget import Budget
from farthing.composition.tariffs.certificate import Proof
from farthing.composition.tariffs.verification import certificate_from_json, verify, verify_document
from farthing.numerics.curves import Supports
from tests.tariffs.drawn import tariffs

Document = dict[str, Any]

TARIFF = fa.Tariff(
    {"select": (fa.BoundedRange(0.1), 1), "count": (fa.PureDP(0.1), 4)}, farthings=60
)
QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
TOLERANCE = 0.3
DELTAS = (1e-2, 1e-6)


@pytest.fixture(scope="module")
def certificate() -> fa.Certificate:
    return TARIFF.certify(deltas=(1e-3,))


def forged(certificate: fa.Certificate, change: Callable[[Document], object]) -> Document:
    """The certificate as data, changed and signed again."""
    data = copy.deepcopy(certificate.to_json())
    change(data)
    data.pop("digest", None)
    return {**data, "digest": digest(data)}


def test_an_honest_certificate_of_counts_verifies(tmp_path: Path) -> None:
    """On a lattice every grid is exact, and which of two is larger is up to rounding."""
    certificate = fa.Tariff({"count": (fa.PureDP(0.1), 1)}, farthings=400).certify()
    certificate.write(tmp_path / "certificate.json")
    assert verify(tmp_path / "certificate.json").digest == certificate.digest


@QUICK
@given(tariffs())
def test_every_honest_certificate_verifies(tariff: fa.Tariff) -> None:
    certificate = tariff.certify(tolerance=TOLERANCE, deltas=DELTAS, epsilons=(0.0, 0.7, 3.0))
    assert verify_document(json.loads(json.dumps(certificate.to_json()))) == certificate


def test_another_machine_may_differ_in_the_last_digits(
    certificate: fa.Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = certificate.to_json()
    proof_of = Proof.of

    def slightly_larger(budget: Budget, leak: float, tolerance: float, delta: float) -> Proof:
        proof = proof_of(budget, leak, tolerance, delta)
        proof.end.upper.values[:] *= 1 + 1e-12
        return proof

    monkeypatch.setattr(Proof, "of", slightly_larger)
    verify_document(data)


def test_a_tail_beyond_the_grid(certificate: fa.Certificate) -> None:
    """The old check knew nothing beyond its grid: this file claimed ε(1e-30) = 2.6."""
    needed = dict(TARIFF.certify(deltas=(1e-30,)).epsilons)[1e-30].lower
    x, _ = certificate.profile[-1]
    assert x + 0.3 < needed
    data = forged(certificate, lambda d: d["profile"].append([x + 0.3, 0.0]))
    assert certificate_from_json(data).epsilon_at(1e-30) < needed
    with pytest.raises(fa.NotCertified, match="profile at epsilon"):
        verify_document(data)
    with pytest.raises(checker.Refused, match="profile at epsilon"):
        checker.check(data)


def test_a_profile_between_the_two_sides(certificate: fa.Certificate) -> None:
    """The old check held points to the lower side: all of these were accepted."""

    def lower(data: Document) -> None:
        proof = Proof.of(TARIFF.budget, TARIFF.leak, certificate.tolerance / 4, 1e-3)
        data["profile"] = [
            [x, max(0.5 * (proof.end.lower.at(x) + proof.end.upper.at(x)), 1e-12)]
            for x, _ in data["profile"]
        ]

    data = forged(certificate, lower)
    with pytest.raises(fa.FarthingError):
        verify_document(data)
    with pytest.raises(checker.Refused):
        checker.check(data)


def _set(*path: object, to: object) -> Callable[[Document], None]:
    def change(data: Any) -> None:
        *way, last = path
        for key in way:
            data = data[key]
        data[last] = to

    return change


def _drop(*path: object) -> Callable[[Document], None]:
    def change(data: Any) -> None:
        *way, last = path
        for key in way:
            data = data[key]
        del data[last]

    return change


TOO_WIDE = _set("tolerance", to=0.9)
CHANGES = [
    TOO_WIDE,
    _set("tolerance", to=0.0),
    _set("tolerance", to="0.005"),
    _set("theorem", to="because I say so"),
    _set("versions", to={}),
    _set("versions", "farthing", to="1.0\nverified by somebody"),
    _set("versions", "numpy", to=2),
    _set("versions", "trust", to="1"),
    _set("assumptions", to=[]),
    _set("assumptions", 0, to="Neighbouring datasets are equal."),
    _set("format", to="farthing certificate 0"),
    _set("note", to="audited"),
    _set("tariff", "farthings", to=61),
    _set("tariff", "farthings", to=60.0),
    _set("tariff", "delta_units", to=1000),
    _set("tariff", "items", "select", "guarantee", to="br:0.2"),
    _set("tariff", "items", "select", "guarantee", to="br:0.10"),
    _set("tariff", "items", "more", to={"guarantee": "dp:3", "price": 1}),
    _set("tariff", "items", "select", "note", to="cheap"),
    _set("epsilon_at", 0, "upper", to=0.1),
    _set("epsilon_at", 0, "lower", to=5.0),
    _set("epsilon_at", 0, "delta", to=1e-4),
    _set("epsilon_at", 0, "delta", to=-1e-4),
    _set("epsilon_at", 0, "note", to=1),
    _set("epsilon_at", 1, "upper", to=5.9),
    _set("epsilon_at", to=[]),
    _set("epsilon_at", to=[{"delta": 1e-300, "lower": 0.0, "upper": 3.0}]),
    _set("delta_at", 2, "upper", to=1e-9),
    _set("delta_at", 2, "epsilon", to=0.01),
    _set("delta_at", to={"1.0": 0.0}),
    _set("profile", to=[]),
    _set("profile", to=[[0.0, 1.0]]),
    _set("profile", to=[[0.0, 1.0], [0.5, 1.0]]),
    _set("profile", to=[[1.0, 0.5], [2.0, 0.4]]),
    _set("profile", 3, to=[100.0, 0.3]),
    _set("profile", 3, 1, to=0.9999),
    _set("profile", 3, 1, to=-0.1),
    _set("profile", 3, to=[0.1, 0.2, 0.3]),
    _set("profile", 3, 1, to=True),
    _set("profile", 3, 1, to="0.3"),
    _set("profile", 0, 1, to=0.0),
    _drop("profile", slice(12, None)),
    _drop("profile"),
    _drop("assumptions"),
    _drop("versions"),
    _set("grid", to={}),
    _set("grid", "step", to=0.0),
    _set("grid", "cells", to=1.5),
    _set("grid", "unit_step", to=0),
    _set("grid", "note", to=1),
]


@pytest.mark.parametrize("change", CHANGES)
def test_what_no_certificate_says(
    certificate: fa.Certificate, change: Callable[[Document], None]
) -> None:
    data = forged(certificate, change)
    with pytest.raises(fa.FarthingError):
        verify_document(data)
    if change is TOO_WIDE:  # what was aimed at is no claim: the rest is proved on the stated grid
        checker.check(data)
        return
    with pytest.raises(checker.Refused):
        checker.check(data)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none(certificate: fa.Certificate, tmp_path: Path, number: float) -> None:
    data = certificate.to_json()
    data["profile"][3][1] = number
    with pytest.raises(fa.FarthingError):
        verify_document(data)
    with pytest.raises(checker.Refused):
        checker.check(data)
    (tmp_path / "x.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(fa.FarthingError):
        verify(tmp_path / "x.json")
    with pytest.raises(checker.Refused):
        checker.read(json.dumps(data))


def test_a_name_that_is_used_twice(certificate: fa.Certificate, tmp_path: Path) -> None:
    """What a person reads first would not be what was proved."""
    text = json.dumps(certificate.to_json())
    path = tmp_path / "x.json"
    path.write_text(text.replace("{", '{"tolerance": 1e-9, ', 1), encoding="utf-8")
    with pytest.raises(fa.InvalidInput, match="twice"):
        verify(path)
    with pytest.raises(checker.Refused, match="twice"):
        checker.read(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("data", [None, [], 3, {}, {"format": "farthing certificate 1"}])
def test_other_data(data: object) -> None:
    with pytest.raises(fa.FarthingError):
        verify_document(data)
    with pytest.raises(checker.Refused):
        checker.check(data)


def _lower_claims(source: random.Random, data: Document) -> None:
    entry = source.choice(data["epsilon_at"] + data["delta_at"])
    entry["upper"] *= 1 - 10 ** -source.uniform(0.1, 8)
    entry["lower"] = min(entry["lower"], entry["upper"])


def _lower_a_point(source: random.Random, data: Document) -> None:
    source.choice(data["profile"])[1] *= 1 - 10 ** -source.uniform(0.1, 8)


def _lower_the_tail(source: random.Random, data: Document) -> None:
    first, factor = source.randrange(len(data["profile"])), 1 - 10 ** -source.uniform(0.1, 8)
    for point in data["profile"][first:]:
        point[1] *= factor


def _move_points_left(source: random.Random, data: Document) -> None:
    factor = 1 - 10 ** -source.uniform(1, 8)
    for point in data["profile"]:
        point[0] *= factor


def _remove_points(source: random.Random, data: Document) -> None:
    data["profile"] = [point for point in data["profile"] if source.random() < 0.5]


def _add_a_tail(source: random.Random, data: Document) -> None:
    x, value = data["profile"][-1]
    data["profile"].append([x + source.uniform(0.01, 2), value * source.uniform(0, 1)])


def _add_a_claim(source: random.Random, data: Document) -> None:
    delta = 10 ** -source.uniform(1, 60)
    data["epsilon_at"].append({"delta": delta, "lower": 0.0, "upper": source.uniform(0, 4)})
    data["epsilon_at"].sort(key=lambda claim: -claim["delta"])


FORGERIES = [
    _lower_claims,
    _lower_a_point,
    _lower_the_tail,
    _move_points_left,
    _remove_points,
    _add_a_tail,
    _add_a_claim,
]


@QUICK
@given(tariffs(), st.sampled_from(FORGERIES), st.integers(0, 2**32))
def test_a_forgery_is_refused_or_claims_nothing_better(
    tariff: fa.Tariff, forge: Callable[[random.Random, Document], None], seed: int
) -> None:
    """Whatever passes is still at least what an analyst achieves, everywhere it can be read."""
    honest = tariff.certify(tolerance=TOLERANCE, deltas=DELTAS, epsilons=(0.0, 0.7, 3.0))
    source = random.Random(seed)
    data = forged(honest, lambda d: forge(source, d))
    proofs = [
        Proof.of(tariff.budget, tariff.leak, TOLERANCE / finer, DELTAS[-1]) for finer in (1, 4)
    ]
    better = any(
        claim["upper"] < min(b.upper for p in proofs if (b := p.epsilon_at(claim["delta"])))
        for claim in data["epsilon_at"]
        if claim["delta"] in {delta for delta, _ in honest.epsilons}
    ) or any(
        value < min(proof.end.delta_at_most(x) for proof in proofs) * (1 - 1e-12)
        for x, value in data["profile"]
    )
    with contextlib.suppress(fa.FarthingError):
        verify_document(data)
        assert not better
        _claims_no_less_than_is_reached(data, proofs[1].end.lower)
    with contextlib.suppress(checker.Refused, fa.InvalidInput):
        checker.check(data)
        _claims_no_less_than_is_reached(data, proofs[1].end.lower)


def _claims_no_less_than_is_reached(data: Document, lower: Supports) -> None:
    accepted = certificate_from_json(data)
    for delta in (0.3, 1e-2, 1e-4, 1e-6, 1e-9, 1e-30):
        try:
            read = accepted.epsilon_at(delta)
        except fa.NotCertified:
            continue
        assert read >= lower.last_above(delta) * (1 - 1e-12)
    for epsilon in (0.0, 0.1, 0.7, 1.3, 3.0, 6.0, 60.0):
        assert accepted.delta_at(epsilon) >= lower.at(epsilon) * (1 - 1e-12)


@pytest.mark.parametrize("name", ["earlier_certificate", "earlier_certificate_of_counts"])
def test_certificates_of_earlier_versions_are_read_and_proved(name: str) -> None:
    path = Path(__file__).parents[1] / "tariffs" / f"{name}.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    assert verify(path).digest == data["digest"]
    body = {key: value for key, value in data.items() if key != "digest"}
    body["epsilon_at"][0]["upper"] *= 0.8
    body["epsilon_at"][0]["lower"] *= 0.8
    with pytest.raises(fa.NotCertified, match="not proved again"):
        verify_document({**body, "digest": digest(body)})


def test_a_certificate_prints_in_a_few_lines(certificate: fa.Certificate) -> None:
    shown = repr(certificate)
    assert len(shown) < 600
    assert certificate.digest in shown
    assert "60 farthings" in shown
