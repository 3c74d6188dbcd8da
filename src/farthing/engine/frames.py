"""An answer as a table of other libraries, and as a plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farthing.engine.queries import QuantileQuery
from farthing.errors import Unsupported

if TYPE_CHECKING:
    import pyarrow as pa

    from farthing.engine.answers import Answer


def records(answer: Answer) -> tuple[list[str], list[list[Any]]]:
    """Names of columns, and one list of cells per label."""
    names = list(answer.columns)
    rows = [list(label) if isinstance(label, tuple) else [label] for label in answer.labels]
    if isinstance(answer.query, QuantileQuery):
        names.append("rank_half_width")
        return names, [[*row, answer.half_width] for row in rows]
    if answer.counts is None:
        return names, rows
    number = "sum" if answer.query.kind == "sum" else "count"
    taken = set(names)
    names += [f"_{name}" if name in taken else name for name in (number, "lower", "upper")]
    intervals = answer.intervals or ()
    return names, [
        [*row, count, *interval]
        for row, count, interval in zip(rows, answer.counts, intervals, strict=True)
    ]


def arrow_table(answer: Answer) -> pa.Table:
    """One row for each label."""
    import pyarrow as pa

    names, rows = records(answer)
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table({name: list(column) for name, column in zip(names, columns, strict=True)})


def plot(answer: Answer, ax: Any) -> Any:
    """Horizontal bars, the first label on top."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise Unsupported("Matplotlib is not installed; install matplotlib") from None
    if answer.counts is None:
        raise Unsupported("there is nothing to plot: the answer has no counts")
    axes = ax if ax is not None else plt.subplots()[1]
    names = [label_text(label) for label in answer.labels]
    axes.barh(range(len(names)), answer.counts, xerr=answer.half_width, capsize=3)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel(f"{answer.query.kind}, {answer.confidence:.0%} intervals")
    return axes


def label_text(label: Any) -> str:
    """A label for people."""
    if isinstance(label, tuple):
        return ", ".join(label_text(part) for part in label)
    return "(missing)" if label is None else plain(str(label))


def plain(text: str) -> str:
    """Text without characters that command a terminal."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
