"""What an owner decides: datasets, schemas, versions."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict

from farthing.engine.desk import Declaration
from farthing.engine.sources.base import Source
from farthing.errors import InvalidInput
from farthing.ledger import Limits, NotInLedger
from farthing.schema import schema_from_json
from farthing.server.answering import answered_once
from farthing.server.coming_in import At, IdempotencyKey, Name, OwnerHere, UnpaidRoute, refusals
from farthing.server.job_records import Outcome
from farthing.server.owner_budget_routes import account_json, granted_json
from farthing.server.problems import nothing_here
from farthing.server.service import Service

owner_router = APIRouter(prefix="/v1/owner", route_class=UnpaidRoute, tags=["owner"])


class DatasetBody(BaseModel):
    """A dataset of the configuration, as it is to be declared."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"name": "events", "unit": "member_id"}]}
    )

    name: Name
    unit: Name
    columns: list[dict[str, Any]] | None = None
    contribution_limit: int | None = None
    per_key_limit: int | None = None
    version: Name | None = "1"
    beside: Name | None = None

    def declaration(self) -> Declaration:
        """What is said about the data.

        The configuration says what the service reads, so nobody has it read another file, as a
        public table, from afar.
        """
        schema = None if self.columns is None else schema_from_json(self.columns)
        if schema is not None and any(column.lookup is not None for column in schema.columns):
            raise InvalidInput(
                "columns from public tables are declared where the data is: farthing owner add"
            )
        return Declaration(
            unit=self.unit,
            schema=schema,
            limits=Limits(self.contribution_limit, self.per_key_limit),
            version=self.version,
        )


class VersionBody(BaseModel):
    """The state that the rows are in; null: they change without notice."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"version": "2"}]})

    version: Name | None


@owner_router.get("/datasets", responses=refusals())
def list_all_datasets(service: At, _: OwnerHere) -> dict[str, Any]:
    """Every dataset of the configuration and of the ledger."""
    known = service.ledger.reader().datasets()
    names = sorted({*known, *service.sources})
    return {"datasets": [_dataset(service, name, name in known) for name in names]}


@owner_router.post("/datasets", responses=refusals(404, 409))
async def add_dataset(
    body: DatasetBody, service: At, caller: OwnerHere, idempotency_key: IdempotencyKey = None
) -> JSONResponse:
    """Declare a dataset of the configuration: unit, columns, limits, version."""

    def work() -> Outcome:
        source = source_called(service, body.name)
        desk = service.desk(caller.name)
        desk.add(source, body.declaration(), name=body.name, beside=body.beside)
        return 200, _dataset(service, body.name, True)

    return await answered_once(service, caller, idempotency_key, body.model_dump(), work)


@owner_router.get("/datasets/{dataset}", responses=refusals(404))
def show_any_dataset(dataset: str, service: At, _: OwnerHere) -> dict[str, Any]:
    """Declaration, accounts and purses."""
    known = dataset in service.ledger.reader().datasets()
    if not known and dataset not in service.sources:
        raise nothing_here()
    return _dataset(service, dataset, known)


@owner_router.get("/datasets/{dataset}/schema", responses=refusals(404))
def propose_columns(dataset: str, service: At, _: OwnerHere) -> dict[str, Any]:
    """The columns that the engine's own types propose, to be looked at and changed."""
    proposal = source_called(service, dataset).proposed_schema()
    return {
        "columns": [column.to_json() for column in proposal.columns],
        "left_out": [{"name": name, "type": kind} for name, kind in proposal.left_out],
    }


@owner_router.post("/datasets/{dataset}/versions", responses=refusals(404, 409))
def declare_rows(dataset: str, body: VersionBody, service: At, caller: OwnerHere) -> dict[str, Any]:
    """The rows are in another state now: earlier releases are not given out again."""
    service.desk(caller.name).declare_version(dataset, body.version)
    return _dataset(service, dataset, True)


def source_called(service: Service, name: str) -> Source:
    """A source of the configuration: an owner's token opens no other files."""
    if name not in service.sources:
        raise NotInLedger(f"the configuration has no dataset {name!r:.60}")
    return service.sources[name]


def _dataset(service: Service, name: str, known: bool) -> dict[str, Any]:
    if not known:
        return {"name": name, "served": True, "declared": False}
    reader = service.ledger.reader()
    return {
        **reader.dataset(name).to_json(),
        "served": name in service.sources,
        "declared": True,
        "accounts": [account_json(one) for one in reader.accounts(name)],
        "grants": [granted_json(one) for one in reader.purses(name)],
        "open_reservations": len(reader.open_reservations(name)),
        "open_conversations": sum(one.open for one in reader.conversations(name)),
    }
