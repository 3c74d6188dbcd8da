"""Every row of docs/coming-from.md: both libraries are run, and give the numbers that it prints."""

from __future__ import annotations

import math
import re
from pathlib import Path

import dp_accounting
import opendp.prelude as dp
import pytest
from autodp import mechanism_zoo, transformer_zoo
from autodp.autodp_core import Mechanism
from dp_accounting import dp_event, pld, rdp

import farthing as fa
from farthing import exchange

PAGE = Path(__file__).parents[2] / "docs" / "coming-from.md"
DELTA = 1e-6
HEADER = r"\| (dp-accounting|OpenDP|autodp) \| farthing \| there \| here \|\n\|(?:---\|){4}\n"
ROW = r"\| `([^`|]+)` \| `([^`|]+)` \| (\S+) \| (\S+) \|"
#: What names may stand in a cell of each table.
THERE = {
    "dp-accounting": {
        **vars(dp_event),
        "PLDAccountant": pld.PLDAccountant,
        "REPLACE_ONE": dp_accounting.NeighboringRelation.REPLACE_ONE,
        "calibrate_dp_mechanism": dp_accounting.calibrate_dp_mechanism,
        "from_gaussian_mechanism": pld.privacy_loss_distribution.from_gaussian_mechanism,
    },
    "OpenDP": {"dp": dp},
    "autodp": {**vars(mechanism_zoo), **vars(transformer_zoo)},
}


def rows() -> list[tuple[str, str, str, str, str]]:
    """(library, their call, our call, their number, our number) of every line of a table."""
    page = PAGE.read_text(encoding="utf-8")
    tables = re.findall(HEADER + r"((?:\|.*\n)+)", page)
    lines = [(library, line) for library, body in tables for line in body.splitlines()]
    # nothing else on the page looks like a row of a table
    assert len(lines) + 2 * len(tables) == len(re.findall(r"^ *\|", page, flags=re.M))
    read = [(library, re.fullmatch(ROW, line)) for library, line in lines]
    assert all(match for _, match in read), [line for _, line in lines]
    return [(library, *match.groups()) for library, match in read if match]


def test_no_library_stands_there_that_is_not_run() -> None:
    headings = re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.M)
    assert headings == list(THERE) == list(dict.fromkeys(library for library, *_ in rows()))
    assert len(rows()) > 25


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # autodp divides inf by inf in its searches
@pytest.mark.parametrize(("library", "call", "ours", "there", "here"), rows())
def test_a_row(library: str, call: str, ours: str, there: str, here: str) -> None:
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    names = {
        **THERE[library],
        "space": space,
        "laplace": dp.m.make_laplace(*space, scale=10.0),
        "gaussian": dp.m.make_gaussian(*space, scale=5.0),
    }
    theirs = number(eval(call, names))
    found = number(eval(ours, {**names, **vars(exchange), "fa": fa}))
    # never above what they certify, and below it only by what a wider bound of theirs costs
    assert 0.9 * theirs <= found <= 1.001 * theirs
    assert [f"{theirs:.3g}", f"{found:.3g}"] == [there, here]


def number(value: object) -> float:
    """A number as it is; of anything that promises, its ε at δ = 10⁻⁶."""
    match value:
        case fa.Bracket():
            return value.upper
        case dp_event.ZCDpEvent():
            return float(rdp.RdpAccountant().compose(value).get_epsilon(DELTA))
        case dp_event.DpEvent():
            return float(pld.PLDAccountant().compose(value).get_epsilon(DELTA))
        case Mechanism():
            return float(value.get_approxDP(DELTA))
        case (epsilon, delta) if delta == DELTA:
            return float(epsilon)
        case list():
            return fa.compose(value).epsilon_at(DELTA).upper
        case _ if isinstance(value, fa.Guarantee):
            return fa.compose([value]).epsilon_at(DELTA).upper
        case _:
            made = getattr(value, "noise_multiplier", value)  # a calibrated event is its noise
            assert isinstance(made, float)
            assert math.isfinite(made)
            return made
