"""Figures of the papers and of this library: first the points, then the drawing.

`FIGURES[name].panels()` gives the points; `as_svg` and `as_png` need Matplotlib, which
`farthing[figures]` installs.
"""

from farthing.lab.figures import cr22, ddr20_smith25, ours
from farthing.lab.figures.drawing import (
    Axis,
    Curve,
    Figure,
    Panel,
    as_csv,
    as_markdown,
    as_png,
    as_svg,
    write_figure,
)

_ALL: tuple[Figure, ...] = (
    *ddr20_smith25.DDR20,
    *cr22.FIGURES,
    *ddr20_smith25.SMITH25,
    *ours.FIGURES,
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
