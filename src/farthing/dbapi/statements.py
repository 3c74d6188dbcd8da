"""SQL statements of one connection: a SELECT is a question, within what the analyst allowed.

    SELECT …                    what was asked before is free; else it is paid from the allowance
    EXPLAIN SELECT …            price, accuracy and what remains; nothing is paid
    SET farthing.farthings = 20    allow so much from now on; also delta_units, intervals, plan_only
    SHOW farthing.remaining     what is left: of the purse, and of the allowance

A tool that draws charts sends statements that nobody asked for. So a connection begins with nothing
allowed: it gives out what was answered before, and refuses the rest with its price.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import sqlglot
from sqlglot import TokenType
from sqlglot import expressions as sge
from sqlglot.errors import SqlglotError

from farthing.composition.tariffs.tariff import Price
from farthing.engine.answers import Answers
from farthing.engine.computed.columns import with_computed
from farthing.engine.session import Session
from farthing.engine.show.sheet import amount
from farthing.engine.show.table import Table
from farthing.engine.sql_questions.questions import SelectEntry, select_entries
from farthing.errors import FarthingError, InvalidInput, require_count
from farthing.ledger.errors import DoesNotFit
from farthing.schema import REAL, TEXT

#: Values for `?` or `$1` in order, or for `:name` by name.
Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]
#: What can be set, each with what reads its value.
_SWITCH = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}
_WORD = r"farthing\.(\w+)"
_SET = re.compile(
    rf"SET\s+(?:SESSION\s+)?{_WORD}\s*(?:=|\bTO\b)\s*'?(\w+)'?\s*;?\s*", re.IGNORECASE
)
_SHOW = re.compile(rf"SHOW\s+{_WORD}\s*;?\s*", re.IGNORECASE)
_EXPLAIN = re.compile(r"EXPLAIN\s+(?=SELECT\b|WITH\b)", re.IGNORECASE)


class NotAllowed(FarthingError):
    """A statement costs more than the analyst allowed on this connection; nothing was paid."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a connection may spend in all, what it has spent, and what its answers show.

    `intervals`: each number is followed by the ends of its interval. `plan_only`: nothing is given
    out but plans.
    """

    farthings: int = 0
    delta_units: int = 0
    intervals: bool = False
    plan_only: bool = False
    spent: Price = field(default=Price(0))

    def __post_init__(self) -> None:
        for name in ("farthings", "delta_units"):
            require_count(name, getattr(self, name))

    @property
    def left(self) -> Price:
        """What can still be spent."""
        left = Price(self.farthings, self.delta_units) - self.spent
        return Price(max(left.farthings, 0), max(left.delta_units, 0))

    def require(self, price: Price) -> None:
        """NotAllowed unless this price may be paid now."""
        if self.plan_only:
            raise NotAllowed("this connection only plans; ask EXPLAIN SELECT …")
        if price.within(self.left):
            return
        needed = price + self.spent
        raised = [f"SET farthing.farthings = {max(needed.farthings, self.farthings)}"]
        if needed.delta_units > self.delta_units:
            raised.append(f"SET farthing.delta_units = {needed.delta_units}")
        raise NotAllowed(
            f"this costs {amount(price)}, and this connection may spend {amount(self.left)} more; "
            f"to pay for it: {'; '.join(raised)}"
        )

    def with_setting(self, name: str, value: str) -> Allowance:
        """The allowance after SET."""
        name, value = name.lower(), value.lower()
        if name in ("farthings", "delta_units") and value.isdecimal() and len(value) < 19:
            given: dict[str, Any] = {name: int(value)}
            return replace(self, **given)
        if name in ("intervals", "plan_only") and value in _SWITCH:
            given = {name: _SWITCH[value]}
            return replace(self, **given)
        raise InvalidInput(
            "SET farthing.farthings or farthing.delta_units to a whole number, farthing.intervals "
            f"or farthing.plan_only to on or off; got {name:.60} = {value:.60}"
        )


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """The name of a column, and the kind of its values (`farthing.schema`)."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Result:
    """What a statement gives. `paid` is what it cost, in words."""

    columns: tuple[ResultColumn, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    paid: str = ""
    command: str = "SELECT"


class Statements:
    """Runs statements in a session, one at a time, within an allowance."""

    def __init__(self, session: Session, allowance: Allowance | None = None) -> None:
        self.session = session
        self.allowance = allowance or Allowance()

    def run(self, text: str, parameters: Parameters = ()) -> Result:
        """What a statement gives; an error of farthing if it cannot be asked or is not allowed."""
        bound = with_values(text, parameters)
        if match := _SET.fullmatch(bound.strip()):
            self.allowance = self.allowance.with_setting(*match.groups())
            return Result(command="SET")
        if match := _SHOW.fullmatch(bound.strip()):
            return self._shown(match[1].lower())
        if match := _EXPLAIN.match(bound.strip()):
            plan = self.session.sql(bound.strip()[match.end() :]).plan()
            rows = (("question", plan.caption), *((part, text) for part, text, _ in plan.lines()))
            return Result((ResultColumn("plan", TEXT), ResultColumn("detail", TEXT)), rows)
        plan = self.session.sql(bound).plan()
        if self.allowance.plan_only or plan.known is None:
            self.allowance.require(plan.price)
        entries = select_entries(bound, self.session.backend.about)
        before = self.allowance
        if plan.known is None:  # counted first: what fails after it was paid for stays spent
            self.allowance = replace(before, spent=before.spent + plan.price)
        try:
            told = plan.run()
        except DoesNotFit:
            self.allowance = before
            raise
        answers = told if isinstance(told, Answers) else Answers({_name_of(entries): told})
        new = (answer.price for answer in answers.values() if not answer.cached)
        self.allowance = replace(before, spent=sum(new, before.spent))
        return self._result(entries, answers)

    def columns(self, text: str) -> tuple[ResultColumn, ...]:
        """What a SELECT will give, before it runs."""
        entries = select_entries(text, self.session.backend.about)
        return tuple(self._described(entries, [entry.name for entry in entries]))

    def _shown(self, name: str) -> Result:
        if name == "remaining":
            purse, own = self.session.remaining(), self.allowance.left
            names = ("farthings", "delta_units", "allowed_farthings", "allowed_delta_units")
            row = (purse.farthings, purse.delta_units, own.farthings, own.delta_units)
            return Result(tuple(ResultColumn(one, "integer") for one in names), (row,))
        settings = ("farthings", "delta_units", "intervals", "plan_only")
        if name not in settings:
            known = ", ".join(f"farthing.{one}" for one in ("remaining", *settings))
            raise InvalidInput(f"SHOW knows {known}; got {name:.60}")
        value = getattr(self.allowance, name)
        text = str(value) if type(value) is int else ("on" if value else "off")
        return Result((ResultColumn(f"farthing.{name}", TEXT),), ((text,),))

    def _described(
        self, entries: Sequence[SelectEntry], names: Sequence[str]
    ) -> list[ResultColumn]:
        schema = self.session.schema
        columns = []
        for entry, name in zip(entries, names, strict=True):
            kind = REAL if entry.key is None else TEXT  # a month or a bin is shown as text
            if isinstance(entry.key, str):
                kind = with_computed(schema, [entry.key])[entry.key].kind
            columns.append(ResultColumn(name, kind))
            if entry.key is None and self.allowance.intervals:
                columns += [ResultColumn(f"{name}_{end}", REAL) for end in ("lower", "upper")]
        return columns

    def _result(self, entries: Sequence[SelectEntry], answers: Answers) -> Result:
        """The table in the order of the SELECT."""
        table = answers.table
        cells = table.cells(None)
        given: list[Sequence[Any]] = []
        columns: list[ResultColumn] = []
        if not any(entry.key is not None for entry in entries):
            columns = [ResultColumn(name, TEXT) for name in table.headings]
            given = [tuple(row[place] for row in cells) for place in range(len(columns))]
        columns += self._described(entries, [entry.name for entry in entries])
        for entry in entries:
            if entry.place is not None:
                given.append([row[entry.place] for row in cells])
            else:
                given += self._numbers(entry.name, table)
        rows = tuple(zip(*given, strict=True)) if table.labels else ()
        return Result(tuple(columns), rows, answers.paid)

    def _numbers(self, name: str, table: Table) -> list[Sequence[Any]]:
        """A column of numbers and, if that is wanted, the ends of their intervals."""
        (column,) = (one for one in table.columns if one.name == name)
        if not self.allowance.intervals:
            return [column.values]
        ends = column.intervals or (None,) * len(column.values)
        low, high = (tuple(end and end[i] for end in ends) for i in (0, 1))
        return [column.values, low, high]


def is_sql(text: str) -> bool:
    """Whether it can be read as a SELECT at all, whatever it asks for."""
    try:
        return isinstance(sqlglot.parse_one(text), sge.Query)
    except (SqlglotError, RecursionError, ValueError):
        return False


def _name_of(entries: Sequence[SelectEntry]) -> str:
    """The name of the only number; of a top k without counts there is none."""
    return next((entry.name for entry in entries if entry.place is None), "labels")


def with_values(text: str, parameters: Parameters) -> str:
    """The statement with values in the place of its parameters, written so that they are nothing
    but values."""
    try:
        tokens = sqlglot.tokenize(text) if isinstance(text, str) else []
    except SqlglotError:
        tokens = []  # whoever reads the text says why
    parts, end, used = [], 0, 0
    for place, token in enumerate(tokens):
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        start, stop, name = token.start, token.end + 1, None
        if token.token_type == TokenType.COLON and following and following.start == stop:
            name, stop = following.text, following.end + 1
        elif token.token_type == TokenType.PLACEHOLDER:
            name, used = str(used + 1), used + 1
        elif re.fullmatch(r"\$[1-9]\d{0,4}", text[start:stop]):
            name = token.text.lstrip("$")
        if name is not None:
            parts += [text[end:start], _literal(_value(parameters, name))]
            end = stop
    return text if not parts else "".join([*parts, text[end:]])


def _value(parameters: Parameters, name: str) -> Any:
    if isinstance(parameters, Mapping):
        if name in parameters:
            return parameters[name]
    elif name.isdecimal() and 0 < int(name) <= len(parameters):
        return parameters[int(name) - 1]
    raise InvalidInput(f"the parameter {name:.60} has no value")


_WRITTEN: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (bool, lambda value: "TRUE" if value else "FALSE"),
    (str, lambda value: "'" + value.replace("'", "''") + "'"),
    (datetime, lambda value: f"TIMESTAMP '{value.isoformat(sep=' ')}'"),
    (date, lambda value: f"DATE '{value.isoformat()}'"),
    (int, str),
    (Decimal, lambda value: format(value, "f")),
    (float, repr),
)


def _literal(value: Any) -> str:
    """A value in SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        raise InvalidInput(f"a parameter must be finite, got {value}")
    for kind, write in _WRITTEN:
        if isinstance(value, kind):
            return write(value)
    raise InvalidInput(
        f"a parameter must be a text, number, date or truth value, got {value!r:.60}"
    )
