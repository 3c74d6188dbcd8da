"""The page for people who know nothing of this: its numbers, and where it is linked from."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

import farthing as fa
from farthing.composition.tariffs.prices import ladder
from farthing.lab.figures.ours import STANDARD_NOISE, several_counts
from farthing.numerics.rounding import shown_up
from farthing.wording import percent_up

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "what-epsilon-means.md").read_text(encoding="utf-8")
PUZZLED = (
    *("README.md", "docs/index.md", "docs/console.md", "docs/engine.md"),
    *("docs/tutorials/analyst.md", "docs/tutorials/owner.md", "docs/examples/lahman.md"),
    "src/farthing/cli/query.py",
)


@pytest.mark.parametrize("place", PUZZLED)
def test_where_people_may_be_puzzled_it_is_named(place: str) -> None:
    assert "what-epsilon-means.md" in (ROOT / place).read_text(encoding="utf-8")


def test_odds_are_rounded_up() -> None:
    rows = re.findall(r"^\| ([\d.]+) \| × ([\d. ]+) \| ([\d. ]+) to 1 \|", PAGE, flags=re.M)
    assert len(rows) == 6
    for epsilon, factor, odds in rows:
        assert factor == odds
        stated, true = float(factor.replace(" ", "")), math.exp(float(epsilon))
        assert true <= stated < 1.05 * true


def test_its_numbers_are_those_of_a_budget() -> None:
    signed = ladder(epsilon=3, delta=1e-6)
    assert (
        f"it is {percent_up(signed.guess)} instead of {percent_up(1 / (1 + math.exp(-3)))}" in PAGE
    )
    made = signed.tariff
    assert made.farthings == 980
    assert made.items["count"] == (fa.Gaussian(STANDARD_NOISE), 16)
    for count in (1, 16):
        assert f"ε = {shown_up(several_counts(count), digits=2)}" in PAGE
    assert f"{16 / 980:.1%}".replace("%", " %") in PAGE
    assert f"{16 * 16 / 980:.0%}".replace("%", " %") in PAGE
    levels = {math.ceil(980 / math.sqrt(2) ** k) for k in range(20)}
    assert {16, 22, 31, 44} <= levels
