"""Bad input is refused before anything is paid; failures tell the analyst nothing."""

from __future__ import annotations

import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.composition.tariffs.tariff import Price
from farthing.engine import EngineFailure
from farthing.engine.kinds.count import CountQuery
from farthing.errors import FarthingError, InvalidInput
from tests.engine.rows import difficult

FULL = Price(1000, 100)
ROWS = pa.table(
    {
        "member": [1, 2, None, 3],
        "article": ["a", "b", None, "secret cell"],
        "score": [0.5, 1.5, None, 2.5],
        "when": pa.array([0, 1, 2, None], type=pa.timestamp("us")),
        "list": [[1], [2], None, [3]],
    }
)

REFUSED = [
    (lambda d: d.count(where={"nothing": 1}), "no column nothing"),
    (lambda d: d.top_k("nothing"), "no column nothing"),
    (lambda d: d.top_k("article", k=0), "k must be"),
    (lambda d: d.top_k("score"), "a key must be integer or decimal or text"),
    (lambda d: d.top_k("list"), "no column list"),
    (lambda d: d.top_k("member"), "unit of privacy"),
    (lambda d: d.count(where={"member": 3}), "unit of privacy"),
    (lambda d: d.count(where={"any_of": [{"member": [3]}, {"article": "a"}]}), "unit of privacy"),
    (lambda d: d.sum("member", lower=0, upper=3), "unit of privacy"),
    (lambda d: d.sum("article", lower=0, upper=3), "must be integer or real or decimal"),
    (lambda d: d.quantile("article", lower=0, upper=3), "must be integer or real or decimal"),
    (lambda d: d.quantile("score", lower=0, upper=10**12, places=3), "at most 2.40"),
    (lambda d: d.count(where={"article": 3}), "cannot be compared with int"),
    (lambda d: d.count(where={"score": "0.5"}), "cannot be compared with str"),
    (lambda d: d.count(where={"not": {"member": 3}}), "unit of privacy"),
    (lambda d: d.count(where={"not": {"article": [3]}}), "cannot be compared with int"),
    (lambda d: d.count(where={"score": {"below": "x"}}), "cannot be compared with str"),
    (lambda d: d.count(where={"when": {"below": "x"}}), "cannot be compared with str"),
    (lambda d: d.histogram("article", categories=[1]), "cannot be compared with int"),
    (lambda d: d.histogram("article", contribution_limit=0), "contribution_limit"),
    (lambda d: d.count(count="coupon"), "must be one of"),
    (lambda d: d.top_k(3), "by must name"),
]


