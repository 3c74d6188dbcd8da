"""What people read on the command line is on the safe side of what was proved."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

import farthing as fa
from farthing.cli.composition import tariff
from farthing.composition.tariffs.tariff import read_tariff

ITEMS = {"select": (fa.BoundedRange(0.1), 1), "leak": (fa.ApproximateDP(0.0, 1e-9), 1)}


def run(*arguments: str) -> str:
    done = CliRunner().invoke(tariff, list(arguments), env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.output


def test_uppers_are_rounded_up_and_lowers_down(tmp_path: Path) -> None:
    file = str(tmp_path / "tariff.toml")
    fa.Tariff(ITEMS, 30, delta_units=10, delta_unit=1e-9).write(file)
    shown = run("certify", file, "--delta", "1e-6", "--output", str(tmp_path / "certificate.json"))
    exact = json.loads(run("certify", file, "--delta", "1e-6", "--json"))
    row = next(line for line in shown.splitlines() if "1e-06" in line)
    upper, lower = re.findall(r"\d+\.\d{3,}", row)[:2]
    assert Decimal(upper) >= Decimal(exact["epsilon_upper"])
    assert Decimal(lower) <= Decimal(exact["epsilon_lower"])
    assert "verified" in run("verify", str(tmp_path / "certificate.json"))


def test_a_proposal_with_a_leak_can_be_used(tmp_path: Path) -> None:
    file = tmp_path / "tariff.toml"
    items = ("select=br:0.1", "leak=adp:0,1e-9")
    run("propose", *items, "--epsilon", "2", "--delta", "1e-6", "--output", str(file))
    proposed = read_tariff(file)
    assert proposed.delta_units == 500
    assert proposed.certify(tolerance=1e-3).epsilon_at(1e-6) <= 2


SELLABLE = {
    "dp": "dp:0.1",
    "br": "br:0.1",
    "adp": "adp:0.05,1e-9",
    "lap": "lap:0.1",
    "gauss": "gauss:10",
    "dgauss": "dgauss:10,3",
}


@pytest.mark.parametrize("kind", SELLABLE)
def test_everything_a_tariff_sells_can_be_planned_beside_a_leak(kind: str) -> None:
    items = (f"item={SELLABLE[kind]}", "leak=adp:0,1e-9")
    within = ("--epsilon", "1", "--delta", "1e-6")
    proposed = json.loads(run("propose", *items, *within, "--json"))
    sold = {
        name: (fa.parse_guarantee(text), proposed["prices"][name])
        for name, text in (item.split("=") for item in items)
    }
    units = {key: proposed[key] for key in ("delta_units", "delta_unit")}
    assert proposed["farthings"] == fa.largest_farthings(sold, epsilon=1, delta=1e-6, **units) > 0
    tariff = fa.Tariff(sold, proposed["farthings"], **units)
    assert tariff.price("leak") == fa.Price(1, 1)
    assert tariff.certify(deltas=(1e-6,)).epsilon_at(1e-6) <= 1


def test_a_leak_that_delta_cannot_pay_is_refused() -> None:
    items = ("select=br:0.1", "leak=adp:0,1e-5", "--epsilon", "1", "--delta", "1e-6")
    done = CliRunner().invoke(tariff, ["propose", *items])
    assert isinstance(done.exception, fa.Unattainable)
