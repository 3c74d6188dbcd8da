"""Private answers from real tables: questions, plans, releases, and the owner's desk."""

try:
    import sqlglot  # noqa: F401 # only to say clearly what is missing
except ModuleNotFoundError as error:
    from farthing.optional import explained

    raise explained(error) or error from None

from farthing.engine.answer import Answer, Answers, PastRelease
from farthing.engine.any_conversation import WatchAnswer
from farthing.engine.batch_plan import BatchPlan
from farthing.engine.converse import WatchConversation
from farthing.engine.desk import Declaration, Desk
from farthing.engine.errors import ChargeMismatch, EngineFailure, EngineSilent, PaidInPart
from farthing.engine.filters import AllOf, AnyOf, Between, Equals, Not, OneOf, Present
from farthing.engine.keys import bins, day, hour, month, quarter, week, year
from farthing.engine.kinds import query_from
from farthing.engine.plan import Plan
from farthing.engine.question import Batch, Question
from farthing.engine.session import Session, open  # noqa: A004 # farthing.open is meant
from farthing.engine.sources.opening import open_source
from farthing.engine.spending import Interrupted
from farthing.engine.watch import Watch, WatchPlan

__all__ = [
    "AllOf",
    "Answer",
    "Answers",
    "AnyOf",
    "Batch",
    "BatchPlan",
    "Between",
    "ChargeMismatch",
    "Declaration",
    "Desk",
    "EngineFailure",
    "EngineSilent",
    "Equals",
    "Interrupted",
    "Not",
    "OneOf",
    "PaidInPart",
    "PastRelease",
    "Plan",
    "Present",
    "Question",
    "Session",
    "Watch",
    "WatchAnswer",
    "WatchConversation",
    "WatchPlan",
    "bins",
    "day",
    "hour",
    "month",
    "open",
    "open_source",
    "quarter",
    "query_from",
    "week",
    "year",
]
