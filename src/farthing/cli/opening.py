"""The table and the purse: what every command needs that asks about data."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from farthing.cli import options
from farthing.cli.output import patience
from farthing.engine.local import open as open_session
from farthing.engine.session import Session

BUDGET, DATA = "The budget", "The table"

Source = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Parquet, CSV, a DuckDB or SQLite file, or postgresql://…; a,b for several as one.",
        show_default=False,
    ),
]


def option(flag: str, words: str, panel: str, **more: Any) -> Any:
    """An option in a panel of the help."""
    return typer.Option(flag, help=words, rich_help_panel=panel, **more)


@dataclass(frozen=True)
class Opening:
    """Where the data and the budget are, and who asks; its fields are options."""

    ledger: options.LedgerBeside = None
    budget_epsilon: Annotated[
        float | None, option("--epsilon", "A new budget: what everything may cost.", BUDGET)
    ] = None
    budget_delta: Annotated[
        float | None, option("--delta", "A new budget: the chance that it fails.", BUDGET)
    ] = None
    unit: Annotated[
        str | None, option("--unit", "With a new budget: the column that says whose row.", BUDGET)
    ] = None
    analyst: Annotated[str, option("--analyst", "Whose purse pays.", BUDGET)] = "analyst"
    dataset: Annotated[
        str | None, option("--dataset", "The dataset's name in the ledger.", DATA)
    ] = None
    table: Annotated[
        str | None, option("--table", "The table in a database; a,b for several.", DATA)
    ] = None
    spark: Annotated[
        str | None, option("--spark", "Run on Spark: sc://host:port or local[N].", DATA)
    ] = None
    log: Annotated[
        Path | None,
        option(
            "--log",
            "Append what the engine says to this file; it may quote data.",
            DATA,
            envvar="FARTHING_LOG",
        ),
    ] = None

    def open(self, source: str, *, plan_only: bool = False) -> Session:
        """The table and the purse; for a plan alone nothing is signed or written."""
        if self.log is not None:
            handler = logging.FileHandler(self.log, encoding="utf-8", delay=True)
            logging.getLogger("farthing.engine").addHandler(handler)
        with patience("opening"):
            return open_session(
                options.several(source),
                ledger=self.ledger,
                epsilon=self.budget_epsilon,
                delta=self.budget_delta,
                unit=self.unit,
                analyst=self.analyst,
                dataset=self.dataset,
                table=options.several(self.table),
                spark=self.spark,
                plan_only=plan_only,
            )
