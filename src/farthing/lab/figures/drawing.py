"""What a figure is (curves of points, with titles and captions), drawn with Matplotlib, as files.

Every colour is dark enough for text on white and has a partner that is light enough on black. An
SVG carries both and follows the reader's preference; programs that ignore it show the light one.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, TypeVar

from farthing.composition.bounds import Bracket
from farthing.errors import InvalidInput
from farthing.optional import required
from farthing.whole_files import whole_file

#: name → (on light paper, on dark paper)
COLOURS = {
    "paper": ("#fffffe", "#14171c"),
    "text": ("#1d2330", "#e8eaee"),
    "quiet": ("#5d6672", "#a7b0bc"),
    "grid": ("#dfe2e8", "#303642"),
    "blue": ("#1f5fbf", "#7fb2ff"),
    "red": ("#b3372b", "#ff8f80"),
    "green": ("#22774a", "#6fd19b"),
    "orange": ("#a05600", "#f2b25c"),
    "violet": ("#6f42b0", "#c3a2ff"),
    "teal": ("#0d7280", "#5fd0de"),
    "grey": ("#616a77", "#a3acb9"),
}
WIDTH = 6.8  # inches, of every figure
HEIGHT = 3.1  # inches, of a row of panels
DOTS_PER_INCH = 160
SETTINGS = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "svg.fonttype": "none",  # texts stay texts: small, and found by a search
    "svg.hashsalt": "farthing",  # the same bytes every time
    "axes.linewidth": 0.6,
    "axes.unicode_minus": True,
    "lines.linewidth": 1.7,
}
Colours = Mapping[str, str]
X = TypeVar("X", int, float)
LABEL_SIZE = 8.0
_INCHES_PER_LETTER = 0.078
_LINE_INCHES = 0.15
_DASHES = {"line": "-", "dashes": (0, (5, 2)), "dots": (0, (1.2, 1.6))}
_MARKS = {"marks": "o", "crosses": "x"}
_HIGHEST = 1.06  # where labels end, in parts of the panel
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
HEAD = """\
# Figures

See every figure of the papers, and some of ours. `farthing figures OUT` draws them (Matplotlib
comes with `farthing[figures]`): as SVG for light and dark screens, as PNG for each, and the points
as CSV. `--only NAME` draws one. A bound is drawn at the upper side of its certified bracket.
[errata.md](errata.md) has the references, and says where a figure and its paper disagree.
"""


@dataclass(frozen=True, slots=True)
class Curve:
    """Points (x, y), and where it is known the interval from low to high around each of them.

    `shape` is line, dashes or dots, with a band from low to high; or marks or crosses, with bars.
    A semicolon in the name begins a new line of the label.
    """

    name: str
    ink: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    shape: str = "line"

    @staticmethod
    def of(
        name: str,
        ink: str,
        x: Sequence[X],
        value: Callable[[X], float | Bracket],
        shape: str = "line",
    ) -> Curve:
        """The value at every x; of brackets the upper side, which is charged, and both sides."""
        values = [value(one) for one in x]
        upper = tuple(at.upper if isinstance(at, Bracket) else at for at in values)
        lower = tuple(at.lower for at in values if isinstance(at, Bracket))
        return Curve(name, ink, tuple(x), upper, lower, upper if lower else (), shape)

    def at(self, x: float) -> float:
        """y at one of the points."""
        return self.y[self.x.index(x)]


@dataclass(frozen=True, slots=True)
class Axis:
    """What is measured, on which scale, from where to where; `words` stand below whole numbers."""

    name: str
    log: bool = False
    limits: tuple[float, float] | None = None
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves over one pair of axes."""

    title: str
    across: Axis
    up: Axis
    curves: tuple[Curve, ...]

    def curve(self, name: str) -> Curve:
        """The curve of that name."""
        return next(one for one in self.curves if one.name == name)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that can be computed. The title says what is seen, the caption what to look for."""

    name: str
    title: str
    caption: str
    panels: Callable[[], tuple[Panel, ...]]
    columns: int = 1


def figure(title: str, *, columns: int = 1) -> Callable[[Callable[[], tuple[Panel, ...]]], Figure]:
    """Makes a figure of a function that computes its panels; the docstring is the caption."""

    def made(panels: Callable[[], tuple[Panel, ...]]) -> Figure:
        caption = " ".join((panels.__doc__ or "").split())
        return Figure(panels.__name__.replace("_", "-"), title, caption, panels, columns)

    return made


def curves_of(
    x: Sequence[X], values: Callable[[X], Mapping[str, float]], looks: Mapping[str, tuple[str, str]]
) -> tuple[Curve, ...]:
    """A curve for each name in `looks`, with its ink and shape, out of the values at every x."""
    known = [values(one) for one in x]
    return tuple(
        Curve(name, ink, tuple(x), tuple(at[name] for at in known), shape=shape)
        for name, (ink, shape) in looks.items()
    )


def as_csv(panels: Sequence[Panel]) -> str:
    """One line per point."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(["panel", "curve", "x", "y", "low", "high"])
    for panel in panels:
        for curve in panel.curves:
            blank = ("",) * len(curve.x)
            columns = (curve.x, curve.y, curve.low or blank, curve.high or blank)
            for numbers in zip(*columns, strict=True):
                shown = [one if isinstance(one, str) else f"{one:.8g}" for one in numbers]
                lines.writerow([panel.title, curve.name, *shown])
    return out.getvalue()


