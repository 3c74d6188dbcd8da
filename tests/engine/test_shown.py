"""Answers and plans print well everywhere, and hold nothing a page would run."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import date

import matplotlib as mpl
import pyarrow as pa
import pytest
from rich.console import Console

from farthing.composition.tariffs.tariff import Price
from farthing.engine import Answer
from farthing.engine.kinds.counts import CountQuery, DistinctQuery, HistogramQuery
from farthing.engine.kinds.quantile import QuantileQuery
from farthing.engine.kinds.top_k import TopKQuery
from farthing.engine.kinds.totals import MeanQuery, SumQuery
from farthing.engine.show.rendering import MOST_BARS, bar
from farthing.engine.show.sheet import number, whole, width
from farthing.errors import Unsupported

mpl.use("Agg")


def answer(query, labels, counts, **more) -> Answer:
    facts = {
        "half_width": 30,
        "confidence": 0.95,
        "stopped": False,
        "price": Price(11, 10),
        "used": {"select": 2, "count": 2, "leak": 1},
        "remaining": Price(1, 0),
        **more,
    }
    return Answer(query, labels, counts, **facts)


TOP = answer(
    TopKQuery(by=("article", "day"), k=2),
    (("<script>alert('x')</script>", date(2013, 1, 5)), (None, None)),
    (1200, 30),
)


def test_a_bar_is_never_wider_than_its_column() -> None:
    for interval in ((0.0, 1.0), (990.0, 1000.0), (1000.0, 1000.0)):
        assert 1 <= len(bar(interval, 1000.0)) <= len(bar((0.0, 1000.0), 1000.0)), interval


def test_as_text() -> None:
    text = str(TOP)
    for part in (
        "The 2 combinations of `article` and `day` with the most distinct `unit`",
        "1\u202f200",
        "(missing)",
        "2013-01-05",
        "± at 95%",
    ):
        assert part in text
    assert "paid 11 farthings and 10 δ units; 1 farthing remaining" in text
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "[bold]" in str(answer(TopKQuery(by="a", k=1), ("[bold]x",), (3,)))
    stopped = answer(TopKQuery(by="a", k=3), ("x",), None, stopped=True, half_width=None)
    assert "ended early" in str(stopped)
    single = answer(SumQuery(column="x", lower=-1, upper=1, places=0), ("sum",), (12.5,))
    assert "12.50 ± 30" in str(single)
    quantile = answer(
        QuantileQuery(column="x", probability=0.5, lower=0, upper=9, places=0, per_key_limit=1),
        (4,),
        None,
    )
    assert "median of `x`" in str(quantile)
    assert quantile.value == 4
    with pytest.raises(ValueError, match="2 labels"):
        _ = TOP.value


def test_a_narrow_terminal_is_no_problem() -> None:
    with Console(width=40, record=True) as screen:
        screen.print(TOP)
    assert all(len(line) <= 40 for line in screen.export_text().splitlines())


def test_as_html() -> None:
    html = TOP._repr_html_()
    assert "<script" not in html
    picture = html[html.index("<svg") : html.index("</svg>") + 6]
    drawn = ET.fromstring(picture)
    names = [element.tag.split("}")[1] for element in drawn.iter()]
    assert (names.count("rect"), names.count("path")) == (2, 2)
    many = answer(
        HistogramQuery(by="a", contribution_limit=1),
        tuple(range(MOST_BARS + 7)),
        tuple(range(MOST_BARS + 7)),
    )
    assert "and 7 more" in many._repr_html_()
    plain = answer(TopKQuery(by="a", k=2, counts=False), ("<b>", "c"), None, half_width=None)
    assert "<li>&lt;b&gt;</li>" in plain._repr_html_()


def test_nothing_is_a_sentence_and_one_number_a_number() -> None:
    nothing = answer(HistogramQuery(by="a", contribution_limit=1), (), ())
    assert "Nothing stood out enough to be released." in str(nothing)
    assert "┏" not in str(nothing)
    single = answer(CountQuery(), ("count",), (5143,))
    assert "┏" not in str(single)
    assert repr(single) == f"<Answer: {single.caption}: 5\u202f143 ± 30 at 95%>"
    assert repr(TOP).endswith("2 labels>")
    assert repr(nothing).endswith("0 labels>")


def test_plans_and_batches(opened) -> None:
    rows = {"member": list(range(40)), "<b>": ["x"] * 40}
    data = opened(pa.table(rows))
    question = data.count(where={"<b>": "x"})
    plan = question.plan()
    assert repr(question) == f"<Question: {plan.caption}>"
    assert repr(plan).startswith(f"<Plan: {plan.caption}: ")
    assert "farthings" in repr(plan)
    batch = data.batch({"<i>": question, "all": data.count()})
    both = batch.plan()
    assert "2 questions together: <i>, all" in repr(both)
    for shown in (plan._repr_html_(), both._repr_html_()):
        ET.fromstring(shown)
        assert "<b>" not in shown
        assert "<i>" not in shown
        assert "remaining" in shown
    assert str(plan.price.farthings) in str(both)
    answers = batch.run()
    assert set(answers) == {"<i>", "all"}
    ET.fromstring(answers._repr_html_())
    assert str(answers).count("± ") == 2
    assert batch.run()["all"].cached
    assert "asked before" in batch.plan()._repr_html_()


def test_as_tables_of_others() -> None:
    arrow = TOP.to_arrow()
    assert arrow.column_names == ["article", "day", "count", "lower", "upper"]
    assert arrow.to_pylist()[0]["upper"] == 1230
    assert TOP.to_pandas().shape == (2, 5)
    assert TOP.to_polars().shape == (2, 5)
    clash = answer(TopKQuery(by="count", k=1), ("x",), (3,)).to_arrow()
    assert clash.column_names == ["count", "_count", "lower", "upper"]
    nothing = answer(HistogramQuery(by="a", contribution_limit=1), (), ())
    assert nothing.to_arrow().num_rows == 0
    assert nothing.intervals == ()


def test_as_a_plot() -> None:
    axes = TOP.plot()
    assert len(axes.patches) == 2
    assert TOP.plot(axes) is axes
    with pytest.raises(Unsupported):
        answer(TopKQuery(by="a", k=1, counts=False), ("x",), None).plot()
    import matplotlib.pyplot as plt

    plt.close("all")


LOPSIDED = answer(
    HistogramQuery(by="a", contribution_limit=1),
    ("x", "y"),
    (40, 9),
    half_width=None,
    intervals=((31.5, 60.25), (1, 12)),
)


def test_intervals_need_not_be_symmetric() -> None:
    text = str(LOPSIDED)
    assert "interval at 95%" in text
    assert "31 to 61" in text
    assert "±" not in text
    assert LOPSIDED.to_arrow().to_pylist()[1] == {"a": "y", "count": 9, "lower": 1, "upper": 12}
    assert "±" not in LOPSIDED._repr_html_()
    bars, _ = LOPSIDED.plot().collections[0].get_segments()
    assert [x for x, _ in bars] == [31.5, 60.25]
    count = SumQuery(column="x", lower=0, upper=1, places=0)
    one = answer(count, ("sum",), (7,), half_width=None, intervals=((2.123, 11.987),))
    assert "at 95% in 2.1 to 12.0" in str(one)
    assert "at 95% in 2.1 to 12.0" in one._repr_html_()


def test_releases_that_were_kept_without_intervals_are_read() -> None:
    data = TOP.to_json()
    del data["intervals"]
    assert Answer.from_json(data, TOP.query, remaining=TOP.remaining).intervals == TOP.intervals


@pytest.mark.parametrize("kept", [TOP, LOPSIDED])
def test_round_trip(kept: Answer) -> None:
    data = json.loads(json.dumps(kept.to_json()))
    again = Answer.from_json(data, kept.query, remaining=kept.remaining)
    assert again == replace(kept, cached=True)


def test_small_numbers_keep_their_digits() -> None:
    mean = MeanQuery(column="x", lower=0, upper=1, per_key_limit=1)
    one = answer(mean, ("mean",), (0.0049871,), half_width=None, intervals=((0.004951, 0.005021),))
    assert "0.004987" in str(one)
    assert "at 95% in 0.004951 to 0.005021" in str(one)
    wide = answer(mean, ("mean",), (0.3,), half_width=None, intervals=((0.04951, 0.53),))
    assert "0.30   at 95% in 0.04 to 0.53" in str(wide)
    assert width(0.000123) == "0.00013"
    assert whole(36.01) == "37", "a distance between counts is never shown smaller"
    assert number(0.5) == "0.50"


def test_what_is_shown_is_possible() -> None:
    """A number of members is at least 0; what was drawn stays, without a bias."""
    distinct = DistinctQuery("article", contribution_limit=1)
    one = answer(distinct, ("distinct",), (-31,), half_width=54)
    assert (one.value, one.shown, one.intervals) == (-31, (0,), ((0, 23),))
    assert "0   at 95% in 0 to 23" in str(one)
    assert "0 at 95% in 0 to 23" in one._repr_html_()
    assert repr(one).endswith(": 0 at 95% in 0 to 23>")
    told = one.told()
    assert (told["counts"], told["shown"], told["intervals"]) == ([-31], [0], [[0, 23]])
    assert one.to_arrow().to_pylist() == [
        {"what": "distinct", "count": -31, "lower": 0, "upper": 23}
    ]
    below = answer(CountQuery(), ("count",), (-90,))
    assert (below.shown, below.intervals) == ((0,), ((0, 0),))
    again = Answer.from_json(json.loads(json.dumps(one.to_json())), one.query, remaining=Price(1))
    assert again == replace(one, cached=True, remaining=Price(1))


def test_one_bar_that_is_cut_gives_all_of_them_intervals() -> None:
    several = answer(HistogramQuery(by="a", contribution_limit=1), ("x", "y"), (90, -4))
    text = str(several)
    assert "interval at 95%" in text
    assert "60 to 120" in text
    assert "0 to 26" in text
    assert "-" not in text.split("interval at 95%")[1].split("paid")[0]
    bars = several.plot().collections[0].get_segments()
    assert [[x for x, _ in bar] for bar in bars] == [[60, 120], [0, 26]]
    assert several.half_width == 30, "what was drawn is within ± that"


@pytest.mark.parametrize(
    ("lower", "upper", "drawn", "expected"),
    [
        (0, 5, -3, (0, 27)),
        (-5, 0, 3, (-27, 0)),
        (-5, 5, -3, (-33, 27)),
        (None, None, -3, (-33, 27)),
    ],
)
def test_sums_of_one_sign(lower, upper, drawn, expected) -> None:
    total = SumQuery("x", lower=lower, upper=upper, places=0)
    assert answer(total, ("sum",), (drawn,)).intervals == (expected,)


def means(*intervals: tuple[float, float], **more) -> Answer:
    query = MeanQuery(
        "x", by="a", lower=0, upper=10, places=0, contribution_limit=1, per_key_limit=1
    )
    labels = tuple("abcdefghijklmnop"[: len(intervals)])
    numbers = tuple((low + high) / 2 for low, high in intervals)
    return answer(query, labels, numbers, half_width=None, intervals=intervals, **more)


def test_labels_that_say_nothing_are_one_line() -> None:
    units = ((40, 31, 48), (3, 1, 9), (4, 1, 9))
    some = means((2.0, 4.0), (0.0, 10.0), (0.5, 9.75), units=units)
    assert some.folded == (1, 2)
    text = str(some)
    assert "2 labels with too few rows to say: b, c." in text
    assert "│ a" in text
    assert "│ b" not in text
    assert "40" in text
    assert "2 labels with too few rows to say: b, c." in some._repr_html_()
    assert some._repr_html_().count("<rect") == 1
    assert some.to_arrow().num_rows == 3
    assert some.to_arrow()["units"].to_pylist() == [40, 3, 4]
    assert (some.told()["folded"], len(some.told()["notes"])) == ([1, 2], 1)
    assert len(some.plot().patches) == 1
    assert means((2.0, 4.0), (0.5, 9.25)).folded == ()


def test_all_of_them_may_say_nothing() -> None:
    none = means(*[(0.0, 10.0)] * 13)
    assert "No label has enough rows to say anything." in str(none)
    assert "13 labels with too few rows to say: a, b, c, d, e, f, g, h, i, j, and 3 more" in str(
        none
    ).replace("\n", " ")
    assert "<svg" not in none._repr_html_()
    assert none.to_arrow().num_rows == 13
