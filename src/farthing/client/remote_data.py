"""A dataset of a service, as an analyst may know it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from farthing.client.wire import Wire
from farthing.composition.tariffs.tariff import Price
from farthing.engine.answer import Answer
from farthing.engine.kinds import query_from
from farthing.engine.spending import Spending
from farthing.ledger import Dataset, Limits, Purse
from farthing.schema import schema_from_json


@dataclass(frozen=True, slots=True, eq=False)
class RemoteData:
    """Where it is, what was declared about it, and whose purse pays."""

    wire: Wire
    about: Dataset
    analyst: str

    @classmethod
    def of(cls, wire: Wire, name: str, analyst: str) -> RemoteData:
        """What the service tells of it; NotInLedger if that is nothing."""
        told = wire.get(f"/v1/datasets/{quote(name, safe='')}", name)
        about = Dataset(
            name=told["name"],
            unit=told["unit"],
            owner="owner",  # who it is the service does not say
            schema=schema_from_json(told["columns"]) if told["columns"] else None,
            limits=Limits(**told["limits"]),
            version=told["version"],
        )
        return cls(wire, about, analyst)

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Something under the dataset's address."""
        return self.wire.get(self._at(path), self.about.name, params=params)

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        once: bool = False,
        params: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Something sent there; with `once` it is charged once."""
        return self.wire.post(self._at(path), body, self.about.name, once=once, params=params)

    def purse(self) -> Purse:
        """What was granted; which account it is of, the service does not say."""
        told = {name: value for name, value in self.get("purse").items() if name != "left"}
        return Purse(account=0, analyst=self.analyst, **told)

    def remaining(self) -> Price:
        """What is left of the purse."""
        return Price(**self.get("purse")["left"])

    def answer(self, told: Mapping[str, Any]) -> Answer:
        """The answer that was sent."""
        answer = Answer.from_json(
            told, query_from(told["query"]), remaining=Price(**told["remaining"])
        )
        spending = told["spending"]
        return replace(
            answer,
            cached=told["cached"],
            spending=None if spending is None else Spending(**spending),
        )

    def _at(self, path: str) -> str:
        return f"/v1/datasets/{quote(self.about.name, safe='')}/{path}"
