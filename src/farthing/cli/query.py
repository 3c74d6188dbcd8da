"""`farthing query KIND DATA …`: private answers from a table.

There is one command for each kind of question. Its options are the fields of the query, with the
words that stand beside them, and those of `Common`.
"""

from __future__ import annotations

import csv
import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from farthing.cli import options
from farthing.cli.forms import (
    POSITIONAL,
    Opening,
    Source,
    categories_of,
    command,
    filter_of,
    flag_of,
    keys_of,
    option,
    table_command,
)
from farthing.cli.options import console, patience, print_json
from farthing.engine.answer import Answer
from farthing.engine.kinds import KINDS
from farthing.engine.kinds.base import ROLES, Query
from farthing.engine.kinds.fields import Bound, FieldHelp, Limit, help_of
from farthing.engine.plan import Plan
from farthing.engine.session import Batch, Question, Session
from farthing.engine.show.sheet import spreadsheet_cell
from farthing.engine.show.table import Tabular
from farthing.errors import InvalidInput
from farthing.wording import plain

query = typer.Typer(
    name="query",
    help="Private answers from a table: plan what they cost, then run them.",
    epilog="What farthings, shares of the budget and ε mean: docs/what-epsilon-means.md.",
    no_args_is_help=True,
)

_RUN = "Plan and run"
#: Options that are given as often as there are values, and what one of them is called.
_NUMBERS: dict[str, Any] = {"limits": list[int], "noise": list[float]}
_NUMBERS |= {"on_lower": list[float] | None, "on_upper": list[float] | None}
_NUMBERS |= {"on_places": list[int] | None, "probability": list[float]}
_SEVERAL = {"by": "by", "where": "where", "categories": "category", "on": "on"}


@dataclass(frozen=True)
class Common(Opening):
    """What every query is asked with; its fields are options of every command."""

    plan: Annotated[bool, option("--plan", "Price and accuracy only; no row is read.", _RUN)] = (
        False
    )
    half_width: Annotated[
        float | None, option("--half-width", "Choose the cheapest way to ± this.", _RUN)
    ] = None
    tells_apart: Annotated[
        float | None,
        option("--tells-apart", "Choose the cheapest selections that order such a gap.", _RUN),
    ] = None
    rows: Annotated[
        int | None, option("--rows", "With --half-width: about how many rows a mean is of.", _RUN)
    ] = None
    again: Annotated[
        bool, option("--again", "Pay for a fresh release of a known answer.", _RUN)
    ] = False
    as_json: options.AsJson = False
    as_csv: Annotated[bool, option("--csv", "Print the answer as CSV.", _RUN)] = False

    def answer(self, question: Question) -> None:
        """Plan it or run it, and print what came out."""
        if self.plan and self.as_csv:
            raise InvalidInput("a plan is printed as a table or, with --json, as JSON; not as CSV")
        with patience("planning"):
            planned = question.plan(
                half_width=self.half_width, tells_apart=self.tells_apart, rows=self.rows
            )
        if self.plan:
            return print_json(planned.to_json()) if self.as_json else console().print(planned)
        with patience("running"):
            answer = planned.run(again=self.again)
        if self.as_json:
            print_json(_plain(answer))
        elif self.as_csv:
            print_csv(answer)
        else:
            console().print(answer)
        return None


