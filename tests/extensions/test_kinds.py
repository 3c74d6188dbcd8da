"""A kind of question from another package: asked like ours. A broken one harms nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as fa
from farthing.engine import kinds, query_from
from farthing.engine.kinds import GROUP, KINDS
from farthing.engine.kinds.counts import CountQuery
from farthing.errors import InvalidInput, Unsupported
from farthing.optional import load
from tests.extensions.packages import install

BUILT_IN = list(KINDS)
TARIFF = fa.Tariff({"count": (fa.PureDP(1.0), 4)}, 400)
#: The example of CONTRIBUTING.md.
MODULE = Path(__file__).parents[2].joinpath("CONTRIBUTING.md").read_text(encoding="utf-8")
MODULE = MODULE.split("```python\n# missing_values.py\n", 1)[1].split("```", 1)[0]
BROKEN = {
    "a_function": ("def a_function(): ...", "not a subclass of"),
    "raises": ("raise OSError('no disk')", "OSError: no disk"),
    "absent": ("", "AttributeError"),
    "renamed": (MODULE.replace("MissingValuesQuery", "renamed"), "its kind must be 'renamed'"),
    "thawed": (
        MODULE.replace("MissingValuesQuery", "thawed")
        .replace('"missing_values"', '"thawed"')
        .replace("@dataclass(frozen=True, slots=True)", ""),
        "not a frozen dataclass",
    ),
    "half": (
        MODULE.replace("MissingValuesQuery", "half")
        .replace('"missing_values"', '"half"')
        .replace("def words", "def other"),
        "does not define words",
    ),
    "silent": (
        MODULE.replace("MissingValuesQuery", "silent")
        .replace('"missing_values"', '"silent"')
        .replace('Annotated[str, "The column."]', "str"),
        "column has no help text",
    ),
    "odd": (
        MODULE.replace("MissingValuesQuery", "odd")
        .replace('"missing_values"', '"odd"')
        .replace('Annotated[str, "The column."]', 'Annotated[dict, "A table."]')
        .replace("column:", "table:")
        .replace("self.column", "self.table"),
        "table must be text",
    ),
}


def forget() -> None:
    load.cache_clear()
    kinds._outside.cache_clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    there = tmp_path / "site"
    there.mkdir()
    monkeypatch.syspath_prepend(str(there))
    forget()
    yield there
    forget()
    for name in [name for name in sys.modules if name.startswith("outside_")]:
        sys.modules.pop(name)


def good(folder: Path) -> None:
    points = {GROUP: ["missing_values = outside_missing:MissingValuesQuery"]}
    install(folder, "missing-values", points, outside_missing=MODULE)


def table(folder: Path) -> Path:
    rows = {"who": [1, 1, 2, 3], "city": [None, "x", "y", None]}
    pq.write_table(pa.table(rows), folder.parent / "rows.parquet")
    return folder.parent / "rows.parquet"


def test_it_is_asked_like_ours(folder: Path, tmp_path: Path) -> None:
    good(folder)
    assert list(KINDS) == [*BUILT_IN, "missing_values"]
    signed = {"tariff": TARIFF.certify(), "farthings": 100, "ledger": tmp_path / "b.db"}
    with fa.open(table(folder), unit="who", **signed) as data:
        answer = data.missing_values("city").run()
        assert -50 < answer.value < 50
        assert answer.caption == "The number of distinct `who` with a missing `city`"
        assert data.ask({"kind": "missing_values", "column": "city"}).run().cached
        with pytest.raises(InvalidInput, match="missing_values needs column"):
            data.missing_values()
        with pytest.raises(AttributeError, match="no attribute 'mising_values'"):
            _ = data.mising_values


def test_history_outlives_the_package(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good(folder)
    signed = {"tariff": TARIFF.certify(), "farthings": 100, "ledger": tmp_path / "b.db"}
    with fa.open(table(folder), unit="who", **signed) as data:
        data.missing_values("city").run()
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(folder)])
    forget()
    with fa.open(table(folder), ledger=tmp_path / "b.db") as data:
        [past] = data.history()
        assert past.asked == "A question of the kind missing_values, which is not installed"
        assert data.count().plan().fits
        with pytest.raises(InvalidInput, match="kind must be one of"):
            data.ask(past.query)


def test_it_is_a_command(folder: Path, tmp_path: Path) -> None:
    good(folder)
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    asked = ["query", "missing-values", str(table(folder)), "--unit", "who", "--column", "city"]
    budget = ["--epsilon", "3", "--delta", "1e-6", "--ledger", str(tmp_path / "c.db"), "--plan"]
    ran = subprocess.run(
        [sys.executable, "-m", "farthing", *asked, *budget],
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "with a missing `city`" in ran.stdout


def test_broken_ones_say_so_and_leave_the_others(folder: Path, caplog) -> None:
    good(folder)
    for name, (module, _) in BROKEN.items():
        install(folder, name, {GROUP: [f"{name} = outside_{name}:{name}"]})
        (folder / f"outside_{name}.py").write_text(module, encoding="utf-8")
    assert list(KINDS) == [*BUILT_IN, "missing_values"]
    assert len(caplog.records) == len(BROKEN)
    for name, (_, words) in BROKEN.items():
        with pytest.raises(Unsupported, match=f"from the package {name}, cannot be used") as told:
            query_from({"kind": name})
        assert words in str(told.value)
    assert query_from({"kind": "count"}) == CountQuery()
    with pytest.raises(InvalidInput, match=r"kind must be one of count, .*, missing_values, got"):
        query_from({"kind": "nothing"})


@pytest.mark.parametrize("name", ["count", "batch", "sql"])
def test_no_package_takes_a_built_in_name(folder: Path, caplog, name: str) -> None:
    module = MODULE.replace('"missing_values"', f'"{name}"')
    points = {GROUP: [f"{name} = outside_shadow:MissingValuesQuery"]}
    install(folder, "shadow", points, outside_shadow=module)
    assert list(KINDS) == BUILT_IN
    assert KINDS["count"] is CountQuery
    assert "outside_shadow" not in sys.modules
    [record] = caplog.records
    assert "from the package shadow, cannot be used: the name is built in" in record.getMessage()
