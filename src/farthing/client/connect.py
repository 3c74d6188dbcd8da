"""`fa.connect`: a dataset of a service as a session, or for an owner the desk."""

from __future__ import annotations

from contextlib import ExitStack

from farthing.client.desk import RemoteDesk
from farthing.client.http_backend import HttpBackend
from farthing.client.wire import PATIENCE_SECONDS, Wire
from farthing.engine.desk import Desk
from farthing.engine.session import Session
from farthing.errors import InvalidInput
from farthing.ledger import NotInLedger


def connect(
    url: str, *, token: str, dataset: str | None = None, patience: float = PATIENCE_SECONDS
) -> Session | Desk:
    """A dataset of a service: `fa.connect("https://data.example", token="fth_…")`.

    The session is that of `fa.open`: the same notebook runs on either. `dataset` may be left out
    if one was granted. What costs something is charged once, however often it has to be sent;
    `patience` is for how many seconds a service that went away is tried. With an owner's token it
    gives the owner's `Desk` instead.
    """
    with ExitStack() as undo:
        wire = Wire(url, token, patience)
        undo.callback(wire.shut)
        me = wire.get("/v1/me")
        if me["role"] == "owner":
            if dataset is not None:
                raise InvalidInput("an owner's desk is for every dataset: leave dataset out")
            undo.pop_all()
            return RemoteDesk(wire, str(me["name"]))
        names = list(me["datasets"])
        granted = f"granted to {me['name']}: {', '.join(names) or 'none'}"
        if dataset is None:
            if len(names) != 1:
                raise InvalidInput(f"say which dataset; {granted}")
            dataset = names[0]
        try:
            session = Session(HttpBackend(wire, dataset, str(me["name"])))
        except NotInLedger:
            raise NotInLedger(f"there is no dataset {dataset!r:.60} for you; {granted}") from None
        undo.pop_all()
        return session
    raise AssertionError  # an error above leaves through the stack
