"""`farthing query top-k | histogram | count | quantile | sum`: private answers from a table."""

from __future__ import annotations

import csv
import json
import sys
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from farthing.cli import options
from farthing.cli.output import console, patience, print_json
from farthing.engine.data import Data, Question
from farthing.engine.data import open as open_data
from farthing.engine.frames import records
from farthing.errors import InvalidInput

query = typer.Typer(
    name="query",
    help="Private answers from a table: plan what they cost, then run them.",
    no_args_is_help=True,
)

Source = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Parquet, CSV, a DuckDB or SQLite file, or postgresql://…",
        show_default=False,
    ),
]
Unit = Annotated[
    str, typer.Option("--unit", help="The column that says whose row it is.", show_default=False)
]
LedgerAt = Annotated[
    str, typer.Option("--ledger", help="The ledger's file or address.", show_default=False)
]
By = Annotated[
    list[str],
    typer.Option("--by", help="A column of the key; repeat for several.", show_default=False),
]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", help="COLUMN=VALUE, or a filter in JSON; repeat for several."),
]
Category = Annotated[
    list[str] | None,
    typer.Option("--category", help="A label of a known domain; repeat for several."),
]
TariffFile = Annotated[
    Path | None, typer.Option("--tariff", help="Sign this tariff if none is in force (TOML).")
]
Farthings = Annotated[
    int | None, typer.Option("--farthings", help="Grant these if the analyst has no purse yet.")
]
Analyst = Annotated[str, typer.Option("--analyst", help="Whose purse pays.")]
DatasetName = Annotated[
    str | None, typer.Option("--dataset", help="The dataset's name in the ledger.")
]
TableName = Annotated[str | None, typer.Option("--table", help="The table in a database.")]
Spark = Annotated[
    str | None, typer.Option("--spark", help="Run on Spark: sc://host:port or local[N].")
]
Limit = Annotated[
    int | None, typer.Option("--contribution-limit", help="Labels per unit that count.")
]
PerKey = Annotated[int, typer.Option("--per-key-limit", help="Rows per unit and label that count.")]
Repeats = Annotated[int, typer.Option("--repeats", help="Draw counts this often and average.")]
Column = Annotated[
    str, typer.Option("--column", help="The column with the numbers.", show_default=False)
]
Lower = Annotated[float, typer.Option("--lower", help="Smallest value.", show_default=False)]
Upper = Annotated[float, typer.Option("--upper", help="Largest value.", show_default=False)]
Places = Annotated[int, typer.Option("--places", help="Decimal places that are kept.")]
OnlyPlan = Annotated[bool, typer.Option("--plan", help="Price and accuracy only; no row is read.")]
HalfWidth = Annotated[
    float | None, typer.Option("--half-width", help="Choose the cheapest way to ± this.")
]
Again = Annotated[bool, typer.Option("--again", help="Pay for a fresh release of a known answer.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print the answer as CSV.")]


