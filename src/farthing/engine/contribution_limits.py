"""Contribution limits: what one leaves out, and how one is chosen automatically.

Loss measurement counts what a limit leaves out beside the question. The extra question runs in the
same reservation, and its answer becomes part of the other one.

An automatic limit is chosen first. At a limit Δ a unit changes Δ counts, so Δ coordinates are paid
for. Where the tariff sells cheaper items, each of them is taken from a rung that costs 1/Δ of what
the one count of limit 1 would: the price stays, and noise grows about as √Δ while less is left out.
The limit at which the two add up to least is chosen by a question of its own (kind `limit`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from farthing.composition.tariffs.tariff import Price, Tariff
from farthing.engine.answer import Answer
from farthing.engine.kinds.base import COUNT, SELECT, Query
from farthing.engine.kinds.counts import HistogramQuery, LossQuery
from farthing.engine.kinds.fields import AUTO
from farthing.engine.kinds.labels import LabelQuery
from farthing.engine.kinds.limit import LimitQuery
from farthing.engine.kinds.top_k import AT_ONCE, TopKQuery
from farthing.engine.loss import Loss
from farthing.engine.purchase import buy, items_for, items_together
from farthing.errors import InvalidInput
from farthing.mechanisms import Accuracy
from farthing.mechanisms.protocol import Interval

Bought = TypeVar("Bought")
Asked = TypeVar("Asked", bound=Query)

#: The name of the extra question is that of its question and this.
_ABOVE = " above the limit"


def with_loss_questions(queries: Mapping[str, Query]) -> dict[str, Query]:
    """The questions, each followed by the one that measures its loss, if that was asked for."""
    everything: dict[str, Query] = {}
    for key, query in queries.items():
        if key.endswith(_ABOVE) and key.removesuffix(_ABOVE) in queries:
            raise InvalidInput(f"a question cannot be called {key!r:.60} in this batch")
        everything[key] = query
        beside = _loss_question(query)
        if beside is not None:
            everything[key + _ABOVE] = beside
    return everything


def _loss_question(query: Query) -> LossQuery | None:
    """How many pairs are above the limit; None if that was not asked for, or none can be."""
    if not isinstance(query, LabelQuery) or not query.measure_loss:
        return None
    limit = query.contribution_limit
    if limit is None:
        raise InvalidInput("measure_loss needs a contribution_limit: without one nothing is lost")
    if limit == AUTO or (query.size is not None and limit >= query.size):
        return None
    return LossQuery(
        query.key, contribution_limit=limit, categories=query.domain, where=query.filter
    )


def of_question(name: str, everything: Mapping[str, Bought]) -> dict[str, Bought]:
    """What belongs to one question of several: itself, and the measurement of its loss."""
    return {key: everything[key] for key in (name, name + _ABOVE) if key in everything}


def paired(keys: Collection[str]) -> frozenset[str]:
    """The names of the questions whose loss is measured, and of the measurements."""
    beside = {key for key in keys if key + _ABOVE in keys}
    return frozenset(beside | {key + _ABOVE for key in beside})


def folded(
    answers: Mapping[str, Answer], totals: Mapping[str, Interval | None]
) -> dict[str, Answer]:
    """Each answer with the loss that was measured beside it.

    `totals`: intervals for the sum of each answer's numbers, two of which hold together.
    """
    return {
        key: _folded(answer, answers.get(key + _ABOVE), totals.get(key), totals.get(key + _ABOVE))
        for key, answer in answers.items()
        if not (key.endswith(_ABOVE) and key.removesuffix(_ABOVE) in answers)
    }


def _folded(
    answer: Answer, beside: Answer | None, total: Interval | None, above: Interval | None
) -> Answer:
    if beside is None or above is None:
        return answer
    assert isinstance(beside.query, LossQuery)
    query, kept = answer.query, None
    if total is not None and isinstance(query, HistogramQuery) and query.per_key_limit == 1:
        kept = float(sum(answer.counts or ())), total
    loss = Loss.beside(beside.value, above, kept, beside.query.looked_at)
    used = items_together([answer.used, beside.used])
    return replace(answer, loss=loss, price=answer.price + beside.price, used=used)


#: The largest limit that is tried for an unknown domain.
LARGEST_TRIED = 64
#: A limit may cost at most this many times what limit 1 costs.
DEAREST = 4
#: Choosing a limit costs at most 1/SHARE of what the question costs with limit 1.
SHARE = 4


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate: the question with this limit, its price, and the error of its noise."""

    limit: int
    query: LabelQuery
    price: Price
    accuracy: Accuracy

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "limit": self.limit,
            "farthings": self.price.farthings,
            "delta_units": self.price.delta_units,
            "item": self.query.count,
            "expected_error": self.accuracy.expected_error,
            "half_width": self.accuracy.half_width,
        }


