"""`farthing query top-k | histogram | count | quantile | sum`: private answers from a table."""

from __future__ import annotations

import csv
import inspect
import json
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from farthing.cli import options
from farthing.cli.output import console, patience, print_json
from farthing.engine.answers import Answer
from farthing.engine.data import Data, Question
from farthing.engine.data import open as open_data
from farthing.engine.frames import records
from farthing.errors import InvalidInput

query = typer.Typer(
    name="query",
    help="Private answers from a table: plan what they cost, then run them.",
    no_args_is_help=True,
)

_POSITIONAL, _NOTHING = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
_BUDGET, _DATA, _RUN = "The budget", "The table", "Plan and run"

Source = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Parquet, CSV, a DuckDB or SQLite file, or postgresql://…",
        show_default=False,
    ),
]
Unit = Annotated[
    str,
    typer.Option(
        "--unit",
        help="The column that says whose row it is.",
        show_default=False,
        rich_help_panel=_DATA,
    ),
]
LedgerAt = Annotated[
    str,
    typer.Option(
        "--ledger",
        help="The ledger's file or address.",
        show_default=False,
        rich_help_panel=_BUDGET,
    ),
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
    Path | None,
    typer.Option(
        "--tariff", help="Sign this tariff if none is in force (TOML).", rich_help_panel=_BUDGET
    ),
]
Farthings = Annotated[
    int | None,
    typer.Option(
        "--farthings", help="Grant these if the analyst has no purse yet.", rich_help_panel=_BUDGET
    ),
]
Analyst = Annotated[
    str, typer.Option("--analyst", help="Whose purse pays.", rich_help_panel=_BUDGET)
]
DatasetName = Annotated[
    str | None,
    typer.Option("--dataset", help="The dataset's name in the ledger.", rich_help_panel=_DATA),
]
TableName = Annotated[
    str | None, typer.Option("--table", help="The table in a database.", rich_help_panel=_DATA)
]
Spark = Annotated[
    str | None,
    typer.Option(
        "--spark", help="Run on Spark: sc://host:port or local[N].", rich_help_panel=_DATA
    ),
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
SelectItem = Annotated[
    str | None, typer.Option("--select-item", help="The tariff's item that pays for selections.")
]
CountItem = Annotated[
    str | None, typer.Option("--count-item", help="The tariff's item that pays for counts.")
]
LeakItem = Annotated[
    str | None, typer.Option("--leak-item", help="The tariff's item that pays for the δ.")
]
LogFile = Annotated[
    Path | None,
    typer.Option(
        "--log",
        envvar="FARTHING_LOG",
        help="Append what the engine says to this file; it may quote data.",
        rich_help_panel=_RUN,
    ),
]
OnlyPlan = Annotated[
    bool,
    typer.Option("--plan", help="Price and accuracy only; no row is read.", rich_help_panel=_RUN),
]
HalfWidth = Annotated[
    float | None,
    typer.Option("--half-width", help="Choose the cheapest way to ± this.", rich_help_panel=_RUN),
]
Again = Annotated[
    bool,
    typer.Option(
        "--again", help="Pay for a fresh release of a known answer.", rich_help_panel=_RUN
    ),
]
AsCsv = Annotated[
    bool, typer.Option("--csv", help="Print the answer as CSV.", rich_help_panel=_RUN)
]


Candidates = Annotated[
    int | None, typer.Option("--candidates", help="Look only at this many of the largest counts.")
]
Asks = Callable[..., Question]


@dataclass(frozen=True)
class Common:
    """What every query is asked with; its fields are options of every command."""

    unit: Unit
    ledger: LedgerAt
    tariff: TariffFile = None
    farthings: Farthings = None
    analyst: Analyst = "analyst"
    dataset: DatasetName = None
    table: TableName = None
    spark: Spark = None
    plan: OnlyPlan = False
    half_width: HalfWidth = None
    again: Again = False
    as_json: options.AsJson = False
    as_csv: AsCsv = False
    log: LogFile = None

    def open(self, source: str) -> Data:
        """The table and the purse."""
        if self.log is not None:
            handler = logging.FileHandler(self.log, encoding="utf-8", delay=True)
            logging.getLogger("farthing").addHandler(handler)
        with patience("opening"):
            return open_data(
                source,
                unit=self.unit,
                ledger=self.ledger,
                tariff=self.tariff,
                farthings=self.farthings,
                analyst=self.analyst,
                dataset=self.dataset,
                table=self.table,
                spark=self.spark,
            )

    def answer(self, question: Question) -> None:
        """Plan it or run it, and print what came out."""
        if self.plan and self.as_csv:
            raise InvalidInput("a plan is printed as a table or, with --json, as JSON; not as CSV")
        if self.plan or self.half_width is not None:
            planned = question.plan(half_width=self.half_width)
            if self.plan:
                return print_json(planned.to_json()) if self.as_json else console().print(planned)
            question = planned.question
        with patience("running"):
            answer = question.run(again=self.again)
        if self.as_json:
            print_json(_everything(answer))
        elif self.as_csv:
            names, rows = records(answer)
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(names)
            writer.writerows(rows)
        else:
            console().print(answer)
        return None


def command(name: str) -> Callable[[Asks], Asks]:
    """A command from a function that makes a question, with the common options added to its own."""

    def register(ask: Asks) -> Asks:
        own = list(inspect.signature(ask, eval_str=True).parameters.values())[1:]
        shared = list(inspect.signature(Common, eval_str=True).parameters.values())
        data = inspect.Parameter("source", _POSITIONAL, annotation=Source)

        @wraps(ask)
        def run(source: str, **given: Any) -> None:
            common = Common(**{p.name: given.pop(p.name) for p in shared})
            with common.open(source) as opened:
                common.answer(ask(opened, **given))

        needed_first = sorted(
            (*own, *shared), key=lambda p: p.default is not inspect.Parameter.empty
        )
        parameters = [data, *(p.replace(kind=_POSITIONAL) for p in needed_first)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # read by Typer
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        query.command(name)(run)
        return ask

    return register


@command("top-k")
def top_k(
    data: Data,
    by: By,
    k: Annotated[int, typer.Option("-k", help="How many labels.")] = 10,
    category: Category = None,
    where: Where = None,
    counts: Annotated[bool, typer.Option("--counts/--no-counts", help="Count them too.")] = True,
    mechanism: Annotated[
        str, typer.Option("--mechanism", help="gumbel, noise or truncated.")
    ] = "gumbel",
    candidates: Candidates = None,
    contribution_limit: Limit = None,
    per_key_limit: PerKey = 1,
    use_order: Annotated[
        bool, typer.Option("--use-order", help="Fit Gaussian counts to the order found.")
    ] = False,
    repeats: Repeats = 1,
    select_item: SelectItem = None,
    count_item: CountItem = None,
    leak_item: LeakItem = None,
) -> Question:
    """The k most frequent labels, with counts."""
    return data.top_k(
        by,
        k,
        categories=_categories(data, by, category),
        where=_where(data, where),
        counts=counts,
        mechanism=mechanism,
        candidates=candidates,
        contribution_limit=contribution_limit,
        per_key_limit=per_key_limit,
        use_order=use_order,
        repeats=repeats,
        select=select_item,
        count=count_item,
        leak=leak_item,
    )


@command("histogram")
def histogram(
    data: Data,
    by: By,
    category: Category = None,
    where: Where = None,
    contribution_limit: Limit = 1,
    per_key_limit: PerKey = 1,
    repeats: Repeats = 1,
    count_item: CountItem = None,
    leak_item: LeakItem = None,
) -> Question:
    """A count for every label: of a known domain, or of those that stand out."""
    return data.histogram(
        by,
        categories=_categories(data, by, category),
        where=_where(data, where),
        contribution_limit=contribution_limit,
        per_key_limit=per_key_limit,
        repeats=repeats,
        count=count_item,
        leak=leak_item,
    )


@command("count")
def count(
    data: Data,
    where: Where = None,
    per_key_limit: PerKey = 1,
    repeats: Repeats = 1,
    count_item: CountItem = None,
) -> Question:
    """How many units have a row that passes the filter."""
    return data.count(
        where=_where(data, where), per_key_limit=per_key_limit, repeats=repeats, count=count_item
    )


@command("quantile")
def quantile(
    data: Data,
    column: Column,
    lower: Lower,
    upper: Upper,
    probability: Annotated[float, typer.Option("--probability", help="Which quantile.")] = 0.5,
    places: Places = 0,
    where: Where = None,
    contribution_limit: Limit = 1,
    per_key_limit: PerKey = 1,
    select_item: SelectItem = None,
) -> Question:
    """A value near a quantile of a numeric column."""
    return data.quantile(
        column,
        probability,
        lower=_whole(lower),
        upper=_whole(upper),
        places=places,
        where=_where(data, where),
        contribution_limit=contribution_limit,
        per_key_limit=per_key_limit,
        select=select_item,
    )


@command("sum")
def sum_(
    data: Data,
    column: Column,
    lower: Lower,
    upper: Upper,
    places: Places = 0,
    where: Where = None,
    repeats: Repeats = 1,
    count_item: CountItem = None,
) -> Question:
    """The sum of a numeric column, each unit's part moved between the bounds."""
    return data.sum(
        column,
        lower=_whole(lower),
        upper=_whole(upper),
        places=places,
        where=_where(data, where),
        repeats=repeats,
        count=count_item,
    )


def _everything(answer: Answer) -> dict[str, Any]:
    left = answer.remaining
    return {
        **answer.to_json(),
        "intervals": answer.intervals,
        "cached": answer.cached,
        "remaining": {"farthings": left.farthings, "delta_units": left.delta_units},
    }


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