def dark_rules() -> str:
    """Style rules that give everything in a light colour its dark partner."""
    rules = [
        f'[style*="{what}: {light}"]{{{what}:{dark} !important}}'
        for light, dark in COLOURS.values()
        for what in ("fill", "stroke")
    ]
    return "@media (prefers-color-scheme: dark){" + "".join(rules) + "}"


def as_svg(figure: Figure, panels: Sequence[Panel]) -> str:
    """The figure as SVG, for light and dark; the same text whenever it is drawn."""
    out = io.StringIO()
    _draw(figure, panels, out, dark=False, format="svg", metadata={"Date": None, "Creator": None})
    head, mark, body = out.getvalue().partition("<svg ")
    opening, _, rest = body.partition(">")
    told = f"<title>{escape(figure.title)}</title><desc>{escape(figure.caption)}</desc>"
    return f'{head}{mark}role="img" {opening}>\n{told}\n<style>{dark_rules()}</style>{rest}'


def as_png(figure: Figure, panels: Sequence[Panel], *, dark: bool) -> bytes:
    """The figure as PNG, on light or on dark paper."""
    out = io.BytesIO()
    _draw(figure, panels, out, dark=dark, format="png", metadata={"Software": None})
    return out.getvalue()


def _draw(
    figure: Figure, panels: Sequence[Panel], out: io.IOBase, *, dark: bool, **how: object
) -> None:
    colours = {name: pair[dark] for name, pair in COLOURS.items()}
    with required("matplotlib").rc_context(SETTINGS):
        rows = math.ceil(len(panels) / figure.columns)
        height = 0.35 + rows * HEIGHT
        drawn = required("matplotlib.figure").Figure(
            figsize=(WIDTH, height), dpi=DOTS_PER_INCH, facecolor=colours["paper"]
        )
        title = drawn.text(0.1 / WIDTH, 1 - 0.1 / height, figure.title, color=colours["text"])
        title.set(va="top", fontsize=10.5, fontweight="bold")
        label_inches = max(_label_inches(panel) for panel in panels)
        wide = WIDTH / figure.columns
        for place, panel in enumerate(panels):
            row, column = divmod(place, figure.columns)
            left = column * wide + 0.62
            bottom = (rows - 1 - row) * HEIGHT + (0.85 if panel.across.words else 0.5)
            top = (rows - row) * HEIGHT - (0.3 if panel.title else 0.1)
            size = wide - 0.62 - max(0.2, label_inches), top - bottom
            axes = drawn.add_axes(
                (left / WIDTH, bottom / height, size[0] / WIDTH, size[1] / height)
            )
            _panel(axes, panel, colours, size[1])
        drawn.savefig(out, facecolor=colours["paper"], **how)


def _panel(axes: Any, panel: Panel, colours: Colours, inches: float) -> None:
    axes.set_facecolor("none")
    axes.set_title(panel.title, loc="left", fontsize=9, color=colours["text"])
    axes.grid(visible=True, color=colours["grid"], linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(color=colours["quiet"], labelcolor=colours["quiet"], labelsize=8, width=0.6)
    for side, spine in axes.spines.items():
        spine.set(visible=side in ("left", "bottom"), color=colours["quiet"])
    for curve in panel.curves:
        _curve(axes, curve, colours[curve.ink])
    _axis(axes, axes.xaxis, "x", panel.across, colours)
    _axis(axes, axes.yaxis, "y", panel.up, colours)
    if len(panel.curves) > 1:
        _labels(axes, panel, colours, inches)


def _curve(axes: Any, curve: Curve, colour: str) -> None:
    if curve.shape in _MARKS:
        axes.plot(curve.x, curve.y, _MARKS[curve.shape], color=colour, markersize=4.5, zorder=4)
        if curve.low:
            axes.vlines(curve.x, curve.low, curve.high, color=colour, linewidth=1.0, zorder=3)
        return
    if curve.low:
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.25, linewidth=0)
    axes.plot(curve.x, curve.y, color=colour, linestyle=_DASHES[curve.shape], zorder=3)


