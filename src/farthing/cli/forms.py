"""Commands from declarations: a dataclass whose fields are options, or an owner's operation.

Values and filters that were typed are read by the kinds of the schema.
"""

from __future__ import annotations

import csv
import inspect
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from farthing.cli import options
from farthing.cli.options import AsJson, LedgerAt, patience, say, warn
from farthing.engine.desk.operations import (
    ABSENT,
    FIELDS,
    NEEDED,
    OPERATIONS,
    Given,
    Office,
    Operation,
)
from farthing.engine.filters import as_declared, filter_to_json, require_value, value_to_json
from farthing.engine.keys import key_from, kind_of, unquoted
from farthing.engine.local import open as open_session
from farthing.engine.session import Session
from farthing.engine.where_text.conditions import filter_in
from farthing.errors import InvalidInput, require_choice
from farthing.ledger import Ledger
from farthing.schema import BOOLEAN, DATE, DECIMAL, INTEGER, REAL, TIMESTAMP, Schema

POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


#: A dataclass with a method `run`.
Form = TypeVar("Form", bound=type[Any])


def options_of(form: type[Any]) -> list[inspect.Parameter]:
    """The fields of a dataclass, inherited ones too, as parameters that Typer understands."""
    hints = get_type_hints(form, include_extras=True)
    fields = inspect.signature(form).parameters.values()
    return [field.replace(annotation=hints[field.name]) for field in fields]


def with_options(
    run: Callable[..., None], parameters: list[inspect.Parameter], words: str | None
) -> Callable[..., None]:
    """A function that Typer takes to have these parameters, those without a default first."""
    needed_first = sorted(parameters, key=lambda p: p.default is not inspect.Parameter.empty)
    ordered = [p.replace(kind=POSITIONAL) for p in needed_first]
    run.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined] # read by Typer
    run.__annotations__ = {p.name: p.annotation for p in ordered}
    run.__doc__ = words
    return run


def command(app: typer.Typer, name: str) -> Callable[[Form], Form]:
    """Register a form as a command; its docstring is the help."""

    def register(form: Form) -> Form:
        def run(**given: Any) -> None:
            form(**given).run()

        app.command(name)(with_options(run, options_of(form), form.__doc__))
        return form

    return register


def flag_of(name: str, *, truth: bool = False) -> str:
    """The flag for a field; for one that is true or false with its opposite."""
    flag = f"--{name.replace('_', '-')}"
    return f"{flag}/--no-{flag[2:]}" if truth else flag


def field_option(name: str) -> Any:
    """The option for a field that operations have too."""
    return typer.Option(flag_of(name), help=FIELDS[name].words)


@dataclass(frozen=True)
class AtLedger:
    """Which ledger."""

    where: LedgerAt


@contextmanager
def at_ledger(operation: Operation, where: str) -> Iterator[Office]:
    """A ledger that is there, or a new one where the operation makes one."""
    with Ledger.open(where, upgrade=operation.creates) as ledger:
        yield Office(ledger)


#: Opens what an operation works with, from the options that its group has.
OfficeOpener = Callable[..., AbstractContextManager[Office]]


def add_operations(group: typer.Typer, where: type[Any], opened: OfficeOpener) -> None:
    """The commands of every operation whose command is in this group."""
    for operation in OPERATIONS.values():
        word, _, name = operation.command.partition(" ")
        if word == group.info.name:
            group.command(name)(_command_of(operation, options_of(where), opened))


def _command_of(
    operation: Operation, shared: list[inspect.Parameter], opened: OfficeOpener
) -> Callable[..., None]:
    fields = [one for one in operation.parameters if one.typed is not ABSENT]

    def run(as_json: bool, **given: Any) -> None:
        where = {one.name: given.pop(one.name) for one in shared}
        with patience(operation.busy):
            values = {field.name: _entered(field, given) for field in fields}
            with opened(operation, **where) as office:
                answer = operation.tell(office, values)
        warn(answer.get("warning"))
        say(as_json, answer, operation.in_words(answer))

    typed = [parameter for field in fields for parameter in _typed(field)]
    as_json = inspect.Parameter("as_json", POSITIONAL, default=False, annotation=AsJson)
    return with_options(run, [*typed, *shared, as_json], operation.words)


def _typed(field: Given) -> Iterator[inspect.Parameter]:
    """A field as Typer understands it; one that may be None with a flag as two."""
    default = field.default
    kind: Any = field.typed or field.type
    if field.nothing and default is NEEDED:
        default = None
    shown: dict[str, Any] = {"help": field.words, "show_default": default not in (NEEDED, None)}
    flag = field.option or flag_of(field.name)
    if field.argument:
        option = typer.Argument(metavar=field.argument, **shown)
    elif len(field.choices) == 1:
        kind, default = bool, False
        option = typer.Option(f"--{field.choices[0]}", **shown)
    else:
        option = typer.Option(flag, **shown)
    yield inspect.Parameter(
        field.name, POSITIONAL, default=default, annotation=Annotated[kind, option]
    )
    if field.nothing:
        none = typer.Option(f"--{field.nothing}", help=f"Without notice: no {field.name}.")
        yield inspect.Parameter(
            field.nothing, POSITIONAL, default=False, annotation=Annotated[bool, none]
        )


