"""A word that stands in every column is found nowhere: not in an error, a log, a terminal, a repr,
a row of the ledger, an export or a statement, whatever is made to fail."""

from __future__ import annotations

import io
import json
import logging
import random
import sqlite3
import traceback
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as fa
from farthing.engine import EngineFailure
from farthing.errors import FarthingError
from farthing.ledger import Ledger, export_lines, markdown, statement

WORD = "Zeisig"
ROWS = pa.table(
    {
        "member": [f"{WORD} {i % 7}" for i in range(60)],
        "name": [f"{WORD} {i}" for i in range(60)],
        "number": [f"{WORD}{i}" for i in range(60)],  # declared to be a number
        "day": [f"{WORD} 2013" for _ in range(60)],  # declared to be a date
        "flag": [WORD] * 60,
    }
)
SCHEMA = fa.Schema(
    (
        fa.Column("member", "text"),
        fa.Column("name", "text"),
        fa.Column("number", "integer"),
        fa.Column("day", "date"),
        fa.Column("flag", "boolean"),
    )
)


TARIFF = fa.Tariff(
    {
        "select": (fa.BoundedRange(0.1), 1),
        "count": (fa.PureDP(0.1), 4),
        "leak": (fa.ApproximateDP(0.0, 1e-9), 1),
    },
    farthings=100,
    delta_units=100,
    delta_unit=1e-9,
)


@pytest.fixture(scope="module")
def budget():
    """Small, because a statement about it is made."""
    small = TARIFF.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))
    return {"schema": SCHEMA, "tariff": small, "farthings": 100, "delta_units": 100}


class Told:
    """Everything that anybody was told."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def error(self, error: BaseException) -> None:
        self.parts += traceback.format_exception(error)
        self.parts += [repr(error), str(error), *map(repr, error.args)]

    def __contains__(self, word: str) -> bool:
        return word.lower() in "\n".join(self.parts).lower()


@pytest.fixture
def told(capfd):
    """The root logger, standard output and standard error are read by the analyst too."""
    found = Told()
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    root.addHandler(handler)
    before = root.level
    root.setLevel(logging.DEBUG)
    yield found
    root.removeHandler(handler)
    root.setLevel(before)
    captured = capfd.readouterr()
    found.parts += [stream.getvalue(), captured.out, captured.err]
    assert WORD not in found


def provoke(session, told: Told) -> None:
    """Every kind of question, good and bad; what fails may say why, but not with a cell."""
    questions = [
        lambda s: s.count(),
        lambda s: s.count(where={"number": {"above": 3}}),
        lambda s: s.count(where={"day": {"present": True}}),
        lambda s: s.count(where={"flag": True}),
        lambda s: s.histogram("name", categories=["a", "b"], contribution_limit=1),
        lambda s: s.histogram("name", contribution_limit=3),
        lambda s: s.top_k("name", 3),
        lambda s: s.top_k(["day", "flag"], 2, contribution_limit=1),
        lambda s: s.sum("number", lower=0, upper=10),
        lambda s: s.quantile("number", lower=0, upper=10, per_key_limit=1),
        lambda s: s.sum("name", lower=0, upper=10),
        lambda s: s.count(where={"nothing": 1}),
        lambda s: s.top_k("name", 10**9),
    ]
    for ask in questions:
        try:
            question = ask(session)
            told.parts += [repr(question), repr(question.plan()), str(question.plan())]
            answer = question.run()
            told.parts += [repr(answer), str(answer), answer._repr_html_()]
            told.parts.append(json.dumps(answer.to_json()))
        except FarthingError as error:
            told.error(error)
    told.parts.append(repr(session))


def everything_in(ledger: Path) -> list[str]:
    with Ledger.open(ledger) as book:
        lines = list(export_lines(book.reader()))
        lines.append(markdown(statement(book.reader(), "events", delta=1e-3)))
    with sqlite3.connect(ledger) as raw:
        lines += raw.iterdump()
    raw.close()
    return lines


def test_nowhere_on_a_healthy_path(opened, tmp_path, told, budget) -> None:
    provoke(opened(ROWS, **budget), told)
    told.parts += everything_in(tmp_path / "budget.db")


def test_nowhere_when_the_engine_fails(opened, tmp_path, told, monkeypatch, budget) -> None:
    session = opened(ROWS, **budget)

    def fetch(*_):
        raise RuntimeError(f"Could not convert string '{WORD}' to INT32")

    monkeypatch.setattr(type(session.backend.context.source), "fetch", fetch)
    provoke(session, told)
    told.parts += everything_in(tmp_path / "budget.db")


def test_nowhere_when_a_file_is_damaged(opened, tmp_path, told, budget) -> None:
    path = tmp_path / "damaged.parquet"
    many = pa.concat_tables([ROWS] * 400)
    pq.write_table(many, path, compression="zstd", use_dictionary=False)
    body, draw = bytearray(path.read_bytes()), random.Random(3)
    for _ in range(300):
        body[draw.randrange(4, len(body) // 2)] ^= 0xFF
    session = opened(str(path), **budget)
    path.write_bytes(bytes(body))
    with pytest.raises(EngineFailure) as failed:
        session.top_k("name", 2).run()
    told.error(failed.value)
    provoke(session, told)
    told.parts += everything_in(tmp_path / "budget.db")


def test_nowhere_on_spark(opened, tmp_path, told, spark, budget) -> None:
    frame = spark.createDataFrame(ROWS.to_pylist())
    provoke(opened(frame, spark=spark, **budget), told)
    told.parts += everything_in(tmp_path / "budget.db")
