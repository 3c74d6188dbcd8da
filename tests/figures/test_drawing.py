"""How figures are drawn: for light and dark, the same each time, every label in its place."""

import csv
import io
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from farthing.cli.main import app
from farthing.lab.figures import FIGURES, Axis, Curve, Figure, Panel, as_csv, as_png, as_svg
from farthing.lab.figures.drawing import COLOURS, apart, dark_rules, power_of_ten

CURVES = (
    Curve("first; in two lines", "blue", (1, 2), (1, 10), (0.9, 9), (1.1, 11)),
    Curve('a "second", dotted', "red", (1, 2), (2, 3), shape="dots"),
    Curve("marks", "green", (1, 2), (3, 4), (2, 3), (4, 5), "marks"),
    Curve("crosses", "violet", (1, 2), (3, 4), shape="crosses"),
)
PANELS = (
    Panel("left", Axis("x"), Axis("y", log=True), CURVES),
    Panel("right", Axis("", words=("one", "two")), Axis("y"), CURVES[:1]),
)
FIGURE = Figure("small", "A title with < and &", "A caption.", lambda: PANELS, columns=2)


def luminance(colour: str) -> float:
    """Of the Web Content Accessibility Guidelines."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", sorted(set(COLOURS) - {"paper", "grid"}))
def test_every_ink_can_be_read_on_its_paper(name: str, dark: bool) -> None:
    light, deep = sorted((luminance(COLOURS[name][dark]), luminance(COLOURS["paper"][dark])))
    assert (deep + 0.05) / (light + 0.05) >= 4.5


def test_light_colours_are_told_apart() -> None:
    """A rule for dark paper finds its elements by the light colour."""
    assert len({light for light, _ in COLOURS.values()}) == len(COLOURS)


def test_svg() -> None:
    text = as_svg(FIGURE, PANELS)
    assert as_svg(FIGURE, PANELS) == text  # the same bytes
    root = ElementTree.fromstring(text)
    named = {one.tag.rpartition("}")[2]: one.text for one in root if one.text and one.text.strip()}
    assert named["title"] == FIGURE.title
    assert named["desc"] == FIGURE.caption
    assert named["style"] == dark_rules()
    words = {"".join(one.itertext()).strip() for one in root.iter() if one.tag.endswith("}text")}
    assert {"left", "right", "marks", "one", "two", FIGURE.title} <= words
    used = set(re.findall(r"#[0-9a-f]{6}", re.sub(r"<style>.*?</style>", "", text, flags=re.S)))
    assert used <= {light for light, _ in COLOURS.values()}  # so the rules reach everything


def test_png_for_both_papers() -> None:
    light, dark = (as_png(FIGURE, PANELS, dark=dark) for dark in (False, True))
    assert light.startswith(b"\x89PNG")
    assert dark.startswith(b"\x89PNG")
    assert light != dark


def test_csv() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(PANELS))))
    assert len(rows) == 10
    point = {"panel": "left", "curve": "first; in two lines", "x": "2", "y": "10"}
    assert rows[1] == {**point, "low": "9", "high": "11"}
    assert rows[2]["curve"] == 'a "second", dotted'
    assert rows[2]["low"] == ""


def test_labels_do_not_overlap() -> None:
    heights = [0.1, 0.2, 0.1, 0.1]
    found = apart([0.5, 0.52, 0.9, 0.5], heights)
    order = sorted(range(4), key=lambda i: found[i])
    for below, above in pairwise(order):
        assert found[above] - found[below] >= (heights[above] + heights[below]) / 2 - 1e-12
    assert found[2] == pytest.approx(0.9)  # alone: stays where its curve ends
    crowd = apart([1.0] * 5, [0.1] * 5)
    assert max(crowd) + 0.05 <= 1.06 + 1e-12


def test_numbers_on_logarithmic_axes() -> None:
    shown = [power_of_ten(value) for value in (1e-6, 0.001, 0.5, 1000.0, 1e6)]
    assert shown == ["10⁻⁶", "0.001", "0.5", "1000", "10⁶"]


def test_the_command_draws_one(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    done = CliRunner().invoke(app, ["figures", str(out), "--only", "ddr20-2"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("1/1  ddr20-2  (")
    files = {"ddr20-2.svg", "ddr20-2.png", "ddr20-2-dark.png", "ddr20-2.csv", "index.md"}
    assert {path.name for path in out.iterdir()} == files
    assert FIGURES["ddr20-2"].caption in (out / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["out", "--only", "ddr20-3"], "--only must be one of ddr20-1, "),
        (["taken/out", "--only", "ddr20-2"], "taken/out cannot be written: Not a directory"),
    ],
)
def test_mistakes_are_told(arguments: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "farthing", "figures", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"farthing: {said}")
    assert "Traceback" not in done.stderr
