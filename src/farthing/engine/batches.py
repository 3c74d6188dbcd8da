"""Dashboards: several questions, fixed in advance, paid for and run together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from farthing.composition.tariff import Price
from farthing.engine.answers import Answer
from farthing.engine.buying import price_of
from farthing.engine.data import Data, Question
from farthing.engine.errors import ChargeMismatch
from farthing.engine.prepared import Prepared, check_charge
from farthing.errors import InvalidInput
from farthing.mechanisms import Items

if TYPE_CHECKING:
    from farthing.ledger.facts import Reservation


@dataclass(frozen=True, slots=True)
class Dashboard:
    """Questions by name. Either all of them run or none."""

    data: Data = field(repr=False)
    questions: dict[str, Question]

    def __post_init__(self) -> None:
        if not self.questions:
            raise InvalidInput("a batch needs at least one question, got none")
        if any(question.data is not self.data for question in self.questions.values()):
            raise InvalidInput("every question of a batch must be asked of the same data")

    def price(self) -> Price:
        """What all of them cost together under the tariff in force."""
        return price_of(self.data.spending.tariff, _together(self._prepared()))

    def register(self, name: str) -> None:
        """Open an account for exactly this list, outside the tariff. The owner's decision.

        Nothing about the list depends on answers, so it gets the bound of lists that are fixed
        in advance. It adds to what the dataset gives away, and runs once.
        """
        self.data.spending.register(name, _guarantees(self._prepared()))

    def run(self, *, registered: str | None = None) -> dict[str, Answer]:
        """Every answer, by name: from the purse, or from the account `registered`."""
        prepared = self._prepared()
        held = self._reserve(prepared, registered)
        spending, tariff = self.data.spending, self.data.spending.tariff
        answers: dict[str, Answer] = {}
        used: Counter[str] = Counter(dict.fromkeys(held.items, 0))
        try:
            self._check(prepared, held, registered)
            for key, one in prepared.items():
                answers[key], spent = one.release(
                    self.data.source, tariff, confidence=self.data.confidence
                )
                used.update(spent)
        except BaseException as error:
            spending.abandon(held, reason=type(error).__name__)
            raise
        record = {key: answer.to_json() for key, answer in answers.items()}
        spending.close(held, record, used=None if registered else dict(used), keep=False)
        left = spending.remaining()
        return {key: answer.left_with(left) for key, answer in answers.items()}

    def _prepared(self) -> dict[str, Prepared]:
        return {key: question.prepare() for key, question in self.questions.items()}

    def _reserve(self, prepared: dict[str, Prepared], registered: str | None) -> Reservation:
        asked = {key: self.questions[key].asked(one.purchase) for key, one in prepared.items()}
        if registered is None:
            return self.data.spending.reserve(_together(prepared), asked)
        return self.data.spending.reserve_registered(registered, asked)

    def _check(
        self, prepared: dict[str, Prepared], held: Reservation, registered: str | None
    ) -> None:
        spending = self.data.spending
        if registered is None:
            check_charge(list(prepared.values()), dict(held.items), held.price, spending.tariff)
            return
        for one in prepared.values():
            one.charge()
        if spending.registered(registered) != _guarantees(prepared):
            raise ChargeMismatch(f"the batch is not the one that was registered as {registered}")


def _together(prepared: dict[str, Prepared]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in prepared.values():
        total.update(one.purchase.items)
    return dict(total)


def _guarantees(prepared: dict[str, Prepared]) -> dict[str, Items]:
    return {key: tuple(one.procedure.guarantees) for key, one in prepared.items()}
