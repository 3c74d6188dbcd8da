"""What every plan that runs steps says: what they cost together, and what is known of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from farthing.composition.tariffs.tariff import Price
from farthing.engine.answer import Answer
from farthing.engine.context import Context
from farthing.engine.kinds.base import Query
from farthing.engine.loss_measurement import of_question, with_loss_questions
from farthing.engine.purchase import Purchase, buy
from farthing.engine.show.plans import FITS, Line, ShownPlan
from farthing.engine.show.sheet import amount
from farthing.engine.spending import Spending, spending_of
from farthing.engine.translate import Step, translate
from farthing.ledger import Terms

#: An earlier release, of one question or of several.
Known = TypeVar("Known")


@dataclass(frozen=True, slots=True, repr=False)
class PlanOfSteps(ShownPlan, Generic[Known]):
    """Everything that runs, under which terms, what it costs at most, and what remains.

    `known` is the earlier release, if the same was asked before.
    """

    _context: Context = field(compare=False)
    terms: Terms
    _steps: Mapping[str, Step] = field(compare=False)
    price: Price
    remaining: Price
    known: Known | None = field(compare=False)

    @property
    def fits(self) -> bool:
        """Enough remains to run it."""
        return self.known is not None or self.price.within(self.remaining)

    @property
    def spending(self) -> Spending:
        """The price as a share of the budget, and what is proved before and after."""
        return spending_of(self._context.snapshot, self.price, paid=False)

    def _cost_json(self) -> dict[str, Any]:
        """What it costs, as plain data."""
        return {
            "caption": self.caption,
            "price": asdict(self.price),
            "spending": self.spending.to_json(),
            "remaining": asdict(self.remaining),
            "fits": self.fits,
            "known": self.known is not None,
        }

    def _cost_lines(self, bought: str = "") -> Iterator[Line]:
        """What it costs, in words."""
        spending = self.spending
        yield "price", f"{amount(self.price)}, {spending.of_budget}{bought}", ""
        yield "remaining", amount(self.remaining), ""
        if spending.before_and_after is not None:
            yield "so far", spending.before_and_after, ""
        yield FITS[self.fits]

    def _known_lines(self) -> Iterator[Line]:
        """Whether it costs anything at all."""
        if self.known is not None:
            yield "known", "asked before: running costs nothing", "green"


def steps_of(context: Context, queries: Mapping[str, Query], terms: Terms) -> Mapping[str, Step]:
    """Everything that runs: the questions, and those that are asked beside them."""
    return MappingProxyType(
        {
            key: translate(context, buy(query, terms.tariff))
            for key, query in with_loss_questions(queries).items()
        }
    )


def purchases_in(steps: Mapping[str, Step]) -> dict[str, Purchase]:
    """What each step buys."""
    return {key: step.purchase for key, step in steps.items()}


def price_of(steps: Mapping[str, Step]) -> Price:
    """What all of them cost."""
    return sum((step.purchase.price for step in steps.values()), Price(0))


def earlier_answer(context: Context, name: str, steps: Mapping[str, Step]) -> Answer | None:
    """The release of one of the questions, if this analyst has it."""
    return context.earlier(name, purchases_in(of_question(name, steps)))
