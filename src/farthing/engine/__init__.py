"""Private answers from real tables: queries, plans, releases.

Nothing here imports a database until a source is opened.
"""

from farthing.engine.answers import Answer
from farthing.engine.batches import Dashboard
from farthing.engine.data import Data, Question, open  # noqa: A004 # farthing.open is meant
from farthing.engine.errors import ChargeMismatch, EngineFailure
from farthing.engine.filters import AllOf, AnyOf, Between, Equals, OneOf, Present
from farthing.engine.plans import Plan
from farthing.engine.queries import (
    CountQuery,
    HistogramQuery,
    QuantileQuery,
    SumQuery,
    TopKQuery,
    query_from_json,
    query_to_json,
)

__all__ = [
    "AllOf",
    "Answer",
    "AnyOf",
    "Between",
    "ChargeMismatch",
    "CountQuery",
    "Dashboard",
    "Data",
    "EngineFailure",
    "Equals",
    "HistogramQuery",
    "OneOf",
    "Plan",
    "Present",
    "QuantileQuery",
    "Question",
    "SumQuery",
    "TopKQuery",
    "open",
    "query_from_json",
    "query_to_json",
]