@command(query, "sql")
@dataclass(frozen=True, kw_only=True)
class Sql(Common):
    """What one SELECT asks, read into the same questions; nothing of it reaches the engine.

    OPTIONS (contribution_limit = 3) at its end says what SQL has no words for.
    """

    source: Source
    text: Annotated[
        str, typer.Argument(metavar="SELECT", help="The statement, in quotes.", show_default=False)
    ]

    def run(self) -> None:
        with self.open(self.source, plan_only=self.plan) as session:
            asked = session.sql(self.text)
            if isinstance(asked, Question):
                self.answer(asked)
            else:
                self._answers(session, asked)

    def _answers(self, session: Session, batch: Batch) -> None:
        """Several questions: all of them run, or none."""
        if self.half_width is not None:
            raise InvalidInput("--half-width is for one question; ask them one by one")
        if self.plan:
            with patience("planning"):
                plans = {name: session.question(one).plan() for name, one in batch.queries.items()}
            if self.as_json:
                return print_json({name: _plain(one) for name, one in plans.items()})
            for name, one in plans.items():
                console().print(plain(name), style="bold", markup=False, highlight=False)
                console().print(one)
            return None
        with patience("running"):
            answers = batch.run(again=self.again)
        if self.as_csv:
            return print_csv(answers)
        if not self.as_json:
            return console().print(answers)
        told: dict[str, object] = {name: _plain(one) for name, one in answers.items()}
        if answers.view is None:
            return print_json(told)
        return print_json({"table": answers.table.to_json(), "answers": told})


def print_csv(answer: Tabular) -> None:
    """One line for each label; no cell can command a terminal or a spreadsheet."""
    names, rows = answer.records
    # text is quoted: some spreadsheets also divide cells at semicolons
    writer = csv.writer(sys.stdout, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerows([spreadsheet_cell(cell) for cell in row] for row in (names, *rows))


def _plain(answer: Plan[Answer] | Answer) -> dict[str, Any]:
    return answer.to_json() if isinstance(answer, Plan) else answer.told()


def _parameters(kind: type[Query]) -> list[inspect.Parameter]:
    """The fields of a query as options."""
    return [
        inspect.Parameter(name, POSITIONAL, default=_start(one), annotation=_annotation(name, one))
        for name, one in help_of(kind).items()
    ]


def _start(field: FieldHelp) -> Any:
    """The default; in a list, if one or several may be given."""
    several = isinstance(field.default, float) and field.type is not float
    return [field.default] if several else field.default


def _annotation(name: str, field: FieldHelp) -> Any:
    assert field.words, f"{name} needs words for the command line"
    plain_type, words, needed = field.type, field.words, field.needed
    if name in _SEVERAL:
        several: Any = list[str] if needed else list[str] | None
        return Annotated[several, typer.Option(f"--{_SEVERAL[name]}", help=words)]
    if plain_type in (int | float, int | float | None):
        plain_type = float if needed else float | None
    plain_type = _NUMBERS.get(name, plain_type)
    if plain_type in (Limit, Bound):
        plain_type = str | None
    flag = flag_of(name, truth=plain_type is bool)
    if name in ROLES:
        flag = f"--{name}-item"
    elif name == "epsilon":  # --epsilon is that of a new budget
        flag = "--item-epsilon"
    elif len(name) == 1:
        flag = f"-{name}"
    return Annotated[plain_type, typer.Option(flag, help=words, show_default=not needed)]


def _asked(session: Session, kind: type[Query], given: dict[str, Any]) -> Question:
    """A question from what was typed."""
    if given.get("by") is not None:
        given["by"] = keys_of(session.schema, given["by"])
    if "where" in given:
        given["where"] = filter_of(session.schema, given["where"] or [])
    if "categories" in given:
        labels = categories_of(session.schema, given["by"] or [], given["categories"] or [])
        given["categories"] = labels
    given |= {name: given[name] or None for name in _NUMBERS if name in given}
    for name in ("contribution_limit", "lower", "upper", "per_upper"):
        if isinstance(given.get(name), str):
            given[name] = _number(given[name])
    return session.question(kind.from_json(given))


def _number(text: str) -> int | float | str:
    """A number if it is one; else as it was typed, such as auto."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _command(kind: type[Query]) -> Callable[..., None]:
    def act(common: Common, source: str, given: dict[str, Any]) -> None:
        with common.open(source, plan_only=common.plan) as session:
            common.answer(_asked(session, kind, given))

    return table_command(Common, _parameters(kind), act, kind.__doc__)


for _name, _kind in KINDS.items():
    query.command(_name.replace("_", "-"))(_command(_kind))
