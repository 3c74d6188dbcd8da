"""Private answers from real tables: questions, plans, releases, and the owner's desk."""

try:
    import sqlglot  # noqa: F401 # only to say clearly what is missing
except ModuleNotFoundError as error:
    from farthing.optional import explained

    raise explained(error) or error from None

from farthing.engine.answer import Answer
from farthing.engine.answers import Answers
from farthing.engine.conversation import Conversation, ConversationAnswer
from farthing.engine.derived import difference, ratio
from farthing.engine.desk import Declaration, Desk
from farthing.engine.errors import (
    ChargeMismatch,
    EngineFailure,
    EngineSilent,
    Interrupted,
    PaidInPart,
)
from farthing.engine.filters import AllOf, AnyOf, Between, Equals, Not, OneOf, Present
from farthing.engine.keys import bins, day, hour, month, quarter, week, year
from farthing.engine.kinds import query_from
from farthing.engine.local import (
    LocalBackend,
    open,  # noqa: A004 # farthing.open is meant
)
from farthing.engine.plan import Backend, ConversationPlan, PastRelease, Plan, PlannedQuestion
from farthing.engine.session import Batch, Question, Session, Watch
from farthing.engine.show.table import Table
from farthing.engine.sources.opening import open_source

__all__ = [
    "AllOf",
    "Answer",
    "Answers",
    "AnyOf",
    "Backend",
    "Batch",
    "Between",
    "ChargeMismatch",
    "Conversation",
    "ConversationAnswer",
    "ConversationPlan",
    "Declaration",
    "Desk",
    "EngineFailure",
    "EngineSilent",
    "Equals",
    "Interrupted",
    "LocalBackend",
    "Not",
    "OneOf",
    "PaidInPart",
    "PastRelease",
    "Plan",
    "PlannedQuestion",
    "Present",
    "Question",
    "Session",
    "Table",
    "Watch",
    "bins",
    "day",
    "difference",
    "hour",
    "month",
    "open",
    "open_source",
    "quarter",
    "query_from",
    "ratio",
    "week",
    "year",
]
