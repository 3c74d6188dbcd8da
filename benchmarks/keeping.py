"""Each part in a process of its own, and its result kept, so that a run goes on where it stopped.

A result is current as long as the library's source and the part's own file are what they were.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.findings import Findings
from benchmarks.machine import ROOT, commit, digest_of, taken_by_others

FOLDER = ROOT / ".benchmarks"
#: Seconds after which a part is given up: more than all limits of its peers together.
LONGEST = 7200
#: In the order in which they run: what is short first.
PARTS = (
    "composition",
    "accounting",
    "subsampling",
    "adaptive",
    "corners",
    "checking",
    "mechanisms",
    "conversations",
    "service",
    "limits",
    "engine",
    "people",
    "ledger",
    "measures",
    "top_k",
)


@dataclass(frozen=True, slots=True)
class Kept:
    """A part's findings, and what they rest on."""

    part: str
    commit: str
    digest: str
    finished: str
    seconds: float
    others: float
    findings: Findings

    @property
    def document(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def digest(part: str) -> str:
    """Of everything that a part's result depends on."""
    return digest_of(ROOT / "benchmarks" / "parts" / f"{part}.py")


def kept(part: str) -> Kept | None:
    """What an earlier run left, whether or not it is current."""
    file = FOLDER / f"{part}.json"
    if not file.exists():
        return None
    document = json.loads(file.read_text(encoding="utf-8"))
    return Kept(**{**document, "findings": Findings.from_document(document["findings"])})


def is_current(one: Kept | None) -> bool:
    """Whether nothing has changed since."""
    return one is not None and one.digest == digest(one.part)


def measure(part: str) -> str | None:
    """Run one part and keep what it finds; else the reason why there is nothing."""
    FOLDER.mkdir(exist_ok=True)
    new = FOLDER / f"{part}.new"
    others, start = taken_by_others(), time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.apart", part, str(new)]
    try:
        done = subprocess.run(command, cwd=ROOT, timeout=LONGEST, stderr=subprocess.PIPE)
    except subprocess.TimeoutExpired:
        return f"not done after {LONGEST} s"
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"ended with {done.returncode}"
    found = Findings.from_document(json.loads(new.read_text(encoding="utf-8")))
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    seconds = time.perf_counter() - start
    result = Kept(part, commit(), digest(part), finished, seconds, others, found)
    new.write_text(json.dumps(result.document, ensure_ascii=False, indent=1), encoding="utf-8")
    Path(new).replace(FOLDER / f"{part}.json")
    return None
