"""Columns from public tables: the join by its definition, neighbours, and attacks on it."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing import engine
from farthing.engine.kinds.counts import HistogramQuery
from farthing.engine.sources.base import Source
from farthing.engine.sources.opening import open_source
from farthing.errors import InvalidInput
from farthing.ledger import Ledger
from farthing.schema import (
    DATE,
    INTEGER,
    REAL,
    TEXT,
    Column,
    Lookup,
    Schema,
    columns_to_toml,
    read_schema,
    schema_from_json,
)
from tests.engine.engines import histogram, measured, read
from tests.engine.rows import naive_histogram

#: Keys that a collation, a trimming or a folding join would take for one another.
CITIES = ("Oslo", "oslo", "OSLO", "Oslo ", "", "x'y", "\\", "é", "e\u0301", "Bergen", None)
#: Oslo is there once, Bergen twice, and nobody has a key that is missing.
PUBLIC = pa.table(
    {
        "name": ["Oslo", "oslo", "Bergen", "Bergen", None, "é", "x'y", "", "Hamar"],
        "city": ["east", "small", "west", "west", "nowhere", "accent", "quote", None, "inland"],
        "size": [700, 7, 290, 291, 1, 3, 12, 5, 30],
    }
)
SIZES = {"Oslo": 700, "oslo": 7, "é": 3, "x'y": 12, "": 5, "Hamar": 30}
REGIONS = {"Oslo": "east", "oslo": "small", "é": "accent", "x'y": "quote", "Hamar": "inland"}


def rows(seed: int = 1) -> pa.Table:
    draw = random.Random(seed)
    return pa.table(
        {
            "member": pa.array([draw.choice([None, *range(30)]) for _ in range(500)], pa.int64()),
            "city": [draw.choice(CITIES) for _ in range(500)],
        }
    )


def schema(table: str) -> Schema:
    """The public table's own column city is called region here; the rows have a city too."""
    return Schema(
        (
            Column("member", INTEGER),
            Column("region", TEXT, lookup=Lookup(table, by="city", key="name", column="city")),
            Column("city", TEXT),
            Column("size", INTEGER, lookup=Lookup(table, by="city", key="name")),
        )
    )


def joined(table: pa.Table) -> pa.Table:
    """The same by its definition."""
    cities = table["city"].to_pylist()
    return table.append_column(
        "region", pa.array([REGIONS.get(city) for city in cities], pa.string())
    ).append_column("size", pa.array([SIZES.get(city) for city in cities], pa.int64()))


Make = Callable[[pa.Table, pa.Table], tuple[Source, str]]


@pytest.fixture(params=["frame", "parquet", "duckdb", "spark", "postgres"])
def make(request, tmp_path: Path):
    """A private table and where a public one is, on each engine."""
    opened: list[Source] = []

    def made(private: pa.Table, public: pa.Table) -> tuple[Source, str]:
        place = str(tmp_path / "public.parquet")
        if request.param == "postgres":
            url, place = request.getfixturevalue("postgres").url(), "public_cities"
            with psycopg.connect(url, autocommit=True) as connection:
                _fill(connection, "private_rows", private)
                _fill(connection, place, public)
            opened.append(open_source(url, table="private_rows"))
            return opened[-1], place
        pq.write_table(public, place)
        if request.param == "frame":
            opened.append(open_source(private))
        elif request.param == "duckdb":
            import duckdb

            with duckdb.connect(str(tmp_path / "base.duckdb")) as connection:
                connection.register("given", public)
                connection.execute("CREATE OR REPLACE TABLE cities AS SELECT * FROM given")
            place = f"{tmp_path}/base.duckdb#cities"
            opened.append(open_source(private))
        else:
            pq.write_table(private, tmp_path / "private.parquet")
            spark = request.getfixturevalue("spark") if request.param == "spark" else None
            opened.append(open_source(str(tmp_path / "private.parquet"), spark=spark))
        return opened[-1], place

    yield made
    for source in opened:
        source.shut()


def _fill(connection: Any, name: str, table: pa.Table) -> None:
    types = {"int64": "bigint", "string": "text", "date32[day]": "date", "double": "float8"}
    columns = ", ".join(f'"{f.name}" {types[str(f.type)]}' for f in table.schema)
    connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.execute(f"CREATE TABLE {name} ({columns})")
    with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
        for row in table.to_pylist():
            copy.write_row(list(row.values()))


