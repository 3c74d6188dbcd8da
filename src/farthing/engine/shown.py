"""Plans and answers in a terminal."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from farthing.composition.tariff import Price
from farthing.engine.frames import label_text, plain
from farthing.engine.queries import CountQuery, HistogramQuery, QuantileQuery, Query, TopKQuery

if TYPE_CHECKING:
    from farthing.engine.answers import Answer
    from farthing.engine.plans import Plan

_BAR = 24


def answer_table(answer: Answer) -> RenderableType:
    """A row per label with a bar whose shaded end is the interval."""
    if isinstance(answer.query, QuantileQuery):
        about = Text(
            f"{answer.value}   at {answer.confidence:.0%} within {number(answer.half_width or 0)} "
            f"ranks of the {answer.query.probability:g} quantile",
        )
        return Group(Text(title(answer.query), style="bold"), about, Text(paid(answer), "dim"))
    if not hasattr(answer.query, "by"):
        about = Text(f"{number(answer.value)} ± {number(answer.half_width or 0)}", "bold cyan")
        about += Text(f"   at {answer.confidence:.0%}")
        return Group(Text(title(answer.query), style="bold"), about, Text(paid(answer), "dim"))
    table = _table(answer.query)
    for name in answer.columns:
        table.add_column(Text(plain(name)), overflow="fold")
    if answer.counts is not None:
        table.add_column("count", justify="right")
        table.add_column(f"± at {answer.confidence:.0%}", justify="right")
        table.add_column("")
    top = max((float(c) for c in answer.counts or ()), default=0.0) + (answer.half_width or 0)
    for i, label in enumerate(answer.labels):
        parts = label if isinstance(label, tuple) else (label,)
        cells = [Text(label_text(part)) for part in parts]
        if answer.counts is not None:
            count, width = answer.counts[i], answer.half_width or 0
            cells += [Text(number(count)), Text(number(width)), bar(count, width, top)]
        table.add_row(*cells)
    notes = [Text(paid(answer), style="dim")]
    if limits(answer.query) is not None:
        notes.insert(0, Text(f"Each unit counts for {limits(answer.query)}.", style="dim"))
    if answer.stopped:
        notes.insert(0, Text("The list ended early: no further label stood out.", style="yellow"))
    return Group(table, *notes)


def plan_table(plan: Plan) -> RenderableType:
    """Price, accuracy and what remains."""
    table = _table(plan.query)
    table.add_column("plan")
    table.add_column("")
    bought = ", ".join(f"{times} × {name}" for name, times in plan.items.items())
    table.add_row("price", Text(f"{amount(plan.price)}  ({bought})"))
    table.add_row("remaining", Text(amount(plan.remaining)))
    table.add_row("fits", Text("yes", "green") if plan.fits else Text("no", "bold red"))
    if limits(plan.query) is not None:
        table.add_row("each unit", Text(f"counts for {limits(plan.query)}"))
    expectation = plan.expectation
    if expectation.counts is not None:
        counts = expectation.counts
        table.add_row(
            "each number",
            Text(
                f"± {number(counts.half_width)} at {counts.confidence:.0%}, "
                f"on average off by {number(counts.expected_error)}"
            ),
        )
    if expectation.selection is not None:
        chosen = expectation.selection
        unit = "ranks" if isinstance(plan.query, QuantileQuery) else "below the best that was left"
        table.add_row(
            "each selection",
            Text(f"within {number(chosen.half_width)} {unit} at {chosen.confidence:.0%}"),
        )
    if expectation.found_from is not None:
        table.add_row(
            "found",
            Text(f"labels {number(expectation.found_from)} above the largest count not looked at"),
        )
    if expectation.threshold is not None:
        table.add_row("threshold", Text(f"noisy counts below {expectation.threshold} are withheld"))
    if expectation.above_cutoff is not None:
        text = f"counts must be about {expectation.above_cutoff} above the largest not looked at"
        table.add_row("threshold", Text(text))
    if plan.known is not None:
        table.add_row("known", Text("asked before: running costs nothing", "green"))
    return table


def limits(query: Query) -> str | None:
    """How much of a unit counts, where that may surprise."""
    labels = getattr(query, "contribution_limit", None)
    rows = getattr(query, "per_key_limit", 1)
    if labels is None and rows == 1:
        return None
    keys = "any number of labels" if labels is None else f"at most {_many(labels, 'label')}"
    return keys if rows == 1 else f"{keys}, with at most {_many(rows, 'row')} each"


def _table(query: Query) -> Table:
    return Table(title=Text(title(query)), title_justify="left", title_style="bold")


def as_text(thing: Answer | Plan) -> str:
    """What a terminal would show, without colours."""
    screen = Console(width=100, record=True, color_system=None, file=StringIO())
    screen.print(thing)
    return screen.export_text().rstrip("\n")


def title(query: Query) -> str:
    """A query in a few words."""
    match query:
        case TopKQuery():
            return plain(f"top {query.k} by {', '.join(query.by)}")
        case HistogramQuery():
            return plain(f"histogram by {', '.join(query.by)}")
        case CountQuery():
            return "count"
    return plain(f"{query.kind} of {query.column}")


def paid(answer: Answer) -> str:
    """The last line: price and what remains."""
    left = f"{amount(answer.remaining)} remaining"
    if answer.cached:
        return f"asked before: the earlier release, at no cost; {left}"
    return f"paid {amount(answer.price)}; {left}"


def amount(price: Price) -> str:
    """An amount of money."""
    units = f" and {_many(price.delta_units, 'δ unit')}" if price.delta_units else ""
    return f"{_many(price.farthings, 'farthing')}{units}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def number(value: float) -> str:
    """A number with thin spaces between thousands, with decimals only where they matter."""
    whole = float(value).is_integer() or abs(value) >= 1000
    return (f"{value:,.0f}" if whole else f"{value:,.2f}").replace(",", "\u202f")


def bar(count: float, half_width: float, top: float, truth: float | None = None) -> Text:
    """Solid up to the lower end of the interval, shaded up to the upper one; `truth` as a line."""
    if top <= 0:
        return Text("")

    def place(value: float) -> int:
        return round(_BAR * min(max(value / top, 0.0), 1.0))

    low, high = place(count - half_width), place(count + half_width)
    drawn = Text("█" * low, "cyan") + Text("▒" * max(high - low, 1), "cyan")
    if truth is None:
        return drawn
    at = max(place(truth) - 1, 0)
    drawn.pad_right(max(at + 1 - len(drawn), 0))
    return drawn[:at] + Text("│", "bold red") + drawn[at + 1 :]
