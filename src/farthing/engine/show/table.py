"""Several released numbers for each label as one table: what a SELECT gives."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from farthing.engine.show import sheet
from farthing.engine.show.rendering import as_text, marked
from farthing.engine.show.sheet import ALL, between_text, label_text, number_within, percent
from farthing.mechanisms.protocol import Interval
from farthing.wording import many, plain

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

T = TypeVar("T")
NOTHING = "There is no row to show."

#: Names of columns, and one list of values for each row.
Records: TypeAlias = tuple[list[str], list[list[Any]]]


class Tabular(ABC):
    """What can be given to other libraries as a table."""

    __slots__ = ()

    @property
    @abstractmethod
    def records(self) -> Records:
        """Labels, numbers and the ends of their intervals."""

    def to_arrow(self) -> pa.Table:
        """Labels, numbers and intervals as an Arrow table."""
        return sheet.arrow_table(*self.records)

    def to_pandas(self) -> pd.DataFrame:
        """Labels, numbers and intervals as a pandas table."""
        sheet.library("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Labels, numbers and intervals as a Polars table."""
        frame: pl.DataFrame = sheet.library("polars").from_arrow(self.to_arrow())
        return frame


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One number of each label; None where it was not released. Numbers in ranks have no
    intervals."""

    name: str
    values: tuple[Any, ...]
    intervals: tuple[Interval | None, ...] | None


@dataclass(frozen=True, slots=True, repr=False)
class Table(Tabular):
    """Labels, and numbers for each of them: released ones, or computed from these.

    Each interval holds the true number with probability `confidence`. Without keys there is one row
    and its label is empty.
    """

    title: str
    headings: tuple[str, ...]
    labels: tuple[Any, ...]
    columns: tuple[TableColumn, ...]
    confidence: float
    notes: tuple[str, ...] = ()
    paid: str = ""

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        return self._column(name).values

    def _column(self, name: str | None) -> TableColumn:
        wanted = [column for column in self.columns if name in (None, column.name)]
        if len(wanted) != 1:
            names = ", ".join(column.name for column in self.columns)
            raise KeyError(f"the columns are {names}; got {name}")
        return wanted[0]

    @property
    def value(self) -> Any:
        """The only number."""
        return self._only(self._column(None).values)

    @property
    def interval(self) -> Interval | None:
        """Where the only true number lies."""
        return self._only(self._column(None).intervals or (None,))

    def _only(self, values: Sequence[T]) -> T:
        if len(values) != 1:
            raise ValueError(f"this table has {many(len(values), 'row')}; read labels and columns")
        return values[0]

    def cells(self, rest: str | None) -> list[list[Any]]:
        """Each label as a row of cells, one for each heading; a sub-total has `rest` in others."""
        parts = (label if isinstance(label, tuple) else (label,) for label in self.labels)
        return [[*row, *[rest] * (len(self.headings) - len(row))] for row in parts]

    @property
    def records(self) -> Records:
        names, rows = list(self.headings), self.cells(None)
        alone = len(self.columns) == 1
        for column in self.columns:
            ends = column.intervals or ()
            more = [f"{'' if alone else f'{column.name}_'}{end}" for end in ("lower", "upper")]
            for name in (column.name, *(more if ends else ())):
                names.append(f"_{name}" if name in names else name)
            for row, value in zip(rows, column.values, strict=True):
                row.append(value)
            for row, interval in zip(rows, ends, strict=bool(ends)):
                row.extend(interval or (None, None))
        return names, rows

    def to_json(self) -> dict[str, Any]:
        """Plain data: names, and rows of cells. An end that is not known is None."""
        names, rows = self.records
        return {
            "title": self.title,
            "columns": names,
            "keys": len(self.headings),
            "rows": [[_plain(cell) for cell in row] for row in rows],
            "confidence": self.confidence,
            "notes": list(self.notes),
        }

    def _texts(self) -> tuple[list[str], list[list[str]]]:
        """Headings and cells for people."""
        names = list(self.headings)
        rows = [list(map(label_text, cells)) for cells in self.cells(ALL)]
        for column in self.columns:
            names.append(column.name)
            names += [f"at {percent(self.confidence)}"] if column.intervals else []
            ends = column.intervals or (None,) * len(rows)
            for row, value, interval in zip(rows, column.values, ends, strict=True):
                row.append("–" if value is None else _number(value, interval))
                if column.intervals:
                    row.append("" if interval is None else _between(interval))
        return names, rows

    def __rich__(self) -> RenderableType:
        notes = [Text(plain(note), style="dim") for note in (*self.notes, self.paid) if note]
        if not self.labels:
            return Group(Text(NOTHING), *notes)
        title = Text(plain(self.title)) if self.title else None
        table = RichTable(title=title, title_justify="left", title_style="bold")
        names, rows = self._texts()
        for i, name in enumerate(names):
            justify: Any = "left" if i < len(self.headings) else "right"
            table.add_column(Text(plain(name)), overflow="fold", justify=justify)
        for row in rows:
            table.add_row(*map(Text, row))
        return Group(table, *notes)

    def __str__(self) -> str:
        return as_text(self.__rich__())

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return plain(f"<Table: {names}: {many(len(self), 'row')}>")

    def _repr_html_(self) -> str:
        names, rows = self._texts()
        head = "".join(f"<th>{escape(plain(name))}</th>" for name in names)
        body = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in rows)
        told = f"<table><tr>{head}</tr>{body}</table>" if rows else f"<p>{NOTHING}</p>"
        notes = "".join(f"<p>{escape(plain(note))}</p>" for note in self.notes)
        paid = f"<small>{escape(self.paid)}</small>" if self.paid else ""
        title = f"<p><strong>{marked(self.title)}</strong></p>" if self.title else ""
        return f'<div class="farthing">{title}{told}{notes}{paid}</div>'


def _number(value: Any, interval: Interval | None) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return label_text(value)
    if interval is None:
        return number_within(value, None)
    low, high = interval  # what was drawn may be impossible: people see the nearest that is not
    known = all(map(math.isfinite, interval))
    return number_within(min(max(value, low), high), interval if known else None)


def _between(interval: Interval) -> str:
    if all(map(math.isfinite, interval)):
        return between_text(interval)
    low, high = interval
    if math.isfinite(low) or math.isfinite(high):
        end = low if math.isfinite(low) else high
        return f"at {'least' if math.isfinite(low) else 'most'} {number_within(end, None)}"
    return "anything"


def _plain(cell: Any) -> Any:
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    return cell if cell is None or isinstance(cell, bool | int | str) else str(cell)
