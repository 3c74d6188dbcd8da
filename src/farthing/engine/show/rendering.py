"""Plans and answers in a terminal, and in a notebook as HTML and SVG by hand."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from io import StringIO
from typing import Any, TypeAlias

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from farthing.composition.tariffs.tariff import Price
from farthing.engine.show.sheet import (
    Sheet,
    amount,
    label_text,
    number,
    one_number,
    percent,
    whole,
    width,
)
from farthing.mechanisms import Expectation
from farthing.mechanisms.protocol import Interval
from farthing.wording import plain

_BAR = 24  # characters


def answer_table(sheet: Sheet) -> RenderableType:
    """A row per label with a bar whose shaded end is the interval; one number on its own."""
    notes = [Text(plain(note), style="dim") for note in (*sheet.notes, sheet.paid)]
    if sheet.single:
        value, level = one_number(sheet)
        line = Text(value, "bold cyan") + Text(f"   {level}", "default not bold")
        return Group(Text(plain(sheet.title), style="bold"), line, *notes)
    if not sheet.labels:
        return Group(Text(plain(sheet.title), style="bold"), Text(plain(sheet.nothing)), *notes)
    table = _titled(sheet.title)
    for name in sheet.headings:
        table.add_column(Text(plain(name)), overflow="fold")
    heading, errors = sheet.errors
    if sheet.numbers is not None:
        table.add_column(sheet.number, justify="right")
        table.add_column(heading, justify="right")
        table.add_column("")
    if sheet.units is not None:
        table.add_column("units", justify="right")
    intervals = sheet.intervals or ()
    top = max((high for _, high in intervals), default=0.0)
    for i, cells in enumerate(sheet.cells):
        row = [Text(label_text(cell)) for cell in cells]
        if sheet.numbers is not None:
            row += [Text(sheet.number_text(i)), Text(errors[i]), bar(intervals[i], top)]
        if sheet.units is not None:
            row.append(Text(number(sheet.units[i][0])))
        table.add_row(*row)
    return Group(table, *notes)


def answers_table(sheets: Mapping[str, Sheet]) -> RenderableType:
    """Several answers, each under its name."""
    parts = [
        (Text(plain(name), style="bold"), answer_table(sheet)) for name, sheet in sheets.items()
    ]
    return Group(*(part for pair in parts for part in (*pair, Text(""))))


def plan_table(title: str, lines: Iterable[tuple[str, str, str]]) -> RenderableType:
    """Price, accuracy and what remains: (what, text, style) a line."""
    table = _titled(title)
    table.add_column("plan")
    table.add_column("")
    for what, text, style in lines:
        table.add_row(Text(plain(what)), Text(plain(text), style))
    return table


def as_text(thing: RenderableType) -> str:
    """What a terminal would show, without colours."""
    screen = Console(width=100, record=True, color_system=None, file=StringIO())
    screen.print(thing)
    return screen.export_text().rstrip("\n")


def bar(interval: Interval, top: float, truth: float | None = None) -> Text:
    """Solid up to the lower end of the interval, shaded up to the upper one; `truth` as a line."""
    if top <= 0:
        return Text("")

    def place(value: float) -> int:
        return round(_BAR * min(max(value / top, 0.0), 1.0))

    low, high = map(place, interval)
    low = min(low, _BAR - 1)
    drawn = Text("█" * low, "cyan") + Text("▒" * max(high - low, 1), "cyan")
    if truth is None:
        return drawn
    at = max(place(truth) - 1, 0)
    drawn.pad_right(max(at + 1 - len(drawn), 0))
    return drawn[:at] + Text("│", "bold red") + drawn[at + 1 :]


def _titled(title: str) -> Table:
    return Table(title=Text(plain(title)), title_justify="left", title_style="bold")


MOST_BARS = 40
_LEFT, _WIDTH, _RIGHT, _ROW, _THICK = 190, 420, 110, 24, 14
_LETTERS = 26


def answer_html(sheet: Sheet) -> str:
    """One self-contained fragment that follows the colours of the page around it."""
    parts = [f"<strong>{marked(sheet.title)}</strong>"]
    if sheet.single:
        parts.append(escape(" ".join(one_number(sheet))))
    elif not sheet.labels:
        parts.append(escape(sheet.nothing))
    elif sheet.numbers is not None:
        names = [label_text(label) for label in sheet.labels]
        parts.append(_bar_chart(names, sheet))
        if len(names) > MOST_BARS:
            parts.append(f"and {len(names) - MOST_BARS} more")
        wide = "" if sheet.half_width is None else f" (± {width(sheet.half_width)})"
        whiskers = f"whiskers {percent(sheet.confidence)} intervals{wide}"
        if sheet.in_ranks:
            ranks = width(sheet.half_width or 0)
            whiskers = f"each at {percent(sheet.confidence)} within {ranks} ranks"
        parts.append(f"Bars are released numbers, {whiskers}.")
    else:
        rows = "".join(f"<li>{escape(label_text(label))}</li>" for label in sheet.labels)
        parts.append(f"<ol>{rows}</ol>")
    parts += map(escape, sheet.notes)
    parts.append(f"<small>{escape(sheet.paid)}</small>")
    body = "".join(part if part.startswith(("<svg", "<ol")) else f"<p>{part}</p>" for part in parts)
    return f'<div class="farthing">{body}</div>'


def plan_html(title: str, lines: Iterable[tuple[str, str, str]]) -> str:
    """Price, accuracy and what remains: (what, text, style of a terminal) a row."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(plain(what))}</th>'
        f'<td style="text-align:left">{marked(text)}</td></tr>'
        for what, text, _ in lines
    )
    head = f"<p><strong>{marked(title)}</strong></p>"
    return f'<div class="farthing">{head}<table>{rows}</table></div>'


