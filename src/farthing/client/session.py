"""What an analyst holds of a service: the methods of `farthing.Session`, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from farthing.client.remote_data import RemoteData
from farthing.client.remote_questions import RemoteBatch, RemoteQuestion
from farthing.client.remote_watches import RemoteConversation, RemoteWatch, opened_from
from farthing.client.wire import PATIENCE_SECONDS, Wire
from farthing.composition.tariffs.tariff import Price
from farthing.engine.answer import PastRelease
from farthing.engine.any_session import AnySession
from farthing.engine.kinds.base import Query
from farthing.engine.watch_kinds import WatchKind
from farthing.errors import InvalidInput
from farthing.ledger import NotInLedger, OpenedConversation, Purse
from farthing.wording import plain


class RemoteSession(AnySession[RemoteQuestion, RemoteBatch, RemoteWatch]):
    """One dataset of a service, one analyst's purse. What works on a `Session` works here."""

    def __init__(self, data: RemoteData) -> None:
        self._context: RemoteData = data
        #: Where the budget is kept: with the service.
        self.ledger_path: str | None = None

    def question(self, query: Query) -> RemoteQuestion:
        """A query, asked of this data."""
        return RemoteQuestion(self._context, query)

    def conversation(self, identity: str) -> RemoteConversation:
        """A conversation that this analyst opened, where it was left."""
        if not (identity.isascii() and identity.isalnum()):
            raise InvalidInput("a conversation's id has letters and digits only")
        found = RemoteConversation(self._context, identity)
        found.standing()  # NotInLedger if there is none
        return found

    def history(self) -> list[PastRelease]:
        found: list[PastRelease] = []
        before: str | None = None
        while True:
            page = self._context.get("releases", {} if before is None else {"before": before})
            for one in page["releases"]:
                queries = one["batch"] or {"": one["query"]}
                price = Price(**one["price"])
                found.append(PastRelease.of(one["at"], one["asked"], price, queries))
            if not page["more"]:
                return found
            before = page["releases"][-1]["id"]

    def conversations(self) -> list[OpenedConversation]:
        told = self._context.get("conversations")["conversations"]
        return [opened_from(self._context, one) for one in told]

    def remaining(self) -> Price:
        return self._context.remaining()

    def purse(self) -> Purse:
        return self._context.purse()

    def shut(self) -> None:
        """Give the connections back."""
        self._context.wire.shut()

    def _batch(self, queries: Mapping[str, Query]) -> RemoteBatch:
        return RemoteBatch(self._context, queries)

    def _watch(self, kind: WatchKind) -> RemoteWatch:
        return RemoteWatch(self._context, kind)

    def __repr__(self) -> str:
        about = self._context.about
        columns = "" if about.schema is None else ", ".join(about.schema.kinds)
        where = f"{self._context.analyst} on {about.name} at {self._context.wire.url}"
        return plain(f"<Session of {where}: {columns}>")


def connect(
    url: str, *, token: str, dataset: str | None = None, patience: float = PATIENCE_SECONDS
) -> RemoteSession:
    """A dataset of a service: `fa.connect("https://data.example", token="fth_…")`.

    The session is that of `fa.open`: the same notebook runs on either. `dataset` may be left out
    if one was granted. What costs something is charged once, however often it has to be sent;
    `patience` is for how many seconds a service that went away is tried.
    """
    with ExitStack() as undo:
        wire = Wire(url, token, patience)
        undo.callback(wire.shut)
        me = wire.get("/v1/me")
        if me["role"] != "analyst":
            raise InvalidInput("an analyst's token is needed; this one is an owner's")
        names = list(me["datasets"])
        granted = f"granted to {me['name']}: {', '.join(names) or 'none'}"
        if dataset is None:
            if len(names) != 1:
                raise InvalidInput(f"say which dataset; {granted}")
            dataset = names[0]
        try:
            session = RemoteSession(RemoteData.of(wire, dataset, str(me["name"])))
        except NotInLedger:
            raise NotInLedger(f"there is no dataset {dataset!r:.60} for you; {granted}") from None
        undo.pop_all()
        return session
    raise AssertionError  # an error above leaves through the stack
