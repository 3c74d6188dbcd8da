"""The benchmark's own machinery: what is kept, what is current, who is ahead, what a peer lacks."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import keeping, peers, report
from benchmarks.findings import Beside, Findings, Goal, Table
from benchmarks.keeping import PARTS, Kept
from benchmarks.machine import ROOT
from benchmarks.parts import measures, top_k

FOUND = Findings(
    "A part",
    (Table("What it is.", ["a", "b"], [["1", "2"]]),),
    (Goal("quick", 30.0, 50, "ms"), Goal("enough", 0.4, 0.5, "×", at_least=True)),
    (
        Beside("sum", "error", 10.0, "slower 1.0", 20.0),
        Beside("sum", "error", 10.0, "better 1.0", 5.0, "other noise"),
        Beside("sum", "error", 10.0, "same 1.0", 10.4),
        Beside("sum", "error", 10.0, "cannot 1.0", None, "no sums"),
    ),
)
KEPT = Kept("engine", "abc", "", "2026-01-01T00:00:00+00:00", 60.0, 0.0, FOUND)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results go nowhere else."""
    monkeypatch.setattr(keeping, "FOLDER", tmp_path)
    monkeypatch.setattr(report, "PAGE", tmp_path / "benchmarks.md")
    monkeypatch.setattr(report, "DATA", tmp_path / "benchmarks.json")
    return tmp_path


def keep(folder: Path, one: Kept) -> None:
    (folder / f"{one.part}.json").write_text(json.dumps(one.document), encoding="utf-8")


def test_findings_survive_as_json() -> None:
    assert Findings.from_document(json.loads(json.dumps(FOUND.document))) == FOUND


def test_who_is_ahead_and_by_how_much() -> None:
    assert [one.verdict for one in FOUND.besides] == ["farthing", "**peer**", "even", "-"]
    assert [one.ratio for one in FOUND.besides] == [2.0, 0.5, 1.04, None]
    assert replace(FOUND.besides[2], same=1e-3).verdict == "farthing"
    assert [goal.met for goal in FOUND.goals] == [True, False]


def test_a_result_is_current_until_the_source_changes(folder: Path) -> None:
    assert keeping.kept("engine") is None
    keep(folder, replace(KEPT, digest=keeping.digest("engine")))
    assert keeping.is_current(keeping.kept("engine"))
    keep(folder, replace(KEPT, digest=keeping.digest("ledger")))
    assert not keeping.is_current(keeping.kept("engine"))


def test_the_report_says_what_is_missing_busy_old_or_lost(folder: Path) -> None:
    keep(folder, replace(KEPT, others=0.5))
    text = report.write({"ledger": "no disk"}).read_text(encoding="utf-8")
    assert "Provisional" in text
    assert "engine (50%)" in text
    assert "before the last change of the source: engine" in text
    assert "Missing: ledger: no disk" in text
    assert "Missing: service: not measured yet" in text
    assert "What was asked for: 1 of 2" in text
    ahead = text.split("### Where a peer is ahead")[1].split("###")[0]
    assert "better 1.0" in ahead
    assert "slower 1.0" not in ahead
    assert json.loads(report.DATA.read_text(encoding="utf-8"))["parts"]["engine"]["commit"] == "abc"


def test_a_peer_that_is_not_there_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "FOLDER", tmp_path)
    asked = peers.Ask("sum", "", 0, 1, 1.0, 1e-6, 0.1, 1)
    (told,) = peers.ask("tumult", [asked], 1)
    assert told.failure == "not installed: make peers"


TOLD = json.dumps({"version": "1", "releases": [{"": 2.0}], "seconds": 0.1, "failure": ""})
ASKED = peers.Ask("sum", "", 0, 1, 1.0, 1e-6, 0.1, 1)


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script of a peer that is written by each test."""
    place = tmp_path / "made_up" / "bin"
    place.mkdir(parents=True)
    (place / "python").symlink_to(sys.executable)
    monkeypatch.setattr(peers, "FOLDER", tmp_path)
    monkeypatch.setattr(peers, "HERE", tmp_path)
    return tmp_path / "in_made_up.py"


def test_answers_before_a_failure_are_kept(made_up: Path) -> None:
    """A script that answers once and then ends badly."""
    script = f"import sys\nprint('''{TOLD}''', flush=True)\nsys.exit('no more')\n"
    made_up.write_text(script, encoding="utf-8")
    first, second = peers.ask("made_up", [ASKED, ASKED], 60)
    assert first.releases == ({"": 2.0},)
    assert second.failure == "no more"


def test_a_question_that_takes_too_long_costs_no_other_one(made_up: Path) -> None:
    """A script that never ends with what it is asked about a median."""
    made_up.write_text(
        "import json, sys, time\n"
        "for one in json.loads(sys.argv[1]):\n"
        "    if one['question'] == 'median': time.sleep(600)\n"
        f"    print('''{TOLD}''', flush=True)\n",
        encoding="utf-8",
    )
    asked = [ASKED, replace(ASKED, question="median"), ASKED]
    first, second, third = peers.ask("made_up", asked, 3)
    assert (first.releases, third.releases) == (({"": 2.0},), ({"": 2.0},))
    assert second.failure == "no answer within 3 s"


def test_a_part_may_take_as_long_as_its_peers_may() -> None:
    asked = len(measures.QUESTIONS) + 1  # and the scale of a sum
    assert len(measures.PEERS) * asked * measures.TIMEOUT < keeping.LONGEST
    assert len(top_k.PEERS) * top_k.TIMEOUT < keeping.LONGEST


def test_every_part_and_every_peer_has_its_file() -> None:
    folder = ROOT / "benchmarks" / "parts"
    assert {file.stem for file in folder.glob("*.py")} - {"__init__"} == set(PARTS)
    scripts = {file.stem.removeprefix("in_") for file in peers.HERE.glob("in_*.py")}
    assert scripts == {file.stem for file in peers.HERE.glob("*.txt")}


def test_a_part_that_fails_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess([], 1, b"", b"Traceback\nValueError: no")

    monkeypatch.setattr(keeping.subprocess, "run", failing)
    monkeypatch.setattr(keeping, "taken_by_others", lambda: 0.0)
    assert keeping.measure("engine") == "ValueError: no"
    assert list(folder.iterdir()) == []
