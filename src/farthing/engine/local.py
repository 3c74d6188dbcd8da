"""A table on this machine with a ledger: `fa.open`, and the backend of its session."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

from farthing.composition.accounts.account_profiles import guess_from
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.prices import EpsilonDelta
from farthing.composition.tariffs.tariff import Price, Tariff
from farthing.engine.answer import spending_of
from farthing.engine.answers import Answers
from farthing.engine.context import Context, record_in_words
from farthing.engine.conversation import LocalConversation, open_conversation
from farthing.engine.conversation_kinds import ConversationKind
from farthing.engine.desk import FIRST_VERSION, Declaration, Desk, certificate_of, matching_tariff
from farthing.engine.desk.data import VARIABLE, ledger_beside, require_in_force
from farthing.engine.kinds.base import Query
from farthing.engine.kinds.fields import AUTO
from farthing.engine.plan import ONLY, ConversationPlan, PastRelease, Plan
from farthing.engine.planning import Prepared, prepare
from farthing.engine.purchase import Aim, cheapest, items_together
from farthing.engine.session import Session
from farthing.engine.sources.base import Source
from farthing.engine.sources.opening import open_source
from farthing.errors import InvalidInput
from farthing.ledger import Dataset, Ledger, Limits, OpenedConversation, Purse
from farthing.ledger.declared_data import missing_unit, unit_name
from farthing.mechanisms.protocol import DEFAULT_CONFIDENCE, require_confidence
from farthing.schema import Schema
from farthing.wording import plain


class LocalBackend:
    """One table, what was declared about it, and an analyst's purse: a `Backend`."""

    def __init__(
        self, context: Context, resources: ExitStack | None = None, place: str | None = None
    ) -> None:
        self._context = context
        self._resources = resources or ExitStack()
        self.about: Dataset = context.about
        self.analyst_name = context.analyst.name
        self.place = place

    def plan(self, queries: Mapping[str, Query], aim: Aim | None = None) -> Plan[Any]:
        context = self._context.at_this_moment()
        terms = context.snapshot.terms
        wanted = {name: context.checked(query) for name, query in queries.items()}
        if aim is not None:
            (query,) = wanted.values()
            wanted = {ONLY: cheapest(query, terms.tariff, aim, context.confidence)}
        prepared, remaining = prepare(context, wanted, terms), context.snapshot.remaining
        known, price = prepared.known, prepared.price
        questions = {name: prepared.described(name) for name in prepared.queries}
        due = items_together(one.items for one in questions.values() if not one.known)
        bought = tuple((terms.tariff.items[name][0], times) for name, times in due.items())
        return Plan(
            questions=questions,
            price=price,
            price_again=prepared.price_again,
            remaining=remaining,
            spending=spending_of(context.snapshot, price, paid=False),
            known=known if known is None or ONLY not in known else known[ONLY],
            guess=partial(guess_from, bought),
            backend=self,
            _details=prepared,
        )

    def run(self, plan: Plan[Any], *, registered: str | None, again: bool) -> Answers:
        prepared: Prepared = plan._details
        return prepared.run(registered=registered, again=again)

    def plan_conversation(self, kind: ConversationKind, questions: int) -> ConversationPlan:
        snapshot = self._context.at_this_moment().snapshot
        tariff = snapshot.terms.tariff
        items, mechanism = kind.items_for(tariff), kind.mechanism_for(tariff)
        return ConversationPlan(
            kind=kind,
            items=items,
            price=tariff.price_of(items),
            remaining=snapshot.remaining,
            questions=questions,
            accuracy=mechanism.accuracy(questions, self._context.confidence),
            backend=self,
            _details=snapshot.terms,
        )

    def open(self, plan: ConversationPlan) -> LocalConversation:
        return open_conversation(self._context, plan.kind, plan._details)

    def conversation(self, identity: str) -> LocalConversation:
        return LocalConversation(self._context, self._context.analyst.conversation(identity))

    def conversations(self) -> list[OpenedConversation]:
        return self._context.analyst.conversations()

    def history(self) -> list[PastRelease]:
        return [
            PastRelease.of(
                kept.time,
                record_in_words(kept.question, self._context.about),
                kept.price,
                {name: asked["query"] for name, asked in kept.question.items()},
            )
            for kept in self._context.analyst.releases()
        ]

    def purse(self) -> Purse:
        return self._context.analyst.purse()

    def remaining(self) -> Price:
        return self._context.analyst.remaining()

    def shut(self) -> None:
        """Give back what the engine holds, and the ledger if it was opened here."""
        self._context.shut.set()
        self._resources.close()


