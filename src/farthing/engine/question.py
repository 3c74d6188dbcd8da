"""A question, and several of them together. Nothing happens until `plan` or `run`."""

from __future__ import annotations

from dataclasses import dataclass

from farthing.engine.accuracy_target import Aim
from farthing.engine.any_question import AnyBatch, AnyQuestion
from farthing.engine.batch_plan import BatchPlan, plan_many
from farthing.engine.context import Context
from farthing.engine.plan import Plan, plan_one


@dataclass(frozen=True, slots=True, repr=False)
class Question(AnyQuestion[Context]):
    """A query asked of some data."""

    def plan(
        self,
        *,
        half_width: float | None = None,
        rows: int | None = None,
        tells_apart: float | None = None,
    ) -> Plan:
        return plan_one(self._context, self.query, Aim.of(half_width, tells_apart, rows))


@dataclass(frozen=True, slots=True, repr=False)
class Batch(AnyBatch[Context]):
    """Questions by name, fixed in advance. Either all of them run or none."""

    def plan(self) -> BatchPlan:
        return plan_many(self._context, self.queries)
