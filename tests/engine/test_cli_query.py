"""`farthing query`: plan and run from a shell."""

from __future__ import annotations

import csv
import io
import json
from contextlib import contextmanager
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import farthing as fa
from farthing.cli.query import query
from farthing.engine import Declaration, Desk, open_source
from farthing.engine.keys import key_from
from farthing.errors import InvalidInput


@contextmanager
def closing_source(folder):
    source = open_source(str(folder / "events.parquet"))
    yield source
    source.shut()


@pytest.fixture
def shell(tmp_path):
    rows = pa.table(
        {
            "member": [i // 2 for i in range(4000)],
            "article": [("a", "b")[i % 2] if i % 40 else f"rare {i}" for i in range(4000)],
            "age": [i % 90 for i in range(4000)],
        }
    )
    pq.write_table(rows, tmp_path / "events.parquet")
    (tmp_path / "tariff.toml").write_text(
        "farthings = 60\ndelta_units = 10\ndelta_unit = 1e-9\n"
        '[items.select]\nguarantee = "br:0.1"\nprice = 1\n'
        '[items.count]\nguarantee = "dp:0.1"\nprice = 4\n'
        '[items.leak]\nguarantee = "adp:0,1e-9"\nprice = 1\n'
    )

    with Desk.open(tmp_path / "budget.db") as desk, closing_source(tmp_path) as source:
        desk.add(source, Declaration(unit="member"))
        desk.sign("events", tmp_path / "tariff.toml")
        desk.grant("events", "analyst", farthings=60)

    def run(*arguments: str):
        common = ["--ledger", str(tmp_path / "budget.db")]
        first, *rest = arguments
        return CliRunner().invoke(
            query,
            [first, str(tmp_path / "events.parquet"), *common, *rest],
            catch_exceptions=False,
        )

    return run


def test_names_in_quotes_are_read_alike_everywhere(tmp_path) -> None:
    """In --by, in --where, in a condition and in SQL; and several keys stand after one --by."""
    day = [date(2020 + i % 3, 1, 1) for i in range(300)]
    rows = {"who": list(range(300)), "Release Date": day, "a,b": [i % 9 for i in range(300)]}
    pq.write_table(pa.table(rows), tmp_path / "films.parquet")
    opened = {"ledger": tmp_path / "budget.db", "unit": "who", "epsilon": 3, "delta": 1e-6}
    with fa.open(tmp_path / "films.parquet", **opened) as data:
        said = data.histogram('year("Release Date")').query
        assert said == data.histogram(fa.year("Release Date")).query
        assert data.histogram('"Release Date"').query == data.histogram("Release Date").query
        since = "\"Release Date\" >= DATE '2021-01-01'"
        counted = data.count(where=since).query
        assert counted == data.sql(f"SELECT COUNT(DISTINCT who) FROM films WHERE {since}").query

    def asked(*words: str) -> dict:
        given = ["histogram", str(tmp_path / "films.parquet"), "--contribution-limit", "1"]
        common = ["--ledger", str(tmp_path / "budget.db"), "--plan", "--json"]
        done = CliRunner().invoke(query, [*given, *words, *common], catch_exceptions=False)
        return json.loads(done.stdout)["query"]

    for words in (
        ['year("Release Date")', 'bins("a,b", 0, 5, 9)'],
        ['year("Release Date"), bins("a,b", 0, 5, 9)'],
    ):
        given = asked(*(part for word in words for part in ("--by", word)))
        assert [key_from(one) for one in given["by"]] == [
            fa.year("Release Date"),
            fa.bins("a,b", [0, 5, 9]),
        ]
    assert asked("--by", "a,b")["by"] == ["a,b"]  # a column that is called so
    for where in ('"Release Date"=2021-01-01', "Release Date=2021-01-01"):
        assert asked("--by", '"a,b"', "--where", where)["where"] == {
            "Release Date": {"date": "2021-01-01"}
        }


def test_plan_then_run(shell) -> None:
    planned = shell("top-k", "--by", "article", "-k", "2", "--plan", "--json")
    plan = json.loads(planned.stdout)
    assert plan["price"] == {"farthings": 11, "delta_units": 1}
    assert plan["remaining"]["farthings"] == 60
    assert "± 30 at 95%" in shell("top-k", "--by", "article", "-k", "2", "--plan").stdout
    first = json.loads(shell("top-k", "--by", "article", "-k", "2", "--json").stdout)
    assert set(first["labels"]) == {"a", "b"}
    assert first["remaining"] == {"farthings": 49, "delta_units": 9}
    again = json.loads(shell("top-k", "--by", "article", "-k", "2", "--json").stdout)
    assert again["cached"]
    assert again["counts"] == first["counts"]
    table = list(
        csv.reader(io.StringIO(shell("top-k", "--by", "article", "-k", "2", "--csv").stdout))
    )
    assert table[0] == ["article", "count", "lower", "upper"]
    assert len(table) == 3


def test_other_queries(shell) -> None:
    counted = json.loads(shell("count", "--where", "article=a", "--json").stdout)
    assert abs(counted["counts"][0] - 1900) <= 200
    some = shell("count", "--where", '{"age": {"below": 45}}', "--where", "article=a", "--json")
    assert abs(json.loads(some.stdout)["counts"][0] - 950) <= 200
    words = shell("count", "--where", "age < 45 and article == 'a'", "--plan", "--json")
    assert json.loads(words.stdout)["query"]["where"] == {
        "all_of": [{"age": {"below": 45}}, {"article": "a"}]
    }
    either = shell("count", "--where", 'article=a,"b, c"', "--plan", "--json")
    assert json.loads(either.stdout)["query"]["where"] == {"article": ["a", "b, c"]}
    two = ("--category", "a", "--category", "b", "--contribution-limit", "1")
    known = shell("histogram", "--by", "article", *two, "--csv")
    assert [line.split(",")[0] for line in known.stdout.splitlines()] == ['"article"', '"a"', '"b"']
    limits = ("--per-key-limit", "1")
    ends = ("--lower", "0", "--upper", "100")
    median = shell("quantile", "--column", "age", *ends, *limits, "--json")
    assert 20 <= json.loads(median.stdout)["labels"][0] <= 70
    total = shell("sum", "--column", "age", "--lower", "0", "--upper", "200")
    assert "The sum of `age`" in total.stdout
    narrow = shell("count", "--half-width", "14", "--plan", "--json")
    assert json.loads(narrow.stdout)["query"]["repeats"] > 1


def test_sql(shell) -> None:
    text = "SELECT COUNT(DISTINCT member) FROM events WHERE age < 45 AND article = 'a'"
    plan = json.loads(shell("sql", text, "--plan", "--json").stdout)
    assert plan["query"]["where"] == {"all_of": [{"age": {"below": 45}}, {"article": "a"}]}
    assert abs(json.loads(shell("sql", text, "--json").stdout)["counts"][0] - 950) <= 200
    several = (
        "SELECT COUNT(DISTINCT member) AS units, COUNT(*) FROM events OPTIONS (per_key_limit = 2)"
    )
    planned = shell("sql", several, "--plan").stdout
    assert "units" in planned
    assert "COUNT(*)" in planned
    found = json.loads(shell("sql", several, "--json").stdout)
    assert abs(found["units"]["counts"][0] - 2000) <= 200
    assert abs(found["COUNT(*)"]["counts"][0] - 4000) <= 400
    with pytest.raises(InvalidInput, match="one by one"):
        shell("sql", several, "--half-width", "3")
    names, cells = csv.reader(io.StringIO(shell("sql", several, "--csv").stdout))
    assert names == [f"{name}{end}" for name in found for end in ("", "_lower", "_upper")]
    assert [cells[0], cells[3]] == [str(found[name]["counts"][0]) for name in found]
    each = "SELECT COUNT(DISTINCT member) * 2 AS twice FROM events"
    computed = json.loads(shell("sql", each, "--json").stdout)
    assert computed["table"]["rows"][0][0] == 2 * found["units"]["counts"][0]
    assert "twice" in shell("sql", each).stdout
    with pytest.raises(InvalidInput, match="other: a question is about one table"):
        shell("sql", "SELECT COUNT(*) FROM events JOIN other USING (member)")


@pytest.mark.parametrize(
    "arguments",
    [
        ("count", "--where", "article"),
        ("count", "--where", "age=old"),
        ("count", "--where", "{bad json"),
        ("count", "--where", "nothing=1"),
        ("count", "--where", "age=1,old"),
        ("count", "--where", "age in (select 1)"),
        ("count", "--where", 'article="a'),
        ("top-k", "--by", "article", "-k", "0"),
        ("histogram", "--by", "article", "--by", "age", "--category", "a"),
    ],
)
def test_bad_input(shell, arguments) -> None:
    with pytest.raises(InvalidInput):
        shell(*arguments)
    left = json.loads(shell("count", "--plan", "--json").stdout)
    assert left["remaining"]["farthings"] == 60


def test_limits_on_the_command_line(shell) -> None:
    """A limit that is looked for, what it leaves out, and both questions by themselves."""
    by = ("--by", "article")
    auto = ("--contribution-limit", "auto", "--measure-loss")
    plan = json.loads(shell("histogram", *by, *auto, "--plan", "--json").stdout)
    assert [choice["limit"] for choice in plan["limits"]["choices"]][:2] == [1, 2]
    found = json.loads(shell("histogram", *by, *auto, "--json").stdout)
    assert found["query"]["contribution_limit"] >= 1
    assert found["loss"]["looked_at"] > found["query"]["contribution_limit"]
    above = shell("loss", *by, "--contribution-limit", "1", "--most", "3")
    assert "above the limit of 1 value of" in above.stdout
    tried = ("--limits", "1", "--limits", "2", "--noise", "10", "--noise", "14.5", "--labels", "3")
    chosen = json.loads(shell("limit", *by, *tried, "--json").stdout)
    assert chosen["labels"][0] in (1, 2)


def test_means_by_a_key(shell) -> None:
    options = ["--column", "age", "--lower", "0", "--upper", "90", "--per-key-limit", "2"]
    keyed = [*options, "--by", "bins(age, 0, 45, 90)", "--contribution-limit", "2"]
    answer = json.loads(shell("mean", *keyed, "--json").stdout)
    assert answer["labels"] == ["[0, 45)", "[45, 90)"]
    for (low, high), truth in zip(answer["intervals"], (22, 67), strict=True):
        assert low <= truth <= high
    assert "/n at 95%" in shell("mean", *options, "--plan").stdout
    assert (
        "/n at 95%"
        in shell("mean", *options, "--plan", "--half-width", "9", "--rows", "4000").stdout
    )
    with pytest.raises(InvalidInput, match="say rows"):
        shell("mean", *options, "--plan", "--half-width", "9")
    with pytest.raises(InvalidInput, match="bins are written"):
        shell("mean", *options, "--plan", "--by", "bins(age, young, old)")
    with pytest.raises(InvalidInput, match="with a month must be date"):
        shell("mean", *options, "--plan", "--by", "month(age)")
