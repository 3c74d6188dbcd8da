"""Where questions are answered: a table on this machine, or a service over HTTP.

`fa.open` and `fa.connect` return the same `Session`; only its backend differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from farthing.composition.tariffs.tariff import Price
from farthing.engine.accuracy_target import Aim
from farthing.engine.answer import Answers, PastRelease
from farthing.engine.conversation import ConversationPlan, OpenConversation
from farthing.engine.conversation_kinds.base import ConversationKind
from farthing.engine.kinds.base import Query
from farthing.engine.plan import Plan
from farthing.ledger import Dataset, OpenedConversation, Purse


class Backend(Protocol):
    """Plans and runs the questions of one analyst about one dataset."""

    @property
    def about(self) -> Dataset:
        """The data, as its owner declared it when this was opened."""

    @property
    def analyst_name(self) -> str:
        """Whose purse pays."""

    @property
    def place(self) -> str | None:
        """Where the budget is kept: the path of a ledger, or the address of a service."""

    def plan(self, queries: Mapping[str, Query], aim: Aim | None = None) -> Plan[Any]:
        """The plan for questions by name. Looks at the schema and the ledger, never at rows."""

    def run(self, plan: Plan[Any], *, registered: str | None, again: bool) -> Answers:
        """Pay for a plan and run it: every answer, by name."""

    def plan_conversation(self, kind: ConversationKind, questions: int) -> ConversationPlan:
        """The plan for a conversation, with its accuracy for so many questions."""

    def open(self, plan: ConversationPlan) -> OpenConversation:
        """Pay for a conversation and open it."""

    def conversation(self, identity: str) -> OpenConversation:
        """A conversation that this analyst opened; NotInLedger if there is none."""

    def conversations(self) -> list[OpenedConversation]:
        """Every conversation that this analyst opened about this data."""

    def history(self) -> list[PastRelease]:
        """Everything that was released to this analyst about this data, the latest first."""

    def purse(self) -> Purse:
        """What was granted, and what is spent of it."""

    def remaining(self) -> Price:
        """Farthings and δ units that are left."""

    def shut(self) -> None:
        """Give back what is held open."""
