"""Plans that a service made: they say the same as those made here, and run there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from farthing.client.errors import refused_price
from farthing.client.remote_data import RemoteData
from farthing.composition.tariffs.tariff import Price
from farthing.engine.answer import Answer, Answers
from farthing.engine.kinds import query_from
from farthing.engine.kinds.base import Query
from farthing.engine.show.plans import FITS, Line, ShownPlan
from farthing.engine.spending import Spending
from farthing.ledger import DoesNotFit
from farthing.mechanisms import Accuracy, Expectation

#: How some lines look in a terminal.
_STYLES = {(name, words): style for name, words, style in FITS.values()}


@dataclass(frozen=True, slots=True, repr=False)
class ToldPlan(ShownPlan):
    """What every plan of a service says. `_told` is what it sent."""

    _context: RemoteData = field(compare=False)
    _told: Mapping[str, Any]

    @property
    def caption(self) -> str:
        """What it is a plan for."""
        return str(self._told["caption"])

    @property
    def price(self) -> Price:
        """What it costs, at most."""
        return Price(**self._told["price"])

    @property
    def remaining(self) -> Price:
        """What is left of the purse before it."""
        return Price(**self._told["remaining"])

    @property
    def fits(self) -> bool:
        """Enough remains to run it."""
        return bool(self._told["fits"])

    def to_json(self) -> dict[str, Any]:
        """Plain data, as the same plan has it that was made here."""
        return {name: one for name, one in self._told.items() if name not in ("lines", "told")}

    def lines(self) -> Iterator[Line]:
        for name, words in self._told["lines"]:
            yield name, words, "green" if name == "known" else _STYLES.get((name, words), "")

    def paid_for(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """What comes of it: as it was planned, at this price at most, or not at all."""
        try:
            return self._context.post(path, {**body, "price": asdict(self.price)}, once=True)
        except DoesNotFit as refused:
            left = self._context.remaining()
            raise refused_price(self.price, left, str(refused)) from None


@dataclass(frozen=True, slots=True, repr=False)
class RemotePlan(ToldPlan):
    """Price, accuracy and what remains. `run()` runs exactly this plan.

    `query` has its items named. `known` is the earlier release, if the same was asked before.
    """

    @property
    def query(self) -> Query:
        """The question, with its items named."""
        return query_from(self._told["query"])

    @property
    def items(self) -> Mapping[str, int]:
        """What is bought at most."""
        return dict(self._told["items"])

    @property
    def spending(self) -> Spending:
        """The price as a share of the budget, and what is proved before and after."""
        return Spending(**self._told["spending"])

    @property
    def expectation(self) -> Expectation:
        """What to expect before running; of totals only what is said of them."""
        told = self._told
        return Expectation(
            counts=_accuracy(told["counts"]),
            selection=_accuracy(told["selection"]),
            found_from=told["found_from"],
            threshold=told["threshold"],
            above_cutoff=told["above_cutoff"],
            told_apart=told["told_apart"],
        )

    @property
    def known(self) -> Answer | None:
        """The earlier release."""
        told = self._told["told"]
        return None if told is None else self._context.answer(told["answer"])

    def run(self, *, again: bool = False) -> Answer:
        """Pay and run. What was asked before is given out again at no cost, unless `again`."""
        told = self.paid_for("run", {"query": self._told["query"], "again": again})
        return self._context.answer(told["answer"])


@dataclass(frozen=True, slots=True, repr=False)
class RemoteBatchPlan(ToldPlan):
    """Several questions that are paid for and run together: all of them or none."""

    asked: Mapping[str, Query]

    @property
    def spending(self) -> Spending:
        """The price as a share of the budget, and what is proved before and after."""
        return Spending(**self._told["spending"])

    @property
    def known(self) -> Mapping[str, Answer] | None:
        """The earlier releases, if the same was asked before."""
        told = self._told["told"]
        return None if told is None else self._answers(told)

    def run(self, *, registered: str | None = None, again: bool = False) -> Answers:
        """Every answer, by name: from the purse, or from the list `registered`."""
        batch = {name: query.to_json() for name, query in self.asked.items()}
        body = {"batch": batch, "registered": registered, "again": again}
        return self._answers(self.paid_for("run", body))

    def _answers(self, told: Mapping[str, Any]) -> Answers:
        return Answers({name: self._context.answer(one) for name, one in told["answers"].items()})


def _accuracy(told: Mapping[str, Any] | None) -> Accuracy | None:
    return None if told is None else Accuracy(**told)
