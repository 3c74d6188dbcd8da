"""What has an order comes in it, other labels with the largest first; numbers stay with them."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import farthing as fa
from farthing.engine.computed.columns import with_computed
from farthing.engine.kinds.counts import HistogramQuery
from farthing.engine.kinds.top_k import TopKQuery
from farthing.engine.kinds.totals import MeanQuery
from farthing.engine.sql.bounding import text_of
from farthing.mechanisms import Release
from farthing.schema import DATE, INTEGER, REAL, TEXT, Column, Schema

TARIFF = fa.Tariff(
    {"count": (fa.PureDP(1.0), 1), "leak": (fa.ApproximateDP(0.0, 1e-9), 1)},
    farthings=20,
    delta_units=9,
    delta_unit=1e-9,
)
SCHEMA = Schema(
    (
        Column("who", INTEGER),
        Column("day", DATE),
        Column("born", DATE),
        Column("age", INTEGER, lower=0, upper=120),
        Column("article", INTEGER),
        Column("country", TEXT, categories=("SE", "NO")),
        Column("pay", REAL, lower=0, upper=100),
    )
)
DAYS = date(2026, 2, 1), date(2026, 3, 1)


def shown(by: Any, *labels: Any) -> list[Any]:
    """The labels in the order in which they are shown; each keeps its count."""
    query = HistogramQuery(by)
    drawn = Release(tuple(map(text_of, labels)), tuple(range(len(labels), 0, -1)))
    schema = with_computed(SCHEMA, query.columns())
    ordered = query.in_order(drawn, schema)
    before = dict(zip(drawn.labels, drawn.counts or (), strict=True))
    assert before == dict(zip(ordered.labels, ordered.counts or (), strict=True))
    return list(query.labels_in(ordered))


@pytest.mark.parametrize(
    ("by", "drawn", "expected"),
    [
        ("day", (DAYS[1], None, DAYS[0]), [*DAYS, None]),
        ("month(day)", DAYS[::-1], [*DAYS]),
        ("age", (31, None, 9, 100), [9, 31, 100, None]),
        ("weekday(day)", (7, 2, 1), [1, 2, 7]),
        ("age(born, day)", (40, 9), [9, 40]),
        ("per_unit(count(*))", (10, 9), [9, 10]),
        (
            "bins(pay, 9, 10, 50, 100)",
            ("[50, 100]", "[9, 10)", None, "[10, 50)"),
            ["[9, 10)", "[10, 50)", "[50, 100]", None],
        ),
        ("article", (7, 3, None, 5), [7, 3, None, 5]),
        ("country", ("SE", "NO"), ["SE", "NO"]),
        (
            ["country", "day"],
            (("SE", DAYS[1]), ("NO", DAYS[0]), ("SE", DAYS[0]), ("NO", None), ("NO", DAYS[1])),
            [("SE", DAYS[0]), ("SE", DAYS[1]), ("NO", DAYS[0]), ("NO", DAYS[1]), ("NO", None)],
        ),
        (
            ["day", "country"],
            (("SE", DAYS[1]), ("NO", DAYS[0]), ("SE", DAYS[0]), ("NO", DAYS[1])),
            [("SE", DAYS[0]), ("NO", DAYS[0]), ("SE", DAYS[1]), ("NO", DAYS[1])],
        ),
        (["country", "article"], (("SE", 3), ("NO", 2), ("SE", 1)), None),
        ("day", (), []),
    ],
)
def test_the_kind_of_the_key_decides(by: Any, drawn: tuple[Any, ...], expected: Any) -> None:
    if by == ["day", "country"]:
        drawn, expected = (tuple(label[::-1] for label in given) for given in (drawn, expected))
    assert shown(by, *drawn) == list(drawn if expected is None else expected)


def test_labels_that_are_listed_too_and_every_part() -> None:
    days = [text_of(day) for day in DAYS[::-1]]
    listed = HistogramQuery("day", categories=DAYS[::-1])
    assert listed.in_order(Release(tuple(days), (9, 7)), SCHEMA).counts == (7, 9)
    mean = MeanQuery("pay", by="day", contribution_limit=1, per_key_limit=1)
    parts = Release((0,), (1,)), Release((0,), (2,))
    ordered = mean.in_order(Release(tuple(days), (4, 5), parts=parts), SCHEMA)
    assert ordered == Release(tuple(days[::-1]), (5, 4), parts=parts[::-1])


def test_a_ranking_stays_one() -> None:
    drawn = Release(tuple(text_of(day) for day in DAYS[::-1]), (9, 7))
    assert TopKQuery("day", 2).in_order(drawn, SCHEMA) == drawn


def test_counts_and_intervals_stay_with_their_day(tmp_path: Path) -> None:
    sizes = {date(2026, 2, 1): 200, date(2026, 1, 1): 900, date(2026, 3, 1): 500}
    days = [day for day, size in sizes.items() for _ in range(size)]
    rows = pa.table({"who": range(len(days)), "day": days, "x": [day.month for day in days]})
    with fa.open(
        rows, unit="who", ledger=tmp_path / "b.db", tariff=TARIFF, farthings=20, dataset="days"
    ) as data:
        answer = data.histogram("month(day)", contribution_limit=1).run()
        top = data.histogram("day", contribution_limit=1, where={"day": [*sizes]}).run()
        listed = data.histogram("day", contribution_limit=1, categories=[*sizes]).run()
        mean = data.mean(
            "x", by="month(day)", lower=0, upper=9, contribution_limit=1, per_key_limit=1
        ).run()
    for one in (answer, top, listed):
        assert list(one.labels) == sorted(sizes)
        assert one.counts is not None
        assert one.intervals is not None
        for day, count, (low, high) in zip(one.labels, one.counts, one.intervals, strict=True):
            assert low <= count <= high
            assert abs(count - sizes[day]) < 60
    assert list(mean.labels) == sorted(sizes)
    assert mean.counts is not None
    assert mean.units is not None
    for day, number, (units, low, high) in zip(mean.labels, mean.counts, mean.units, strict=True):
        assert abs(number - day.month) < 1.5
        assert low <= units <= high
        assert abs(units - sizes[day]) < 60
    table = mean.to_arrow()
    names = ["month(day)", "mean", "lower", "upper", "units", "units_lower", "units_upper"]
    assert table.column_names == names
    assert "units" in str(mean)
    assert " units)" in mean._repr_html_()
