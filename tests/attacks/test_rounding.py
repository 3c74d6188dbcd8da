"""Bounds were shown to people rounded to the nearest: uppers below the bound, lowers above it."""

from __future__ import annotations

import re
import sys
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import farthing as fa
from farthing.cli.main import app
from farthing.errors import NotCertified
from farthing.numerics.rounding import deflated, inflated, shown_down, shown_up

finite = st.floats(allow_nan=False, allow_infinity=False)
decimals = st.builds(
    lambda digits, places: digits / 10**places, st.integers(0, 10**9), st.integers(0, 12)
)


@settings(max_examples=500)
@given(st.one_of(finite, decimals, st.floats(0, 1e-307), st.floats(0, 50)))
@example(5e-324)
@example(sys.float_info.max)
@example(-sys.float_info.max)
@example(0.1)
@example(11.8176932411)
@example(0.99999999999)
def test_what_is_shown_reads_back_on_the_safe_side(bound):
    up, down = shown_up(bound), shown_down(bound)
    assert float(down) <= bound <= float(up)
    assert abs(float(up) - bound) <= 1e-5 * abs(bound) + 5e-324
    assert abs(bound - float(down)) <= 1e-5 * abs(bound) + 5e-324
    for text in (up, down):
        digits = re.sub(r"^0+", "", re.sub(r"e.*|[-.]", "", text))
        assert len(digits) <= 24


@given(st.integers(-(10**6), 10**6), st.integers(0, 6))
def test_short_decimals_stay_as_they_are(digits, places):
    value = digits / 10**places
    assert Decimal(shown_up(value)) == Decimal(shown_down(value)) == Decimal(repr(value))


def test_how_bounds_look():
    assert shown_up(11.8176932411) == "11.817694"
    assert shown_down(11.8176932411) == "11.817693"
    assert shown_up(1e-7) == "1e-7"
    assert shown_up(1.23456789e-7) == "1.23457e-7"
    assert shown_up(2.0) == shown_down(2.0) == "2"
    assert shown_up(0.0) == shown_down(-0.0) == "0"
    assert shown_up(None) == shown_down(None) == "not proved"
    assert shown_up(float("inf")) == "inf"
    assert shown_up(0.0351, digits=2) == "0.036"
    with pytest.raises(NotCertified):
        shown_up(float("nan"))


@given(st.floats(1e-300, 1e300), st.integers(2, 10**6))
def test_inflating_and_deflating_move_past_the_roundings(value, units):
    assert Decimal(inflated(value, units)) >= Decimal(value) * (1 + Decimal(units - 2) / 2**53)
    assert Decimal(deflated(value, units)) <= Decimal(value) * (1 - Decimal(units - 2) / 2**53)


def shown(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


@pytest.mark.parametrize(
    ("items", "delta"),
    [
        (["dp:1e-7"], "0"),
        (["31xdp:0.44"], "5e-6"),
        (["100xbr:0.1"], "1e-6"),
        (["20xgauss:7"], "1e-9"),
        (["dp:1e-300"], "0"),
        (["dp:0.1"], "0"),
    ],
)
def test_the_command_line_rounds_epsilon_outwards(items, delta):
    bracket = fa.compose([fa.guarantees.notation.parse_item(i) for i in items]).epsilon_at(
        float(delta)
    )
    text = shown("epsilon", *items, "--delta", delta)
    low, high = re.search(r"ε is in \[(\S+), (\S+)\]", text).groups()
    assert float(low) <= bracket.lower <= bracket.upper <= float(high)
    assert float(high) <= bracket.upper * (1 + 1e-5)
    assert float(low) >= bracket.lower * (1 - 1e-5)


@pytest.mark.parametrize("epsilon", ["0.3", "1", "4.40000001"])
def test_the_command_line_rounds_delta_outwards(epsilon):
    bracket = fa.compose([(fa.PureDP(0.44), 31)]).delta_at(float(epsilon))
    text = shown("delta", "31xdp:0.44", "--epsilon", epsilon)
    low, high = re.search(r"δ is in \[(\S+), (\S+)\]", text).groups()
    assert float(low) <= bracket.lower <= bracket.upper <= float(high)


def test_a_plan_rounds_what_it_gives_up():
    text = shown("plan", "dp:0.44", "--epsilon", "5", "--delta", "1e-6")
    count = int(re.search(r"(\d+) × dp:0.44 fit", text).group(1))
    stated = float(re.search(r"they give ε ≤ (\S+), by", text).group(1))
    assert stated >= fa.compose([(fa.PureDP(0.44), count)]).epsilon_at(1e-6).upper
    assert stated <= 5
