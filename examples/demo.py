"""`make demo`: from an empty folder to a private answer that anybody can check.

It makes up a million engagements of members with articles, signs a tariff, then plans, pays for and
runs a top-k with counts, and compares the answer with the truth, which only the demonstration may
look at. Then it prints the purse and the statement, and verifies the ledger from its first entry.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from farthing.engine import Answer, Session
from farthing.engine import open as open_data
from farthing.engine.show.rendering import bar
from farthing.engine.show.sheet import amount, number, percent
from farthing.lab.example_data import ROWS, UNIT, members_and_articles, write_engagements
from farthing.ledger import Ledger, markdown, odometer, statement, verify
from farthing.numerics.rounding import shown_up

_STYLE = """
:root { color-scheme: light dark; --ground: #fbfaf7; --ink: #1d2329; --soft: #5b6570;
  --line: #dfdcd3; --bar: #2f6fb5; --truth: #c2410c; }
@media (prefers-color-scheme: dark) { :root { --ground: #14181d; --ink: #e8e6e1; --soft: #9aa4af;
  --line: #2c333b; --bar: #4f93dd; --truth: #ff8a4c; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 2.5rem 1.25rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
p { color: var(--soft); margin: .5rem 0 1.25rem; }
.costs { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .75rem;
  margin: 1.25rem 0; padding: 0; }
.costs div { border: 1px solid var(--line); border-radius: .5rem; padding: .7rem .9rem; }
.costs dt { color: var(--soft); font-size: .85rem; }
.costs dd { margin: 0; font-size: 1.1rem; font-variant-numeric: tabular-nums; }
.row { display: grid; grid-template-columns: minmax(5rem, 9rem) 1fr 4rem; gap: .75rem;
  align-items: center; padding: .3rem 0; }
.name { overflow-wrap: anywhere; }
.count { text-align: right; font-variant-numeric: tabular-nums; }
.track { position: relative; height: 1rem; }
.track * { position: absolute; display: block; }
.bar { left: 0; height: 100%; border-radius: 2px; background: var(--bar); }
.between { top: 50%; height: 2px; margin-top: -1px; background: var(--ink); }
.between::before, .between::after { content: ""; position: absolute; top: -6px; width: 2px;
  height: 14px; background: var(--ink); }
.between::before { left: 0; } .between::after { right: 0; }
.truth { top: 50%; width: 6px; height: 6px; margin: -3px 0 0 -3px; border-radius: 50%;
  background: var(--truth); }
@media (max-width: 34rem) {
  main { padding: 1.5rem 1rem; }
  .row { grid-template-columns: 1fr auto; row-gap: .15rem; padding: .45rem 0; }
  .track { grid-row: 2; grid-column: 1 / -1; }
}
"""

WHERE = {"country": "NO", "seniority": "director"}
DELTA = 1e-6
EPSILON = 3.0
CONSOLE = Console(highlight=False)


@dataclass(frozen=True, slots=True)
class ReleasedRow:
    """One label: what was released, between which numbers, and the truth."""

    name: str
    count: float
    between: tuple[float, float]
    truth: float


def demo_page(
    title: str, words: str, costs: Sequence[tuple[str, str]], rows: Sequence[ReleasedRow]
) -> str:
    """A self-contained HTML page."""
    top = max([1.0, *(max(row.between[1], row.truth) for row in rows)])
    told = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in costs)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>farthing: {escape(title)}</title>\n<style>{_STYLE}</style>\n"
        f"<main>\n<h1>{escape(title)}</h1>\n<p>{escape(words)}</p>\n"
        f'<dl class="costs">{told}</dl>\n{"".join(_drawn(row, top) for row in rows)}</main>\n'
        "</html>\n"
    )


def _drawn(row: ReleasedRow, top: float) -> str:
    def place(value: float) -> float:
        return round(100 * min(max(value / top, 0.0), 1.0), 2)

    low, high = map(place, row.between)
    said = f"{row.name}: released {number(row.count)}, truth {number(row.truth)}"
    return (
        f'<div class="row" role="img" aria-label="{escape(said)}">'
        f'<span class="name">{escape(row.name)}</span>'
        f'<span class="track"><i class="bar" style="width:{place(row.count)}%"></i>'
        f'<i class="between" style="left:{low}%;width:{round(high - low, 2)}%"></i>'
        f'<i class="truth" style="left:{place(row.truth)}%"></i></span>'
        f'<span class="count">{number(row.count)}</span></div>\n'
    )


def main() -> None:
    """The whole demonstration, in under a minute."""
    folder = Path(tempfile.mkdtemp(prefix="farthing-demo-"))
    started = time.monotonic()
    members, articles = members_and_articles(ROWS)
    with step(f"{ROWS:,} engagements of {members:,} members with {articles:,} articles"):
        write_engagements(folder / "events.parquet", ROWS)
    with step(f"a budget of ε = {EPSILON:g} at δ = {DELTA:g}, made into a tariff and proved"):
        data = open_data(
            folder / "events.parquet",
            unit=UNIT,
            ledger=folder / "budget.db",
            epsilon=EPSILON,
            delta=DELTA,
            owner="data team",
            analyst="ann",
        )
    say(
        f"  However it is spent, everything released is ({EPSILON:g}, {DELTA:g})-differentially "
        "private for each member.\n"
    )
    question = data.top_k("article", k=10, where=WHERE, counts=True)
    CONSOLE.print(question.plan())
    with step("paid for and run"):
        answer = question.run()
    truth = exact(folder / "events.parquet", answer.labels)
    CONSOLE.print(beside(answer, truth))
    page = folder / "top-10.html"
    page.write_text(page_of(folder, answer, truth), encoding="utf-8")
    say("  One interval in twenty may miss: │ is the truth, ▒ where the interval says it is.")
    say(f"  The same as a picture: {page}")
    say(f"  Once more, {question.run().paid}\n")
    report(data, folder)
    data.shut()
    say(f"\nDone in {time.monotonic() - started:.0f} s. Everything is in {folder}")


def exact(path: Path, labels: tuple[Any, ...]) -> dict[Any, int]:
    """What only the owner may see."""
    import duckdb

    conditions = " AND ".join(f"{name} = '{value}'" for name, value in WHERE.items())
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"SELECT article, count(DISTINCT member_id) FROM '{path}' WHERE {conditions} "
            "GROUP BY article"
        ).fetchall()
    counts = dict(rows)
    return {label: counts[label] for label in labels}


def beside(answer: Answer, truth: dict[Any, int]) -> Table:
    """Truth and release with error bars, and whether each interval holds."""
    table = Table(title="Released beside the truth", title_justify="left", title_style="bold")
    heading, errors = answer.sheet.errors
    for name in ("article", "truth", "released", heading, "", ""):
        table.add_column(name, justify="right" if name else "left")
    intervals = answer.intervals or ()
    top = max(*(high for _, high in intervals), *truth.values())
    released = zip(answer.labels, answer.counts or (), intervals, errors, strict=True)
    for label, count, (low, high), error in released:
        inside = low <= truth[label] <= high
        table.add_row(
            str(label),
            number(truth[label]),
            number(count),
            error,
            bar((low, high), top, truth[label]),
            Text("inside", "green") if inside else Text("missed", "yellow"),
        )
    return table


def page_of(folder: Path, answer: Answer, truth: dict[Any, int]) -> str:
    """The page with the picture, and the cost in farthings and in ε."""
    with Ledger.open(folder / "budget.db", upgrade=False) as ledger:
        so_far = odometer(ledger.reader(), "events", delta=DELTA)
    costs = (
        ("this answer", amount(answer.price)),
        ("everything so far", f"ε ≤ {shown_up(so_far.epsilon, digits=3)}"),
        ("everything, ever", f"ε ≤ {EPSILON:g}"),
    )
    words = (
        "Bars are what was released, whiskers the "
        f"{percent(answer.confidence)} intervals. Dots are the truth: no part of the release. "
        f"Every ε is for one member, at δ = {DELTA:g}."
    )
    released = zip(answer.labels, answer.counts or (), answer.intervals or (), strict=True)
    rows = [ReleasedRow(str(label), n, ends, truth[label]) for label, n, ends in released]
    return demo_page("What directors in Norway read", words, costs, rows)


def report(data: Session, folder: Path) -> None:
    """Prints the purse, the statement, and the check of the ledger."""
    left, purse = data.remaining(), data.purse()
    say(f"[bold]Purse of ann[/bold]: {left.farthings} of {purse.farthings} farthings left")
    with Ledger.open(folder / "budget.db", upgrade=False) as ledger:
        with step("the statement of the dataset"):
            text = markdown(statement(ledger.reader(), data.name, delta=DELTA))
        with step("every entry and every certificate checked"):
            checked = verify(ledger.reader(), prove=True)[0]
    (folder / "statement.md").write_text(text, encoding="utf-8")
    for line in text.splitlines():
        if line.startswith(("- Unit", "- Neighbouring", "ε ≤", "Cap")):
            say("  " + line.removeprefix("- ").replace("\\", ""))
    say(f"  The whole statement: {folder / 'statement.md'}")
    say(f"  {checked.entries} entries, head {checked.head[:16]}…: verified")


@contextmanager
def step(what: str) -> Iterator[None]:
    """One line for one step, with the time it took."""
    start = time.monotonic()
    with CONSOLE.status(what):
        yield
    CONSOLE.print(f"[green]✓[/green] {what}  [dim]{time.monotonic() - start:.1f} s[/dim]")


def say(text: str) -> None:
    """A line."""
    CONSOLE.print(text, soft_wrap=True)


if __name__ == "__main__":
    main()