@pytest.mark.parametrize(("ask", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_bad_questions_leave_the_purse_alone(opened, ask, message) -> None:
    data = opened(ROWS)
    for use in ("plan", "run"):
        with pytest.raises(InvalidInput, match=message) as refused:
            getattr(ask(data), use)()
        assert "secret cell" not in str(refused.value)
    assert data.remaining() == FULL


def test_a_unit_must_be_something_that_can_be_compared(opened) -> None:
    with pytest.raises(InvalidInput, match="the unit must be"):
        opened(ROWS, unit="score", dataset="score")
    with pytest.raises(InvalidInput, match="no column list"):
        opened(ROWS, unit="list", dataset="list")
    with pytest.raises(InvalidInput, match="no column nobody"):
        opened(ROWS, unit="nobody")


def test_files_that_are_not_there_or_not_tables(opened, tmp_path) -> None:
    (tmp_path / "notes.txt").write_text("secret cell")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 secret cell")
    (tmp_path / "uneven.csv").write_text("member,x\n1,2\n1\n" + '"secret cell' * 5)
    (tmp_path / "data.duckdb").write_text("secret cell")
    (tmp_path / "empty").mkdir()
    for name, message in {
        "missing.parquet": "there is no file",
        "notes.txt": "must end in",
        "broken.parquet": "could not be read",
        "data.duckdb": "with table=",
        "empty": "there is no file",
    }.items():
        with pytest.raises(InvalidInput, match=message) as refused:
            opened(str(tmp_path / name))
        assert "secret" not in str(refused.value)
        assert refused.value.__cause__ is None
        assert refused.value.__suppress_context__ or refused.value.__context__ is None
    with pytest.raises(InvalidInput, match="could not be read"):
        opened(str(tmp_path / "data.duckdb"), table="t")
    with pytest.raises(InvalidInput, match="got dict"):
        opened({"member": [1]})
    assert not (tmp_path / "budget.db").exists()


def test_a_parquet_file_damaged_in_the_middle(opened, tmp_path, owner_log) -> None:
    path = tmp_path / "damaged.parquet"
    rows = pa.table(
        {"member": list(range(20000)), "article": [f"secret {i}" for i in range(20000)]}
    )
    pq.write_table(rows, path, compression="zstd")
    draw, body = random.Random(3), bytearray(path.read_bytes())
    for _ in range(2000):
        body[draw.randrange(4, len(body) // 2)] ^= 0xFF
    path.write_bytes(bytes(body))
    data = opened(str(path))
    with pytest.raises(EngineFailure) as failed:
        data.top_k("article", k=2).run()
    assert "secret" not in str(failed.value)
    assert failed.value.__context__ is None
    assert failed.value.__cause__ is None
    assert owner_log.records[0].exc_info is not None  # the owner sees why
    # it failed after farthings were set aside, so they stay spent
    assert data.remaining() == Price(1000 - 11, 90)


def test_an_engine_that_quotes_a_cell(opened, monkeypatch, owner_log) -> None:
    data = opened(ROWS)

    def fetch(*_):
        raise RuntimeError("Could not convert string 'secret cell' to INT32")

    monkeypatch.setattr(type(data.backend.context.source), "fetch", fetch)
    with pytest.raises(EngineFailure) as failed:
        data.count().run()
    chain, told = failed.value, []
    while chain is not None:
        told.append(repr(chain))
        chain = chain.__cause__ or chain.__context__
    assert "secret" not in " ".join(told)
    assert "secret cell" in owner_log.text
    assert data.remaining() == Price(996, 100)


def test_a_mechanism_that_fails_tells_nothing_either(opened, monkeypatch) -> None:
    data = opened(ROWS)

    def broken(*_):
        raise InvalidInput("3 of 4 labels hold 'secret cell'")

    monkeypatch.setattr(CountQuery, "data", broken)
    with pytest.raises(EngineFailure) as failed:
        data.count().run()
    assert failed.value.__context__ is None
    assert data.remaining() == Price(996, 100)


def test_duckdb_can_reach_nothing_but_the_source(opened, tmp_path) -> None:
    path, other = tmp_path / "rows.parquet", tmp_path / "other.parquet"
    for file in (path, other):
        pq.write_table(ROWS, file)
    source = opened(str(path)).backend.context.source
    connection = source._database
    assert connection.execute("SELECT count(*) FROM source").fetchall() == [(4,)]
    for statement in (
        f"SELECT * FROM '{other}'",
        f"SELECT * FROM read_csv('{os.devnull}')",
        f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
        f"ATTACH '{tmp_path / 'x.db'}'",
        "SET enable_external_access = true",
        "SET memory_limit = '1GB'",
        "SET allowed_paths = ['/']",
        "INSTALL httpfs",
    ):
        with pytest.raises(Exception, match=r"(?i)error"):
            connection.execute(statement).fetchall()
    assert not (tmp_path / "out.csv").exists()


def test_tables_without_rows(opened) -> None:
    data = opened(difficult(1).slice(1))
    assert data.top_k("text", k=3).run().labels == ()
    assert data.histogram("text", contribution_limit=1).run().labels == ()
    assert abs(data.count().run().value) <= 100
    assert (
        abs(data.histogram("whole", categories=[1, 2], contribution_limit=1).run().counts[0]) <= 100
    )
    assert 0 <= data.quantile("worth", lower=0, upper=9, per_key_limit=1).run().value <= 9
    assert abs(data.sum("worth", lower=0, upper=1).run().value) <= 100
    assert data.top_k("text", k=2, categories=["a", "b"], counts=False).run().labels


def test_missing_units_count_for_nothing(opened) -> None:
    rows = pa.table({"member": pa.array([None] * 5000, type=pa.int64()), "article": ["a"] * 5000})
    data = opened(rows)
    assert abs(data.count().run().value) <= 100
    assert abs(data.count(per_key_limit=50).run().value) <= 5000 * 0.9
    assert data.top_k("article", k=1).run().labels == ()


def test_missing_keys_are_a_label_of_their_own(opened) -> None:
    rows = pa.table({"member": list(range(4000)), "article": [None, "a"] * 2000})
    data = opened(rows)
    assert set(data.top_k("article", k=2).run().labels) == {None, "a"}
    kept = data.top_k("article", k=2, where={"article": {"present": True}}).run()
    assert kept.labels == ("a",)
    gone = data.count(where={"article": None}).run()
    assert abs(gone.value - 2000) <= 100


def test_all_errors_are_ours(opened, tmp_path) -> None:
    with pytest.raises(FarthingError):
        opened(ROWS, ledger=tmp_path / "no" / "such" / "folder" / "b.db")
    with pytest.raises(FarthingError):
        opened(ROWS, confidence=1.5)


@pytest.mark.parametrize("memory", ["300MB"])
def test_it_spills_to_disk_when_memory_is_short(opened, tmp_path, memory) -> None:
    import duckdb

    path = tmp_path / "large.parquet"
    duckdb.sql(
        "COPY (SELECT i // 30 AS member, 'article number ' || (hash(i) % 100000) AS article "
        f"FROM range(2500000) t(i)) TO '{path}'"
    )
    data = opened(str(path), memory=memory)
    counted = data.histogram("article", contribution_limit=3, count="fine").run()
    assert len(counted) <= 5
