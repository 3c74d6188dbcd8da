"""Dashboards: several questions, fixed in advance, paid for and run together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from farthing.canonical import digest
from farthing.composition.tariff import Price
from farthing.engine.answers import Answer
from farthing.engine.data import Data, Question
from farthing.engine.prepared import Prepared, check_charge
from farthing.engine.queries import query_to_json
from farthing.errors import InvalidInput
from farthing.mechanisms import Items

if TYPE_CHECKING:
    from farthing.ledger.facts import Reservation


@dataclass(frozen=True, slots=True)
class Dashboard:
    """Questions by name. Either all of them run or none. Plain data: {"kind": "batch", …}."""

    data: Data = field(repr=False)
    questions: Mapping[str, Question]

    def __post_init__(self) -> None:
        if not self.questions:
            raise InvalidInput("a batch needs at least one question, got none")
        if any(question.data is not self.data for question in self.questions.values()):
            raise InvalidInput("every question of a batch must be asked of the same data")
        object.__setattr__(self, "questions", MappingProxyType(dict(self.questions)))

    def to_json(self) -> dict[str, Any]:
        """Plain data; `data.ask` reads it back."""
        queries = {name: query_to_json(asked.query) for name, asked in self.questions.items()}
        return {"kind": "batch", "queries": queries}

    def price(self) -> Price:
        """What all of them cost together under the tariff in force."""
        return self.data.spending.tariff.price_of(_together(self._prepared()))

    def register(self, name: str) -> None:
        """Open an account for exactly this list, outside the tariff. The owner's decision.

        Nothing about the list depends on answers, so it gets the bound of lists that are fixed
        in advance. It adds to what the dataset gives away, and runs once.
        """
        self.data.spending.register(name, _registered(self._prepared()))

    def run(self, *, registered: str | None = None, again: bool = False) -> dict[str, Answer]:
        """Every answer, by name: from the purse, or from the account `registered`.

        What was asked before is given out again at no cost, unless `again`.
        """
        prepared = self._prepared()
        asked = {key: self.questions[key].asked(one.purchase) for key, one in prepared.items()}
        spending, kept = self.data.spending, self.data.source.version is not None
        known = spending.earlier(asked) if kept and not again else None
        if known is not None:
            left = spending.remaining()
            return {key: Answer.from_json(known[key], remaining=left, cached=True) for key in asked}
        held = self._reserve(prepared, asked, registered)
        answers: dict[str, Answer] = {}
        used: Counter[str] = Counter(dict.fromkeys(held.items, 0))
        try:
            self._check(prepared, held, registered)
            for key, one in prepared.items():
                answers[key], spent = one.release(self.data.source, confidence=self.data.confidence)
                used.update(spent)
        except BaseException as error:
            spending.abandon(held, reason=type(error).__name__)
            raise
        record = {key: answer.to_json() for key, answer in answers.items()}
        spending.close(held, record, used=None if registered else dict(used), keep=kept)
        left = spending.remaining()
        return {key: answer.left_with(left) for key, answer in answers.items()}

    def _prepared(self) -> dict[str, Prepared]:
        return {key: question.prepare() for key, question in self.questions.items()}

    def _reserve(
        self, prepared: dict[str, Prepared], asked: Any, registered: str | None
    ) -> Reservation:
        spending = self.data.spending
        if registered is None:
            under = max(one.account for one in prepared.values())
            return spending.reserve(_together(prepared), asked, under=under)
        if spending.registered(registered) != _registered(prepared):
            raise InvalidInput(f"this batch is not the one that was registered as {registered}")
        return spending.reserve_registered(registered, asked)

    def _check(
        self, prepared: dict[str, Prepared], held: Reservation, registered: str | None
    ) -> None:
        if registered is None:
            tariff = self.data.spending.tariff_of(held)
            check_charge(list(prepared.values()), dict(held.items), held.price, tariff)
            return
        for one in prepared.values():
            one.charge()


def _together(prepared: dict[str, Prepared]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in prepared.values():
        total.update(one.purchase.items)
    return dict(total)


def _registered(prepared: dict[str, Prepared]) -> dict[str, Items]:
    """Guarantees by name, which says what is asked too: a registered list is exactly that list."""
    return {
        f"{key} {digest(query_to_json(one.purchase.query))[:16]}": tuple(one.procedure.guarantees)
        for key, one in prepared.items()
    }
