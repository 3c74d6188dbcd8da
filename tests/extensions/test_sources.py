"""Data sources from packages of other people, and the conformance test that they can run."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as fa
from farthing.engine import open_source
from farthing.engine.sources import opening
from farthing.engine.sources.conformance import check_source
from farthing.errors import InvalidInput, Unsupported
from farthing.optional import load
from farthing.schema import INTEGER, TEXT
from tests.engine.engines import on_postgres

#: A package with two sources. `shelf` has an engine of its own: it runs statements itself, here
#: on a DuckDB that it opens. `box` brings its rows, which are copied.
MODULE = """
import duckdb, pyarrow.parquet as pq
from farthing.engine.sources.base import Source
from farthing.engine.sources.duckdb import open_rows
from farthing.engine.sources.duckdb_files import DIALECT, READERS, physical_column
from farthing.engine.sources.tables import SourcePart, SourceTable

class ShelfSource(Source):
    dialect, readers = DIALECT, READERS

    def __init__(self, path):
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")
        self.connection.execute(f"CREATE TABLE rows AS FROM read_parquet('{path}')")
        described = self.connection.execute("DESCRIBE rows").fetchall()
        columns = [physical_column(r[0], DIALECT.identifier(r[0]), r[1], "{x}") for r in described]
        part = SourcePart("rows", tuple(columns))
        super().__init__([SourceTable("rows", f"shelf:{path}", (part,))])

    def fetch(self, statement):
        given = [list(p) if isinstance(p, tuple) else p for p in statement.parameters]
        return self.connection.cursor().sql(statement.sql, params=given).to_arrow_table()

    def shut(self):
        self.connection.close()

def open_shelf(address, tables):
    assert tables == [None] or tables == ["rows"]
    return ShelfSource(address.removeprefix("shelf://"))

def open_box(address, tables):
    path = address.removeprefix("box://")
    return open_rows(pq.read_table(path), name="box", location=f"box:{path}")

def open_nothing(address, tables):
    return None

def open_failing(address, tables):
    raise OSError("cell Zeisig")
"""
POINTS = """[farthing.sources]
shelf = outside_shelf:open_shelf
box = outside_shelf:open_box
nothing = outside_shelf:open_nothing
failing = outside_shelf:open_failing
postgresql = outside_shelf:open_box
file = outside_shelf:open_box
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package as `pip install --target` leaves it."""
    folder = tmp_path / "packages"
    metadata = folder / "shelf-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(POINTS)
    (folder / "outside_shelf.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(folder))
    load.cache_clear()
    yield
    load.cache_clear()
    sys.modules.pop("outside_shelf", None)


@pytest.fixture
def stored(tmp_path: Path) -> Any:
    """Writes rows to a new file, and says where it is."""
    places = iter(range(100))

    def store(rows: pa.Table) -> str:
        path = tmp_path / f"{next(places)}.parquet"
        pq.write_table(rows, path)
        return str(path)

    return store


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("scheme", ["shelf", "box"])
def test_a_source_of_another_package_is_asked_like_any_other(scheme, stored, tmp_path) -> None:
    rows = pa.table({"member": list(range(500)), "country": ["NO", "SE"] * 250})
    tariff = fa.Tariff({"count": (fa.PureDP(1.0), 1)}, farthings=10)
    certificate = tariff.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))
    path = stored(rows)
    budget = {"ledger": tmp_path / "b.db", "tariff": certificate, "farthings": 10}
    with fa.open(f"{scheme}://{path}", unit="member", **budget) as data:
        assert abs(data.count(where={"country": "NO"}).run().value - 250) < 50
    source = open_source(f"{scheme}://{path}")
    assert source.location == f"{scheme}:{path}"
    source.shut()


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("scheme", ["shelf", "box"])
def test_they_conform(scheme, stored) -> None:
    check_source(lambda rows: open_source(f"{scheme}://{stored(rows)}"))


def through_floats(kind: Any) -> None:
    read = {(INTEGER, INTEGER): "CAST(CAST({x} AS DOUBLE) AS BIGINT)"}
    kind.readers = {**kind.readers, **read}


def without_case(kind: Any) -> None:
    kind.readers = {**kind.readers, (TEXT, TEXT): "lower({x})"}


def in_another_order(kind: Any) -> None:
    kind.dialect = replace(kind.dialect, digest="CAST(length({x}) AS BIGINT)")


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("mistake", "words"),
    [(through_floats, "casts to"), (without_case, "casts to"), (in_another_order, "1 labels of")],
)
def test_one_that_does_not_conform_is_caught(mistake, words, stored) -> None:
    outside_shelf = importlib.import_module("outside_shelf")
    mistake(outside_shelf.ShelfSource)
    with pytest.raises(AssertionError, match=words):
        check_source(lambda rows: outside_shelf.ShelfSource(stored(rows)))


@pytest.mark.usefixtures("package")
def test_a_built_in_name_is_never_taken(stored, monkeypatch) -> None:
    path = stored(pa.table({"member": [1]}))
    source = open_source(f"file://{path}")
    assert source.location == f"file:{path}"
    source.shut()
    asked = []
    monkeypatch.setattr(opening, "open_postgres", lambda url, **_: asked.append(url))
    open_source("postgresql://nowhere/base", table="t")
    assert asked == ["postgresql://nowhere/base"]
    assert {"file", "postgresql"} <= opening.BUILT_IN


@pytest.mark.usefixtures("package")
def test_what_is_wrong_with_a_package_is_said_and_no_cell_with_it(owner_log) -> None:
    with pytest.raises(Unsupported, match="the package shelf, cannot be used: it must return a S"):
        open_source("nothing://here")
    with pytest.raises(InvalidInput, match="failing:// could not be opened") as refused:
        open_source("failing://here")
    assert "Zeisig" not in f"{refused.value}{refused.value.__cause__}{refused.value.__context__}"
    assert "Zeisig" in owner_log.text
    with pytest.raises(InvalidInput, match="list its tables"):
        open_source(["box://a", "box://b"])
    with pytest.raises(InvalidInput, match="there is no file 'unknown://here'"):
        open_source("unknown://here")


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_the_built_in_ones_conform(engine, request, stored) -> None:
    """PostgreSQL and Spark read what they stored themselves."""
    check_source(lambda rows: placed(engine, rows, request, stored))


def placed(engine: str, rows: pa.Table, request: Any, stored: Any) -> Any:
    if engine == "postgres":
        columns = "member bigint, text text, whole bigint, worth float8, number text, day date, "
        url = request.getfixturevalue("postgres").url()
        cells = [list(row.values()) for row in rows.to_pylist()]
        return on_postgres(url, f"{columns} at timestamp, flag boolean", cells)
    path = stored(rows)
    if engine == "duckdb":
        return open_source(path)
    return open_source(path, spark=request.getfixturevalue("spark"))
