"""Labels and names are data: no terminal obeys them, no spreadsheet runs them."""

from __future__ import annotations

import csv
import io
import json
import logging
import subprocess
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import farthing as fa
from farthing.cli.query import query
from farthing.engine import Declaration, Desk, open_source

mpl.use("Agg")

HOSTILE = [
    "=HYPERLINK(1)",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\x1b[2J\x1b[31mred",
    "\x9b31m",
    "\u202egnp.exe",
    "a\u2066b",
    "$\\frac{$",
    "x\ry",
]
TARIFF = fa.Tariff({"count": (fa.PureDP(0.5), 1)}, farthings=30)
COMMANDS = ("\x1b", "\x9b", "\u202e", "\u2066", "\r")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = pa.table({"member": list(range(len(HOSTILE))), "=k\x1b[31m": HOSTILE})
    pq.write_table(rows, "events.parquet")
    coarse = TARIFF.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))
    with Desk.open("budget.db") as desk:
        source = open_source("events.parquet")
        desk.add(source, Declaration(unit="member"))
        source.shut()
        desk.sign("events", coarse)
        desk.grant("events", "analyst", farthings=30)
    return tmp_path


def shell(*arguments: str):
    common = ["histogram", "events.parquet", "--ledger", "budget.db", "--by", "=k\x1b[31m"]
    labels = [part for label in HOSTILE for part in ("--category", label)]
    limit = ["--contribution-limit", "1"]
    return CliRunner().invoke(query, [*common, *labels, *limit, *arguments], catch_exceptions=False)


@pytest.mark.usefixtures("folder")
def test_csv_holds_no_formulas_and_no_commands() -> None:
    printed = shell("--csv").stdout
    assert not any(command in printed for command in COMMANDS)
    names, *rows = csv.reader(io.StringIO(printed))
    assert len(rows) == len(HOSTILE)
    for cell in (names[0], *(row[0] for row in rows)):
        assert not cell.startswith(("=", "+", "-", "@", "\t"))


@pytest.mark.usefixtures("folder")
def test_json_is_plain_ascii_and_reads_back() -> None:
    printed = shell("--json").stdout
    assert printed.isascii()
    assert json.loads(printed)["labels"] == HOSTILE


@pytest.mark.usefixtures("folder")
def test_tables_hold_no_commands() -> None:
    for printed in (shell().stdout, shell("--plan").stdout):
        assert not any(command in printed for command in COMMANDS)


@pytest.mark.usefixtures("folder")
def test_errors_hold_no_commands() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "farthing", "query", "histogram", "events.parquet"),
            *("--ledger", "budget.db", "--by", "\x1b[2Jno\u202esuch\x9bcolumn"),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "no column" in done.stderr
    assert not any(command in done.stderr for command in COMMANDS)


@pytest.mark.usefixtures("folder")
def test_plots_take_labels_for_text(tmp_path) -> None:
    with fa.open("events.parquet", ledger="budget.db") as session:
        axes = (
            session.histogram("=k\x1b[31m", categories=HOSTILE, contribution_limit=1).run().plot()
        )
    axes.figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 0
    plt.close("all")


def test_what_the_engine_says_reaches_only_a_handler_of_its_own() -> None:
    heard = io.StringIO()
    root = logging.getLogger()
    handler = logging.StreamHandler(heard)
    root.addHandler(handler)
    try:
        logging.getLogger("farthing.engine").error("a cell")
        logging.getLogger("farthing.engine.sources").error("a cell")
    finally:
        root.removeHandler(handler)
    assert heard.getvalue() == ""
