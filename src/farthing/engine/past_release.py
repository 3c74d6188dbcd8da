"""What an analyst was told earlier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from farthing.composition.tariffs.tariff import Price
from farthing.wording import many, plain

#: The word for several questions in plain data.
BATCH = "batch"


@dataclass(frozen=True, slots=True, repr=False)
class PastRelease:
    """One release: when it was made, what was asked in words and as plain data, and its price.

    `data.ask(past.query).run()` shows it again, at no cost while the rows are in the same version.
    """

    time: str
    asked: str
    price: Price
    query: Mapping[str, Any] = field(hash=False)

    @classmethod
    def of(
        cls, time: str, asked: str, price: Price, queries: Mapping[str, Mapping[str, Any]]
    ) -> PastRelease:
        """From queries by name, of which one without a name was asked alone."""
        alone = queries.get("")
        query = {"kind": BATCH, "queries": dict(queries)} if alone is None else alone
        return cls(time, asked, price, query)

    def __repr__(self) -> str:
        paid = many(self.price.farthings, "farthing")
        return plain(f"<Release of {self.time[:16].replace('T', ' ')}: {self.asked}, {paid}>")
