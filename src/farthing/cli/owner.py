"""`farthing owner …` and `farthing tokens …`: what the owner of the data decides.

Most commands follow from operations.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import options
from farthing.cli.forms import (
    AtLedger,
    Spark,
    TableName,
    add_operations,
    at_ledger,
    command,
    field_option,
)
from farthing.cli.forms import Source as Data
from farthing.cli.ledger import history_table
from farthing.cli.options import AnyName, Name, console, patience, print_json, say, warn
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.prices import large_delta
from farthing.engine import Declaration, Desk, open_source
from farthing.engine.desk.budgets import proved
from farthing.engine.desk.data import ledger_beside
from farthing.engine.desk.operations import Office, Operation
from farthing.engine.sources.base import Source
from farthing.errors import FarthingError
from farthing.ledger import Ledger, Limits
from farthing.numerics.rounding import shown_up
from farthing.schema import columns_to_toml, read_schema
from farthing.wording import many, plain

owner = typer.Typer(
    name="owner",
    help="Decide about a budget: add data, sign tariffs, grant and revoke purses, move the book.",
    no_args_is_help=True,
)

#: How a day is written.
_DAY = {"formats": ["%Y-%m-%d"], "metavar": "YYYY-MM-DD", "show_default": False}


@contextmanager
def _opened(data: str, table: str | None, spark: str | None) -> Iterator[Source]:
    with patience("opening"):
        source = open_source(options.several(data), table=options.several(table), spark=spark)
    try:
        yield source
    finally:
        source.shut()


@owner.command("schema")
def schema_command(data: Data, table: TableName = None, spark: Spark = None) -> None:
    """The schema that the engine's own types propose, as TOML to check and change."""
    with _opened(data, table, spark) as source:
        proposal = source.proposed_schema()
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

    data: Data
    unit: Annotated[str | None, field_option("unit")] = None
    where: options.LedgerBeside = None
    epsilon: Annotated[float | None, field_option("epsilon")] = None
    delta: Annotated[float | None, field_option("delta")] = None
    tariff: Annotated[
        Path | None,
        typer.Option("--tariff", help="Instead: put this tariff or certificate in force."),
    ] = None
    name: Annotated[str | None, typer.Option("--name", help="The dataset's name.")] = None
    schema: Annotated[
        Path | None, typer.Option("--schema", help="Declared columns in TOML; else proposed.")
    ] = None
    contribution_limit: Annotated[int | None, field_option("contribution_limit")] = None
    per_key_limit: Annotated[int | None, field_option("per_key_limit")] = None
    version: Annotated[
        str, typer.Option("--version", help="The version of the rows; live: they may change.")
    ] = "1"
    beside: Annotated[str | None, field_option("beside")] = None
    owner: Annotated[str, field_option("owner")] = "owner"
    table: TableName = None
    spark: Spark = None
    as_json: options.AsJson = False

    def run(self) -> None:
        """Open, declare, sign, and say what was declared."""
        declared = Declaration(
            unit=self.unit,
            schema=None if self.schema is None else read_schema(self.schema),
            limits=Limits(self.contribution_limit, self.per_key_limit),
            version=None if self.version == "live" else self.version,
        )
        certificate = misfits = None
        with _opened(self.data, self.table, self.spark) as source:
            if (self.tariff, self.epsilon, self.delta) != (None, None, None):
                declared.require_possible(source)  # a budget takes seconds to prove
                with patience("proving the certificate"):
                    certificate = proved(self.tariff, None, self.epsilon, self.delta)
                warn(large_delta(certificate))
            where = self.where or ledger_beside(source, self.name)
            with Desk.open(where, owner=self.owner) as desk:
                with patience("adding"):
                    name = self.name or source.name
                    add = desk.add if desk.is_described(name) else desk.describe
                    dataset = add(source, declared, name=name, beside=self.beside)
                    if certificate is not None:
                        desk.sign(dataset.name, certificate)
                with patience("comparing the rows with the schema"):
                    try:
                        misfits = desk.misfits(source, dataset.name)
                    except FarthingError:  # the data is added all the same
                        misfits = None
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
            + (f"\nUnit of privacy: {dataset.protects}." if dataset.rows_are_units else "")
            + ("" if certificate is None else f"\n{_budget(certificate)}")
            + ("" if self.where else f"\nThe budget is kept in {where}.")
            + "".join(f"\n{plain(one.in_words())}" for one in misfits or ())
            + ("\nThe rows could not be compared with the schema." if misfits is None else ""),
        )


def _budget(certificate: Certificate) -> str:
    """What was signed, in words."""
    tariff = certificate.tariff
    held = f"{many(tariff.farthings, 'farthing')} and {many(tariff.delta_units, 'δ unit')}"
    proven = ", ".join(
        f"ε = {shown_up(bracket.upper, digits=3)} at δ = {delta:g}"
        for delta, bracket in certificate.epsilons
    )
    return f"{held} to grant: however they are spent, everything released is within {proven}."


add_operations(owner, AtLedger, at_ledger)


@owner.command("relocate")
def relocate_command(
    name: Name,
    data: Data,
    where: options.LedgerAt,
    table: TableName = None,
    spark: Spark = None,
    as_json: options.AsJson = False,
) -> None:
    """Declare that data moved: it is at DATA now, and its budget goes on.

    The place where it was stays known: a copy that was left there gets no budget of its own.
    """
    with (
        _opened(data, table, spark) as source,
        Desk(Ledger.open(where, upgrade=False)) as desk,
    ):
        desk.relocate(name, source)
    say(
        as_json,
        {"dataset": name, "location": source.location},
        f"{name} is at {source.location} now; its budget goes on.",
    )


@owner.command("history")
def history_command(
    where: options.LedgerAt,
    name: AnyName = None,
    analyst: Annotated[
        str | None, typer.Option("--analyst", help="Only this one.", show_default=False)
    ] = None,
    since: Annotated[
        datetime | None, typer.Option("--since", help="From this day on (UTC).", **_DAY)
    ] = None,
    until: Annotated[
        datetime | None, typer.Option("--until", help="Up to this day (UTC).", **_DAY)
    ] = None,
    values: Annotated[
        bool, typer.Option("--values", help="Also what was released to them; the owner's alone.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Who asked what, when, for how much, and of which version of the rows."""
    first = None if since is None else since.replace(tzinfo=UTC)
    end = None if until is None else until.replace(tzinfo=UTC) + timedelta(days=1)
    with Desk(Ledger.open(where, upgrade=False)) as desk, patience("reading"):
        asked = [
            one
            for dataset in ([name] if name is not None else desk.ledger.reader().datasets())
            for one in desk.history(dataset, analyst, first, end, values)
        ]
    if as_json:
        print_json({"dataset": name, "asked": asked})
    elif asked:
        console().print(history_table(sorted(asked, key=lambda one: one["time"]), values=values))
    else:
        say(False, {}, "nothing was asked" + ("" if name is None else f" of {name}"))


tokens = typer.Typer(
    name="tokens", help="Who may use the service: mint, list, withdraw.", no_args_is_help=True
)


@dataclass(frozen=True)
class AtService:
    """Which service."""

    config: Annotated[
        Path,
        typer.Option("--config", "-c", help="The service's farthing.toml.", show_default=False),
    ]


@contextmanager
def _at_service(_: Operation, config: Path) -> Iterator[Office]:
    from farthing.server.access import AccessStore, StoredTokens  # the service may not be installed
    from farthing.server.settings import read_settings

    store = AccessStore(read_settings(config).access)
    try:
        yield Office(None, access=StoredTokens(store))
    finally:
        store.shut()


add_operations(tokens, AtService, _at_service)
