"""What an answer leaves out is said with it: withheld labels, and limits that are too small."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

import farthing as fa
from farthing.engine.answer import LARGEST_TRIED, Answer
from farthing.engine.kinds import query_from
from tests.engine.conftest import Opened

#: 300 units with ten labels each, and 3 units with a label of their own.
PAIRS = [(u, f"label {j}") for u in range(300) for j in range(10)]
PAIRS += [(u, "rare") for u in range(3)]
ROWS = pa.table(
    {
        "member": [u for u, _ in PAIRS],
        "k": [k for _, k in PAIRS],
        "age": [20 + u % 40 for u, _ in PAIRS],
    }
)
SCHEMA = fa.Schema(
    (
        fa.Column("member", "integer"),
        fa.Column("k", "text", categories=("label 0", "label 1")),
        fa.Column("age", "integer", lower=0, upper=100),
    )
)
WITHHELD = "Labels with fewer than about {} {} are not shown."


@pytest.mark.parametrize(
    ("kind", "fields", "things"),
    [
        ("histogram", {"by": "k", "contribution_limit": 1}, "units"),
        ("histogram", {"by": "k", "contribution_limit": 1, "per_key_limit": 2}, "rows"),
        ("top_k", {"by": "k", "k": 3, "contribution_limit": 2}, "units"),
        ("top_k", {"by": "k", "k": 3, "contribution_limit": 1, "mechanism": "noise"}, "units"),
        (
            "mean",
            {
                "column": "age",
                "by": "k",
                "lower": 0,
                "upper": 100,
                "contribution_limit": 1,
                "per_key_limit": 1,
            },
            "units",
        ),
    ],
)
def test_withheld_labels_are_mentioned(
    opened: Opened, kind: str, fields: dict[str, Any], things: str
) -> None:
    data = opened(ROWS)
    asked = data.ask({"kind": kind, **fields})
    plan, answer = asked.plan(), asked.run()
    least = plan.expectation.shown_from
    assert least is not None
    words = WITHHELD.format(least, things)
    assert words in str(answer).replace("\n", " ")
    assert words in answer._repr_html_()
    assert words in answer.sheet.notes
    plain = json.loads(json.dumps(answer.to_json()))
    assert plain["shown_from"] == least
    again = Answer.from_json(plain, query_from(plain["query"]), remaining=answer.remaining)
    assert again.sheet.notes == answer.sheet.notes
    assert asked.run().shown_from == least  # what was kept says it too


def test_it_does_not_depend_on_the_rows(opened: Opened) -> None:
    asked = {"kind": "histogram", "by": "k", "contribution_limit": 1}
    found = [opened(rows, version=v).ask(asked).run() for v, rows in (("1", ROWS), ("2", ROWS[:9]))]
    assert found[0].shown_from == found[1].shown_from
    assert not found[1].labels or found[1].shown_from


def test_known_labels_are_all_shown(opened: Opened) -> None:
    data = opened(ROWS)
    answer = data.histogram("k", categories=["label 0", "rare"], contribution_limit=1).run()
    assert answer.shown_from is None
    assert not answer.sheet.notes
    assert data.count().run().shown_from is None


def test_missing_is_a_group_only_if_it_is_asked_for(opened: Opened) -> None:
    data = opened(ROWS, schema=SCHEMA)
    asked = {"per_key_limit": 1, "contribution_limit": 5}
    grouped = data.mean("age", by="k", **asked)
    assert grouped.run().labels == ("label 0", "label 1")
    assert data.histogram("k", contribution_limit=5).run().labels == ("label 0", "label 1")
    three = data.mean("age", by="k", categories=["label 0", "label 1", None], **asked)
    assert three.run().labels == ("label 0", "label 1", None)
    two, dearer = grouped.plan(), three.plan()
    assert 3 * two.price.farthings == 2 * dearer.price.farthings


ONE_RUNG = fa.Tariff({"count": (fa.PureDP(1.0), 4), "select": (fa.BoundedRange(1.0), 1)}, 400)
TEN = {"categories": [f"label {j}" for j in range(10)]}


def test_a_limit_that_was_too_small_is_mentioned(opened: Opened) -> None:
    """One rung: limits 1, 2 and 4 are tried, and each unit has ten labels."""
    data = opened(ROWS, tariff=ONE_RUNG, farthings=400, delta_units=None)
    asked = data.histogram("k", contribution_limit="auto", **TEN)
    plan = asked.plan()
    assert [c["limit"] for c in plan.to_json()["limits"]["choices"]] == [1, 2, 4]
    assert "nothing larger is tried" in str(plan)
    first = asked.run()
    assert first.query.contribution_limit == 4
    for answer in (first, asked.run(), data.batch({"h": asked}).run()["h"]):
        assert answer.largest_tried
        assert LARGEST_TRIED in answer.sheet.notes
        assert LARGEST_TRIED in str(answer).replace("\n", " ")
        assert LARGEST_TRIED in answer._repr_html_()
        assert answer.to_json()["largest_tried"]
    assert not data.histogram("k", contribution_limit=4, **TEN).run().largest_tried


def test_it_is_mentioned_in_a_batch_that_looks_for_it(opened: Opened) -> None:
    data = opened(ROWS, tariff=ONE_RUNG, farthings=400, delta_units=None)
    asked = data.histogram("k", contribution_limit="auto", **TEN)
    told = data.batch({"h": asked, "n": data.count()}).run()
    assert told["h"].largest_tried
    assert not told["n"].largest_tried


def test_a_limit_that_leaves_nothing_out_is_not(opened: Opened) -> None:
    data = opened(ROWS, tariff=ONE_RUNG, farthings=400, delta_units=None)
    four = {"categories": TEN["categories"][:4]}
    asked = data.histogram("k", contribution_limit="auto", **four)
    assert "nothing larger is tried" not in str(asked.plan())
    answer = asked.run()
    assert answer.query.contribution_limit == 4
    assert not answer.largest_tried
