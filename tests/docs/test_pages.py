"""What the README and the guides show is what happens."""

from __future__ import annotations

import re
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import farthing as fa
from farthing.cli.main import app
from farthing.guarantees.notation import parse_item

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    "docs/engine.md",
    "docs/ledger.md",
    "docs/conversations.md",
    "docs/examples/lahman.md",
)
#: Pages with code and no commands.
CODE_ALONE = (
    "docs/people.md",
    "docs/coming-from.md",
    "docs/theory/bounds.md",
    "docs/theory/adaptive.md",
    "docs/theory/blocks.md",
    "docs/theory/correlated-noise.md",
)
#: A block with its language and, if it is to be saved, its file; or a command.
STEP = r'```(\w+)(?: title="(.+?)")?\n(.*?)```|^    (farthing [^\n]*)$'
TARIFF = """\
farthings = 400
delta_units = 100
delta_unit = 1e-9
[items.select]
guarantee = "br:0.1"
price = 1
[items.count]
guarantee = "dp:0.1"
price = 4
[items.leak]
guarantee = "adp:0,1e-9"
price = 1
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a reader would be: with a tariff and a table."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tariff.toml").write_text(TARIFF, encoding="utf-8")
    count = 20_000
    rows = {
        "member_id": [i // 5 for i in range(count)],
        "article": [f"article {(i * i) % 97 % 12}" for i in range(count)],
        "country": ["NO" if i % 3 else "SE" for i in range(count)],
        "company": [f"company {i % 40}" for i in range(count)],
        "age": [18 + i % 60 for i in range(count)],
        "spend": [i % 25 for i in range(count)],
    }
    pq.write_table(pa.table(rows), tmp_path / "events.parquet")
    pq.write_table(salaries(), tmp_path / "salaries.parquet")
    return tmp_path


def salaries() -> pa.Table:
    """A table of the shape of Lahman's: players who stay for some years, most of them for few."""
    players = [(i, 1985 + i % 32, 1 + 24 // (1 + i % 12)) for i in range(3000)]
    rows = [(i, year) for i, first, stay in players for year in range(first, first + stay)]
    kept = [(i, year) for i, year in rows if year <= 2016]
    return pa.table(
        {
            "yearID": [year for _, year in kept],
            "teamID": [f"T{(i + year // 4) % 30:02}" for i, year in kept],
            "lgID": ["AL" if i % 2 else "NL" for i, _ in kept],
            "playerID": [f"player{i:04}" for i, _ in kept],
            "salary": [60_000 + (i * 7919 + year * 104_729) % 9_000_000 for i, year in kept],
        }
    )


@pytest.mark.parametrize("page", [*PAGES, *CODE_ALONE])
@pytest.mark.usefixtures("folder")
def test_python_blocks_run_and_print_what_they_say(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    names: dict[str, object] = {}
    assert blocks
    for block in blocks:
        run_block(block, page=page, names=names)
    shut_all(names)


def run_block(block: str, *, page: str, names: dict[str, object]) -> None:
    """Runs it, and compares what it printed with the comments that say so."""
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(block, page, "exec"), names)
    stated = [line[2:] for line in block.splitlines() if line.startswith("# ")]
    if stated:
        assert [line.rstrip() for line in printed.getvalue().splitlines()] == stated
    for line in block.splitlines():
        expression, marker, value = line.partition("  # ")
        if marker and not line.startswith("#") and value[0].isdigit() | (value[0] in "{["):
            result = str(eval(expression.strip(), names))
            assert result.startswith(value.strip().rstrip("…")), line


def shut_all(names: dict[str, object]) -> None:
    """Gives back what a page left open."""
    for left in names.values():
        shut = getattr(left, "shut", None)
        if callable(shut) and not isinstance(left, type):
            shut()


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("folder")
def test_commands_run_in_order(page: str) -> None:
    """In this process: tests/cli runs commands as processes, and starting one takes seconds."""
    text = (ROOT / page).read_text(encoding="utf-8")
    joined = re.sub(r"\\\n +", "", text)  # a command may go on in the next line
    commands = re.findall(r"^    (farthing .*)$", joined, flags=re.M)
    assert commands
    for command in commands:
        assert run_command(command)


def run_command(command: str) -> str:
    """What it prints."""
    done = CliRunner().invoke(app, shlex.split(command, comments=True)[1:])
    assert done.exit_code == 0, f"{command}\n{done.output}{done.exception}"
    return done.stdout


@pytest.mark.parametrize("tutorial", ["analyst", "owner", "library-author"])
def test_a_tutorial_from_an_empty_folder(
    tutorial: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    walk(f"docs/tutorials/{tutorial}.md")


@pytest.mark.usefixtures("folder")
def test_short_answers() -> None:
    walk("docs/how-to.md")


def walk(page: str) -> None:
    """Blocks, files and commands in the order of the page, as a reader would go."""
    names: dict[str, object] = {}
    steps = re.findall(STEP, (ROOT / page).read_text(encoding="utf-8"), flags=re.S | re.M)
    assert steps
    for language, title, body, command in steps:
        if command:
            run_command(command)
        elif title:
            Path(title).write_text(body, encoding="utf-8")
        elif language == "python":
            run_block(body, page=page, names=names)
    shut_all(names)


@pytest.mark.parametrize(
    ("texts", "adaptivity"),
    [
        (["100xbr:0.1"], "adaptive"),
        (["100xbr:0.1"], "none"),
        (["3xbr:0.1", "2xdp:0.1"], "none"),
        (["3xbr:0.1", "2xbr:0.2"], "none"),
        (["2xgauss:5"], "adaptive"),
        (["zcdp:0.05", "br:0.1"], "setwise"),
        (["cdp:0.1,0.2", "adp:0.1,1e-9"], "adaptive"),
        (["poisson:0.1/gauss:2"], "adaptive"),
    ],
)
def test_every_bound_has_its_derivation(texts: list[str], adaptivity: str) -> None:
    page = (ROOT / "docs" / "theory" / "bounds.md").read_text(encoding="utf-8")
    items = [parse_item(text) for text in texts]
    for name in fa.compose(items, adaptivity=adaptivity, tolerance=0.05).bounds_at(1e-6):
        assert f"`{name}`" in page