@query.command("top-k")
def top_k_command(
    source: Source,
    unit: Unit,
    ledger: LedgerAt,
    by: By,
    k: Annotated[int, typer.Option("-k", help="How many labels.")] = 10,
    category: Category = None,
    where: Where = None,
    counts: Annotated[bool, typer.Option("--counts/--no-counts", help="Count them too.")] = True,
    mechanism: Annotated[str, typer.Option("--mechanism", help="gumbel or noise.")] = "gumbel",
    contribution_limit: Limit = None,
    per_key_limit: PerKey = 1,
    repeats: Repeats = 1,
    tariff: TariffFile = None,
    farthings: Farthings = None,
    analyst: Analyst = "analyst",
    dataset: DatasetName = None,
    table: TableName = None,
    spark: Spark = None,
    plan: OnlyPlan = False,
    half_width: HalfWidth = None,
    again: Again = False,
    as_json: options.AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """The k most frequent labels, with counts."""
    with _open(source, unit, ledger, tariff, farthings, analyst, dataset, table, spark) as data:
        question = data.top_k(
            by,
            k,
            categories=_categories(data, by, category),
            where=_where(data, where),
            counts=counts,
            mechanism=mechanism,
            contribution_limit=contribution_limit,
            per_key_limit=per_key_limit,
            repeats=repeats,
        )
        _answer(question, plan, half_width, again, as_json, as_csv)


@query.command("histogram")
def histogram_command(
    source: Source,
    unit: Unit,
    ledger: LedgerAt,
    by: By,
    category: Category = None,
    where: Where = None,
    contribution_limit: Limit = 1,
    per_key_limit: PerKey = 1,
    repeats: Repeats = 1,
    tariff: TariffFile = None,
    farthings: Farthings = None,
    analyst: Analyst = "analyst",
    dataset: DatasetName = None,
    table: TableName = None,
    spark: Spark = None,
    plan: OnlyPlan = False,
    half_width: HalfWidth = None,
    again: Again = False,
    as_json: options.AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """A count for every label: of a known domain, or of those that stand out."""
    with _open(source, unit, ledger, tariff, farthings, analyst, dataset, table, spark) as data:
        question = data.histogram(
            by,
            categories=_categories(data, by, category),
            where=_where(data, where),
            contribution_limit=contribution_limit,
            per_key_limit=per_key_limit,
            repeats=repeats,
        )
        _answer(question, plan, half_width, again, as_json, as_csv)


@query.command("count")
def count_command(
    source: Source,
    unit: Unit,
    ledger: LedgerAt,
    where: Where = None,
    per_key_limit: PerKey = 1,
    repeats: Repeats = 1,
    tariff: TariffFile = None,
    farthings: Farthings = None,
    analyst: Analyst = "analyst",
    dataset: DatasetName = None,
    table: TableName = None,
    spark: Spark = None,
    plan: OnlyPlan = False,
    half_width: HalfWidth = None,
    again: Again = False,
    as_json: options.AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """How many units have a row that passes the filter."""
    with _open(source, unit, ledger, tariff, farthings, analyst, dataset, table, spark) as data:
        question = data.count(
            where=_where(data, where), per_key_limit=per_key_limit, repeats=repeats
        )
        _answer(question, plan, half_width, again, as_json, as_csv)


@query.command("quantile")
def quantile_command(
    source: Source,
    unit: Unit,
    ledger: LedgerAt,
    column: Column,
    lower: Lower,
    upper: Upper,
    probability: Annotated[float, typer.Option("--probability", help="Which quantile.")] = 0.5,
    places: Places = 0,
    where: Where = None,
    contribution_limit: Limit = 1,
    per_key_limit: PerKey = 1,
    tariff: TariffFile = None,
    farthings: Farthings = None,
    analyst: Analyst = "analyst",
    dataset: DatasetName = None,
    table: TableName = None,
    spark: Spark = None,
    plan: OnlyPlan = False,
    again: Again = False,
    as_json: options.AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """A value near a quantile of a numeric column."""
    with _open(source, unit, ledger, tariff, farthings, analyst, dataset, table, spark) as data:
        question = data.quantile(
            column,
            probability,
            lower=_whole(lower),
            upper=_whole(upper),
            places=places,
            where=_where(data, where),
            contribution_limit=contribution_limit,
            per_key_limit=per_key_limit,
        )
        _answer(question, plan, None, again, as_json, as_csv)


@query.command("sum")
def sum_command(
    source: Source,
    unit: Unit,
    ledger: LedgerAt,
    column: Column,
    lower: Lower,
    upper: Upper,
    places: Places = 0,
    where: Where = None,
    repeats: Repeats = 1,
    tariff: TariffFile = None,
    farthings: Farthings = None,
    analyst: Analyst = "analyst",
    dataset: DatasetName = None,
    table: TableName = None,
    spark: Spark = None,
    plan: OnlyPlan = False,
    half_width: HalfWidth = None,
    again: Again = False,
    as_json: options.AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """The sum of a numeric column, each unit's part moved between the bounds."""
    with _open(source, unit, ledger, tariff, farthings, analyst, dataset, table, spark) as data:
        question = data.sum(
            column,
            lower=_whole(lower),
            upper=_whole(upper),
            places=places,
            where=_where(data, where),
            repeats=repeats,
        )
        _answer(question, plan, half_width, again, as_json, as_csv)


def _open(
    source: str,
    unit: str,
    ledger: str,
    tariff: Path | None,
    farthings: int | None,
    analyst: str,
    dataset: str | None,
    table: str | None,
    spark: str | None,
) -> Data:
    with patience("opening"):
        return open_data(
            source,
            unit=unit,
            ledger=ledger,
            tariff=tariff,
            farthings=farthings,
            analyst=analyst,
            dataset=dataset,
            table=table,
            spark=spark,
        )


def _answer(
    question: Question,
    plan: bool,
    half_width: float | None,
    again: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    if plan:
        planned = question.plan(half_width=half_width)
        if as_json:
            print_json(planned.to_json())
        else:
            console().print(planned)
        return
    if half_width is not None:
        question = question.plan(half_width=half_width).question
    with patience("running"):
        answer = question.run(again=again)
    if as_json:
        left = answer.remaining
        print_json(
            {
                **answer.to_json(),
                "intervals": answer.intervals,
                "cached": answer.cached,
                "remaining": {"farthings": left.farthings, "delta_units": left.delta_units},
            }
        )
    elif as_csv:
        names, rows = records(answer)
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    else:
        console().print(answer)


def _where(data: Data, conditions: list[str] | None) -> dict[str, Any] | None:
    """JSON filters as they are; COLUMN=VALUE with the value read as the column's kind."""
    parts: list[Any] = []
    for text in conditions or ():
        if text.lstrip().startswith("{"):
            try:
                parts.append(json.loads(text))
            except json.JSONDecodeError:
                raise InvalidInput(
                    f"a filter in JSON must be one object, got {text!r:.60}"
                ) from None
            continue
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidInput(f"a filter must look like country=NO, got {text!r:.60}")
        parts.append({name: _read(data, name, value)})
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else {"all_of": parts}


def _categories(data: Data, by: list[str], given: list[str] | None) -> list[Any] | None:
    if given is None:
        return None
    if len(by) == 1:
        return [_read(data, by[0], text) for text in given]
    labels = []
    for text in given:
        parts = next(csv.reader([text]))
        if len(parts) != len(by):
            raise InvalidInput(f"a category of {len(by)} columns looks like a,b, got {text!r:.60}")
        labels.append(tuple(_read(data, n, part) for n, part in zip(by, parts, strict=True)))
    return labels


def _read(data: Data, name: str, text: str) -> Any:
    data.source.require_columns(frozenset((name,)))
    kind = data.source.kinds[name]
    try:
        match kind:
            case "integer":
                return int(text)
            case "real" | "decimal":
                return float(text)
            case "boolean":
                return {"true": True, "false": False}[text.lower()]
            case "date":
                return {"date": date.fromisoformat(text).isoformat()}
    except (ValueError, KeyError):
        raise InvalidInput(f"{name} is {kind}, got {text!r:.60}") from None
    return text


def _whole(number: float) -> int | float:
    return int(number) if number.is_integer() else number
