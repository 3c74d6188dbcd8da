"""An answer as a table of other libraries, and as a plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farthing.engine.show.sheet import Sheet, label_text, percent
from farthing.errors import Unsupported

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


def arrow_table(sheet: Sheet) -> pa.Table:
    """One row for each label."""
    import pyarrow as pa

    names, rows = sheet.records
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table({name: list(column) for name, column in zip(names, columns, strict=True)})


def pandas_table(sheet: Sheet) -> pd.DataFrame:
    """The same for pandas."""
    try:
        import pandas  # noqa: F401 # only to say clearly what is missing
    except ImportError:
        raise Unsupported("pandas is not installed; install pandas") from None
    return arrow_table(sheet).to_pandas()


def polars_table(sheet: Sheet) -> pl.DataFrame:
    """The same for Polars."""
    try:
        import polars
    except ImportError:
        raise Unsupported("Polars is not installed; install polars") from None
    frame = polars.from_arrow(arrow_table(sheet))
    assert isinstance(frame, polars.DataFrame)
    return frame


def plot(sheet: Sheet, ax: Any) -> Any:
    """Horizontal bars, the first label on top."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise Unsupported("Matplotlib is not installed; install matplotlib") from None
    if sheet.numbers is None:
        raise Unsupported("there is nothing to plot: the answer has no counts")
    axes = ax if ax is not None else plt.subplots()[1]
    names = [label_text(label) for label in sheet.labels]
    ends = zip(sheet.numbers, sheet.intervals or (), strict=True)
    errors = [(n - low, high - n) for n, (low, high) in ends]
    axes.barh(range(len(names)), sheet.numbers, xerr=list(zip(*errors, strict=True)), capsize=3)
    # a label is text, not mathematics: $ and \ in it mean themselves
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel(f"{sheet.number}, {percent(sheet.confidence)} intervals")
    return axes
