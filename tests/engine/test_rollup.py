"""A rollup: the total, sub-totals and their parts from one purchase, and they add up."""

from __future__ import annotations

import json
from datetime import date

import pyarrow as pa
import pytest

from farthing.engine import Answer
from farthing.engine.kinds import query_from
from farthing.engine.kinds.rollup import RollupQuery
from farthing.errors import InvalidInput

WARDS = [("N", 1), ("N", 2), ("S", 1), ("S", 3), ("S", 4)]
SIZES = {("N", 1): 300, ("N", 2): 120, ("S", 1): 500, ("S", 3): 5, ("S", 4): 0, ("X", 9): 50}
LABELS = [ward for ward, size in SIZES.items() for _ in range(size)]
ROWS = pa.table(
    {
        "member": range(len(LABELS)),
        "region": [region for region, _ in LABELS],
        "ward": [ward for _, ward in LABELS],
        "day": [date(2026, 1 + i % 3, 1 + i % 28) for i in range(len(LABELS))],
        "flag": [i % 2 == 0 for i in range(len(LABELS))],
    }
)
TRUTH = {(): 925, ("N",): 420, ("S",): 505, **{ward: SIZES[ward] for ward in WARDS}}


def check_sums(answer: Answer, numbers) -> None:
    """Every number is the sum of its parts."""
    found = dict(zip(answer.labels, numbers, strict=True))
    for label, number in found.items():
        parts = [n for one, n in found.items() if len(one) == len(label) + 1 and one[:-1] == label]
        assert not parts or number == sum(parts), label


def test_totals_from_one_purchase(opened) -> None:
    session = opened(ROWS)
    asked = session.rollup(["region", "ward"], categories=WARDS, contribution_limit=1, count="fine")
    alone = session.count(count="fine").plan().price.farthings
    assert asked.plan().price.farthings == 3 * alone, "a count for each level"
    answer = asked.run()
    assert list(answer.labels) == [(), ("N",), *WARDS[:2], ("S",), *WARDS[2:]]
    check_sums(answer, answer.counts)
    check_sums(answer, answer.shown)
    for label, number, (low, high) in zip(
        answer.labels, answer.shown, answer.intervals, strict=True
    ):
        assert 0 <= low <= number <= high
        assert abs(number - TRUTH[label]) < 20 * (high - low + 1)
    assert asked.run().cached


def test_how_it_is_shown(opened) -> None:
    answer = opened(ROWS).rollup(["region", "ward"], categories=WARDS, contribution_limit=1).run()
    text = str(answer)
    assert answer.caption.startswith(
        "The number of distinct `member` for each `region` and `ward`, with sub-totals (each "
        "`member` counts for at most 1 combination of `region` and `ward`; 5 combinations"
    )
    assert text.count("(all)") == 4
    assert "(missing)" not in text
    html = answer._repr_html_()
    assert ">(all)<" in html
    assert ">S, 4<" in html
    assert answer.to_arrow().select(["region", "ward"]).to_pylist()[:3] == [
        {"region": None, "ward": None},
        {"region": "N", "ward": None},
        {"region": "N", "ward": 1},
    ]
    data = json.loads(json.dumps(answer.told()))
    assert data["labels"][:3] == [[], ["N"], ["N", 1]]
    assert sum(n for label, n in zip(data["labels"], data["shown"], strict=True) if len(label) == 2)
    again = Answer.from_json(data, query_from(data["query"]), remaining=answer.remaining)
    assert (again.labels, again.counts) == (answer.labels, answer.counts)
    assert (again.intervals, again.shown) == (answer.intervals, answer.shown)


def test_several_labels_of_a_unit(opened) -> None:
    rows = pa.table({"member": [i // 3 for i in range(900)], "k": [i % 3 for i in range(900)]})
    session = opened(rows)
    asked = session.rollup("k", categories=[0, 1, 2], contribution_limit=3, count="fine")
    answer = asked.run()
    check_sums(answer, answer.shown)
    assert abs(answer.shown[0] - 900) < 400
    assert "each `member` counts in the total once for each of its values of" in answer.caption
    single = session.count(count="fine").plan().price.farthings
    assert asked.plan().price.farthings == 4 * single, "one total for all three, three labels"


def test_keys_that_have_an_order_and_labels_that_are_known(opened) -> None:
    session = opened(ROWS)
    months = [date(2026, 3, 1), date(2026, 1, 1), date(2026, 2, 1)]
    labels = [(region, month) for month in months for region in ("S", "N")]
    answer = session.rollup(["region", "month(day)"], categories=labels, contribution_limit=1).run()
    assert [label[0] for label in answer.labels if len(label) == 1] == ["S", "N"]
    assert [label[1] for label in answer.labels if label[0:1] == ("N",) != label] == sorted(months)
    check_sums(answer, answer.shown)
    ranges = session.rollup("bins(ward, 0, 2, 5)", contribution_limit=1).run()
    assert ranges.labels == ((), ("[0, 2)",), ("[2, 5)",))


def test_in_sql_and_as_plain_data(opened) -> None:
    session = opened(ROWS)
    name = session.backend._context.about.name
    text = (
        f"SELECT region, COUNT(DISTINCT member) FROM {name} WHERE region IN ('N', 'S') "
        "GROUP BY ROLLUP (region) OPTIONS (contribution_limit = 1)"
    )
    asked = session.sql(text)
    assert asked.query == RollupQuery("region", categories=["N", "S"], contribution_limit=1)
    assert query_from(json.loads(json.dumps(asked.query.to_json()))) == asked.query
    assert asked.run().labels == ((), ("N",), ("S",))
    for clause, why in (
        ("SUM(ward)", "ROLLUP is for COUNT"),
        ("COUNT(DISTINCT ward)", "ROLLUP is for COUNT"),
    ):
        with pytest.raises(InvalidInput, match=why):
            session.sql(f"SELECT region, {clause} FROM {name} GROUP BY ROLLUP (region)")
    with pytest.raises(InvalidInput):
        session.sql(f"SELECT COUNT(*) FROM {name} GROUP BY region, ROLLUP (ward)")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"by": "region", "contribution_limit": 1}, "a rollup needs categories"),
        ({"by": "region", "categories": ["N", None]}, "no missing labels"),
        ({"by": "region", "categories": ["N", "S"]}, "contribution_limit must be given"),
        ({"by": "region", "categories": ["N"], "contribution_limit": "auto"}, "must be a number"),
        ({"by": ["region", "ward"], "categories": ["N"]}, "one value for each"),
        ({"by": "member", "categories": [1], "contribution_limit": 1}, "unit of privacy"),
    ],
)
def test_what_it_refuses(opened, fields, why) -> None:
    session = opened(ROWS)
    with pytest.raises(InvalidInput, match=why):
        session.rollup(**fields).plan()


def test_nobody_and_somebody_look_alike(opened) -> None:
    session = opened(ROWS)
    for where in ({"region": "N", "flag": True}, {"ward": -5}):
        answer = session.rollup("region", categories=["N"], contribution_limit=1, where=where).run()
        assert answer.labels == ((), ("N",))
        assert min(answer.shown) >= 0