def _sorted(table: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in table)


def test_each_row_is_looked_up_by_the_bytes_of_its_key(make: Make) -> None:
    source, place = make(rows(), PUBLIC)
    assert _sorted(read(source, schema(place))) == _sorted(joined(rows()).to_pylist())


def test_joined_columns_are_grouped_filtered_and_limited(make: Make) -> None:
    source, place = make(rows(2), PUBLIC)
    declared, whole = schema(place), joined(rows(2))
    for by, limits in ((("region",), (None, 1)), (("size", "city"), (2, 1)), (("region",), (1, 3))):
        assert histogram(source, declared, by, limits=limits) == naive_histogram(
            whole, "member", by, secret="key", limit=limits[0], per_key=limits[1]
        )
    large = [row["size"] is not None and row["size"] >= 12 for row in whole.to_pylist()]
    assert histogram(source, declared, ("city",), where={"size": {"at_least": 12}}) == (
        naive_histogram(
            whole.filter(large), "member", ("city",), secret="key", limit=None, per_key=1
        )
    )


def test_categories_hold_for_what_is_looked_up_and_looked_up_by(make: Make) -> None:
    source, place = make(rows(), PUBLIC)
    lookup = Lookup(place, by="city", key="name")
    declared = Schema(
        (
            Column("city", TEXT, categories=("Oslo", "oslo")),
            Column("size", INTEGER, lower=10, lookup=lookup),
            Column(
                "region",
                TEXT,
                categories=("small", "east"),
                lookup=Lookup(place, "city", "name", "city"),
            ),
        )
    )
    found = {(row["city"], row["size"], row["region"]) for row in read(source, declared)}
    assert found == {("Oslo", 700, "east"), ("oslo", 7, "small"), (None, None, None)}
    sizes = HistogramQuery("size", contribution_limit=3)
    _, counted, _ = measured(source, Schema((*declared.columns, Column("member", INTEGER))), sizes)
    assert {row["label"] for row in counted.to_pylist()} == {"i700", "i10", "n"}  # 7 is moved


@pytest.mark.parametrize("copies", [2, 50])
def test_a_key_that_is_there_twice_multiplies_no_row(make: Make, copies: int) -> None:
    source, place = make(rows(), pa.concat_tables([PUBLIC] * copies))
    found = read(source, schema(place))
    assert len(found) == 500
    assert all(row["region"] is None and row["size"] is None for row in found)


def test_one_unit_less_changes_at_most_its_limit(make: Make) -> None:
    table = rows(3)
    source, place = make(table, PUBLIC)
    everybody = histogram(source, schema(place), ("region",), limits=(2, 1))
    source.shut()
    for member in (0, 7, 29):
        less = table.filter([row["member"] != member for row in table.to_pylist()])
        source, place = make(less, PUBLIC)
        found = histogram(source, schema(place), ("region",), limits=(2, 1))
        changed = [everybody.get(key, 0) - found.get(key, 0) for key in {*everybody, *found}]
        assert set(changed) <= {0, 1}
        assert 0 < sum(changed) <= 2


def test_keys_are_read_as_the_column_that_looks_them_up_is_declared(make: Make) -> None:
    private = pa.table(
        {"member": pa.array([1, 2, 3, 4], pa.int64()), "code": ["1", "01", "x", None]}
    )
    public = pa.table(
        {"code": pa.array([1, 2], pa.int64()), "day": pa.array([date(2020, 1, 2)] * 2)}
    )
    source, place = make(private, public)
    for kind, days in ((INTEGER, [date(2020, 1, 2)] * 2), (TEXT, [date(2020, 1, 2)])):
        lookup = Lookup(place, by="code", key="code")
        declared = Schema((Column("code", kind), Column("day", DATE, lookup=lookup)))
        found = [row["day"] for row in read(source, declared) if row["day"] is not None]
        assert found == days


