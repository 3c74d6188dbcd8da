"""What an analyst holds of a service: the methods of `farthing.Session`, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Self

from farthing.client.remote_data import RemoteData
from farthing.client.remote_questions import RemoteBatch, RemoteQuestion
from farthing.client.remote_watches import RemoteConversation, RemoteWatch, opened_from
from farthing.client.wire import PATIENCE_SECONDS, Wire
from farthing.composition.tariff import Price
from farthing.engine.kinds import Kinds, query_from
from farthing.engine.kinds.base import Query
from farthing.engine.question import BATCH
from farthing.engine.sql_questions.reading import queries_in
from farthing.engine.watches import GuessWatch, ThresholdWatch
from farthing.errors import InvalidInput
from farthing.ledger import OpenedConversation, Purse
from farthing.schema import Schema
from farthing.wording import plain


class RemoteSession(Kinds[RemoteQuestion]):
    """One dataset of a service, one analyst's purse. What works on a `Session` works here."""

    def __init__(self, data: RemoteData) -> None:
        self._data = data
        #: Where the budget is kept: with the service.
        self.ledger_path: str | None = None

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self._data.about.name

    @property
    def schema(self) -> Schema:
        """The columns that were declared when this was opened; nothing else exists here."""
        if self._data.about.schema is None:
            raise InvalidInput(f"{self.name} has no declared columns; its owner describes it")
        return self._data.about.schema

    def question(self, query: Query) -> RemoteQuestion:
        """A query, asked of this data."""
        return RemoteQuestion(self._data, query)

    def ask(self, query: Query | Mapping[str, Any]) -> RemoteQuestion | RemoteBatch:
        """A question from a query, or from its plain data; a batch from the data of one."""
        if isinstance(query, Mapping) and query.get("kind") == BATCH:
            queries = query.get("queries")
            return self.batch(queries if isinstance(queries, Mapping) else {})
        return self.question(query_from(query))

    def sql(self, text: str, **options: Any) -> RemoteQuestion | RemoteBatch:
        """What one SELECT asks, read here as `Session.sql` reads it."""
        asked = queries_in(text, self._data.about, options)
        if len(asked) > 1:
            return self.batch(asked)
        return self.question(*asked.values())

    def batch(self, questions: Mapping[str, Any]) -> RemoteBatch:
        """Several questions, queries or plain data, fixed in advance and run together."""
        queries = {}
        for name, one in questions.items():
            if isinstance(one, RemoteQuestion) and not one.is_asked_of(self._data):
                raise InvalidInput("every question of a batch must be asked of the same data")
            queries[name] = one.query if isinstance(one, RemoteQuestion) else query_from(one)
        return RemoteBatch(self._data, queries)

    def watch(
        self,
        *,
        positives: int = 1,
        item: str | None = None,
        value_item: str | None = None,
        refresh_after: int | None = None,
        per_unit: int = 1,
        monotone: bool = True,
    ) -> RemoteWatch:
        """A conversation that tells when a number reaches a threshold; see `Session.watch`."""
        kind = ThresholdWatch(
            positives=positives,
            item=item,
            value_item=value_item,
            refresh_after=refresh_after,
            per_unit=per_unit,
            monotone=monotone,
        )
        return RemoteWatch(self._data, kind)

    def watch_guesses(
        self,
        *,
        tolerance: int,
        corrections: int = 1,
        item: str | None = None,
        value_item: str | None = None,
        per_unit: int = 1,
    ) -> RemoteWatch:
        """A conversation that says which guesses are off; see `Session.watch_guesses`."""
        kind = GuessWatch(
            tolerance=tolerance,
            corrections=corrections,
            item=item,
            value_item=value_item,
            per_unit=per_unit,
        )
        return RemoteWatch(self._data, kind)

    def conversation(self, identity: str) -> RemoteConversation:
        """A conversation that this analyst opened, where it was left."""
        if not (identity.isascii() and identity.isalnum()):
            raise InvalidInput("a conversation's id has letters and digits only")
        found = RemoteConversation(self._data, identity)
        found.standing()  # NotInLedger if there is none
        return found

    def conversations(self) -> list[OpenedConversation]:
        """Every conversation that this analyst opened about this data."""
        told = self._data.get("conversations")["conversations"]
        return [opened_from(self._data, one) for one in told]

    def remaining(self) -> Price:
        """Farthings and δ units that are left of the purse."""
        return self._data.remaining()

    def purse(self) -> Purse:
        """What was granted, and what is spent of it."""
        return self._data.purse()

    def shut(self) -> None:
        """Give the connections back."""
        self._data.wire.shut()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()

    def __repr__(self) -> str:
        about = self._data.about
        columns = "" if about.schema is None else ", ".join(about.schema.kinds)
        where = f"{self._data.analyst} on {about.name} at {self._data.wire.url}"
        return plain(f"<Session of {where}: {columns}>")


def connect(
    url: str, *, token: str, dataset: str | None = None, patience: float = PATIENCE_SECONDS
) -> RemoteSession:
    """A dataset of a service: `fa.connect("https://data.example", token="fth_…")`.

    The session is that of `fa.open`: the same notebook runs on either. `dataset` may be left out
    if one was granted. What costs something is charged once, however often it has to be sent;
    `patience` is for how many seconds a service that gives no answer is tried.
    """
    with ExitStack() as undo:
        wire = Wire(url, token, patience)
        undo.callback(wire.shut)
        me = wire.get("/v1/me")
        if me["role"] != "analyst":
            raise InvalidInput("an analyst's token is needed; this one is an owner's")
        granted = list(me["datasets"])
        if dataset is None:
            if len(granted) != 1:
                names = ", ".join(granted) or "none"
                raise InvalidInput(f"say which dataset; granted to {me['name']}: {names}")
            dataset = granted[0]
        session = RemoteSession(RemoteData.of(wire, dataset, str(me["name"])))
        undo.pop_all()
        return session
    raise AssertionError  # an error above leaves through the stack
