"""What the last questions made of the rows: exactly what the rows would give, for one analyst."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as fa
from farthing.engine import context
from farthing.engine.desk import Desk
from farthing.engine.local import LocalBackend
from farthing.engine.session import Session
from farthing.engine.sources.duckdb import DuckDBSource
from farthing.ledger import Ledger

ROWS = {"who": [1, 2, 3, 1, 2], "what": ["a", "a", "b", "b", None], "n": [1, 0, 1, 1, 1]}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that the engine was given."""
    seen: list[str] = []
    real = DuckDBSource.run

    def run(source, statement):
        seen.append(statement.sql)
        return real(source, statement)

    monkeypatch.setattr(DuckDBSource, "run", run)
    return seen


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(ROWS), path)
    return path


def opened(path: Path) -> Session:
    return fa.open(path, ledger=path.with_suffix(".db"), unit="who", epsilon=3, delta=1e-6)


def asked(session, **where):
    return session.histogram("what", categories=["a", "b"], contribution_limit=2, **where)


def test_the_same_again_reads_no_rows_and_draws_anew(table: Path, ran: list[str]) -> None:
    with opened(table) as session:
        answers = [asked(session).run(again=True).counts for _ in range(8)]
        assert len(ran) == 1
        assert len({tuple(one) for one in answers}) > 1


def test_finer_noise_is_drawn_on_the_same_counts(table: Path, ran: list[str]) -> None:
    with opened(table) as session:
        asked(session).run()
        asked(session).plan(half_width=40).run(again=True)
        assert len(ran) == 1


def test_another_question_is_another(table: Path, ran: list[str]) -> None:
    with opened(table) as session:
        session.count(where="n == 1").run()
        session.count(where="n != 1").run()
        session.count().run()
        assert len(ran) == 3


def test_files_that_changed_are_read(table: Path, ran: list[str]) -> None:
    with opened(table) as session:
        asked(session).run()
        grown = {name: values * 2000 for name, values in ROWS.items()}
        grown["who"] = list(range(len(grown["who"])))
        pq.write_table(pa.table(grown), table)
        assert asked(session).run(again=True).counts[0] > 2000
        table.unlink()
        with pytest.raises(fa.FarthingError):
            asked(session).run(again=True)
    assert len(ran) == 3


def test_a_new_version_is_read(table: Path, ran: list[str]) -> None:
    with opened(table) as session:
        asked(session).run()
        with Ledger.open(table.with_suffix(".db")) as ledger:
            Desk(ledger, owner="owner").declare_version(session.name, "2")
        asked(Session(LocalBackend(session.backend._context.now()))).run()
    assert len(ran) == 2


def test_old_ones_go(table: Path, ran: list[str]) -> None:
    with opened(table) as session:
        for number in range(context.MOST + 1):
            session.count(where=f"n == {number}").run()
        session.count(where="n == 1").run(again=True)
        assert len(ran) == context.MOST + 1
        session.count(where="n == 0").run(again=True)
        assert len(ran) == context.MOST + 2


def test_large_rows_are_not_kept(
    table: Path, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "LARGEST_BYTES", 3)
    with opened(table) as session:
        asked(session).run()
        asked(session).run(again=True)
        assert len(ran) == 2
