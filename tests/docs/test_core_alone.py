"""The core by itself: what needs nothing else works, what needs an extra names it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from farthing.optional import EXTRAS

ROOT = Path(__file__).parents[2]
#: A finder that knows none of the libraries which only extras bring.
BARE = f"""
import sys
from importlib.machinery import PathFinder
class Bare(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        known = name.partition(".")[0] not in {sorted(EXTRAS)!r}
        return super().find_spec(name, path, target) if known else None
sys.meta_path = [Bare if finder is PathFinder else finder for finder in sys.meta_path]
"""


def bare(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BARE + code], capture_output=True, text=True)


def test_everything_that_counts_works() -> None:
    done = bare(
        "import farthing as fa\n"
        "import farthing.lab.audit, farthing.exchange, farthing.interactive\n"
        "import farthing.mechanisms\n"
        "print(fa.compose([(fa.PureDP(0.1), 9)]).epsilon_at(1e-6).upper)\n"
        "fa.Accountant(1, 1e-6).spend(fa.Gaussian(20.0))\n"
        "fa.Schema, fa.Column\n"
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(0.9, rel=0.01)


def test_a_star_imports_what_is_there() -> None:
    done = bare("from farthing import *\ncompose, Accountant\n")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("import farthing as fa; fa.open", "engine"),
        ("from farthing import Desk", "engine"),
        ("import farthing.engine", "engine"),
        ("import farthing as fa; fa.connect", "client"),
        ("import farthing as fa; fa.Limits", "ledger"),
        ("import farthing.ledger", "ledger"),
        ("from farthing.exchange import to_event; to_event([])", "dp-accounting"),
        ("from farthing.exchange import from_opendp; from_opendp(None, 1)", "opendp"),
        ("from farthing.exchange import from_autodp; from_autodp(None)", "autodp"),
        (
            "from farthing.lab.figures import FIGURES, as_svg; as_svg(FIGURES['ddr20-2'], ())",
            "figures",
        ),
    ],
)
def test_what_is_missing_is_named(code: str, extra: str) -> None:
    done = bare(code)
    assert done.returncode != 0
    assert f"run: pip install '.[{extra}]'" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("command", ["ledger", "owner", "query", "converse"])
def test_commands_say_it_without_a_traceback(command: str) -> None:
    done = bare(
        f"sys.argv = ['farthing', '{command}', '--help']\n"
        "from farthing.cli.main import run\nrun()\n"
    )
    assert done.returncode == 2
    assert done.stderr.startswith("farthing: ")
    assert "pip install '.[" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_every_extra_that_is_named_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(EXTRAS.values()) <= set(project["optional-dependencies"])
    core = " ".join(project["dependencies"])
    assert not [name for name in EXTRAS if name in core]
