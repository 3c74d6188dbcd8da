"""Titles are only words: they make sentences, and change no question, price, answer or book."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as fa
from farthing.canonical import canonical
from farthing.engine import Declaration, Desk, open_source
from farthing.errors import InvalidInput
from farthing.ledger import Ledger, verify
from farthing.ledger.declared_data import with_unit
from farthing.schema import LONGEST_TITLE, columns_to_toml, read_schema, schema_from_json

PLAIN = fa.Schema((fa.Column("who", "integer"), fa.Column("art", "text"), fa.Column("n", "real")))
TITLED = fa.Schema(
    (
        fa.Column("who", "integer", title="member"),
        fa.Column("art", "text", title="article", plural="articles", verb="read by"),
        fa.Column("n", "real"),
    )
)
TARIFF = fa.Tariff({"count": (fa.PureDP(1.0), 4), "select": (fa.BoundedRange(1.0), 1)}, 400)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = {"who": list(range(60)), "art": ["a", "b", "c"] * 20, "n": [1.0] * 60}
    pq.write_table(pa.table(rows), tmp_path / "visits.parquet")
    return tmp_path / "visits.parquet"


def test_an_owner_adds_titles_and_nothing_else_changes(table: Path, tmp_path: Path) -> None:
    book = tmp_path / "b.db"
    opened = {"ledger": book, "dataset": "visits"}
    signed = {"tariff": TARIFF.certify(), "farthings": 200}
    with fa.open(table, unit="who", schema=PLAIN, **signed, **opened) as data:
        asked = data.histogram("art", categories=["a", "b"], contribution_limit=1)
        before = asked.run()
        assert before.caption.startswith("The number of distinct `who` for each `art`")
    with Desk.open(book) as desk:
        titled = Declaration(unit="who", schema=TITLED)
        desk.describe(open_source(table), titled, "visits")
        other = replace(TITLED.columns[2], lower=0)
        wider = Declaration(unit="who", schema=fa.Schema((*TITLED.columns[:2], other)))
        with pytest.raises(InvalidInput, match="the schema of visits was declared"):
            desk.describe(open_source(table), wider, "visits")
    with fa.open(table, **opened) as data:
        asked = data.histogram("art", categories=["a", "b"], contribution_limit=1)
        plan = asked.plan()
        assert plan.caption.startswith("The number of members for each article")
        assert plan.known
        again = asked.run()
        assert again.cached
        assert (again.labels, again.counts) == (before.labels, before.counts)
        [past] = data.history()
        assert past.asked.startswith("The number of members for each article")
        assert asked.run(again=True).caption == plan.caption
        assert "<Question: The number of members" in repr(asked)
    with Ledger.open(book) as ledger:
        verify(ledger.reader(), "visits")
        releases = ledger.analyst("visits", "analyst").releases()
        assert len({canonical(release.question) for release in releases}) == 1
        assert len(list(releases)) == 2
        assert ledger.reader().dataset("visits").schema == TITLED


def test_without_titles_plain_data_is_what_it_was() -> None:
    assert PLAIN.to_json()[0] == {"name": "who", "kind": "integer"}
    assert TITLED.untitled == PLAIN
    assert schema_from_json(TITLED.to_json()) == TITLED
    assert TITLED.to_json()[1] == {
        "name": "art",
        "kind": "text",
        "title": "article",
        "plural": "articles",
        "verb": "read by",
    }


def test_in_a_schema_file(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(columns_to_toml(TITLED.columns), encoding="utf-8")
    assert read_schema(tmp_path / "schema.toml") == TITLED


def test_a_unit_of_several_columns_has_a_title() -> None:
    parts = (fa.Column("a", "integer"), fa.Column("b", "text"))
    pair = fa.Column("a,b", "text", parts=("a", "b"), title="account")
    schema, unit = with_unit(fa.Schema((*parts, pair)), ("a", "b"))
    assert (schema[unit].title, unit) == ("account", "a,b")
    other = replace(pair, parts=("b", "a"))
    with pytest.raises(InvalidInput, match="another one than the unit"):
        with_unit(fa.Schema((*parts, other)), ("a", "b"))


@pytest.mark.parametrize(
    "text",
    ["", " a", "a ", "a\nb", "\x1b[31mred", "a\u202eb", "`a`", "a" * (LONGEST_TITLE + 1), 7],
)
@pytest.mark.parametrize("name", ["title", "plural", "verb"])
def test_titles_are_short_and_printable(name: str, text: object) -> None:
    with pytest.raises(InvalidInput, match=f"the {name} of 'a' must be 1 to {LONGEST_TITLE}"):
        fa.Column("a", "text", **{"title": "a", name: text})


def test_a_plural_needs_a_title() -> None:
    with pytest.raises(InvalidInput, match="'a' has a plural and no title"):
        fa.Column("a", "text", plural="as")


def test_titles_are_escaped_and_names_are_code(opened) -> None:
    wild = "<b>&article</b>"
    schema = fa.Schema((fa.Column("member", "integer"), fa.Column("k", "text", title=wild)))
    rows = pa.table({"member": [1, 2], "k": ["x", "y"]})
    data = opened(rows, unit="member", schema=schema)
    asked = data.histogram("k", categories=["x", "y"], contribution_limit=1)
    plan, answer = asked.plan(), asked.run()
    for html in (plan._repr_html_(), answer._repr_html_()):
        assert "&lt;b&gt;&amp;article" in html
        assert "<b>" not in html
        assert "distinct <code>member</code>" in html
    assert "distinct `member`" in str(answer)
    assert wild in plan.caption
