"""What is shown of an answer: plain data, tables of other libraries, formatted numbers."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any

from farthing.composition.tariffs.tariff import Price
from farthing.errors import Unsupported
from farthing.mechanisms.protocol import Interval
from farthing.wording import THIN, many, plain

if TYPE_CHECKING:
    import pyarrow as pa

#: What a total says instead of a label.
ALL = "(all)"
#: The most decimals that are shown.
_MOST_DECIMALS = 12
#: What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Sheet:
    """Labels, a number for each where there are numbers, and how to read them.

    `numbers` are what people see, `drawn` what was released; tables have the latter. `intervals`
    has one for each number; `half_width` where all of them are number ± that. `units`: how many
    units each label has, and its interval, where that was bought. `single`: one number, not a
    list. `in_ranks`: the half-width counts `ranks`; of a single one the label is the value.
    `nothing`: what is said where there are no labels.
    """

    title: str
    headings: tuple[str, ...]
    number: str
    labels: tuple[Any, ...]
    numbers: tuple[int | float, ...] | None
    drawn: tuple[int | float, ...] | None
    half_width: float | None
    intervals: tuple[Interval, ...] | None
    units: tuple[tuple[int, float, float], ...] | None
    confidence: float
    single: bool
    in_ranks: bool
    ranks: str
    notes: tuple[str, ...]
    paid: str
    nothing: str = "Nothing stood out enough to be released."

    def picked(self, places: Sequence[int], note: str) -> Sheet:
        """These labels alone, with a note about the others."""

        def at(values: tuple[Any, ...] | None) -> Any:
            return None if values is None else tuple(values[place] for place in places)

        names = ("labels", "numbers", "drawn", "intervals", "units")
        kept = {name: at(getattr(self, name)) for name in names}
        nothing = "No label has enough rows to say anything."
        return replace(self, **kept, notes=(*self.notes, note), nothing=nothing)

    @property
    def cells(self) -> tuple[tuple[Any, ...], ...]:
        """Each label as a row of cells, one for each heading; a sub-total is of all others."""
        return self._rows(ALL)

    def _rows(self, rest: str | None) -> tuple[tuple[Any, ...], ...]:
        rows = (label if isinstance(label, tuple) else (label,) for label in self.labels)
        return tuple((*row, *[rest] * (len(self.headings) - len(row))) for row in rows)

    @property
    def records(self) -> tuple[list[str], list[list[Any]]]:
        """Names of columns, and one list of values for each label."""
        columns: dict[str, Sequence[Any]] = {}
        if self.drawn is not None:
            columns[self.number] = self.drawn
        if self.in_ranks:
            columns["rank_half_width"] = [self.half_width] * len(self.labels)
        elif self.drawn is not None and self.intervals is not None:
            for i, end in enumerate(("lower", "upper")):
                columns[end] = [interval[i] for interval in self.intervals]
        if self.units is not None:
            for i, name in enumerate(("units", "units_lower", "units_upper")):
                columns[name] = [each[i] for each in self.units]
        taken = set(self.headings)
        names = [f"_{name}" if name in taken else name for name in columns]
        rows = zip(self._rows(None), *columns.values(), strict=True)
        return [*self.headings, *names], [[*cells, *values] for cells, *values in rows]

    @property
    def errors(self) -> tuple[str, tuple[str, ...]]:
        """What to write beside the numbers: a heading, and the error of each of them."""
        level, ends = percent(self.confidence), self.intervals or ()
        if self.in_ranks or self.half_width is not None:
            what = "ranks" if self.in_ranks else "±"
            return f"{what} at {level}", (width(self.half_width or 0),) * len(ends)
        return f"interval at {level}", tuple(map(between_text, ends))

    def number_text(self, i: int) -> str:
        """The number of one label, with the decimals that its interval gives a meaning."""
        assert self.numbers is not None
        alike = self.half_width is not None or self.intervals is None
        return number_within(self.numbers[i], None if alike else (self.intervals or ())[i])


def number_within(value: float, interval: Interval | None) -> str:
    """A number with the decimals that its interval gives a meaning."""
    return number(value) if interval is None else _written(value, _decimals_in(interval))


def arrow_table(names: list[str], rows: list[list[Any]]) -> pa.Table:
    """One row for each label."""
    import pyarrow as pa

    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table({name: list(column) for name, column in zip(names, columns, strict=True)})


def plot(sheet: Sheet, ax: Any) -> Any:
    """Horizontal bars, the first label on top."""
    plt = library("matplotlib.pyplot")
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


def library(module: str) -> Any:
    """A library of the reader's own; Unsupported if it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise Unsupported(f"{name} is not installed; install {name}") from None


