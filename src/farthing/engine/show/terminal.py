"""Plans and answers in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from farthing.engine.show.sheet import NOTHING, Sheet, label_text, one_number
from farthing.mechanisms.protocol import Interval
from farthing.wording import plain

_BAR = 24


def answer_table(sheet: Sheet) -> RenderableType:
    """A row per label with a bar whose shaded end is the interval; one number on its own."""
    notes = [Text(plain(note), style="dim") for note in (*sheet.notes, sheet.paid)]
    if sheet.single:
        return Group(Text(plain(sheet.title), style="bold"), _one(sheet), *notes)
    if not sheet.labels:
        return Group(Text(plain(sheet.title), style="bold"), Text(NOTHING), *notes)
    table = _titled(sheet.title)
    for name in sheet.headings:
        table.add_column(Text(plain(name)), overflow="fold")
    heading, errors = sheet.errors
    if sheet.numbers is not None:
        table.add_column(sheet.number, justify="right")
        table.add_column(heading, justify="right")
        table.add_column("")
    intervals = sheet.intervals or ()
    top = max((high for _, high in intervals), default=0.0)
    for i, cells in enumerate(sheet.cells):
        row = [Text(label_text(cell)) for cell in cells]
        if sheet.numbers is not None:
            row += [Text(sheet.number_text(i)), Text(errors[i]), bar(intervals[i], top)]
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


def _one(sheet: Sheet) -> Text:
    value, level = one_number(sheet)
    return Text(value, "bold cyan") + Text(f"   {level}", "default not bold")


def _titled(title: str) -> Table:
    return Table(title=Text(plain(title)), title_justify="left", title_style="bold")
