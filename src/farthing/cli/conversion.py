"""`farthing convert`: the same list in the words of every definition that covers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer
from rich.table import Table

import farthing as fa
from farthing.cli import options
from farthing.cli.output import console, patience, print_json
from farthing.guarantees.notation import parse_item
from farthing.numerics.rounding import shown_up

Units = Annotated[int, typer.Option("--units", help="For groups of so many units together.")]


def convert(
    items: options.ItemTexts,
    delta: options.Delta = 1e-6,
    units: Units = 1,
    tolerance: options.Tolerance = 1e-3,
    as_json: options.AsJson = False,
) -> None:
    """What everything together is as pure, zero-concentrated, Gaussian and (ε, δ)-DP."""
    parsed = [parse_item(item) for item in items]
    grouped = [(fa.group_privacy(guarantee, units), count) for guarantee, count in parsed]
    composition = fa.compose(grouped, tolerance=tolerance)
    rows: dict[str, tuple[str, Callable[[], float]]] = {
        "epsilon": ("ε of pure DP", lambda: composition.epsilon_at(0.0).upper),
        "rho": ("ρ of zero-concentrated DP", composition.rho),
        "mu": ("μ of Gaussian DP", composition.mu),
        "epsilon_at_delta": (f"ε at δ = {delta}", lambda: composition.epsilon_at(delta).upper),
    }
    with patience("composing"):
        found = {name: _number(read) for name, (_, read) in rows.items()}
    if as_json:
        print_json({**found, "items": items, "delta": delta, "units": units})
        return
    group = "" if units == 1 else f" for groups of {units}"
    table = Table("as", "at most", title=" ".join(items) + group)
    for name, (words, _) in rows.items():
        table.add_row(words, "none" if found[name] is None else shown_up(found[name]))
    console().print(table)


def _number(read: Callable[[], float]) -> float | None:
    """None where a definition does not cover the list."""
    try:
        return read()
    except (fa.Unsupported, fa.Unattainable):
        return None
