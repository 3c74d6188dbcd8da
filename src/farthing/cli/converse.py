"""`farthing converse open | ask | list | close`: questions that are paid for once.

farthing converse open events.parquet --ledger budget.db --positives 3      prints an id
farthing converse ask events.parquet ID --ledger budget.db --where country=NO --threshold 1000
"""

from __future__ import annotations

import inspect
import json
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from farthing.cli import options
from farthing.cli.forms import (
    POSITIONAL,
    Opening,
    Source,
    command,
    filter_of,
    flag_of,
    option,
    table_command,
)
from farthing.cli.options import Name, console, patience, print_json, say
from farthing.engine.conversation import ConversationAnswer
from farthing.engine.conversation_kinds import CONVERSATIONS, ConversationKind, conversation_from
from farthing.engine.kinds import query_from
from farthing.engine.kinds.base import Query
from farthing.engine.kinds.fields import help_of
from farthing.engine.session import Session
from farthing.errors import InvalidInput
from farthing.ledger import Ledger, OpenedConversation
from farthing.wording import many

converse = typer.Typer(
    name="converse",
    help="Conversations about a table: paid for once, asked as long as answers are negative.",
    no_args_is_help=True,
)

_WATCH, _ASK = "The conversation", "The question"

Identity = Annotated[
    str | None,
    typer.Option("--id", help="Which one; not needed if one is open.", show_default=False),
]
Analyst = Annotated[str, typer.Option("--analyst", help="Who opened it.")]


@dataclass(frozen=True)
class Open(Opening):
    """Open a conversation, and print its id. All of it is paid for now.

    With --tolerance it checks guesses and corrects them; otherwise it compares with thresholds.
    """

    questions: Annotated[
        int, option("--questions", "State the accuracy for so many questions.", _WATCH)
    ] = 100
    plan: Annotated[bool, option("--plan", "Price and accuracy only.", _WATCH)] = False
    as_json: options.AsJson = False

    def watch(self, source: str, given: dict[str, Any]) -> None:
        """Plan it or open it, and print what came out."""
        kind = _kind_from(given)  # refused before a budget is signed
        with self.open(source, plan_only=self.plan) as session:
            planned = session.watching(kind).plan(questions=self.questions)
            if self.plan:
                return print_json(planned.to_json()) if self.as_json else console().print(planned)
            conversation = planned.open()
        answer: dict[str, object] = {"id": conversation.id, "price": asdict(planned.price)}
        say(self.as_json, answer, conversation.id)
        return None


def _kind_options() -> list[inspect.Parameter]:
    """The fields of every kind of conversation as options, each once; left out if not given."""
    options: dict[str, inspect.Parameter] = {}
    for kind in CONVERSATIONS.values():
        for name, field in help_of(kind).items():
            flag = flag_of(name, truth=field.type is bool)
            annotation: Any = Annotated[field.type | None, option(flag, field.words, _WATCH)]
            options.setdefault(
                name, inspect.Parameter(name, POSITIONAL, default=None, annotation=annotation)
            )
    return list(options.values())


def _kind_from(options: dict[str, Any]) -> ConversationKind:
    """The kind whose required fields are given, or else the one that requires nothing."""
    given = {name: value for name, value in options.items() if value is not None}
    needed = {
        word: {name for name, field in help_of(kind).items() if field.needed}
        for word, kind in CONVERSATIONS.items()
    }
    word = max((w for w in needed if needed[w] <= given.keys()), key=lambda w: len(needed[w]))
    return conversation_from({"kind": word, **given})


converse.command("open")(table_command(Open, _kind_options(), Open.watch, Open.__doc__))


@command(converse, "ask")
@dataclass(frozen=True, kw_only=True)
class Ask(Opening):
    """Ask whether a number reaches a threshold, or whether a guess is right.

    The number is a count of the rows that pass --where, or what --query says in JSON.
    """

    source: Source
    identity: Identity = None
    where: Annotated[
        list[str] | None, option("--where", "COLUMN=VALUE, or a filter in JSON.", _ASK)
    ] = None
    query: Annotated[str | None, option("--query", "Another number: a query as JSON.", _ASK)] = None
    threshold: Annotated[float | None, option("--threshold", "Is it at least this?", _ASK)] = None
    guess: Annotated[float | None, option("--guess", "Is it about this?", _ASK)] = None
    as_json: options.AsJson = False

    def run(self) -> None:
        if (self.threshold is None) == (self.guess is None):
            raise InvalidInput("give one of --threshold and --guess")
        with self.open(self.source) as session, patience("asking"):
            conversation = session.conversation(_which(self.identity, session.conversations()))
            asked = self._asked(session)
            if self.threshold is not None:
                answer = conversation.exceeds(asked, self.threshold)
            else:
                assert self.guess is not None
                answer = conversation.check(asked, self.guess)
        say(self.as_json, asdict(answer), self._words(answer))

    def _asked(self, session: Session) -> Query:
        if self.query is None:
            where = filter_of(session.schema, self.where or [])
            return query_from({"kind": "count", "where": where})
        if self.where:
            raise InvalidInput("the filter of a query in JSON is its field where")
        try:
            return query_from(json.loads(self.query))
        except json.JSONDecodeError:
            raise InvalidInput(
                f"a query in JSON must be one object, got {self.query!r:.60}"
            ) from None

    def _words(self, answer: ConversationAnswer) -> str:
        if self.threshold is not None:
            words = "yes" if answer.positive else "no"
        else:
            words = "wrong" if answer.positive else "right"
        return words if answer.value is None else f"{words}: about {answer.value}"


@converse.command("list")
def list_command(
    name: Name,
    where: options.LedgerAt,
    analyst: Analyst = "analyst",
    as_json: options.AsJson = False,
) -> None:
    """The conversations of an analyst about a dataset."""
    with Ledger.open(where, upgrade=False) as book:
        held = book.analyst(name, analyst).conversations()
    rows = "\n".join(map(_line, held)) or "no conversation was opened"
    say(as_json, {"conversations": [_plain(one) for one in held]}, rows)


@converse.command("close")
def close_command(
    name: Name,
    where: options.LedgerAt,
    identity: Identity = None,
    analyst: Analyst = "analyst",
    as_json: options.AsJson = False,
) -> None:
    """End a conversation. Nothing is paid back."""
    with Ledger.open(where, upgrade=False) as book:
        holder = book.analyst(name, analyst)
        closed = _which(identity, holder.conversations())
        holder.conversation(closed).close()
    say(as_json, {"closed": closed}, f"closed {closed}; nothing is paid back")


def _which(identity: str | None, held: list[OpenedConversation]) -> str:
    """The one that is named, or the only one that is open."""
    if identity is not None:
        return identity
    still_open = [one.id for one in held if one.open]
    if len(still_open) != 1:
        raise InvalidInput(
            f"{many(len(still_open), 'conversation')} open; say which one with --id, "
            "see `farthing converse list`"
        )
    return still_open[0]


def _line(one: OpenedConversation) -> str:
    state = "open" if one.open else "over"
    return f"{one.id}  {state}  {many(one.asked, 'question')} asked  opened {one.time[:16]}"


def _plain(one: OpenedConversation) -> dict[str, Any]:
    return {
        "id": one.id,
        "opened": one.time,
        "question": one.question,
        "price": asdict(one.price),
        "asked": one.asked,
        "open": one.open,
    }
