"""A query that is ready to run: what was bought, the statement, and the mechanism."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from farthing.composition.tariff import Price, Tariff
from farthing.engine.answers import Answer, answer_of
from farthing.engine.buying import Purchase, charge_of, covers
from farthing.engine.compiling import Compiled, data_from
from farthing.engine.errors import ChargeMismatch, EngineFailure
from farthing.engine.procedures import Procedure
from farthing.engine.sources import Source, log
from farthing.engine.sums import ClippedSum
from farthing.mechanisms import TopKWithCounts


@dataclass(frozen=True, slots=True)
class Prepared:
    """Checked against what was reserved, then run. Planned with the tariff of `account`."""

    tariff: Tariff
    account: int
    purchase: Purchase
    compiled: Compiled
    procedure: Procedure

    def charge(self) -> dict[str, int]:
        """The items once more, from the mechanism's own guarantees.

        The purchase counted them from what was asked; a difference is a mistake in one of the two.
        """
        self._check_limits()
        return charge_of(self.procedure.guarantees, self.purchase)

    def release(self, source: Source, *, confidence: float) -> tuple[Answer, dict[str, int]]:
        """Run statement and mechanism: the answer, and the items that it shows were used."""
        query = self.purchase.query
        rows = source.run(self.compiled.sql)
        try:
            answer, used = self._private(rows, confidence)
        except Exception:
            log.exception("the mechanism failed")
            answer = None
        if answer is None:  # outside, so that nothing of the failure hangs on to the error
            raise EngineFailure
        log.info("released a %s on %s for %s", query.kind, source.name, used)
        return answer, used

    def _private(self, rows: Any, confidence: float) -> tuple[Answer, dict[str, int]]:
        """The mechanism's release. Should it fail, the message may depend on the rows."""
        query = self.purchase.query
        release, guarantees = self.procedure.run(data_from(query, rows))
        used = charge_of(guarantees, self.purchase)
        answer = answer_of(
            query,
            release,
            self.procedure.expect(confidence),
            confidence=confidence,
            price=self.tariff.price_of({name: times for name, times in used.items() if times > 0}),
            used=used,
        )
        return answer, used

    def _check_limits(self) -> None:
        """The statement limits each unit at least as strictly as the mechanism assumes."""
        bounded, mechanism = self.compiled.bounded, self.procedure.mechanism
        if isinstance(mechanism, ClippedSum):
            if bounded.bounds != (mechanism.lower, mechanism.upper):
                raise ChargeMismatch("the statement does not move sums into the bounds assumed")
            return
        for per_key_limit, contribution_limit, labels in self._assumptions():
            enforced = [n for n in (bounded.contribution_limit, labels) if n is not None]
            loose = contribution_limit is not None and (
                not enforced or min(enforced) > contribution_limit
            )
            if loose or bounded.per_key_limit > per_key_limit:
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
    """What was reserved is what the compiled plans cost, item by item and in farthings.

    `tariff` is the one the reservation was made under: its items must promise what the
    mechanisms use, whatever they were called when the plan was made.
    """
    charge: dict[str, int] = {}
    for one in prepared:
        for name, guarantee in one.purchase.guarantees.items():
            if name not in tariff.items or not covers(tariff.items[name][0], guarantee):
                raise ChargeMismatch(f"{name} is not sold under the tariff that was charged")
        for name, times in one.charge().items():
            charge[name] = charge.get(name, 0) + times
    if charge != items or tariff.price_of(charge) != price:
        raise ChargeMismatch(f"the compiled plan costs {charge}, but {items} was reserved")
