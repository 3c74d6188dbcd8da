"""`farthing query KIND DATA …`: private answers from a table.

There is one command for each kind of question. Its options are the fields of the query, with the
words that stand beside them, and those of `Common`.
"""

from __future__ import annotations

import csv
import inspect
import sys
from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from farthing.cli import options
from farthing.cli.forms import POSITIONAL, options_of, with_options
from farthing.cli.opening import Opening, Source, option
from farthing.cli.output import console, patience, print_json
from farthing.cli.values import categories_of, filter_of
from farthing.engine.answer import Answer
from farthing.engine.kinds import KINDS
from farthing.engine.kinds.base import ROLES, Query
from farthing.engine.kinds.fields import Limit
from farthing.engine.question import Question
from farthing.engine.session import Session
from farthing.engine.show.sheet import spreadsheet_cell
from farthing.errors import InvalidInput

query = typer.Typer(
    name="query",
    help="Private answers from a table: plan what they cost, then run them.",
    no_args_is_help=True,
)

_RUN = "Plan and run"
#: Options that are given as often as there are values, and what one of them is called.
_SEVERAL = {"by": "by", "where": "where", "categories": "category"}


@dataclass(frozen=True)
class Common(Opening):
    """What every query is asked with; its fields are options of every command."""

    plan: Annotated[bool, option("--plan", "Price and accuracy only; no row is read.", _RUN)] = (
        False
    )
    half_width: Annotated[
        float | None, option("--half-width", "Choose the cheapest way to ± this.", _RUN)
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
        planned = question.plan(half_width=self.half_width)
        if self.plan:
            return print_json(planned.to_json()) if self.as_json else console().print(planned)
        with patience("running"):
            answer = planned.run(again=self.again)
        if self.as_json:
            print_json(_everything(answer))
        elif self.as_csv:
            print_csv(answer)
        else:
            console().print(answer)
        return None


def print_csv(answer: Answer) -> None:
    """One line for each label; no cell can command a terminal or a spreadsheet."""
    names, rows = answer.sheet.records
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerows([spreadsheet_cell(cell) for cell in row] for row in (names, *rows))


def _everything(answer: Answer) -> dict[str, Any]:
    return {
        **answer.to_json(),
        "cached": answer.cached,
        "remaining": asdict(answer.remaining),
    }


def _parameters(kind: type[Query]) -> list[inspect.Parameter]:
    """The fields of a query as options."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            f.name,
            POSITIONAL,
            default=inspect.Parameter.empty if f.default is MISSING else f.default,
            annotation=_annotation(f.name, hints[f.name], needed=f.default is MISSING),
        )
        for f in fields(kind)  # type: ignore[arg-type] # every query is a dataclass
    ]


def _annotation(name: str, hint: Any, *, needed: bool) -> Any:
    assert get_origin(hint) is Annotated, f"{name} needs words for the command line"
    plain_type, words = get_args(hint)
    if name in _SEVERAL:
        several: Any = list[str] if needed else list[str] | None
        return Annotated[several, typer.Option(f"--{_SEVERAL[name]}", help=words)]
    if plain_type in (int | float, int | float | None):
        plain_type = float if needed else float | None
    if plain_type == Limit:
        plain_type = str | None
    flag = f"--{name.replace('_', '-')}"
    if name in ROLES:
        flag = f"--{name}-item"
    elif len(name) == 1:
        flag = f"-{name}"
    elif plain_type is bool:
        flag = f"{flag}/--no-{name.replace('_', '-')}"
    return Annotated[plain_type, typer.Option(flag, help=words, show_default=not needed)]


def _asked(session: Session, kind: type[Query], given: dict[str, Any]) -> Question:
    """A question from what was typed."""
    if "where" in given:
        given["where"] = filter_of(session.schema, given["where"] or [])
    if "categories" in given:
        labels = categories_of(session.schema, given["by"] or [], given["categories"] or [])
        given["categories"] = labels
    limit = given.get("contribution_limit")
    if isinstance(limit, str) and limit.isdecimal():
        given["contribution_limit"] = int(limit)
    return session.question(kind.from_json(given))


def _command(kind: type[Query]) -> Callable[..., None]:
    shared = options_of(Common)
    data = inspect.Parameter("source", POSITIONAL, annotation=Source)

    def run(source: str, **given: Any) -> None:
        common = Common(**{p.name: given.pop(p.name) for p in shared})
        with common.open(source) as session:
            common.answer(_asked(session, kind, given))

    return with_options(run, [data, *_parameters(kind), *shared], kind.__doc__)


for _name, _kind in KINDS.items():
    query.command(_name.replace("_", "-"))(_command(_kind))
