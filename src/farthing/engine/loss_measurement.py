"""Loss measurement: what a contribution limit leaves out is counted beside the question.

The extra question runs in the same reservation, and its answer becomes part of the other one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from farthing.engine.answer import Answer, Loss
from farthing.engine.kinds.base import Query
from farthing.engine.kinds.counts import LossQuery
from farthing.engine.kinds.fields import AUTO
from farthing.engine.kinds.histogram import HistogramQuery
from farthing.engine.kinds.labels import LabelQuery
from farthing.errors import InvalidInput
from farthing.mechanisms.protocol import Interval

Bought = TypeVar("Bought")

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
    used = dict(answer.used)
    for name, times in beside.used.items():
        used[name] = used.get(name, 0) + times
    return replace(answer, loss=loss, price=answer.price + beside.price, used=used)
