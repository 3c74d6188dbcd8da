"""`make demo`: from nothing to a private answer that anybody can check.

A million engagements of members with articles are made up, a tariff is signed, a top-k with counts
is planned, paid for and run, and put beside the truth, which only this demonstration may look
at. Then the purse, the statement, and the book checked from its first entry.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

import farthing as fa
from farthing.cli.demo_page import ReleasedRow, demo_page
from farthing.cli.output import console, patience
from farthing.engine import Answer, Session
from farthing.engine.show.sheet import amount, number, percent
from farthing.engine.show.terminal import bar
from farthing.example_table import ROWS, UNIT, members_and_articles, write_engagements
from farthing.ledger import Ledger, markdown, odometer, statement, verify
from farthing.numerics.rounding import shown_up

WHERE = {"country": "NO", "seniority": "director"}
DELTA = 1e-6
EPSILON = 3.0


def main() -> None:
    """The whole way, under a minute."""
    folder = Path(tempfile.mkdtemp(prefix="farthing-demo-"))
    started = time.monotonic()
    members, articles = members_and_articles(ROWS)
    with step(f"{ROWS:,} engagements of {members:,} members with {articles:,} articles"):
        write_engagements(folder / "events.parquet", ROWS)
    with step(f"a budget of ε = {EPSILON:g} at δ = {DELTA:g}, made into a tariff and proved"):
        data = fa.open(
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
    console().print(question.plan())
    with step("paid for and run"):
        answer = question.run()
    truth = exact(folder / "events.parquet", answer.labels)
    console().print(beside(answer, truth))
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
    """The picture, and what it cost in farthings and in ε."""
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
    """The purse, the statement, and the book."""
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
    with patience(what):
        yield
    console().print(f"[green]✓[/green] {what}  [dim]{time.monotonic() - start:.1f} s[/dim]")


def say(text: str) -> None:
    """A line."""
    console().print(text, soft_wrap=True)


if __name__ == "__main__":
    main()
