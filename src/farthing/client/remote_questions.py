"""Questions that a service answers. Nothing happens until `plan` or `run`."""

from __future__ import annotations

from dataclasses import dataclass

from farthing.client.remote_data import RemoteData
from farthing.client.remote_plans import RemoteBatchPlan, RemotePlan
from farthing.engine.any_question import AnyBatch, AnyQuestion


@dataclass(frozen=True, slots=True, repr=False)
class RemoteQuestion(AnyQuestion[RemoteData]):
    """A query asked of a dataset of a service."""

    def plan(
        self,
        *,
        half_width: float | None = None,
        rows: int | None = None,
        tells_apart: float | None = None,
    ) -> RemotePlan:
        body = {
            "query": self.query.to_json(),
            "half_width": half_width,
            "rows": rows,
            "tells_apart": tells_apart,
        }
        return RemotePlan(self._context, self._context.post("plan", body))


@dataclass(frozen=True, slots=True, repr=False)
class RemoteBatch(AnyBatch[RemoteData]):
    """Questions by name, fixed in advance. Either all of them run or none."""

    def plan(self) -> RemoteBatchPlan:
        told = self._context.post("plan", {"batch": self.to_json()["queries"]})
        return RemoteBatchPlan(self._context, told, self.queries)