@dataclass(frozen=True, slots=True)
class AutomaticLimit:
    """A question with an automatic limit, the question that chooses it, and the candidates."""

    query: LabelQuery
    first: LimitQuery
    choices: Mapping[int, Choice]

    @property
    def firsts(self) -> Mapping[str, Query]:
        """What is asked first, by the field that it is about."""
        return {"contribution_limit": self.first}

    @property
    def largest(self) -> Query:
        """The question with the largest limit."""
        return self.choices[max(self.choices)].query

    def chosen(self, found: Mapping[str, Any]) -> Query:
        """The question with the limit that was found."""
        return self.choices[int(found["contribution_limit"])].query

    def may_lose_more(self, query: Query) -> bool:
        """Whether this has the largest limit that was tried, and still leaves labels out."""
        assert isinstance(query, LabelQuery)
        return query == self.largest and query.limit is not None and query.limit != query.size

    @property
    def largest_price(self) -> Price:
        """The most that the question may cost once its limit is chosen."""
        prices = [choice.price for choice in self.choices.values()]
        return Price(max(p.farthings for p in prices), max(p.delta_units for p in prices))

    @property
    def dearer(self) -> Price:
        """How much more that is than the price at the largest limit."""
        return self.largest_price - self.choices[max(self.choices)].price


def automatic(
    query: Query, tariff: Tariff, confidence: float, most: int | None
) -> AutomaticLimit | None:
    """The candidates for an automatic limit; None if the question states its limit.

    `most` is the owner's limit, if there is one.
    """
    if not isinstance(query, LabelQuery) or query.contribution_limit != AUTO:
        return None
    limited = query.changed(contribution_limit=1)
    if COUNT not in limited.roles():
        raise InvalidInput(
            "without counts nothing depends on a limit: leave contribution_limit out"
        )
    base = buy(limited, tariff)
    assert isinstance(base.query, LabelQuery)
    share = tariff.price(str(base.query.count))
    choices = {}
    for limit in _tried(query, most):
        choice = _choice(base.query, limit, share, tariff, confidence)
        if choice.price.farthings <= DEAREST * base.price.farthings:
            choices[limit] = choice
    first = LimitQuery(
        query.key,
        limits=tuple(choices),
        noise=tuple(_error_of_one(c, base.price, query) for c in choices.values()),
        labels=query.k if isinstance(query, TopKQuery) else None,
        categories=query.domain,
        where=query.filter,
    )
    choices = {limit: _completed(choice, tariff, most) for limit, choice in choices.items()}
    return AutomaticLimit(query, affordable(first, base.price, tariff), choices)


def _error_of_one(choice: Choice, base: Price, query: LabelQuery) -> float:
    """The expected error of one count for the price of limit 1, in pairs of a unit and a label.

    Where the choice costs more, as much more noise as that price would have had to buy. A pair
    counts for `per_key_limit` rows.
    """
    dearer = max(1.0, choice.price.farthings / base.farthings)
    error = choice.accuracy.expected_error * math.sqrt(dearer) / query.per_key_limit
    return float(f"{error:.3g}")


def affordable(first: Asked, base: Price, tariff: Tariff) -> Asked:
    """On the best rung that costs a quarter of the question, or else the cheapest."""
    sold = [(tariff.price(name).farthings, name) for name in items_for(tariff, first, SELECT)]
    if not sold:
        return first  # buying it will say what is missing
    cheap = [rung for rung in sold if SHARE * rung[0] <= base.farthings]
    return first.changed(select=max(cheap or [min(sold)])[1])


def _tried(query: LabelQuery, most: int | None) -> list[int]:
    """1, 2, 4, … up to the largest that makes sense, and that one."""
    sizes = [size for size in (most, query.size) if size is not None]
    if isinstance(query, TopKQuery) and query.mechanism not in AT_ONCE:
        sizes.append(query.k)
    largest = min(sizes, default=LARGEST_TRIED)
    powers = [1 << j for j in range(largest.bit_length()) if 1 << j < largest]
    tried = [*powers, largest]
    return [limit for limit in tried if limit <= LARGEST_TRIED] or [1]


def _choice(
    query: LabelQuery, limit: int, share: Price, tariff: Tariff, confidence: float
) -> Choice:
    """The question with this limit, on the best rung that costs no more than one count of limit 1.

    If there is none, on the cheapest.
    """
    limited = query.changed(contribution_limit=limit)
    prices = {name: tariff.price(name).farthings for name in items_for(tariff, limited, COUNT)}
    cheap = [p for p in prices.values() if p * limited.coordinates <= share.farthings]
    wanted = max(cheap) if cheap else min(prices.values())
    choices = []
    for name in (name for name, price in prices.items() if price == wanted):
        purchase = buy(limited.changed(count=name), tariff)
        assert isinstance(purchase.query, LabelQuery)
        expected = limited.expect(purchase.mechanism(), confidence).counts
        assert expected is not None
        choices.append(Choice(limit, purchase.query, purchase.price, expected))
    return min(choices, key=lambda choice: choice.accuracy.expected_error)


def _completed(choice: Choice, tariff: Tariff, most: int | None) -> Choice:
    """With the price of the loss measurement, if there is one.

    A selection whose k labels all are paid for need not leave out more than the owner does.
    """
    query: Query = choice.query
    if isinstance(query, TopKQuery) and query.mechanism not in AT_ONCE and choice.limit >= query.k:
        measured = query.measure_loss and most is not None
        query = replace(query, contribution_limit=most, measure_loss=measured)
    assert isinstance(query, LabelQuery)
    bought = (buy(question, tariff).price for question in with_loss_questions({"": query}).values())
    return replace(choice, query=query, price=sum(bought, Price(0)))
