"""Other libraries, each in an environment of its own: `make peers` makes them.

A peer is a script `in_NAME.py` in this folder, run by the interpreter of `.peers/NAME` (or of the
folder that FARTHING_PEERS names). It is sent questions as JSON and prints a line for each answer as
soon as it has it, so that a question that takes too long costs no other one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import ROOT

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("FARTHING_PEERS", ROOT / ".peers"))
#: Seconds between two looks at what a peer has said.
_LOOK_EVERY = 0.1


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
    """Every question in order, each within `timeout` seconds.

    One process of the peer answers them; after a question that took too long, another one.
    """
    interpreter = FOLDER / peer / "bin" / "python"
    if not interpreter.exists():
        return [Told("", failure="not installed: make peers") for _ in asked]
    told: list[Told] = []
    while len(told) < len(asked):
        told += _told(peer, interpreter, asked[len(told) :], timeout)
    return told


def _told(peer: str, interpreter: Path, asked: Sequence[Ask], timeout: float) -> list[Told]:
    """What one process says, and why it said no more; of the first question at least."""
    command = [str(interpreter), str(HERE / f"in_{peer}.py"), json.dumps([*map(asdict, asked)])]
    with tempfile.TemporaryDirectory() as folder:
        out, errors = Path(folder) / "told", Path(folder) / "errors"
        with out.open("wb") as told, errors.open("wb") as wrong:
            options: dict[str, Any] = {"cwd": folder, "stdout": told, "stderr": wrong}
            process = subprocess.Popen(command, start_new_session=True, **options)
        try:
            in_time = _wait_for(process, out, len(asked), timeout)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # Java too, where the peer started one
            status = process.wait()
        found = _answers(out)
        if not in_time:
            return [*found, Told("", failure=f"no answer within {timeout:.0f} s")]
        lines = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        failure = f"{lines[-1]:.100}" if status and lines else "no answer"
        return found + [Told("", failure=failure)] * (len(asked) - len(found))


def _wait_for(process: subprocess.Popen[bytes], out: Path, count: int, timeout: float) -> bool:
    """Until everything is answered or the process ended; False if an answer took too long."""
    answered, since = 0, time.monotonic()
    while process.poll() is None and answered < count:
        time.sleep(_LOOK_EVERY)
        if len(_answers(out)) > answered:
            answered, since = len(_answers(out)), time.monotonic()
        elif time.monotonic() > since + timeout:
            return False
    return True


def _answers(out: Path) -> list[Told]:
    """The lines that are complete."""
    lines = [one for one in out.read_bytes().splitlines(keepends=True) if one.endswith(b"\n")]
    found = [json.loads(line) for line in lines if line.startswith(b'{"v')]
    return [Told(**{**one, "releases": tuple(one["releases"])}) for one in found]
