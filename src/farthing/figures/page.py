"""The page that shows the figures, each with what to see in it."""

from __future__ import annotations

from collections.abc import Iterable

from farthing.figures.points import Figure

HEAD = """\
# Figures

Every figure of the papers, and some of ours, drawn by `farthing figures OUT` (Matplotlib comes with
`farthing[figures]`): as SVG for light and dark screens, as PNG for each of them, and the points as
CSV. `--only NAME` draws one. What is drawn as a bound is the upper side of a certified bracket.
References are those of [errata.md](errata.md), which says where a figure and its words disagree.
"""


def as_markdown(figures: Iterable[Figure], *, folder: str, head: str = HEAD) -> str:
    """Picture, which has the title, and caption of each; the pictures lie in `folder`."""
    sections = [
        f"## {figure.name}\n\n"
        f"![{figure.title}]({folder}{figure.name}.svg)\n\n"
        f"{figure.caption} ([points]({folder}{figure.name}.csv))\n"
        for figure in figures
    ]
    return "\n".join([head, *sections])
