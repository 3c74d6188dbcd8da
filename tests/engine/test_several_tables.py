"""Several private tables of one unit: one source, one limit, one budget."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as fa
from farthing import engine
from farthing.cli.options import several
from farthing.engine.sources.base import Source
from farthing.engine.sources.opening import open_source
from farthing.errors import InvalidInput
from farthing.ledger import Ledger, Limits
from farthing.ledger.declared_data import location_of_several, overlap, places_in, require_location
from farthing.ledger.errors import AlreadyThere
from farthing.schema import INTEGER, TEXT, Column, Schema
from tests.engine.engines import histogram, read
from tests.engine.rows import naive_histogram

SCHEMA = Schema(
    (
        Column("player", INTEGER),
        Column("team", TEXT),
        Column("pay", INTEGER),
        Column("hits", INTEGER),
        Column("table", TEXT),
    )
)


def tables(seed: int = 1) -> tuple[pa.Table, pa.Table]:
    """The unit is a number in one table and text in the other; each has a column of its own."""
    draw = random.Random(seed)
    pay = {
        "player": pa.array([draw.choice([None, *range(25)]) for _ in range(200)], pa.int64()),
        "team": [draw.choice(["a", "b", "A", None]) for _ in range(200)],
        "pay": [draw.randrange(9) for _ in range(200)],
    }
    hits = {
        "team": [draw.choice(["b", "c", "é", ""]) for _ in range(300)],
        "hits": [draw.randrange(5) for _ in range(300)],
        "player": [draw.choice([None, "x", *map(str, range(30))]) for _ in range(300)],
    }
    return pa.table(pay), pa.table(hits)


def below_each_other(pair: Sequence[pa.Table]) -> pa.Table:
    """The rows of both by the definition."""
    rows = []
    for name, table in zip(("pay", "hits"), pair, strict=True):
        for row in table.to_pylist():
            player = row["player"]
            number = None if player in (None, "x") else int(player)
            rows.append({**row, "player": number, "table": name})
    kinds = {"player": pa.int64(), "team": pa.string(), "pay": pa.int64(), "hits": pa.int64()}
    return pa.Table.from_pylist(rows, pa.schema({**kinds, "table": pa.string()}))


Make = Callable[[Sequence[pa.Table]], Source]


@pytest.fixture(params=["parquet", "duckdb", "mixed", "spark", "postgres"])
def make(request, tmp_path: Path):
    opened: list[Source] = []

    def made(pair: Sequence[pa.Table]) -> Source:
        while opened:  # a DuckDB file is written to only while nobody reads it
            opened.pop().shut()
        opened.append(_made(request, tmp_path, dict(zip(("pay", "hits"), pair, strict=True))))
        return opened[-1]

    yield made
    for source in opened:
        source.shut()


def _made(request: Any, folder: Path, named: dict[str, pa.Table]) -> Source:
    if request.param == "postgres":
        url = request.getfixturevalue("postgres").url()
        types = {"int64": "bigint", "string": "text"}
        with psycopg.connect(url, autocommit=True) as connection:
            for name, table in named.items():
                columns = ", ".join(f'"{f.name}" {types[str(f.type)]}' for f in table.schema)
                connection.execute(f"DROP TABLE IF EXISTS {name}")
                connection.execute(f"CREATE TABLE {name} ({columns})")
                with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                    for row in table.to_pylist():
                        copy.write_row(list(row.values()))
        return open_source(url, table=["pay", "hits"])
    if request.param == "duckdb":
        with duckdb.connect(str(folder / "base.duckdb")) as connection:
            for name, table in named.items():
                connection.register("given", table)
                connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given")
        return open_source(str(folder / "base.duckdb"), table=["pay", "hits"])
    if request.param == "mixed":
        from pyarrow import csv

        csv.write_csv(named["hits"], folder / "hits.csv")
        pq.write_table(named["pay"], folder / "pay.parquet")
        return open_source([folder / "pay.parquet", folder / "hits.csv"])
    for name, table in named.items():
        pq.write_table(table, folder / f"{name}.parquet")
    spark = request.getfixturevalue("spark") if request.param == "spark" else None
    return open_source([str(folder / f"{name}.parquet") for name in named], spark=spark)


def _plain(source: Source, rows: pa.Table) -> pa.Table:
    """Tables of a DuckDB file are called file.table; the empty text of a CSV cell is one."""
    if "base.pay" in source.name:
        marked = [f"base.{name}" for name in rows["table"].to_pylist()]
        return rows.set_column(rows.column_names.index("table"), "table", pa.array(marked))
    return rows


def test_the_rows_of_all_tables_are_read(make: Make) -> None:
    source, pair = make(tables()), tables()
    expected = _plain(source, below_each_other(pair)).to_pylist()
    found = read(source, SCHEMA)
    key = lambda row: repr(sorted(row.items()))
    assert sorted(map(key, found)) == sorted(map(key, expected))


def test_each_unit_is_limited_over_all_of_them(make: Make) -> None:
    pair = tables(2)
    source = make(pair)
    whole = _plain(source, below_each_other(pair))
    for by, limits in (
        (("team",), (None, 1)),
        (("team",), (2, 3)),
        (("team", "table"), (3, 2)),
        (("table",), (1, 5)),
    ):
        assert histogram(source, SCHEMA, by, unit="player", limits=limits) == naive_histogram(
            whole, "player", by, secret="key", limit=limits[0], per_key=limits[1]
        )


def test_one_unit_less_in_all_tables_changes_at_most_its_limit(make: Make) -> None:
    pair = tables(3)
    everybody = histogram(make(pair), SCHEMA, ("team",), unit="player", limits=(2, 1))
    for player in (0, 11, 24):
        without = [
            table.filter([row["player"] not in (player, str(player)) for row in table.to_pylist()])
            for table in pair
        ]
        less = histogram(make(without), SCHEMA, ("team",), unit="player", limits=(2, 1))
        changed = [everybody.get(key, 0) - less.get(key, 0) for key in {*everybody, *less}]
        assert set(changed) <= {0, 1}
        assert 0 < sum(changed) <= 2


def test_a_column_called_table_is_the_table_s(tmp_path: Path) -> None:
    pq.write_table(pa.table({"player": [1], "Table": ["x"]}), tmp_path / "one.parquet")
    pq.write_table(pa.table({"player": [1]}), tmp_path / "two.parquet")
    source = open_source([tmp_path / "one.parquet", tmp_path / "two.parquet"])
    assert [column.name for column in source.columns] == ["player", "Table"]
    source.shut()


def test_tables_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for folder in ("a'", "b"):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"player": [1]}), tmp_path / folder / "rows'.parquet")
    places = [tmp_path / folder / "rows'.parquet" for folder in ("b", "a'")]
    source = open_source(places)
    found = read(source, Schema((Column("player", INTEGER), Column("table", TEXT))))
    assert {row["table"] for row in found} == {"rows'", "rows' 2"}
    source.shut()


def test_what_cannot_be_read_as_one(tmp_path: Path, opened) -> None:
    one, two = tmp_path / "one.parquet", tmp_path / "two.parquet"
    pq.write_table(pa.table({"player": [1], "team": ["a"]}), one)
    pq.write_table(pa.table({"team": ["a"]}), two)
    with pytest.raises(InvalidInput, match="share data"):
        open_source([one, one])
    with pytest.raises(InvalidInput, match="share data"):
        open_source([one, tmp_path])
    with pytest.raises(InvalidInput, match="in files or in a database"):
        open_source([one, pa.table({"player": [1]})])
    with pytest.raises(InvalidInput, match="in one database"):
        open_source([str(one), "postgresql://localhost/x"], table="y")
    with pytest.raises(InvalidInput, match="empty list"):
        open_source([])
    with pytest.raises(InvalidInput, match="two has no column player"):
        opened([one, two], unit="player")
    with pytest.raises(InvalidInput, match="several tables have no ledger beside them"):
        fa.open([one, two], unit="team", epsilon=1, delta=1e-6)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    for name, table in zip(("pay", "hits"), tables(), strict=True):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    return tmp_path / "pay.parquet", tmp_path / "hits.parquet"


def test_the_budget_belongs_to_all_of_them(opened, files, tmp_path: Path) -> None:
    pay, hits = files
    data = opened([pay, hits], unit="player", dataset="players", schema=SCHEMA)
    assert data.count().run().value is not None
    left = data.remaining()
    again = engine.open([hits, pay], ledger=tmp_path / "budget.db")
    assert (again.name, again.remaining()) == ("players", left)
    again.shut()
    third = tmp_path / "third.parquet"
    pq.write_table(tables()[0], third)
    for other in (pay, [hits, third], [pay, hits, third], tmp_path):
        with pytest.raises(AlreadyThere, match="is there already, as the dataset players"):
            opened(other, unit="player", dataset="more")
    opened(third, unit="player", dataset="third")
    with engine.Desk.open(tmp_path / "budget.db") as desk:
        source = open_source(pay)
        declared = engine.Declaration(unit="player", limits=Limits(contribution_limit=1))
        desk.add(source, declared, name="pay alone", beside="players")
        source.shut()
        assert "pay alone" in desk.ledger.reader().datasets()


def test_one_of_them_first_and_all_of_them_later(opened, files) -> None:
    pay, hits = files
    opened(pay, unit="player", dataset="pay")
    with pytest.raises(AlreadyThere, match="as the dataset pay"):
        opened([pay, hits], unit="player", dataset="both")


def test_locations_of_several_tables() -> None:
    both = location_of_several(["file:/b", "file:/a"])
    assert both == 'several:["file:/a", "file:/b"]' == require_location(both)
    assert places_in(both) == ("file:/a", "file:/b")
    assert overlap(both, "file:/a#t")
    assert overlap("file:/", both)
    assert overlap(both, location_of_several(["file:/c", "file:/b/x"]))
    assert not overlap(both, "file:/c")
    for wrong in (
        "several:",
        "several:[]",
        'several:["file:/a"]',
        'several:["file:/b", "file:/a"]',
        'several:["file:/a","file:/b"]',
        'several:["file:/a", "file:/a/b"]',
        'several:["file:a", "file:/b"]',
        'several:{"file:/a": 1, "file:/b": 1}',
        f"several:{json.dumps([both, 'file:/c'])}",
    ):
        with pytest.raises(InvalidInput):
            require_location(wrong)


def test_commas_on_the_command_line(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert several("a.csv, b.csv") == ["a.csv", "b.csv"]
    for one in (None, "a.csv", "postgresql://one,two/base", "data/{a,b}.parquet"):
        assert several(one) == one
    Path("a,b.csv").touch()
    assert several("a,b.csv") == "a,b.csv"


def test_an_owner_adds_several_at_the_terminal(files, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from farthing.cli.main import app

    ledger = tmp_path / "terminal.db"
    given = ["owner", "add", ",".join(map(str, files)), "--unit", "player", "--ledger", str(ledger)]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    with Ledger.open(ledger) as book:
        kept = book.reader().dataset("hits_pay")
    assert kept.schema is not None
    assert places_in(kept.location or "") == tuple(sorted(f"file:{file}" for file in files))
