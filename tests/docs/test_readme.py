"""What the README shows is what happens."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.S)
COMMANDS = re.findall(r"^    (farthing .*)$", README, flags=re.M)


def test_python_blocks_run_and_print_what_they_say(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    assert len(BLOCKS) >= 4
    for block in BLOCKS:
        printed = StringIO()
        with redirect_stdout(printed):
            exec(compile(block, "README.md", "exec"), names)
        stated = [line[2:] for line in block.splitlines() if line.startswith("# ")]
        assert [line.rstrip() for line in printed.getvalue().splitlines()] == stated
        for line in block.splitlines():
            expression, marker, value = line.partition("  # ")
            if marker and not line.startswith("#") and "=" not in expression.split("(")[0]:
                result = str(eval(expression.strip(), names))
                assert result.startswith(value.strip().rstrip("…")), line


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command: str, tmp_path: Path) -> None:
    (tmp_path / "tariff.toml").write_text(
        'farthings = 20\n[items.select]\nguarantee = "br:0.1"\nprice = 1\n', encoding="utf-8"
    )
    arguments = shlex.split(command, comments=True)[1:]
    if "verify" in arguments:
        _run(["tariff", "certify", "tariff.toml", "--output", "certificate.json"], tmp_path)
    _run(arguments, tmp_path)


def _run(arguments: list[str], folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "farthing.cli", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_every_public_name_is_documented() -> None:
    import farthing

    for name in farthing.__all__:
        thing = getattr(farthing, name)
        documented = getattr(thing, "__doc__", None)
        assert documented or name in ("ADAPTIVITIES", "Guarantee"), name
