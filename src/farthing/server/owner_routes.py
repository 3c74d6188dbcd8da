"""What an owner decides: datasets, schemas, versions, purses, tariffs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from farthing.composition.certificate import Certificate, verify_document
from farthing.composition.tariff_files import tariff_from_json
from farthing.engine.desk import Declaration
from farthing.engine.first_budget import EpsilonDelta
from farthing.engine.sources.base import Source
from farthing.errors import InvalidInput
from farthing.ledger import Account, Limits, NotInLedger, Purse
from farthing.schema import schema_from_json
from farthing.server.answering import answered_once, not_interrupted, run_or_job
from farthing.server.asking import MOST_IN_A_BATCH, purse_json
from farthing.server.coming_in import At, IdempotencyKey, OwnerHere, Prefer, refusals
from farthing.server.jobs import Outcome, Run
from farthing.server.plain_json import PlainRoute
from farthing.server.problems import nothing_here
from farthing.server.service import Service

owner_router = APIRouter(prefix="/v1/owner", route_class=PlainRoute, tags=["owner"])

Name = Annotated[str, Field(min_length=1, max_length=200)]


class TariffBody(BaseModel):
    """A budget: (ε, δ), of which a ladder is made; a tariff; or a certificate, proved again."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"epsilon": 3.0, "delta": 1e-6}]}
    )

    epsilon: float | None = None
    delta: float | None = None
    tariff: dict[str, Any] | None = None
    certificate: dict[str, Any] | None = None
    name: Name = "tariff"

    def proved(self) -> Certificate:
        """What is to be signed."""
        budget = EpsilonDelta.of(self.epsilon, self.delta)
        given = [one for one in (budget, self.tariff, self.certificate) if one is not None]
        if len(given) != 1:
            raise InvalidInput("give epsilon and delta, or a tariff, or a certificate")
        if budget is not None:
            return budget.certificate()
        if self.tariff is not None:
            return tariff_from_json(self.tariff).certify()
        return verify_document(self.certificate)


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


class GrantBody(BaseModel):
    """Farthings for an analyst."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"analyst": "ann", "farthings": 100}]}
    )

    analyst: Name
    farthings: int
    delta_units: int | None = None
    renewal: str | None = None


class ListBody(BaseModel):
    """Questions that are fixed in advance, for an analyst to run once."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"name": "monday", "analyst": "ann", "queries": {"all": {"kind": "count"}}}
            ]
        },
    )

    name: Name
    analyst: Name
    queries: Annotated[dict[Name, dict[str, Any]], Field(min_length=1, max_length=MOST_IN_A_BATCH)]


@owner_router.get("/datasets", responses=refusals())
def list_all_datasets(service: At, _: OwnerHere) -> dict[str, Any]:
    """Every dataset of the configuration and of the ledger."""
    known = service.ledger.reader().datasets()
    names = sorted({*known, *service.sources})
    return {"datasets": [_dataset(service, name, name in known) for name in names]}


@owner_router.post("/datasets", responses=refusals(404, 409))
def add_dataset(
    body: DatasetBody, service: At, caller: OwnerHere, idempotency_key: IdempotencyKey = None
) -> JSONResponse:
    """Declare a dataset of the configuration: unit, columns, limits, version."""

    def work() -> Outcome:
        source = source_called(service, body.name)
        desk = service.desk(caller.name)
        desk.add(source, body.declaration(), name=body.name, beside=body.beside)
        return 200, _dataset(service, body.name, True)

    return answered_once(service, caller, idempotency_key, body.model_dump(), work)


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


@owner_router.get("/datasets/{dataset}/grants", responses=refusals(404))
def list_purses(dataset: str, service: At, _: OwnerHere) -> dict[str, Any]:
    """Every purse, of the oldest tariff first."""
    return {"grants": [_purse(one) for one in service.ledger.reader().purses(dataset)]}


