"""DB-API 2.0 and SQLAlchemy's dialect: the same questions, within an allowance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest
import sqlalchemy as sa
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import expressions as sge
from sqlglot.errors import SqlglotError

import farthing as fa
from farthing import dbapi
from farthing.composition.tariffs.tariff import Price
from farthing.dbapi.statements import Statements, with_values
from farthing.engine.errors import EngineFailure
from farthing.errors import InvalidInput
from farthing.ledger import Limits
from farthing.ledger.errors import DoesNotFit

COUNTED = "SELECT country, COUNT(DISTINCT member) AS people FROM events GROUP BY country"
LISTED = (
    "SELECT COUNT(DISTINCT member) AS people, country AS where_from FROM events "
    "WHERE country IN ('NO', 'SE') GROUP BY country"
)
ONE = "SELECT COUNT(DISTINCT member) FROM events"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dbapi")
    with duckdb.connect() as connection:
        connection.execute(
            f"""COPY (SELECT i % 600 AS member, ['NO', 'SE', 'DK'][1 + i % 3] AS country,
                i % 90 AS age, DATE '2026-01-01' + (i % 50)::INTEGER AS day
                FROM range(1200) t(i)) TO '{folder / "events.parquet"}' (FORMAT parquet)"""
        )
    tariff = fa.Tariff({"count": (fa.PureDP(0.1), 4)}, farthings=400)
    fa.open(
        folder / "events.parquet",
        unit="member",
        tariff=tariff.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,)),
        farthings=400,
        limits=Limits(contribution_limit=1, per_key_limit=2),
    ).shut()
    return folder / "events.parquet"


@pytest.fixture
def connection(data: Path) -> Iterator[dbapi.Connection]:
    with dbapi.connect(f"farthing://{data}") as connection:
        yield connection


def test_nothing_is_paid_until_it_is_allowed(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    before = connection.session.remaining()
    with pytest.raises(dbapi.OperationalError, match=r"costs 4 farthings.*SET farthing.farthings"):
        cursor.execute(ONE + " WHERE age > 1")
    assert connection.session.remaining() == before
    cursor.execute("SET farthing.farthings = 4")
    assert cursor.description is None
    cursor.execute(ONE + " WHERE age > 1")
    first = cursor.fetchall()
    assert connection.session.remaining().farthings == before.farthings - 4
    with pytest.raises(dbapi.OperationalError, match="may spend 0 farthings more"):
        cursor.execute(ONE + " WHERE age > 2")
    assert cursor.execute(ONE + " WHERE age > 1").fetchall() == first, "the same release"
    assert connection.session.remaining().farthings == before.farthings - 4


def test_what_fails_after_it_was_paid_for_stays_spent(
    connection: dbapi.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor = connection.cursor().execute("SET farthing.farthings = 4")
    backend = type(connection.session.backend)

    def raising(error: Exception) -> Callable[..., None]:
        def run(*_: object, **__: object) -> None:
            raise error

        return run

    refused = DoesNotFit(Price(4), Price(3), {})
    for error, left in ((refused, 4), (EngineFailure(), 0)):
        with monkeypatch.context() as patch:
            patch.setattr(backend, "run", raising(error))
            with pytest.raises(dbapi.OperationalError):
                cursor.execute(ONE + " WHERE age > 7")
        assert cursor.execute("SHOW farthing.remaining").fetchall()[0][2] == left
    cursor.execute("SET farthing.farthings = 1")
    assert cursor.execute("SHOW farthing.remaining").fetchall()[0][2] == 0


def test_explain_and_plan_only(connection: dbapi.Connection) -> None:
    cursor = connection.cursor().execute("EXPLAIN " + ONE)
    told = dict(cursor.fetchall())
    assert told["price"].startswith("4 farthings")
    assert told["question"] == "The number of distinct `member`"
    cursor.execute("SET farthing.plan_only = on").execute("SET farthing.farthings = 100")
    with pytest.raises(dbapi.OperationalError, match="only plans"):
        cursor.execute(ONE + " WHERE age > 3")
    assert cursor.execute("SHOW farthing.plan_only").fetchall() == [("on",)]
    assert cursor.execute("SHOW farthing.remaining").fetchall()[0][2] == 100


def test_columns_stand_as_they_were_asked(connection: dbapi.Connection) -> None:
    cursor = connection.cursor().execute("SET farthing.farthings = 100").execute(LISTED)
    assert cursor.description is not None
    assert [column[:2] for column in cursor.description] == [
        ("people", "real"),
        ("where_from", "text"),
    ]
    rows = cursor.fetchall()
    assert [country for _, country in rows] == ["NO", "SE"]
    cursor.execute("SET farthing.intervals = on").execute(LISTED)
    assert cursor.description is not None
    assert [c[0] for c in cursor.description] == [
        "people",
        "people_lower",
        "people_upper",
        "where_from",
    ]
    for people, lower, upper, _ in cursor:
        assert lower <= max(people, 0) <= upper
    assert cursor.fetchone() is None
    assert cursor.rowcount == 2


@pytest.mark.parametrize(
    ("statement", "error", "words"),
    [
        ("SELECT * FROM events", dbapi.NotSupportedError, "rows are not told"),
        ("SELECT DISTINCT country FROM events", dbapi.NotSupportedError, "GROUP BY the columns"),
        (ONE + " LIMIT 3 OFFSET 2", dbapi.NotSupportedError, "OFFSET|begins at the first"),
        ("SELEC 1", dbapi.ProgrammingError, "begins with SELECT"),
        ("DELETE FROM events", dbapi.ProgrammingError, "begins with SELECT"),
        ("SET farthing.farthings = many", dbapi.ProgrammingError, "whole number"),
        ("SHOW farthing.secret", dbapi.ProgrammingError, "SHOW knows"),
    ],
)
def test_what_cannot_be_asked_is_named(
    connection: dbapi.Connection, statement: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        connection.cursor().execute(statement)


def test_parameters_are_nothing_but_values(connection: dbapi.Connection) -> None:
    cursor = connection.cursor().execute("SET farthing.farthings = 400")
    nobody = "NO' OR country <> '"
    named = cursor.execute(ONE + " WHERE country = :c AND age < :a", {"c": nobody, "a": 50})
    (told,) = named.fetchall()
    assert told[0] < 150, "a text with quotes is one that nobody has"
    placed = ONE + " WHERE country = ? AND age < ?"
    assert cursor.execute(placed, (nobody, 50)).fetchall() == [told], "the same question"
    assert (
        with_values("a = $2 AND b = $1", [1, date(2026, 1, 2)]) == "a = DATE '2026-01-02' AND b = 1"
    )
    assert with_values("':x' || a::int, :x", {"x": None}) == "':x' || a::int, NULL"
    with pytest.raises(dbapi.DatabaseError, match="has no value"):
        cursor.execute(ONE + " WHERE country = :d", {"c": "NO"})
    with pytest.raises(InvalidInput, match="must be finite"):
        with_values("?", [float("nan")])
    with pytest.raises(InvalidInput, match="must be a text, number"):
        with_values("?", [object()])


@given(
    st.one_of(
        st.text(), st.integers(), st.booleans(), st.dates(), st.datetimes(),
        st.decimals(allow_nan=False, allow_infinity=False),
        st.floats(allow_nan=False, allow_infinity=False),
    )
)  # fmt: skip # one list
def test_a_value_stays_one_token_or_one_literal(value: object) -> None:
    """Whatever is given, it is read as one value and the rest as it was."""
    written = with_values("SELECT a FROM t WHERE b = :v AND c", {"v": value})
    try:
        tree = sqlglot.parse_one(written)
    except SqlglotError:
        assert isinstance(value, str), written  # a character that SQL cannot hold
        return
    condition = tree.find(sge.And)
    assert condition is not None
    assert condition.expression.sql() == "c"
    assert isinstance(condition.this, sge.EQ)
    assert not list(condition.this.expression.find_all(sge.Column, sge.Or, sge.Select))
    if isinstance(value, str):
        assert condition.this.expression.this == value


def test_sqlalchemy_pandas_and_polars(data: Path) -> None:
    sa.dialects.registry.register("farthing", "farthing.dbapi.dialect", "FarthingDialect")
    engine = sa.create_engine(f"farthing://{data}?farthings=100")
    with engine.connect() as connection:
        assert sa.inspect(connection).get_table_names() == ["events"]
        events = sa.Table("events", sa.MetaData(), autoload_with=connection)
        kinds = {column.name: type(column.type) for column in events.columns}
        assert kinds["member"] is sa.BigInteger
        assert kinds["day"] is sa.Date
        people = sa.func.count(sa.distinct(events.c.member)).label("people")
        asked = sa.select(events.c.country, people).where(events.c.country.in_(["NO", "SE"]))
        rows = connection.execute(asked.group_by(events.c.country)).all()
        assert [row.country for row in rows] == ["NO", "SE"]
        frame = pd.read_sql(sa.text(ONE + " WHERE country = :c"), connection, params={"c": "DK"})
        assert frame.shape == (1, 1)
    with dbapi.connect(f"farthing://{data}") as free:
        table = pl.read_database(
            "SELECT country, COUNT(DISTINCT member) AS people FROM events "
            "WHERE country IN ('NO', 'SE') GROUP BY country",
            connection=free,
        )
    assert table["people"].to_list() == [row.people for row in rows], "a reload costs nothing"
    engine.dispose()


def test_pep_249(connection: dbapi.Connection) -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 1, "named")
    assert issubclass(dbapi.NotSupportedError, dbapi.DatabaseError)
    assert issubclass(dbapi.DatabaseError, dbapi.Error)
    cursor = connection.cursor()
    assert cursor.rowcount == -1
    with pytest.raises(dbapi.ProgrammingError, match="execute a statement first"):
        cursor.fetchone()
    with pytest.raises(dbapi.NotSupportedError):
        cursor.executemany(ONE, [])
    connection.commit()
    connection.rollback()
    cursor.close()
    with pytest.raises(dbapi.InterfaceError):
        cursor.execute(ONE)
    with connection.cursor() as other:
        other.setinputsizes([1])
        other.setoutputsize(1)
    connection.close()
    with pytest.raises(dbapi.InterfaceError):
        connection.cursor()


@pytest.mark.parametrize(
    "address",
    ["http://x/y", "farthing:///nowhere.parquet", "farthing:///x?colour=red", 3, "farthing://a:b@h/d?x=1"],
)  # fmt: skip # one list
def test_addresses_that_lead_nowhere(address: object) -> None:
    with pytest.raises(dbapi.DatabaseError):
        dbapi.connect(address)


def test_a_session_that_is_open_can_be_used(data: Path) -> None:
    with fa.open(data) as session:
        connection = dbapi.connect(session, farthings=8)
        assert connection.cursor().execute(ONE + " WHERE age < 40").rowcount == 1
        connection.close()
        assert session.remaining().farthings > 0, "it was not shut"
        assert Statements(session).allowance.farthings == 0