def answers_html(sheets: Mapping[str, Sheet]) -> str:
    """Several answers, each under its name."""
    parts = (
        f"<h4>{escape(plain(name))}</h4>{answer_html(sheet)}" for name, sheet in sheets.items()
    )
    return f'<div class="farthing">{"".join(parts)}</div>'


def marked(text: str) -> str:
    """Text in HTML: escaped, and names in backquotes as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(plain(text)))


def _bar_chart(names: Sequence[str], sheet: Sheet) -> str:
    """Horizontal bars with whiskers."""
    names = names[:MOST_BARS]
    counts, intervals = (sheet.numbers or ())[:MOST_BARS], (sheet.intervals or ())[:MOST_BARS]
    low = min([0.0, *(low for low, _ in intervals)])
    span = max([0.0, *(high for _, high in intervals)]) - low or 1.0

    def x(value: float) -> float:
        return round(_LEFT + _WIDTH * (value - low) / span, 1)

    height, across = _ROW * len(names) + 8, _LEFT + _WIDTH + _RIGHT * (1 + bool(sheet.units))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} {height}" width="{across}" '
        'style="max-width:100%;height:auto" role="img" font-family="system-ui, sans-serif" '
        'font-size="13" fill="currentColor">'
    ]
    for i, (name, count) in enumerate(zip(names, counts, strict=True)):
        middle = 4 + _ROW * i + _ROW / 2
        start, end = sorted((x(0), x(count)))
        left, right = map(x, intervals[i])
        parts += [
            f'<text x="{_LEFT - 8}" y="{middle + 4.5}" text-anchor="end">'
            f"{escape(_short(name))}<title>{escape(name)}</title></text>",
            f'<rect x="{start}" y="{middle - _THICK / 2}" width="{round(end - start, 1)}" '
            f'height="{_THICK}" rx="2" fill="#2f7ed8" fill-opacity="0.75"/>',
            f'<path d="M{left} {middle}H{right}M{left} {middle - 4}v8M{right} {middle - 4}v8" '
            'stroke="currentColor" stroke-width="1.4" fill="none"/>',
            f'<text x="{max(right, end) + 8}" y="{middle + 4.5}">{sheet.number_text(i)}'
            f"{_units(sheet, i)}</text>",
        ]
    parts.append("</svg>")
    return "".join(parts)


def _units(sheet: Sheet, i: int) -> str:
    return "" if sheet.units is None else f" ({number(sheet.units[i][0])} units)"


def _short(name: str) -> str:
    """Both ends of a long name: many labels begin alike."""
    end = _LETTERS // 2
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - end - 1]}…{name[-end:]}"


#: What a line is about, what it says, and how it looks in a terminal.
Line: TypeAlias = tuple[str, str, str]
#: Whether enough remains.
FITS: Mapping[bool, Line] = {True: ("fits", "yes", "green"), False: ("fits", "no", "bold red")}
#: That nothing has to be paid.
KNOWN: Line = "known", "asked before: running costs nothing", "green"


def limit_lines(limits: Mapping[str, Any]) -> Iterator[Line]:
    """How a contribution limit is chosen: the price of the search, and of each limit."""
    first = limits["first"]
    yield "first", f"{first['caption']}: {amount(Price(**first['price']))}", ""
    for choice in limits["choices"]:
        noise = f"each number off by {number(choice['expected_error'])} on average"
        price = amount(Price(choice["farthings"], choice["delta_units"]))
        wide = f"± {width(choice['half_width'])}: {price} ({choice['item']})"
        yield f"at limit {choice['limit']}", f"{noise}, {wide}", ""
    if not limits["choices"]:
        wide = width(first["half_width"])
        yield "clipped", f"up to about {wide} rows, or sums of units, beyond each bound", ""
    if limits["may_lose_more"]:
        yield "beyond", "nothing larger is tried; if it would be better, the answer says so", ""


class ShownPlan(ABC):
    """A caption, and lines of which the first is the price."""

    __slots__ = ()

    @property
    @abstractmethod
    def caption(self) -> str:
        """What it is a plan for."""

    @abstractmethod
    def lines(self) -> Iterator[Line]:
        """Price, what remains, and what to expect, in words."""

    def __rich__(self) -> RenderableType:
        return plan_table(self.caption, self.lines())

    def __str__(self) -> str:
        return as_text(self.__rich__())

    def __repr__(self) -> str:
        _, price, _ = next(self.lines())
        return plain(f"<{type(self).__name__}: {self.caption}: {price}>")

    def _repr_html_(self) -> str:
        return plan_html(self.caption, self.lines())


def expectation_lines(
    expectation: Expectation, confidence: float, *, in_ranks: bool, times_rows: float | None
) -> Iterator[Line]:
    """A line for each thing that is known.

    `in_ranks`: selections are off by ranks. `times_rows`: the half-width of a number times the rows
    that it is made from.
    """
    level = percent(confidence)
    if expectation.counts is not None:
        counts = expectation.counts
        wide = f"± {width(counts.half_width)} at {percent(counts.confidence)}"
        yield "each number", f"{wide}, on average off by {number(counts.expected_error)}", ""
    if times_rows is not None:
        text = f"at most about ± {width(times_rows)}/n at {level}, where n rows count"
        yield "each number", text, ""
    if expectation.selection is not None:
        chosen, at = expectation.selection, percent(expectation.selection.confidence)
        if in_ranks:
            yield "each selection", f"within {width(chosen.half_width)} ranks at {at}", ""
        else:
            off = whole(chosen.half_width)
            text = f"its count is at most {off} below the best that was left, at {at}"
            yield "each selection", text, ""
    if expectation.told_apart is not None:
        gap = whole(expectation.told_apart)
        text = f"of two labels whose counts differ by {gap} the larger comes first, at {level}"
        yield "order", text, ""
    if expectation.found_from is not None:
        lead = whole(expectation.found_from)
        text = f"each label {lead} above the largest count that is not looked at, at {level}"
        yield "found", text, ""
    if expectation.threshold is not None:
        yield "threshold", f"noisy counts below {expectation.threshold} are withheld", ""
    if expectation.above_cutoff is not None:
        lead = number(expectation.above_cutoff)
        yield "threshold", f"counts must be about {lead} above the largest not looked at", ""
