"""What people read on the command line is on the safe side of what was proved."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

from typer.testing import CliRunner

import farthing as fa
from farthing.cli.tariff import tariff
from farthing.composition.tariff_files import read_tariff, write_tariff

ITEMS = {"select": (fa.BoundedRange(0.1), 1), "leak": (fa.ApproximateDP(0.0, 1e-9), 1)}


def run(*arguments: str) -> str:
    done = CliRunner().invoke(tariff, list(arguments), env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.output


def test_uppers_are_rounded_up_and_lowers_down(tmp_path: Path) -> None:
    file = str(tmp_path / "tariff.toml")
    write_tariff(fa.Tariff(ITEMS, 30, delta_units=10, delta_unit=1e-9), file)
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
