"""`farthing owner add | schema`: what an owner decides about data, which needs the engine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farthing.cli import options
from farthing.cli.forms import command
from farthing.cli.ledger_options import Name, say
from farthing.cli.output import patience
from farthing.cli.owner import Delta, Epsilon, signable
from farthing.cli.owner_book import owner
from farthing.composition.tariffs.certificate import Certificate
from farthing.engine.epsilon_budget import ledger_beside
from farthing.errors import FarthingError
from farthing.ledger import Ledger, Limits
from farthing.numerics.rounding import shown_up
from farthing.schema import columns_to_toml, read_schema
from farthing.wording import many, plain

if TYPE_CHECKING:
    from farthing.engine import Desk
    from farthing.engine.sources.base import Source as Opened
    from farthing.engine.sources.misfits import Misfits

__all__ = ["owner"]

Source = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Parquet, CSV, a DuckDB or SQLite file, or postgresql://…; a,b for several as one.",
        show_default=False,
    ),
]
TableName = Annotated[
    str | None, typer.Option("--table", help="The table in a database; a,b for several.")
]
Spark = Annotated[
    str | None, typer.Option("--spark", help="Run on Spark: sc://host:port or local[N].")
]


@owner.command("schema")
def schema_command(source: Source, table: TableName = None, spark: Spark = None) -> None:
    """The schema that the engine's own types propose, as TOML to look at and change."""
    from farthing.engine import open_source

    with patience("opening"):
        found = open_source(options.several(source), table=options.several(table), spark=spark)
    proposal = found.proposed_schema()
    found.shut()
    typer.echo(columns_to_toml(proposal.columns), nl=False)
    for name, kind in proposal.left_out:
        typer.echo(f"# {plain(name)} is {plain(kind)}, which no question can use")


@command(owner, "add")
@dataclass(frozen=True)
class Add:
    """Add data with a schema and a budget; creates the ledger if it is not there.

    Then the rows are compared with the schema, for your eyes alone: how many values of each column
    do not parse, lie outside the bounds, or are not declared.
    """

    source: Source
    unit: Annotated[str, typer.Option("--unit", help="The column that says whose row it is.")]
    where: options.LedgerBeside = None
    epsilon: Epsilon = None
    delta: Delta = None
    tariff: Annotated[
        Path | None,
        typer.Option("--tariff", help="Instead: put this tariff or certificate in force."),
    ] = None
    name: Annotated[str | None, typer.Option("--name", help="The dataset's name.")] = None
    schema: Annotated[
        Path | None, typer.Option("--schema", help="Declared columns in TOML; else proposed.")
    ] = None
    keys: Annotated[
        int | None, typer.Option("--contribution-limit", help="Labels of a unit that may count.")
    ] = None
    rows: Annotated[
        int | None, typer.Option("--per-key-limit", help="Rows of a unit and label that may count.")
    ] = None
    version: Annotated[
        str, typer.Option("--version", help="Which state of the rows this is; live for none.")
    ] = "1"
    beside: Annotated[
        str | None, typer.Option("--beside", help="A dataset on the same data, to share with.")
    ] = None
    by: Annotated[str, typer.Option("--owner", help="Who answers for the data.")] = "owner"
    table: TableName = None
    spark: Spark = None
    as_json: options.AsJson = False

    def run(self) -> None:
        """Open, declare, sign, and say what was declared."""
        from farthing.engine import Declaration, Desk, open_source

        declared = Declaration(
            unit=self.unit,
            schema=None if self.schema is None else read_schema(self.schema),
            limits=Limits(contribution_limit=self.keys, per_key_limit=self.rows),
            version=None if self.version == "live" else self.version,
        )
        with patience("opening"):
            source = open_source(
                options.several(self.source),
                table=options.several(self.table),
                spark=self.spark,
            )
        try:
            certificate = None
            if (self.tariff, self.epsilon, self.delta) != (None, None, None):
                declared.require_possible(source)  # a budget takes seconds to prove
                certificate = signable(self.tariff, self.epsilon, self.delta)
            where = self.where or ledger_beside(source, self.name)
            with Desk.open(where, owner=self.by) as desk:
                with patience("adding"):
                    name = self.name or source.name
                    if desk.is_described(name):
                        dataset = desk.add(source, declared, name=name, beside=self.beside)
                    else:
                        dataset = desk.describe(source, declared, name, beside=self.beside)
                    if certificate is not None:
                        desk.sign(dataset.name, certificate)
                with patience("comparing the rows with the schema"):
                    misfits = _misfits(desk, source, dataset.name)
        finally:
            source.shut()
        columns = [] if dataset.schema is None else dataset.schema.to_json()
        say(
            self.as_json,
            {
                "dataset": dataset.name,
                "version": dataset.version,
                "columns": columns,
                "ledger": os.fspath(where),
                "misfits": None if misfits is None else [one.to_json() for one in misfits],
            },
            f"{dataset.name}: version {dataset.version or 'live'}, "
            + ", ".join(f"{column['name']} {column['kind']}" for column in columns)
            + ("" if certificate is None else f"\n{_budget(certificate)}")
            + ("" if self.where else f"\nThe budget is kept in {where}.")
            + "".join(f"\n{plain(one.in_words())}" for one in misfits or ())
            + ("\nThe rows could not be compared with the schema." if misfits is None else ""),
        )


def _misfits(desk: Desk, source: Opened, name: str) -> tuple[Misfits, ...] | None:
    """What is not as declared; None if the engine failed: the data is added all the same."""
    try:
        return desk.misfits(source, name)
    except FarthingError:
        return None


@command(owner, "relocate")
@dataclass(frozen=True)
class Relocate:
    """Say that data moved: it is at DATA now, and its budget goes on.

    The place where it was stays known: a copy that was left there gets no budget of its own.
    """

    name: Name
    source: Source
    where: options.LedgerAt
    table: TableName = None
    spark: Spark = None
    as_json: options.AsJson = False

    def run(self) -> None:
        """Open the data in its new place, and write where it is."""
        from farthing.engine import Desk, open_source

        with patience("opening"):
            source = open_source(
                options.several(self.source), table=options.several(self.table), spark=self.spark
            )
        try:
            with Desk(Ledger.open(self.where, upgrade=False)) as desk:
                desk.relocate(self.name, source)
        finally:
            source.shut()
        say(
            self.as_json,
            {"dataset": self.name, "location": source.location},
            f"{self.name} is at {source.location} now; its budget goes on.",
        )


def _budget(certificate: Certificate) -> str:
    """What was signed, in words."""
    tariff = certificate.tariff
    held = f"{many(tariff.farthings, 'farthing')} and {many(tariff.delta_units, 'δ unit')}"
    proved = ", ".join(
        f"ε = {shown_up(bracket.upper, digits=3)} at δ = {delta:g}"
        for delta, bracket in certificate.epsilons
    )
    return f"{held} to grant: however they are spent, everything released is within {proved}."
