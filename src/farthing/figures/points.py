"""What a figure shows, before anything is drawn: curves of points, and the words around them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from farthing.guarantees.bracket import Bracket


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


def bracketed_curve(
    name: str, ink: str, x: Sequence[float], brackets: Sequence[Bracket], shape: str = "line"
) -> Curve:
    """The upper sides, which are what is charged, with the brackets around them."""
    upper = tuple(bracket.upper for bracket in brackets)
    lower = tuple(bracket.lower for bracket in brackets)
    return Curve(name, ink, tuple(x), upper, lower, upper, shape)


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