def _axis(axes: Any, ticks: Any, which: str, axis: Axis, colours: Colours) -> None:
    ticker = required("matplotlib.ticker")
    axes.set(**{f"{which}label": axis.name, f"{which}scale": "log" if axis.log else "linear"})
    ticks.label.set(color=colours["text"], fontsize=8.5)
    if axis.limits is not None:
        axes.set(**{f"{which}lim": axis.limits})
    else:
        axes.margins(**{which: 0.02})
    axes.autoscale_view()  # now, so that ticks and labels know where curves end
    if axis.words:
        ticks.set_ticks(range(1, len(axis.words) + 1), labels=axis.words, rotation=60, ha="right")
        ticks.set_tick_params(rotation=60, labelsize=7.5)
        for text in ticks.get_ticklabels():
            text.set(ha="right", rotation_mode="anchor")
    elif axis.log:
        low, high = ticks.get_view_interval()
        few = high < 100 * low
        ticks.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if few else (1,), numticks=12))
        ticks.set_major_formatter(ticker.FuncFormatter(lambda value, _: power_of_ten(value)))
        ticks.set_minor_locator(ticker.NullLocator())
    else:
        ticks.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))


def power_of_ten(value: float) -> str:
    """1000, 0.01, 10⁻⁶: as people write it."""
    if 1e-3 <= value < 1e5:
        return f"{value:g}"
    return "10" + f"{round(math.log10(value))}".translate(_SUPERSCRIPTS)


def _label_inches(panel: Panel) -> float:
    """How much room the labels need to the right of a panel."""
    if len(panel.curves) < 2:
        return 0.0
    lines = [line for curve in panel.curves for line in _lines(curve.name)]
    return 0.3 + _INCHES_PER_LETTER * max(len(line) for line in lines)


def _lines(name: str) -> list[str]:
    """A label in lines: what follows a semicolon stands on the next one."""
    return [part.strip() for part in name.split(";")]


def _labels(axes: Any, panel: Panel, colours: Colours, inches: float) -> None:
    """Each name beside the last point of its curve, moved apart where they would overlap."""
    lines = [len(_lines(curve.name)) for curve in panel.curves]
    ends = [_end(axes, curve) for curve in panel.curves]
    heights = [count * _LINE_INCHES / inches for count in lines]
    places = apart([end[1] for end in ends], heights)
    for curve, end, place in zip(panel.curves, ends, places, strict=True):
        axes.annotate(
            "\n".join(_lines(curve.name)),
            xy=end,
            xytext=(1.035, place),
            xycoords="axes fraction",
            color=colours[curve.ink],
            fontsize=LABEL_SIZE,
            va="center",
            linespacing=1.15,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colours[curve.ink],
                "linewidth": 0.5,
                "shrinkA": 1,
                "shrinkB": 2,
                "relpos": (0, 0.5),
            },
        )


def _end(axes: Any, curve: Curve) -> tuple[float, float]:
    """Where the last point of a curve is, in parts of the panel, as far as it is inside."""
    shown = axes.transAxes.inverted().transform(
        axes.transData.transform((curve.x[-1], curve.y[-1]))
    )
    return min(max(float(shown[0]), 0.0), 1.0), min(max(float(shown[1]), 0.0), 1.0)


def apart(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Centres near the wanted ones, so that boxes of these heights do not overlap.

    Boxes that would overlap are put together, and the whole stands where its members wanted to be
    on average.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    groups: list[tuple[list[int], float]] = []  # members from below, and where the lowest begins
    for one in order:
        members, start = [one], wanted[one] - heights[one] / 2
        while groups and groups[-1][1] + sum(heights[i] for i in groups[-1][0]) > start:
            members = groups.pop()[0] + members
            start = _start(members, wanted, heights)
        groups.append((members, start))
    middles = [0.0] * len(wanted)
    for members, start in groups:
        for one in members:
            middles[one] = start + heights[one] / 2
            start += heights[one]
    return middles


def _start(members: Sequence[int], wanted: Sequence[float], heights: Sequence[float]) -> float:
    """The start that is best on average for all members, not far outside the panel."""
    below, total = 0.0, 0.0
    for one in members:
        total += wanted[one] - heights[one] / 2 - below
        below += heights[one]
    return max(min(total / len(members), _HIGHEST - below), 1 - _HIGHEST)


def write_figure(figure: Figure, folder: Path) -> None:
    """Writes NAME.csv, NAME.svg, NAME.png and NAME-dark.png, and makes the folder if needed."""
    panels = figure.panels()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for suffix, dark in ((".png", False), ("-dark.png", True)):
            picture = as_png(figure, panels, dark=dark)
            (folder / f"{figure.name}{suffix}").write_bytes(picture)
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror or error}") from None
    for suffix, text in ((".csv", as_csv(panels)), (".svg", as_svg(figure, panels))):
        with whole_file(folder / f"{figure.name}{suffix}") as file:
            file.write(text)


def as_markdown(figures: Iterable[Figure], *, folder: str, head: str = HEAD) -> str:
    """A page with the picture and caption of each figure; the pictures are in `folder`."""
    sections = [
        f"## {figure.name}\n\n"
        f"![{figure.title}]({folder}{figure.name}.svg)\n\n"
        f"{figure.caption} ([points]({folder}{figure.name}.csv))\n"
        for figure in figures
    ]
    return "\n".join([head, *sections])