def test_what_an_owner_hears(make: Make) -> None:
    source, place = make(rows(), PUBLIC)
    with pytest.raises(InvalidInput, match="must be unique, but Bergen is there more than once"):
        source.with_public_tables(schema(place))
    lookup = Lookup(place, by="city", key="name", column="mayor")
    with pytest.raises(InvalidInput, match="has no column 'mayor'"):
        source.with_public_tables(
            Schema((Column("city", TEXT), Column("mayor", TEXT, lookup=lookup)))
        )
    with pytest.raises(InvalidInput):
        source.with_public_tables(schema(place + "_elsewhere"))


def unique() -> pa.Table:
    return PUBLIC.filter([name != "Bergen" for name in PUBLIC["name"].to_pylist()])


def test_from_opening_to_the_ledger(opened, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(unique(), "cities.parquet")
    pq.write_table(rows(), "rows.parquet")
    data = opened("rows.parquet", schema=schema("cities.parquet"))
    kept = data.schema["region"].lookup
    assert kept == Lookup(str(tmp_path / "cities.parquet"), "city", "name", "city")
    assert schema_from_json(data.schema.to_json()) == data.schema
    found = data.histogram("region", categories=["east", "small"], contribution_limit=2).run()
    assert list(found.labels or ()) == ["east", "small"]
    assert data.sum("size", lower=0, upper=1000, places=0).plan().price.farthings > 0
    data.shut()
    monkeypatch.chdir("/")
    again = engine.open(str(tmp_path / "rows.parquet"), ledger=tmp_path / "budget.db")
    assert again.count(where={"region": "east"}).run().value is not None
    again.shut()
    (tmp_path / "cities.parquet").unlink()
    again = engine.open(str(tmp_path / "rows.parquet"), ledger=tmp_path / "budget.db")
    left = again.remaining()
    with pytest.raises(InvalidInput, match="no file"):
        again.count(where={"region": "small"}).run()
    assert again.remaining() == left
    again.shut()


def test_private_data_is_no_public_table(opened, tmp_path: Path) -> None:
    """Looked up in, the rows of others would be in every answer, and no limit would see them."""
    pq.write_table(rows(), tmp_path / "rows.parquet")
    pq.write_table(unique(), tmp_path / "cities.parquet")
    mine = Lookup(str(tmp_path / "rows.parquet"), by="city", key="member", column="city")
    itself = Schema(
        (*schema("x").columns[:1], Column("city", TEXT), Column("c", TEXT, lookup=mine))
    )
    with pytest.raises(InvalidInput, match="rows is private data"):
        opened(str(tmp_path / "rows.parquet"), schema=itself)
    opened(str(tmp_path / "cities.parquet"), unit="name", dataset="cities")
    with pytest.raises(InvalidInput, match="cities is private data"):
        opened(str(tmp_path / "rows.parquet"), schema=schema(str(tmp_path / "cities.parquet")))
    with Ledger.open(tmp_path / "budget.db") as ledger:
        assert list(ledger.reader().datasets()) == ["cities"]


def test_schemas_that_cannot_be(tmp_path: Path) -> None:
    lookup = Lookup("cities.parquet", by="city", key="name")
    city, size = Column("city", TEXT), Column("size", INTEGER, lookup=lookup)
    with pytest.raises(InvalidInput, match="there is no column city"):
        Schema((size,))
    with pytest.raises(InvalidInput, match="what is looked up must be"):
        Schema((Column("city", REAL), size))
    chained = Lookup("cities.parquet", by="size", key="name")
    with pytest.raises(InvalidInput, match="what is looked up must be"):
        Schema((city, size, Column("more", TEXT, lookup=chained)))
    with pytest.raises(InvalidInput, match="a part must be"):
        Schema((city, size, Column("both", TEXT, parts=("city", "size"))))
    twice = Lookup("cities.parquet", by="city", key="name", column="size")
    with pytest.raises(InvalidInput, match="looked up twice"):
        Schema((city, size, Column("other", TEXT, lookup=twice)))
    with pytest.raises(InvalidInput, match="adds nothing"):
        Column("name", TEXT, lookup=lookup)
    with pytest.raises(InvalidInput, match="declared twice"):
        Schema((city, Column("city", TEXT, lookup=lookup)))
    with pytest.raises(InvalidInput, match="a lookup has"):
        schema_from_json([{"name": "a", "kind": "text", "lookup": {"table": "x"}}])
    (tmp_path / "schema.toml").write_text(columns_to_toml((city, size)), encoding="utf-8")
    assert read_schema(tmp_path / "schema.toml") == Schema((city, size))


def test_the_unit_is_a_column_of_the_rows(opened, tmp_path: Path) -> None:
    pq.write_table(unique(), tmp_path / "cities.parquet")
    with pytest.raises(InvalidInput, match="the unit must be a column of the rows"):
        opened(rows(), unit="region", schema=schema(str(tmp_path / "cities.parquet")))


def test_nobody_has_a_service_read_another_file_from_afar(tmp_path) -> None:
    """The configuration of a service says what it reads; a table that is looked up in is read."""
    columns = schema("/etc/secret.csv").to_json()
    with Ledger.open(tmp_path / "budget.db") as ledger:
        desk = engine.Desk(ledger, sources={"events": open_source(rows())})
        with pytest.raises(InvalidInput, match="declared where the data is"):
            desk.declare("events", "member", columns=columns)
        plain = [column for column in columns if "lookup" not in column]
        assert desk.declare("events", "member", columns=plain).schema is not None


STORES = pa.table(
    {
        "store": ["a", "a", "b", "b", "b", None, "c"],
        "area": ["n", "s", "n", "n", None, "n", "x|n"],
        "rank": pa.array([1, 2, 3, 4, 5, 6, 7], pa.int64()),
    }
)
#: (b, n) is there twice, and a part is missing of two others.
RANKS = {("a", "n"): 1, ("a", "s"): 2, ("c", "x|n"): 7}


def sales(seed: int) -> pa.Table:
    draw = random.Random(seed)
    size = 300
    days = [date(2024, 1, 31), date(2024, 2, 1), date(2024, 2, 29), date(1, 1, 1), None]
    return pa.table(
        {
            "member": pa.array([draw.randrange(20) for _ in range(size)], pa.int64()),
            "store": [draw.choice(["a", "A", "b", "c", "a ", "", None]) for _ in range(size)],
            "area": [draw.choice(["n", "s", "x|n", "N", None]) for _ in range(size)],
            "zip": [
                draw.choice(["0150", "01509", "5003", "é12", "01", "", None]) for _ in range(size)
            ],
            "day": pa.array([draw.choice(days) for _ in range(size)], pa.date32()),
            "price": pa.array(
                [draw.choice([-5, 0, 3, 4, 99, None]) for _ in range(size)], pa.int64()
            ),
        }
    )


_SALES = (
    Column("member", INTEGER),
    Column("store", TEXT),
    Column("area", TEXT),
    Column("zip", TEXT),
    Column("day", DATE),
    Column("price", INTEGER, lower=0, upper=10),
)


def test_a_key_of_several_columns(make: Make) -> None:
    table = sales(1)
    source, place = make(table, STORES)
    lookup = Lookup(place, by=("store", "area"), key=("store", "area"))
    declared = Schema((*_SALES, Column("rank", INTEGER, lookup=lookup)))
    pairs = zip(table["store"].to_pylist(), table["area"].to_pylist(), strict=True)
    ranks = pa.array([RANKS.get(pair) for pair in pairs], pa.int64())
    whole = table.append_column("rank", ranks)
    assert _sorted(read(source, declared)) == _sorted(whole.to_pylist())
    assert set(RANKS.values()) <= set(ranks.to_pylist())
    assert histogram(source, declared, ("rank", "zip"), limits=(2, 1)) == naive_histogram(
        whole, "member", ("rank", "zip"), secret="key", limit=2, per_key=1
    )
    with pytest.raises(InvalidInput, match="must be unique, but b, n is there more than once"):
        source.with_public_tables(declared)


#: What is looked up by, the table, and the value of each key.
COMPUTED: list[tuple[Any, Any, dict[str, list[Any]], Callable[[dict[str, Any]], Any]]] = [
    (
        "left(zip, 3)",
        "prefix",
        {"prefix": ["015", "500", "é12", "", "01"]},
        lambda row: None if row["zip"] is None else row["zip"][:3],
    ),
    (
        "month(day)",
        "month",
        {"month": [date(2024, 2, 1), date(2024, 1, 1), date(1, 1, 1), None]},
        lambda row: None if row["day"] is None else row["day"].replace(day=1),
    ),
    (
        ("case when price > 3 then 'dear' when price is null then 'none' end", "upper(store)"),
        ("size", "code"),
        {"size": ["dear", "dear", "none", "cheap"], "code": ["A", "B", "A", "A"]},
        lambda row: (
            "none" if row["price"] is None else "dear" if row["price"] > 3 else None,
            None if row["store"] is None else row["store"].upper(),
        ),
    ),
    (
        ("price * 2", "area"),
        ("twice", "area"),
        {"twice": [0, 6, 8, 20], "area": ["n", "s", "n", "x|n"]},
        lambda row: (
            None if row["price"] is None else 2 * min(max(row["price"], 0), 10),
            row["area"],
        ),
    ),
]


@pytest.mark.parametrize("case", range(len(COMPUTED)))
def test_a_key_that_is_computed(make: Make, case: int) -> None:
    by, key, keys, wanted = COMPUTED[case]
    size = len(next(iter(keys.values())))
    public = pa.table({**keys, "told": pa.array(range(1, size + 1), pa.int64())})
    columns = public.drop_columns(["told"]).to_pylist()
    values = [tuple(row.values()) if isinstance(key, tuple) else row[key] for row in columns]
    numbers = dict(zip(values, range(1, size + 1), strict=True))
    table = sales(2 + case)
    source, place = make(table, public)
    told = Column("told", INTEGER, lower=0, upper=9, lookup=Lookup(place, by=by, key=key))
    declared = Schema((*_SALES, told))
    assert source.with_public_tables(declared).columns[:-1] == declared.columns[:-1]
    expected = []
    for row in table.to_pylist():
        found = wanted(row)
        missing = found is None or (isinstance(found, tuple) and None in found)
        expected.append(None if missing else numbers.get(found))
    whole = table.append_column("told", pa.array(expected, pa.int64()))
    assert _sorted(read(source, declared)) == _sorted(whole.to_pylist())
    assert len(set(expected)) > 2
    query = HistogramQuery("told * 2", contribution_limit=2, where="told > 1 or area = 'n'")
    _, counted, _ = measured(source, declared, query)
    assert all(int(row["n"]) > 0 for row in counted.to_pylist())


def test_keys_that_cannot_be(opened, tmp_path: Path) -> None:
    pq.write_table(STORES, tmp_path / "stores.parquet")
    place = str(tmp_path / "stores.parquet")
    for by, why in (
        ("split(zip, '|')", "by one value of a row"),
        ("per_unit(count(*))", "by one value of a row"),
        ("price / 3", "a key must be"),
        ("hour(day)", "a date has no hour"),
        ("left(zipcode, 3)", "there is no column zipcode"),
        ("left(zip,", "there is no column left"),
        ("left(rank, 3)", "there is no column rank"),
    ):
        lookup = Lookup(place, by=by, key="store")
        with pytest.raises(InvalidInput, match=why):
            opened(sales(1), schema=Schema((*_SALES, Column("rank", TEXT, lookup=lookup))))
    for by, key in ((("a", "b"), "c"), (("a",), ("b", "c")), (("a", "b"), ("c", "c")), ((), ())):
        with pytest.raises(InvalidInput, match="a lookup compares each of by"):
            Lookup("x", by=by, key=key)
    for by in (("a", 1), ("a", ""), {"a": 1}, None, ["a", ["b"]]):
        with pytest.raises(InvalidInput):
            schema_from_json(
                [
                    {
                        "name": "a",
                        "kind": "text",
                        "lookup": {"table": "x", "by": by, "key": ["c", "d"]},
                    }
                ]
            )


def test_several_keys_as_plain_data(tmp_path: Path) -> None:
    several = Lookup("x.parquet", by=("store", "left(zip, 3)"), key=("store", "prefix"))
    declared = Schema((*_SALES, Column("rank", INTEGER, lookup=several)))
    assert schema_from_json(declared.to_json()) == declared
    (tmp_path / "schema.toml").write_text(columns_to_toml(declared.columns), encoding="utf-8")
    assert read_schema(tmp_path / "schema.toml") == declared
    one = Lookup("x.parquet", by="store", key="store")
    assert Lookup("x.parquet", by=("store",), key=["store"]) == one
    assert one.to_json() == {"table": "x.parquet", "by": "store", "key": "store"}
