"""`fa.connect`: a dataset of a service as a session, or for an owner the desk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farthing.client.http_backend import HttpBackend
from farthing.client.wire import PATIENCE_SECONDS, Wire
from farthing.engine.desk import Declaration, Desk
from farthing.engine.desk.operations import ABSENT, Office, Operation
from farthing.engine.session import Session
from farthing.engine.sources.base import Source
from farthing.errors import InvalidInput, Unsupported
from farthing.ledger import Dataset, Limits, NotInLedger
from farthing.wording import plain

_ELSEWHERE = "is done on the machine where the data and the ledger are, with `farthing owner`"


class RemoteDesk(Desk):
    """A `Desk` at a service, which `farthing.connect` gives for an owner's token."""

    def __init__(self, wire: Wire, name: str) -> None:
        self._wire = wire
        self._name = name

    @property
    def office(self) -> Office:
        raise Unsupported(f"this {_ELSEWHERE}")

    def perform(self, operation: Operation, given: Mapping[str, Any]) -> Any:
        return operation.result(self.answer(operation, given))

    def answer(self, operation: Operation, given: Mapping[str, Any]) -> dict[str, Any]:
        """What the service answers: waited for, and done once however often it is sent."""
        absent = [one.name for one in operation.parameters if one.sent is ABSENT]
        if not operation.path or given.keys() & set(absent):
            raise Unsupported(" with ".join([operation.name, *absent]) + f" {_ELSEWHERE}")
        path, fields = operation.address(given)
        about = str(given.get("dataset", ""))
        if operation.in_body:
            return self._wire.send("POST", path, about, body=fields, once=operation.once)
        stated = {name: value for name, value in fields.items() if value is not None}
        return self._wire.send(operation.method, path, about, params=stated)

    def add(
        self,
        source: Source | str,
        declared: Declaration,
        *,
        name: str | None = None,
        beside: str | None = None,
    ) -> Dataset:
        """Declare a dataset of the service's configuration, by its name there."""
        if not isinstance(source, str) or not isinstance(declared.unit, str | None):
            raise InvalidInput("a service reads what its configuration names: give that name")
        schema = declared.schema
        return self.declare(
            name or source,
            declared.unit,
            columns=None if schema is None else schema.to_json(),
            **(declared.limits or Limits()).to_json(),
            version=declared.version,
            beside=beside,
        )

    def shut(self) -> None:
        """Give the connections back."""
        self._wire.shut()

    def __repr__(self) -> str:
        return plain(f"<Desk of {self._name} at {self._wire.url}>")


def connect(
    url: str, *, token: str, dataset: str | None = None, patience: float = PATIENCE_SECONDS
) -> Session | Desk:
    """A dataset of a service: `fa.connect("https://data.example", token="fth_…")`.

    The session is that of `fa.open`: the same notebook runs on either. `dataset` may be left out
    if one was granted. What costs something is charged once, however often it has to be sent;
    `patience` is for how many seconds a service that went away is tried. With an owner's token it
    gives the owner's `Desk` instead.
    """
    wire = Wire(url, token, patience)
    try:
        me = wire.send("GET", "/v1/me")
        if me["role"] == "owner":
            if dataset is not None:
                raise InvalidInput("an owner's desk is for every dataset: leave dataset out")
            return RemoteDesk(wire, str(me["name"]))
        names = list(me["datasets"])
        granted = f"granted to {me['name']}: {', '.join(names) or 'none'}"
        if dataset is None:
            if len(names) != 1:
                raise InvalidInput(f"say which dataset; {granted}")
            dataset = names[0]
        try:
            return Session(HttpBackend(wire, dataset, str(me["name"])))
        except NotInLedger:
            raise NotInLedger(f"there is no dataset {dataset!r:.60} for you; {granted}") from None
    except BaseException:
        wire.shut()
        raise