@owner_router.post("/datasets/{dataset}/grants", responses=refusals(404, 409))
def grant_purse(
    dataset: str,
    body: GrantBody,
    service: At,
    caller: OwnerHere,
    idempotency_key: IdempotencyKey = None,
) -> JSONResponse:
    """Give an analyst farthings; a second grant adds to the first."""

    def work() -> Outcome:
        purse = service.desk(caller.name).grant(dataset, **body.model_dump())
        return 200, _purse(purse)

    asked = {"dataset": dataset, "grant": body.model_dump()}
    return answered_once(service, caller, idempotency_key, asked, work)


@owner_router.delete("/datasets/{dataset}/grants/{analyst}", responses=refusals(404, 409))
def revoke_purse(dataset: str, analyst: str, service: At, caller: OwnerHere) -> dict[str, Any]:
    """Take back what is left of a purse; tokens stay valid, and see what was released."""
    return {"taken": asdict(service.desk(caller.name).revoke(dataset, analyst))}


@owner_router.get("/datasets/{dataset}/accounts", responses=refusals(404))
def list_accounts(dataset: str, service: At, _: OwnerHere) -> dict[str, Any]:
    """Tariffs and registered lists, the oldest first."""
    return {"accounts": [_account_json(one) for one in service.ledger.reader().accounts(dataset)]}


@owner_router.post("/tariffs", responses=refusals(408))
def certify_tariff(
    body: TariffBody, service: At, caller: OwnerHere, prefer: Prefer = None
) -> JSONResponse:
    """Prove a budget and sign nothing: the certificate, to be looked at. Takes seconds."""

    def work() -> Outcome:
        run = Run(caller.key, None, "certify", not_interrupted)
        return run_or_job(service, run, prefer, lambda: body.proved().to_json())

    return answered_once(service, caller, None, None, work)


@owner_router.post("/datasets/{dataset}/tariffs", responses=refusals(404, 408, 409))
def sign_tariff(
    dataset: str,
    body: TariffBody,
    service: At,
    caller: OwnerHere,
    idempotency_key: IdempotencyKey = None,
    prefer: Prefer = None,
) -> JSONResponse:
    """Prove a budget and put it in force; one that was in force is retired. Takes seconds."""

    def sign() -> dict[str, Any]:
        signed = service.desk(caller.name).sign(dataset, body.proved(), name=body.name)
        return _account_json(signed)

    def work() -> Outcome:
        if dataset not in service.ledger.reader().datasets():
            raise nothing_here()
        run = Run(caller.key, dataset, "sign", not_interrupted)
        return run_or_job(service, run, prefer, sign)

    asked = {"dataset": dataset, "sign": body.model_dump()}
    return answered_once(service, caller, idempotency_key, asked, work)


@owner_router.post("/datasets/{dataset}/lists", responses=refusals(404, 408, 409))
def register_list(
    dataset: str,
    body: ListBody,
    service: At,
    caller: OwnerHere,
    idempotency_key: IdempotencyKey = None,
    prefer: Prefer = None,
) -> JSONResponse:
    """An account for exactly these questions, proved by the bound for lists that are fixed in
    advance. It adds to what the dataset gives away, and is no part of any purse."""

    def register() -> dict[str, Any]:
        desk = service.desk(caller.name)
        return _account_json(desk.register(dataset, body.name, body.queries, analyst=body.analyst))

    def work() -> Outcome:
        if dataset not in service.ledger.reader().datasets():
            raise nothing_here()
        run = Run(caller.key, dataset, "register", not_interrupted)
        return run_or_job(service, run, prefer, register)

    asked = {"dataset": dataset, "register": body.model_dump()}
    return answered_once(service, caller, idempotency_key, asked, work)


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
        "accounts": [_account_json(one) for one in reader.accounts(name)],
        "grants": [_purse(one) for one in reader.purses(name)],
        "open_reservations": len(reader.open_reservations(name)),
        "open_conversations": sum(one.open for one in reader.conversations(name)),
    }


def _account_json(account: Account) -> dict[str, Any]:
    return asdict(account)


def _purse(purse: Purse) -> dict[str, Any]:
    return {"analyst": purse.analyst, "account": purse.account, **purse_json(purse)}
