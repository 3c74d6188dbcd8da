"""What is shown of an answer, as plain data, and the words and numbers that are shared."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any

from farthing.composition.tariff import Price
from farthing.wording import many, plain

#: What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Sheet:
    """Labels, a number for each where there are numbers, and how to read them.

    `single`: one number, not a list. `in_ranks`: the one label is the value, and the half-width
    counts ranks around it.
    """

    title: str
    headings: tuple[str, ...]
    number: str
    labels: tuple[Any, ...]
    numbers: tuple[int | float, ...] | None
    half_width: float | None
    confidence: float
    single: bool
    in_ranks: bool
    notes: tuple[str, ...]
    paid: str

    @property
    def cells(self) -> tuple[tuple[Any, ...], ...]:
        """Each label as a row of cells, one for each heading."""
        return tuple(x if isinstance(x, tuple) else (x,) for x in self.labels)

    @property
    def records(self) -> tuple[list[str], list[list[Any]]]:
        """Names of columns, and one list of values for each label."""
        names = list(self.headings)
        rows = [list(cells) for cells in self.cells]
        if self.in_ranks:
            return [*names, "rank_half_width"], [[*row, self.half_width] for row in rows]
        if self.numbers is None:
            return names, rows
        taken, width = set(names), self.half_width or 0
        names += [f"_{n}" if n in taken else n for n in (self.number, "lower", "upper")]
        numbered = zip(rows, self.numbers, strict=True)
        return names, [[*row, n, n - width, n + width] for row, n in numbered]


def label_text(label: Any) -> str:
    """A label for people."""
    if isinstance(label, tuple):
        return ", ".join(label_text(part) for part in label)
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
    whole = float(value).is_integer() or abs(value) >= 1000
    step = Decimal(1) if whole else Decimal("0.01")
    return number(float(Decimal(value).quantize(step, rounding=ROUND_CEILING)))


def number(value: float) -> str:
    """A number with thin spaces between thousands, with decimals only where they matter."""
    whole = float(value).is_integer() or abs(value) >= 1000
    return (f"{value:,.0f}" if whole else f"{value:,.2f}").replace(",", "\u202f")
