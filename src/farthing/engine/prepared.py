"""A query that is ready to run: what was bought, the statement, and the mechanism."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from farthing.composition.tariff import Price, Tariff
from farthing.engine.answers import Answer, answer_of
from farthing.engine.buying import Purchase, charge_of, price_of
from farthing.engine.compiling import Compiled, data_from
from farthing.engine.errors import ChargeMismatch, EngineFailure
from farthing.engine.procedures import Procedure
from farthing.engine.sources import Source, log
from farthing.mechanisms import Items, Release, TopKWithCounts


@dataclass(frozen=True, slots=True)
class Prepared:
    """Checked against what was reserved, then run."""

    purchase: Purchase
    compiled: Compiled
    procedure: Procedure

    def charge(self) -> dict[str, int]:
        """The items once more, from the mechanism's own guarantees.

        The purchase counted them from what was asked; a difference is a mistake in one of the two.
        """
        self._check_limits()
        return charge_of(self.procedure.guarantees, self.purchase)

    def release(
        self, source: Source, tariff: Tariff, *, confidence: float
    ) -> tuple[Answer, dict[str, int]]:
        """Run statement and mechanism: the answer, and the items that it shows were used."""
        query = self.purchase.query
        rows = source.run(self.compiled.sql)
        release, guarantees = self._private(rows)
        used = charge_of(guarantees, self.purchase)
        answer = answer_of(
            query,
            release,
            self.procedure.expect(confidence),
            confidence=confidence,
            price=price_of(tariff, {name: times for name, times in used.items() if times > 0}),
            used=used,
        )
        log.info("released a %s on %s for %s", query.kind, source.name, used)
        return answer, used

    def _private(self, rows: Any) -> tuple[Release, Items]:
        """The mechanism's release. Should it fail, the message may depend on the rows."""
        try:
            return self.procedure.run(data_from(self.purchase.query, rows))
        except Exception:
            log.exception("the mechanism failed")
        raise EngineFailure

    def _check_limits(self) -> None:
        """The statement limits each unit at least as strictly as the mechanism assumes."""
        for per_key_limit, contribution_limit, labels in self._assumptions():
            enforced = [n for n in (self.compiled.contribution_limit, labels) if n is not None]
            loose = contribution_limit is not None and (
                not enforced or min(enforced) > contribution_limit
            )
            if loose or self.compiled.per_key_limit > per_key_limit:
                raise ChargeMismatch("the statement does not enforce the limits that are assumed")

    def _assumptions(self) -> Iterator[tuple[int, int | None, int | None]]:
        """(per_key_limit, contribution_limit, how many labels it sees) of each part."""
        mechanism = self.procedure.mechanism
        categories = getattr(self.purchase.query, "categories", None)
        seen = None if categories is None else len(categories)
        parts: list[tuple[Any, int | None]]
        if isinstance(mechanism, TopKWithCounts):
            parts = [(mechanism.selection, seen), (mechanism.counting, mechanism.selection.k)]
        else:
            parts = [(mechanism, seen)]
        for part, labels in parts:
            limit = getattr(part, "contribution_limit", None)
            yield getattr(part, "per_key_limit", 1), limit, labels


def check_charge(
    prepared: list[Prepared], items: dict[str, int], price: Price, tariff: Tariff
) -> None:
    """What was reserved is what the compiled plans cost, item by item and in farthings."""
    charge: dict[str, int] = {}
    for one in prepared:
        for name, times in one.charge().items():
            charge[name] = charge.get(name, 0) + times
    if charge != items or price_of(tariff, charge) != price:
        raise ChargeMismatch(f"the compiled plan costs {charge}, but {items} was reserved")
