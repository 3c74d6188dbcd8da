"""Other libraries, each in an environment of its own: `make peers` makes them.

A peer is a script `in_NAME.py` in this folder, run by the interpreter of `.peers/NAME` (or of the
folder that FARTHING_PEERS names). It is sent questions as JSON and prints a line for each answer as
soon as it has it, so that a time limit costs only what came after it.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import ROOT

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("FARTHING_PEERS", ROOT / ".peers"))


@dataclass(frozen=True, slots=True)
class Ask:
    """One question: to everybody with the same limits, ε and δ; `rho` is the zCDP within both."""

    question: str
    path: str
    rows: int
    runs: int
    epsilon: float
    delta: float
    rho: float
    limit: int
    upper: int = 0
    groups: int = 0
    k: int = 0
    leak: float = 0.0


@dataclass(frozen=True, slots=True)
class Told:
    """What came back: a number for each label, of every run; or why there is nothing."""

    version: str
    releases: tuple[dict[str, float], ...] = ()
    seconds: float = 0.0
    failure: str = ""


def ask(peer: str, asked: Sequence[Ask], timeout: float) -> list[Told]:
    """Everything in one process of the peer, in order."""
    interpreter = FOLDER / peer / "bin" / "python"
    if not interpreter.exists():
        return [Told("", failure="not installed: make peers") for _ in asked]
    sent = json.dumps([asdict(one) for one in asked])
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "told", "w+b") as out:
        command = [str(interpreter), str(HERE / f"in_{peer}.py"), sent]
        options: dict[str, Any] = {"cwd": folder, "stdout": out, "stderr": subprocess.PIPE}
        failure = f"no answer within {timeout:.0f} s for all questions"
        try:
            done = subprocess.run(command, timeout=timeout, **options)
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            failure = f"{lines[-1]:.100}" if done.returncode and lines else "no answer"
        except subprocess.TimeoutExpired:
            pass
        out.seek(0)
        found = [json.loads(line) for line in out.read().splitlines() if line.startswith(b'{"v')]
    told = [Told(**{**one, "releases": tuple(one["releases"])}) for one in found]
    return told + [Told("", failure=failure)] * (len(asked) - len(told))
