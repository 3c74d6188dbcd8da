"""Days come one after the other, other labels with the largest first; numbers stay with them."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa

import farthing as fa
from farthing.engine.kinds.counts import HistogramQuery
from farthing.mechanisms import Release

TARIFF = fa.Tariff(
    {"count": (fa.PureDP(1.0), 1), "leak": (fa.ApproximateDP(0.0, 1e-9), 1)},
    farthings=9,
    delta_units=2,
    delta_unit=1e-9,
)


def test_only_days_and_times_are_put_in_order() -> None:
    drawn = Release(("d20260301", "n", "d20260201"), (9, 8, 7))
    ordered = HistogramQuery("day").in_order(drawn)
    assert ordered == Release(("d20260201", "d20260301", "n"), (7, 9, 8))
    for labels in (("sb", "sa"), ("i3", "i1"), ()):
        other = Release(labels, tuple(range(len(labels), 0, -1)))
        assert HistogramQuery("day").in_order(other) == other
    listed = HistogramQuery("day", categories=[date(2026, 3, 1), date(2026, 2, 1)])
    assert listed.in_order(Release(drawn.labels[::2], (9, 7))).counts == (9, 7)


def test_counts_and_intervals_stay_with_their_day(tmp_path: Path) -> None:
    sizes = {date(2026, 2, 1): 200, date(2026, 1, 1): 900, date(2026, 3, 1): 500}
    days = [day for day, size in sizes.items() for _ in range(size)]
    rows = pa.table({"who": range(len(days)), "day": days})
    with fa.open(
        rows, unit="who", ledger=tmp_path / "b.db", tariff=TARIFF, farthings=9, dataset="days"
    ) as data:
        answer = data.histogram("month(day)", contribution_limit=1).run()
        top = data.histogram("day", contribution_limit=1, where={"day": [*sizes]}).run()
    for one in (answer, top):
        assert list(one.labels) == sorted(sizes)
        assert one.counts is not None
        assert one.intervals is not None
        for day, count, (low, high) in zip(one.labels, one.counts, one.intervals, strict=True):
            assert low <= count <= high
            assert abs(count - sizes[day]) < 60
