"""A figure as files: SVG, PNG for light and dark paper, and its points as CSV."""

from __future__ import annotations

from pathlib import Path

from farthing.errors import InvalidInput
from farthing.figures.drawing import as_png, as_svg
from farthing.figures.points import Figure, as_csv
from farthing.whole_files import whole_file


def write_figure(figure: Figure, folder: Path) -> None:
    """NAME.csv, NAME.svg, NAME.png and NAME-dark.png, in a folder that is made if need be."""
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
