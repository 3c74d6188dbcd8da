"""`make demo`: a budget planned and compared, on a case a visitor knows.

A page shows, for each of a hundred towns, the newspaper most people read (a selection) and how
many people answered (a count). How much privacy does that cost, by every bound there is, and
how much would a budget afford?
"""

from __future__ import annotations

from rich.table import Table

import farthing as fa
from farthing.cli.output import console, patience

TOWNS = 100
SELECT, COUNT = fa.BoundedRange(0.1), fa.PureDP(0.1)
TARGET, DELTA = 5.0, 1e-6
HOW = {
    "none": "everything fixed in advance",
    "adaptive": "what to ask depends on earlier answers",
    "setwise": "also the order of selections and counts",
}


def main() -> None:
    """Print the plan."""
    screen = console()
    screen.print(
        f"\n[bold]{TOWNS} towns, the favourite newspaper of each and how many answered[/bold]: "
        f"{TOWNS} selections (br:0.1) and {TOWNS} counts (dp:0.1), δ = {DELTA:g}\n"
    )
    items: list[tuple[fa.Guarantee, int]] = [(COUNT, TOWNS), (SELECT, TOWNS)]
    table = Table(title="What it costs", show_lines=False)
    table.add_column("bound")
    columns = {}
    with patience("composing"):
        for adaptivity in HOW:
            table.add_column(f"{adaptivity}\n[dim]{HOW[adaptivity]}[/dim]", justify="right")
            columns[adaptivity] = fa.compose(items, adaptivity=adaptivity).bounds_at(DELTA)
    names = {name: None for bounds in columns.values() for name in bounds}
    best = {how: min(bounds.values(), key=lambda b: b.upper) for how, bounds in columns.items()}

    def cell(how: str, name: str) -> str:
        bound = columns[how].get(name)
        if bound is None:
            return "-"
        shown = f"{bound.upper:.4f}"
        return f"[bold green]{shown}[/bold green]" if bound is best[how] else shown

    def order(name: str) -> float:
        return min(bounds[name].upper for bounds in columns.values() if name in bounds)

    for name in sorted(names, key=order, reverse=True):
        table.add_row(name, *(cell(how, name) for how in HOW))
    screen.print(table)
    for how, bound in best.items():
        screen.print(
            f"{how:9} ε ∈ \\[{bound.lower:.5f}, {bound.upper:.5f}]  [dim]{bound.theorem}[/dim]"
        )

    screen.print(f"\n[bold]What a budget of ({TARGET:g}, {DELTA:g}) affords[/bold]")
    with patience("planning"):
        plain = fa.largest_count(COUNT, epsilon=TARGET, delta=DELTA)
        chosen = fa.largest_count(SELECT, epsilon=TARGET, delta=DELTA)
        each = fa.largest_epsilon(fa.BoundedRange, count=TOWNS, epsilon=TARGET, delta=DELTA)
    screen.print(f"  {plain:4} counts     dp:0.1")
    screen.print(
        f"  {chosen:4} selections br:0.1, chosen adaptively: {chosen / plain:.2f} × as many"
    )
    screen.print(f"  {TOWNS:4} selections could have ε = {each:.4f} each\n")


if __name__ == "__main__":
    main()
