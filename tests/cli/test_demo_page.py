"""The page of the demonstration: it runs nothing, and fits a phone, by day and by night."""

from __future__ import annotations

import re

from examples.demo import ReleasedRow, demo_page

PAGE = demo_page(
    "What <they> read",
    "Bars & dots.",
    (("everything so far", "ε ≤ 2.233"),),
    (
        ReleasedRow("<script>alert(1)</script>", 100, (80, 120), 110),
        ReleasedRow('"quoted"', -5, (-25, 15), 0),
    ),
)


def test_names_are_text() -> None:
    assert "<script" not in PAGE
    assert "What &lt;they&gt; read" in PAGE
    assert "&quot;quoted&quot;" in PAGE
    assert "ε ≤ 2.233" in PAGE


def test_it_follows_the_screen() -> None:
    assert 'name="viewport"' in PAGE
    assert "prefers-color-scheme: dark" in PAGE
    assert "max-width: 34rem" in PAGE
    assert not re.search(r"https?://", PAGE), "it needs nothing but itself"


def test_everything_that_is_drawn_stays_on_the_track() -> None:
    drawn = [float(part) for part in re.findall(r"(?:width|left):(-?[0-9.]+)%", PAGE)]
    assert len(drawn) == 8
    assert all(0 <= part <= 100 for part in drawn)
    first = re.findall(r"left:([0-9.]+)%;width:([0-9.]+)%", PAGE)[0]
    assert [float(part) for part in first] == [66.67, 33.33]
