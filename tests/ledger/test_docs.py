"""What docs/ledger.md shows runs as it is written, and names every mode and error it should."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import farthing.ledger
from farthing.ledger import errors

PAGE = Path(__file__).parents[2] / "docs" / "ledger.md"


def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(block, str(PAGE), "exec"), {})
    left, epsilon = capsys.readouterr().out.splitlines()
    assert left == "Price(farthings=79, delta_units=0)"
    assert 0 < float(epsilon) < 4


def test_without_its_database_library_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['sqlalchemy'] = None; import farthing.ledger"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "pip install '.[ledger]'" in done.stderr


def test_every_error_is_in_the_tree_and_public() -> None:
    tree = errors.__doc__ or ""
    raised = [
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.LedgerError)
    ]
    for name in raised:
        assert name in tree
        assert name in farthing.ledger.__all__