def open(  # noqa: A001 # farthing.open is the name people will look for
    data: Any,
    *,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    unit: str | Sequence[str] | None = None,
    analyst: str = "analyst",
    dataset: str | None = None,
    table: str | Sequence[str] | None = None,
    spark: Any = None,
    memory: str | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    epsilon: float | None = None,
    delta: float | None = None,
    tariff: Tariff | Certificate | str | os.PathLike[str] | None = None,
    farthings: int | None = None,
    delta_units: int | None = None,
    schema: Schema | None = None,
    limits: Limits | None = None,
    version: str | None = AUTO,
    owner: str = "owner",
    plan_only: bool = False,
) -> Session:
    """A table with a budget: `fa.open("salaries.parquet", unit="player", epsilon=3, delta=1e-6)`.

    `data` is a path (Parquet, CSV, a DuckDB or SQLite file with `table`), a pandas, Polars or
    Arrow table, or postgresql://… with `table`. With `spark` (a session, sc://host:port or
    "local[2]") it is a path or a table of Spark's catalogue. A list of paths, or of names as
    `table`, is read as one: each unit is limited over all of its tables. `memory` is what DuckDB
    may use before it spills to disk, such as "8GB".

    `ledger` keeps the budget, which belongs to the data; without one it is what FARTHING_LEDGER
    names, else a file beside the data (salaries.farthing.db; for a table in memory in the
    working directory), and `ledger_path` says which. Data that the ledger knows is opened for
    an `analyst` who has a purse; nothing is added, signed or granted. Data that it does not
    know is added first, which needs a `unit` (the column that says whose row it is; or "row":
    each row is protected on its own, and a person with several rows is not) and what everything
    together may cost: an `epsilon` with its `delta`, of which a ladder of items is made and
    certified, or a `tariff`, which is certified and signed, with the `farthings` that this
    analyst may spend (of a ladder: all). `schema`, `limits`, `version` and `owner` are then
    declared too (see `Desk.add`).

    A table in memory needs a `dataset`: the name of its budget. Nobody can tell whether two such
    tables are the same, so each time it is opened it is a new version of the data, and nothing that
    was told of another version is given out again. Name a `version` to say that it is the same as
    the one that was opened under that name.

    With `plan_only` nothing is written anywhere: a budget that nobody signed yet is signed in a
    ledger that is thrown away, and questions can be planned and not run.
    """
    level = require_confidence(confidence)
    budget = EpsilonDelta.of(epsilon, delta)
    ledger = ledger or os.environ.get(VARIABLE) or None
    if budget is not None and tariff is not None:
        raise InvalidInput("give epsilon and delta, or a tariff: not both")
    with ExitStack() as undo:
        source = open_source(data, table=table, spark=spark, memory=memory)
        undo.callback(source.shut)
        if source.location is None and dataset is None:
            raise InvalidInput(
                "dataset must be given for a table in memory: the name that its budget is kept "
                'under, such as dataset="salaries"'
            )
        if source.location is None and version == AUTO:
            version = f"opened {datetime.now(UTC):%Y-%m-%d %H:%M:%S} {token_hex(4)}"
        book = ledger_beside(source, dataset) if ledger is None else ledger
        path = None if isinstance(book, Ledger) else os.fspath(book)
        if not isinstance(book, Ledger):
            # only who brings a budget starts a ledger: a slip in its name must leave no file behind
            starts = tariff is not None or budget is not None
            if plan_only and starts and not _is_known(book, source, dataset):
                book = os.path.join(undo.enter_context(TemporaryDirectory()), "plan.db")
            elif plan_only:
                starts = False
            if ledger is None and not starts and not os.path.exists(book):
                raise InvalidInput(
                    f"{source.name} has no budget yet (there is no {book}); open it with epsilon "
                    "and delta, or say where its ledger is"
                )
            book = undo.enter_context(Ledger.open(book, upgrade=starts))
        desk = Desk(book, owner=owner)
        known = desk.name_of(source, dataset)
        if known is None:
            signed = budget or (None if farthings is None else tariff)
            if unit is None or signed is None:
                needed = {
                    missing_unit(column.name for column in source.columns): unit,
                    "epsilon and delta (or a tariff, and farthings for an analyst)": signed,
                }
                missing = " and ".join(words for words, given in needed.items() if given is None)
                raise InvalidInput(
                    f"{source.name} is not in the ledger yet; to add it, {missing} must be given"
                )
            first = FIRST_VERSION if version == AUTO else version
            wanted = Declaration(unit=unit, schema=schema, limits=limits, version=first)
            wanted.require_possible(source)  # a budget takes seconds to prove
            given = (
                signed.certificate() if isinstance(signed, EpsilonDelta) else certificate_of(signed)
            )
            known = desk.begin(
                source,
                wanted,
                given,
                name=dataset,
                analyst=analyst,
                farthings=given.tariff.farthings if farthings is None else farthings,
                delta_units=delta_units,
            ).name
            if ledger is None and not plan_only:
                sys.stderr.write(plain(f"The budget of {known} is kept in {path}.") + "\n")
        holder = book.analyst(known, analyst)
        about = holder.about()
        if unit is not None and unit_name(unit) != about.unit:
            raise InvalidInput(f"the unit of {known} in the ledger is {about.unit}, got {unit}")
        if tariff is not None:
            matching_tariff(holder.terms().tariff, tariff, known)
        if budget is not None:
            require_in_force(budget, book, known, holder.terms().account)
        holder.purse()  # an analyst without one hears it now
        if version not in (AUTO, about.version):
            if source.location is not None:
                raise InvalidInput(
                    f"the version of {known} in the ledger is {about.version or 'live'}, got "
                    f"{version or 'live'}; leave version out, or let the owner declare it"
                )
            desk.declare_version(known, version)
            about = replace(about, version=version)
        context = Context(source, holder, about, level, plan_only=plan_only)
        return Session(LocalBackend(context, undo.pop_all(), path))
    raise AssertionError  # an error above leaves through the stack


def _is_known(book: str | os.PathLike[str], source: Source, dataset: str | None) -> bool:
    """Whether there is a ledger that knows this data. A table in memory is always new."""
    address = os.fspath(book)
    if source.location is None or not ("://" in address or os.path.exists(address)):
        return False
    with Ledger.open(address, upgrade=False) as ledger:
        return Desk(ledger).name_of(source, dataset) is not None
