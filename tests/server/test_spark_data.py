"""Data on Spark behind a service: what has no rows, no file or no sense is answered or refused.

One service on one Spark for the whole file. Two of its tables are neighbours: one of them has one
person more, who is the only one to pass some filters. Whatever is asked of both must end in the
same way and at the same price, and nothing that Spark says may reach the analyst.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.engine import Declaration, Desk, open_source
from farthing.ledger import Ledger, Limits
from farthing.schema import DATE, INTEGER, REAL, TEXT, TIMESTAMP, Column, Schema
from tests.server.conftest import WIDE, served
from tests.server.deployment import LASTING, TARIFF, WORD, Deployment
from tests.server.test_jobs import until_over

#: Labels that are declared; the person more has another one.
WARDS = ("north", "south")
SCHEMA = Schema(
    (
        Column("member", INTEGER),
        Column("diag", TEXT),
        Column("ward", TEXT, categories=WARDS),
        Column("age", INTEGER),
        Column("cost", REAL),
        Column("day", DATE),
        Column("at", TIMESTAMP),
        Column("note", TEXT),
    )
)
#: Filters that nobody passes, and that the person more passes alone.
NOBODY: dict[str, Any] = {"diag": "nobody has this"}
ONE: dict[str, Any] = {"diag": "hiv", "age": {"at_most": 37}}
UNDECLARED: dict[str, Any] = {"all_of": [ONE, {"ward": None}]}
BOUNDS = {"lower": 0, "upper": 100, "per_key_limit": 1}
LABELS = {"by": "diag", "categories": ["hiv", "flu"], "contribution_limit": 1}
FOUND = {"by": "diag", "contribution_limit": 1}
#: Every kind whose rows can be none: with and without keys, labels known, found and derived.
QUESTIONS: list[dict[str, Any]] = [
    {"kind": "count"},
    {"kind": "count", "per_key_limit": 2},
    {"kind": "distinct", "column": "diag", "contribution_limit": 1},
    {"kind": "histogram", **LABELS},
    {"kind": "histogram", **FOUND},
    {"kind": "histogram", "by": "ward", "contribution_limit": 1},
    {"kind": "histogram", "by": ["month(day)", "bins(cost, 0, 1, 9)"], "contribution_limit": 1},
    {"kind": "top_k", **LABELS, "k": 1},
    {"kind": "top_k", "by": "note", "k": 1},
    {"kind": "top_k", "by": "hour(at)", "k": 1, "counts": False},
    {"kind": "loss", "by": "diag", "contribution_limit": 1, "most": 3},
    {"kind": "limit", "by": "diag", "limits": [1, 2], "noise": [0.4, 0.7]},
    {"kind": "sum", "column": "cost", **FOUND, **BOUNDS},
    {"kind": "mean", "column": "age", **BOUNDS},
    {"kind": "mean", "column": "age", **LABELS, **BOUNDS},
    {"kind": "mean", "column": "cost", "by": "month(day)", "contribution_limit": 1, **BOUNDS},
    {"kind": "variance", "column": "cost", **LABELS, **BOUNDS},
    {"kind": "standard_deviation", "column": "age", **BOUNDS},
    {"kind": "quantile", "column": "age", **BOUNDS},
    {"kind": "quantile", "column": "age", **LABELS, **BOUNDS},
    {"kind": "quantile", "column": "cost", **FOUND, **BOUNDS},
]
COUNT = QUESTIONS[0]
MEANS, QUANTILES = (
    next(one for one in QUESTIONS if one["kind"] == kind and "categories" in one)
    for kind in ("mean", "quantile")
)
#: Words of Spark, of Java, of its files and of the machine.
ENGINE = ("spark", "apache", "java", "py4j", "sqlstate", "traceback", "parquet", "exception")
LATER = {"Prefer": "respond-async"}


def rows(person_more: bool) -> pa.Table:
    """Twenty people who have the flu, and one who has not. Nobody may be told a note."""
    people = [(i, "flu", WARDS[i % 2], i % 90, 1.5, None, None, f"{WORD} {i}") for i in range(20)]
    if person_more:
        people.append((99, "hiv", f"{WORD} ward", 37, 1.5, None, None, WORD))
    types = [pa.int64(), pa.string(), pa.string(), pa.int64(), pa.float64()]
    types += [pa.date32(), pa.timestamp("us"), pa.string()]
    columns = zip(SCHEMA.kinds, zip(*people, strict=True), types, strict=True)
    return pa.table({name: pa.array(cells, dtype) for name, cells, dtype in columns})


@pytest.fixture(scope="module")
def on_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Budgets are made on DuckDB, which reads the same files; only the service starts Spark.

    The files are named relative to the folder of the configuration, which is not where it runs.
    """
    place = tmp_path_factory.mktemp("spark")
    names = ("less", "more", "gone", "damaged")
    more = "\n".join(
        f'[datasets.{name}]\ndata = "{name}.parquet"\nspark = "local[2]"' for name in names
    )
    one = Deployment(place, str(place / "budget.db"), limits=WIDE, more=more)
    certificate = replace(TARIFF, farthings=LASTING, delta_units=1_000).certify(
        tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,)
    )
    one.prepare(certificate)
    with Ledger.open(one.ledger) as ledger:
        desk = Desk(ledger, owner="team")
        for name in names:
            pq.write_table(rows(name != "less"), place / f"{name}.parquet")
            source = open_source(place / f"{name}.parquet")
            limits = Limits(contribution_limit=3, per_key_limit=2)
            declared = Declaration(unit="member", schema=SCHEMA, limits=limits)
            desk.add(source, declared, name=name)
            source.shut()
            desk.sign(name, certificate)
            desk.grant(name, "ann", farthings=LASTING // 2, delta_units=500)
    yield from served(one)


def outcome(answered: httpx.Response | dict[str, Any]) -> tuple[Any, ...]:
    """Status, and which fields are told; what is refused has the one shape.

    Neither a word of the engine nor a cell is told.
    """
    if isinstance(answered, httpx.Response):
        status, body, text = answered.status_code, answered.json(), answered.text
    else:
        status, body, text = answered["status"], answered["result"], str(answered)
    assert not [word for word in (WORD.lower(), *ENGINE) if word in text.lower()], text
    if status != 200:
        assert list(body) == ["error"], text
        assert set(body["error"]) == {"kind", "message", "field"}, text
        return status, body["error"]["kind"]
    return status, *sorted(body), *sorted(body["answer"]), len(body["answer"]["intervals"] or ())


def left(client: httpx.Client, name: str) -> dict[str, int]:
    return dict(client.get(f"/v1/datasets/{name}/purse").json()["left"])


def run(
    client: httpx.Client, name: str, asked: list[dict[str, Any]], *, jobs: bool
) -> list[dict[str, Any] | httpx.Response]:
    """What comes of each question; as jobs they all run at once, and are fetched to the end."""
    path = f"/v1/datasets/{name}/run"
    bodies = [{"query": query, "again": True} for query in asked]
    if not jobs:
        return [client.post(path, json=body) for body in bodies]
    begun = [client.post(path, json=body, headers=LATER) for body in bodies]
    assert {one.status_code for one in begun} <= {202, 422}, [one.text for one in begun]
    return [
        one if one.status_code == 422 else until_over(client, one.json()["job"]["id"])
        for one in begun
    ]


@pytest.mark.parametrize(
    ("where", "asked", "jobs"),
    [(ONE, QUESTIONS, True), (NOBODY, QUESTIONS[::3], True), (UNDECLARED, QUESTIONS[3::5], False)],
    ids=["one person", "nobody", "undeclared"],
)
def test_neighbours_end_in_the_same_way(on_spark: Deployment, where, asked, jobs) -> None:
    """Every question is answered, whether or not somebody passes the filter."""
    asked = [{**query, "where": where} for query in asked]
    told = {}
    with on_spark.client("ann") as ann:
        for name in ("less", "more"):
            before = left(ann, name)
            answered = run(ann, name, asked, jobs=jobs)
            spent = {unit: before[unit] - n for unit, n in left(ann, name).items()}
            told[name] = [outcome(one) for one in answered], spent
    assert told["less"] == told["more"]
    assert {status for status, *_ in told["less"][0]} == {200}


def test_labels_that_are_not_declared(on_spark: Deployment) -> None:
    """Nobody has one, by the schema alone: a filter is refused, and a known label has nobody."""
    known = {"kind": "histogram", "by": "ward", "categories": ["east"], "contribution_limit": 1}
    told: dict[str, list[Any]] = {"less": [], "more": []}
    with on_spark.client("ann") as ann:
        for name, outcomes in told.items():
            asked = [known, {**COUNT, "where": {"ward": "east"}}]
            outcomes += map(outcome, run(ann, name, asked, jobs=False))
    assert told["less"] == told["more"]
    assert [status for status, *_ in told["less"]] == [200, 422]


def test_conversations_and_batches(on_spark: Deployment) -> None:
    told: dict[str, list[Any]] = {"less": [], "more": []}
    with on_spark.client("ann") as ann:
        for name, outcomes in told.items():
            at = f"/v1/datasets/{name}"
            batch = {"means": {**MEANS, "where": NOBODY}, "quantiles": {**QUANTILES, "where": ONE}}
            answered = ann.post(f"{at}/run", json={"batch": batch})
            assert answered.status_code == 200, answered.text
            opened = ann.post(f"{at}/conversations", json={"kind": "threshold"}).json()
            for where in (NOBODY, ONE):
                asked = {"query": {"kind": "count", "where": where}, "threshold": 100_000}
                answer = ann.post(
                    f"{at}/conversations/{opened['id']}/ask", json={"questions": [asked]}
                )
                outcomes.append((answer.status_code, sorted(answer.json())))
    assert told["less"] == told["more"]
    assert {status for status, _ in told["less"]} == {200}


def test_files_that_vanish_or_are_damaged(on_spark: Deployment) -> None:
    """The engine fails: it is said so, and no more. The others go on."""
    (on_spark.folder / "gone.parquet").unlink()
    file = on_spark.folder / "damaged.parquet"
    whole = file.read_bytes()
    asked = [COUNT, {**MEANS, "where": NOBODY}, {**QUANTILES, "where": ONE}]
    with on_spark.client("ann") as ann:
        for harm in (b"", whole[: len(whole) // 2], b"PAR1" + bytes(99) + b"PAR1", whole[:-9]):
            file.write_bytes(harm)
            for name in ("gone", "damaged") if harm == b"" else ("damaged",):
                answered = run(ann, name, asked, jobs=harm == b"")
                assert {outcome(one) for one in answered} == {(500, "engine_failed")}
        assert {ann.get(path).status_code for path in ("/health", "/ready")} == {200}
        assert outcome(*run(ann, "more", [COUNT], jobs=False))[0] == 200
    assert "EngineFailure at " in on_spark.log
    assert not [word for word in (WORD, "apache", "Py4J", "Traceback") if word in on_spark.log]
