"""docs/figures.md and the pictures beside it are what the code gives."""

import csv
from pathlib import Path

import pytest

from farthing.lab.figures import FIGURES, as_csv, as_markdown, as_svg
from farthing.lab.figures.cr22 import mixture, two_orders
from farthing.lab.figures.ours import (
    adaptive_epsilon,
    any_way_to_spend,
    cost_of_adaptivity_at,
    sampled_epsilon_at,
)

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "figures"
#: Computed again in a few seconds; of the others some points are.
CHEAP = (
    "ddr20-1",
    "ddr20-2",
    "cr22-1",
    "cr22-4",
    "cr22-5",
    "cr22-7",
    "smith25-1",
    "square-root-growth",
    "false-alarms-and-misses",
)

Row = dict[str, str]


def rows(text: str) -> list[Row]:
    return list(csv.DictReader(text.splitlines()))


def committed(name: str) -> list[Row]:
    return rows((FOLDER / f"{name}.csv").read_text(encoding="utf-8"))


def at(name: str, curve: str, x: float) -> Row:
    found = [r for r in committed(name) if r["curve"] == curve and float(r["x"]) == x]
    assert len(found) == 1
    return found[0]


def test_the_page() -> None:
    page = (DOCS / "figures.md").read_text(encoding="utf-8")
    assert page == as_markdown(FIGURES.values(), folder="figures/")


@pytest.mark.parametrize("name", FIGURES)
def test_pictures_are_there_and_small(name: str) -> None:
    picture = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert f"<title>{FIGURES[name].title}</title>" in picture
    assert len(picture.encode()) < 100_000
    assert committed(name)


def test_nothing_else_is_there() -> None:
    wanted = {f"{name}{suffix}" for name in FIGURES for suffix in (".svg", ".csv")}
    assert {path.name for path in FOLDER.iterdir()} == wanted


@pytest.mark.parametrize("name", CHEAP)
def test_points_are_what_the_code_gives(name: str) -> None:
    panels = FIGURES[name].panels()
    old, new = committed(name), rows(as_csv(panels))
    assert len(old) == len(new)
    for one, other in zip(old, new, strict=True):
        for key in ("panel", "curve"):
            assert one[key] == other[key]
        for key in ("x", "y", "low", "high"):
            assert bool(one[key]) == bool(other[key])
            if one[key]:
                assert float(one[key]) == pytest.approx(float(other[key]), rel=1e-6, abs=1e-12)


def test_a_picture_has_the_points_of_its_table() -> None:
    """Drawn again from code, the picture is the committed one up to the version of Matplotlib."""
    figure = FIGURES["ddr20-2"]
    again = as_svg(figure, figure.panels())
    old = (FOLDER / "ddr20-2.svg").read_text(encoding="utf-8")
    paths = [[part for part in text.split('"') if part.startswith("M ")] for text in (old, again)]
    assert paths[0] == paths[1]


@pytest.mark.parametrize(("curve", "pure", "x"), [("m = 0", 0, 2.0), ("m = 50", 50, 3.4)])
def test_points_of_cr22_2(curve: str, pure: int, x: float) -> None:
    assert mixture(pure, x).upper == pytest.approx(float(at("cr22-2", curve, x)["y"]), rel=1e-6)


def test_points_of_cr22_3() -> None:
    first, between = two_orders(0.2)
    assert first.upper - between.upper == pytest.approx(
        float(at("cr22-3", "difference", 0.2)["y"]), rel=1e-3
    )
    assert between.upper / first.upper == pytest.approx(
        float(at("cr22-3", "ratio", 0.2)["y"]), rel=1e-6
    )


def test_points_of_the_adaptive_optimum() -> None:
    width = 100 * (adaptive_epsilon(0.1, 100).upper / adaptive_epsilon(0.1, 100).lower - 1)
    assert width == pytest.approx(
        float(at("adaptive-optimum", "our upper side", 100)["y"]), rel=0.01
    )


@pytest.mark.parametrize(("epsilon", "count"), [(0.01, 8), (0.1, 50), (1.0, 32)])
def test_points_of_the_cost_of_adaptivity(epsilon: float, count: int) -> None:
    point = at("cost-of-adaptivity", f"ε = {epsilon:g}", count)
    low, high = cost_of_adaptivity_at(epsilon, count)
    assert low == pytest.approx(float(point["low"]), rel=1e-3)
    assert high == pytest.approx(float(point["high"]), rel=1e-3)


def test_points_of_the_cost_of_choice() -> None:
    free, fixed = any_way_to_spend(100), adaptive_epsilon(0.1, 100, tolerance=2e-4)
    point = at("cost-of-choice", "tariff certificate", 100)
    assert 100 * (free.upper / fixed.lower - 1) == pytest.approx(float(point["high"]), rel=1e-2)


def test_points_of_questions_per_budget() -> None:
    assert float(at("questions-per-budget", "farthing; (adaptive optimum)", 4.0)["y"]) == 281


def test_points_of_dp_sgd() -> None:
    bracket = sampled_epsilon_at(1.0, 10)
    point = at("dp-sgd", "noise 1", 10)
    assert bracket.upper == pytest.approx(float(point["high"]), rel=1e-6)
    assert bracket.lower == pytest.approx(float(point["low"]), rel=1e-6)