def one_number(sheet: Sheet) -> tuple[str, str]:
    """The one number of an answer, and where the true one lies."""
    level = percent(sheet.confidence)
    if sheet.in_ranks:
        value, near = sheet.labels[0], width(sheet.half_width or 0)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        text = number(value) if is_number else label_text(value)
        return text, f"at {level} within {near} {sheet.ranks}"
    assert sheet.numbers is not None
    assert sheet.intervals is not None
    value = sheet.number_text(0)
    if sheet.half_width is None:
        return value, f"at {level} in {between_text(sheet.intervals[0])}"
    return f"{value} ± {width(sheet.half_width)}", f"at {level}"


def label_text(label: Any) -> str:
    """A label for people."""
    if isinstance(label, tuple):
        return ", ".join(label_text(part) for part in label) or ALL
    return "(missing)" if label is None else plain(str(label))


def spreadsheet_cell(value: Any) -> Any:
    """A cell that no spreadsheet runs as a formula and no terminal obeys."""
    if not isinstance(value, str):
        return value
    text = plain(value)
    first = unicodedata.normalize("NFKC", text).lstrip()
    return f"'{text}" if text.startswith(_FORMULA) or first.startswith(_FORMULA) else text


def amount(price: Price) -> str:
    """An amount of money."""
    units = f" and {many(price.delta_units, 'δ unit')}" if price.delta_units else ""
    return f"{many(price.farthings, 'farthing')}{units}"


def percent(level: float) -> str:
    """A probability in per cent, with all of its digits."""
    shown = f"{Decimal(repr(level)) * 100:f}"
    return f"{shown.rstrip('0').rstrip('.') if '.' in shown else shown}%"


def width(value: float) -> str:
    """A half-width: never shown smaller than it is."""
    return _rounded(value, _decimals_of(value), ROUND_CEILING)


def whole(value: float) -> str:
    """A distance between counts, which are whole numbers: never shown smaller than it is."""
    return _rounded(value, 0, ROUND_CEILING)


def between_text(interval: Interval) -> str:
    """An interval: never shown narrower than it is."""
    low, high = interval
    decimals = _decimals_in(interval)
    ends = _rounded(low, decimals, ROUND_FLOOR), _rounded(high, decimals, ROUND_CEILING)
    return " to ".join(ends)


def number(value: float) -> str:
    """A number with thin spaces between thousands, with decimals only where they matter."""
    return _written(value, _decimals_of(value))


def _decimals_of(value: float) -> int:
    """None for whole and large numbers, two for others, two digits of small ones."""
    if float(value).is_integer() or abs(value) >= 1000:
        return 0
    return max(2, _second_digit(value))


def _decimals_in(interval: Interval) -> int:
    """As many as tell the ends apart."""
    low, high = map(float, interval)
    if (low.is_integer() and high.is_integer()) or not low < high:
        return max(_decimals_of(low), _decimals_of(high))
    return max(0, _second_digit(high - low))


def _second_digit(value: float) -> int:
    """How many decimals show the second digit of a number."""
    return min(_MOST_DECIMALS, 1 - Decimal(value).adjusted())


def _written(value: float, decimals: int) -> str:
    return f"{value:,.{decimals}f}".replace(",", THIN)


def _rounded(value: float, decimals: int, rounding: str) -> str:
    step = Decimal(1).scaleb(-decimals)
    return _written(float(Decimal(str(value)).quantize(step, rounding=rounding)), decimals)
