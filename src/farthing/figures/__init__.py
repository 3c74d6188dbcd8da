"""Figures of the papers and of this library: first the points, then the drawing.

`FIGURES[name].panels()` gives the points and needs nothing; `as_svg` and `as_png` need Matplotlib,
which `farthing[figures]` brings.
"""

from farthing.figures import (
    beside_others,
    cr22_composition,
    cr22_mechanisms,
    cr22_noise,
    ddr20,
    our_bounds,
    smith25,
)
from farthing.figures.drawing import as_png, as_svg
from farthing.figures.page import as_markdown
from farthing.figures.points import Axis, Curve, Figure, Panel, as_csv
from farthing.figures.writing import write_figure

_ALL: tuple[Figure, ...] = (
    *ddr20.FIGURES,
    *cr22_composition.FIGURES,
    *cr22_noise.FIGURES,
    *cr22_mechanisms.FIGURES,
    *smith25.FIGURES,
    *our_bounds.FIGURES,
    *beside_others.FIGURES,
)
#: by name, in the order in which they are drawn
FIGURES = {figure.name: figure for figure in _ALL}

__all__ = [
    "FIGURES",
    "Axis",
    "Curve",
    "Figure",
    "Panel",
    "as_csv",
    "as_markdown",
    "as_png",
    "as_svg",
    "write_figure",
]
