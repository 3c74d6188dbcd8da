"""Certificates: what is written can be checked again, and what was changed is caught."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import farthing as fa
from farthing.canonical import digest
from farthing.composition.tariffs.tariff import read_tariff
from farthing.composition.tariffs.verification import certificate_from_json, verify

TARIFF = fa.Tariff(
    {"select": (fa.BoundedRange(0.1), 1), "count": (fa.PureDP(0.1), 4)}, farthings=60
)


@pytest.fixture(scope="module")
def certificate() -> fa.Certificate:
    return TARIFF.certify()


@pytest.fixture
def file(certificate: fa.Certificate, tmp_path: Path) -> Path:
    path = tmp_path / "certificate.json"
    certificate.write(path)
    return path


def test_it_verifies(file: Path, certificate: fa.Certificate) -> None:
    again = verify(file)
    assert again.digest == certificate.digest
    assert again.tariff == TARIFF


def test_it_says_what_is_needed(file: Path) -> None:
    data = json.loads(file.read_text(encoding="utf-8"))
    assert data["tariff"]["farthings"] == 60
    assert data["tariff"]["items"]["select"] == {"guarantee": "br:0.1", "price": 1}
    assert {"farthing", "numpy", "python-flint"} <= set(data["versions"])
    assert len(data["assumptions"]) >= 4
    assert len(data["profile"]) > 100


def test_any_change_breaks_the_digest(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"farthings": 60', '"farthings": 61'), encoding="utf-8")
    with pytest.raises(fa.NotCertified, match="digest"):
        verify(file)


@pytest.mark.parametrize("key", ["epsilon_at", "delta_at"])
def test_a_better_claim_with_a_new_digest_is_not_proved(file: Path, key: str) -> None:
    data = json.loads(file.read_text(encoding="utf-8"))
    data[key][2]["upper"] *= 0.95
    data[key][2]["lower"] *= 0.5
    del data["digest"]
    data["digest"] = digest(data)
    file.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(fa.NotCertified, match="not proved"):
        verify(file)


def test_a_profile_below_what_an_analyst_achieves_is_refuted(file: Path) -> None:
    data = json.loads(file.read_text(encoding="utf-8"))
    data["profile"] = [[x, value * 0.9] for x, value in data["profile"]]
    del data["digest"]
    data["digest"] = digest(data)
    file.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(fa.NotCertified, match="profile"):
        verify(file)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "something else"}'])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(fa.InvalidInput):
        verify(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(fa.InvalidInput, match="not a readable certificate"):
        verify(tmp_path / "nothing.json")


def test_reading_off_the_profile_is_on_the_safe_side(certificate: fa.Certificate) -> None:
    for delta in (3e-7, 4e-6, 1e-9):
        exact = TARIFF.certify(deltas=(delta,))
        assert certificate.epsilon_at(delta) >= dict(exact.epsilons)[delta].lower
    for epsilon in (0.3, 1.7, 30.0):
        exact = TARIFF.certify(epsilons=(epsilon,))
        assert certificate.delta_at(epsilon) >= dict(exact.deltas)[epsilon].lower
    assert certificate.epsilon_at(1e-200) == certificate.epsilon_at(0)
    noisy = fa.Tariff({"noise": (fa.Gaussian(10.0), 1)}, farthings=5).certify(tolerance=0.3)
    with pytest.raises(fa.NotCertified):
        noisy.epsilon_at(1e-200)


def test_an_interrupted_write_leaves_nothing(
    certificate: fa.Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "certificate.json"
    target.write_text("the old one", encoding="utf-8")

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        certificate.write(target)
    assert target.read_text(encoding="utf-8") == "the old one"
    assert list(tmp_path.iterdir()) == [target]


def test_a_certificate_is_read_back_from_its_data(certificate: fa.Certificate) -> None:
    again = certificate_from_json(json.loads(json.dumps(certificate.to_json())))
    assert again == certificate
    assert again.to_json() == certificate.to_json()


@pytest.mark.parametrize("name", ["select", "two words", 'quo"ted\\', "δ.[x]", "\n\x7f"])
def test_a_tariff_file_is_read_back(tmp_path: Path, name: str) -> None:
    items = {name: (fa.ApproximateDP(0.1, 1e-9), 3), "noise": (fa.DiscreteGaussian(9.5, 2), 1)}
    tariff = fa.Tariff(items, farthings=60, delta_units=7, delta_unit=1e-9)
    tariff.write(tmp_path / "tariff.toml")
    assert read_tariff(tmp_path / "tariff.toml") == tariff
    assert (tmp_path / "tariff.toml").read_text(encoding="utf-8") == tariff.to_toml()
