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

#: by name, in the order in which they are drawn
FIGURES = {
    figure.name: figure
    for module in (ddr20_smith25, cr22, ours)
    for figure in vars(module).values()
    if isinstance(figure, Figure)
}

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