def _entered(field: Given, given: Mapping[str, Any]) -> Any:
    """The value of a field from what was typed."""
    value, nothing = given[field.name], field.nothing
    if nothing and (value is None) != given[nothing]:
        raise InvalidInput(f"give a {field.name}, or --{nothing} for none")
    if len(field.choices) == 1:
        return field.choices[0] if value else None
    if field.choices:
        require_choice(field.name, value, field.choices)
    return field.read(value) if field.read and value is not None else value


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


TableName = Annotated[
    str | None, option("--table", "The table in a database; a,b for several.", DATA)
]
Spark = Annotated[str | None, option("--spark", "Run on Spark: sc://host:port or local[N].", DATA)]


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
        str | None,
        option("--unit", "With a new budget: the column that says whose row; or row.", BUDGET),
    ] = None
    analyst: Annotated[str, option("--analyst", "Whose purse pays.", BUDGET)] = "analyst"
    dataset: Annotated[
        str | None, option("--dataset", "The dataset's name in the ledger.", DATA)
    ] = None
    table: TableName = None
    spark: Spark = None
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


Filled = TypeVar("Filled", bound=Opening)


def table_command(
    form: type[Filled],
    own: list[inspect.Parameter],
    act: Callable[[Filled, str, dict[str, Any]], None],
    words: str | None,
) -> Callable[..., None]:
    """A command about a table: `act` gets the form, the data and the values of its own options."""
    shared = options_of(form)
    data = inspect.Parameter("source", POSITIONAL, annotation=Source)

    def run(source: str, **given: Any) -> None:
        act(form(**{p.name: given.pop(p.name) for p in shared}), source, given)

    return with_options(run, [data, *own, *shared], words)


#: One of several keys: no comma but in brackets or in double quotes.
_KEY = re.compile(r'(?:"(?:[^"]|"")*"|\((?:"(?:[^"]|"")*"|[^")])*\)|[^,"(])+')


def _whole(text: str) -> int:
    """1e6 is 1000000; 1.5 is no whole number."""
    if text.lstrip("+-").isdecimal():
        return int(text)
    number = Decimal(text)
    if not number.is_finite() or number.adjusted() > 20 or number != int(number):
        raise ValueError
    return int(number)


#: How values of a kind are typed; others are text.
_READ: dict[str, Callable[[str], Any]] = {
    INTEGER: _whole,
    REAL: float,
    DECIMAL: lambda text: require_value(Decimal(text)),
    BOOLEAN: lambda text: {"true": True, "false": False}[text.lower()],
    DATE: date.fromisoformat,
    TIMESTAMP: datetime.fromisoformat,
}


def value_of(kind: str, name: str, text: str) -> Any:
    """A value of a column of this kind and name, as plain data."""
    try:
        return value_to_json(_READ.get(kind, str)(text))
    except (ValueError, KeyError, InvalidOperation):
        raise InvalidInput(f"{name} is {kind}, got {text!r:.60}") from None


def filter_of(schema: Schema, conditions: list[str]) -> dict[str, Any] | None:
    """Filters in JSON, COLUMN=VALUE or COLUMN=VALUE,VALUE, and conditions in words."""
    parts = [_condition(schema, text) for text in conditions]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else {"all_of": parts}


def keys_of(schema: Schema, given: list[str]) -> list[str]:
    """What to group by: a text is one key or several, a,b; brackets and quotes keep commas."""
    return [
        key
        for text in given
        for key in ([text] if text in schema else map(str.strip, _KEY.findall(text)))
    ]


def categories_of(schema: Schema, by: list[str], given: list[str]) -> list[Any] | None:
    """Labels of a known domain; those of several columns are written a,b."""
    if not given:
        return None
    keys = [key_from(name) for name in by]
    kinds = [kind_of(key, schema) for key in keys]
    if len(by) == 1:
        return [value_of(kinds[0], by[0], text) for text in given]
    labels = []
    for text in given:
        parts = next(csv.reader([text]))
        if len(parts) != len(by):
            raise InvalidInput(f"a category of {len(by)} columns looks like a,b, got {text!r:.60}")
        labels.append(list(map(value_of, kinds, by, parts)))
    return labels


def _condition(schema: Schema, text: str) -> dict[str, Any]:
    if text.lstrip().startswith("{"):
        try:
            found = json.loads(text)
        except json.JSONDecodeError:
            raise InvalidInput(f"a filter in JSON must be one object, got {text!r:.60}") from None
        return dict(found)
    name, equals, values = text.partition("=")
    name = unquoted(name)
    if not equals or name not in schema or values[:1] in ("=", " ", "'"):
        return filter_to_json(as_declared(filter_in(text), schema.kinds)) or {}
    try:
        listed = next(csv.reader([values], strict=True), []) or [""]
    except csv.Error:
        raise InvalidInput(f"several values look like NO,SE, got {values!r:.60}") from None
    found = [value_of(schema[name].kind, name, value) for value in listed]
    return {name: found if len(found) > 1 else found[0]}
