"""The owner's desk over HTTP: every operation is a request to a service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farthing.client.wire import Wire
from farthing.engine.desk import Desk
from farthing.engine.desk.data import Declaration
from farthing.engine.desk.operations import ABSENT, Office, Operation
from farthing.engine.sources.base import Source
from farthing.errors import InvalidInput, Unsupported
from farthing.ledger import Dataset, Limits
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
            return self._wire.post(path, fields, about, once=operation.once)
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
        if not isinstance(source, str) or not isinstance(declared.unit, str):
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
