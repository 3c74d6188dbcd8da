"""What it ran on: processors, memory, versions, and how busy others kept it."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import farthing

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "numpy", "numba", "python-flint", "duckdb", "pyspark",
    "dp-accounting", "prv-accountant", "autodp", "opendp",
)  # fmt: skip
#: Above this share of the processors taken by others, times are not to be trusted.
BUSY = 0.1


def machine() -> dict[str, str]:
    """Processor, memory and system."""
    cpus = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":", 1)[1].strip() for line in cpus if "model name" in line), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processors": f"{os.cpu_count()} × {model or platform.machine()}",
        "memory": f"{memory:.0f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """What is installed here; peers in environments of their own tell theirs with each answer."""
    found = {"farthing": farthing.__version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def commit() -> str:
    """The commit, marked if files differ from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "src", "benchmarks")
    return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")


def digest_of(*more: Path) -> str:
    """Of all source of the library and of some files more: what a result depends on."""
    files = [*sorted((ROOT / "src").rglob("*.py")), *more]
    digest = hashlib.sha256()
    for file in files:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def taken_by_others(seconds: float = 2.0) -> float:
    """The share of the processors that is busy while we sleep."""

    def ticks() -> tuple[int, int]:
        line = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0]
        counted = [int(one) for one in line.split()[1:9]]
        return sum(counted), counted[3] + counted[4]

    before = ticks()
    time.sleep(seconds)
    after = ticks()
    every = after[0] - before[0]
    return 1 - (after[1] - before[1]) / every if every else 0.0
