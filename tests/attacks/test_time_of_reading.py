"""Texts that a parser reads in exponential time: thirty joins, or types one inside the other, in a
question of 400 characters kept a thread of the service, and all who wait for it, busy for ever."""

from __future__ import annotations

import pyarrow as pa
import pytest

import farthing as fa
from farthing.engine.kinds import fields
from farthing.engine.where_text.conditions import filter_in
from farthing.engine.where_text.parsing import SqlText
from farthing.errors import InvalidInput

LABELS = 200

#: What is repeated; each repetition doubled the time.
REPEATED = [
    " JOIN a",
    " LEFT JOIN (a)",
    " a JOIN",
    " STRAIGHT_JOIN a",
    " INT(",
    " DATE(",
    " TIMESTAMP(",
    " (VARCHAR2",
    " DATEMULTIRANGE(",
    " ( UNION",
]


@pytest.mark.parametrize("repeated", REPEATED)
@pytest.mark.parametrize("begin", ["SELECT COUNT(*) FROM a", "SELECT a", "a ="])
def test_what_takes_for_ever_is_refused_before_it_is_parsed(begin, repeated):
    with pytest.raises(InvalidInput, match="at most 8 words like"):
        SqlText.of(begin + 20 * repeated + " 1" + 20 * repeated.count("(") * ")")


def test_what_people_write_is_read():
    dates = ", ".join(f"DATE '2026-01-{day:02}'" for day in range(1, 31))
    assert filter_in(f"day in ({dates}) and name != 'JOIN' and not \"UNION\" = 'UNION ALL'")
    assert filter_in(" or ".join(f"(date > DATE '20{n}-01-01' and n < {n})" for n in range(10, 20)))


def test_labels_are_looked_at_once_while_a_plan_tries_limits(tmp_path, monkeypatch):
    """Every limit that was tried checked them all again: a batch of 300 labels took a minute."""
    looked_at = 0
    text_of = fields.text_of

    def counted(label):
        nonlocal looked_at
        looked_at += 1
        return text_of(label)

    rows = pa.table({"member": [1, 2], "age": [3, 4]})
    with fa.open(
        rows, ledger=tmp_path / "ledger.db", dataset="rows", unit="member", epsilon=1, delta=1e-6
    ) as session:
        monkeypatch.setattr(fields, "text_of", counted)
        session.histogram(
            "age", categories=range(LABELS), contribution_limit="auto", measure_loss=True
        ).plan()
    assert looked_at <= 4 * LABELS
