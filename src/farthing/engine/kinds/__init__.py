"""Every kind of question, a line each."""

from __future__ import annotations

from collections.abc import Mapping

from farthing.engine.kinds.asking import Asked, Asker, Kind
from farthing.engine.kinds.base import Query
from farthing.engine.kinds.count import CountQuery
from farthing.engine.kinds.distinct import DistinctQuery
from farthing.engine.kinds.histogram import HistogramQuery
from farthing.engine.kinds.limit import LimitQuery
from farthing.engine.kinds.loss import LossQuery
from farthing.engine.kinds.mean import MeanQuery
from farthing.engine.kinds.quantile import QuantileQuery
from farthing.engine.kinds.standard_deviation import StandardDeviationQuery
from farthing.engine.kinds.sum import SumQuery
from farthing.engine.kinds.top_k import TopKQuery
from farthing.engine.kinds.variance import VarianceQuery
from farthing.errors import InvalidInput, require_choice


class Kinds(Asker[Asked]):
    """What can be asked. The name of the method is the word for it everywhere."""

    count = Kind(CountQuery)
    histogram = Kind(HistogramQuery)
    top_k = Kind(TopKQuery)
    quantile = Kind(QuantileQuery)
    sum = Kind(SumQuery)
    mean = Kind(MeanQuery)
    variance = Kind(VarianceQuery)
    standard_deviation = Kind(StandardDeviationQuery)
    distinct = Kind(DistinctQuery)
    loss = Kind(LossQuery)
    limit = Kind(LimitQuery)


#: The kinds by the word for them.
KINDS: Mapping[str, type[Query]] = {
    name: kind.query for name, kind in vars(Kinds).items() if isinstance(kind, Kind)
}


def query_from(given: object) -> Query:
    """A query as it is, or from its plain data."""
    if isinstance(given, Query):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput(f"a query must be a table of fields, got {type(given).__name__}")
    kind = require_choice("kind", given.get("kind"), KINDS)
    return KINDS[kind].from_json(given)
