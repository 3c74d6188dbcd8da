"""What an owner decides about budgets: tariffs, purses of analysts, lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.prices import EpsilonDelta
from farthing.composition.tariffs.tariff import tariff_from_json
from farthing.composition.tariffs.verification import verify_document
from farthing.errors import InvalidInput
from farthing.ledger import Account, Purse
from farthing.server.access.callers import OwnerCaller
from farthing.server.access.tokens import listed
from farthing.server.answering import Later, answered_once, not_interrupted
from farthing.server.asking import MOST_IN_A_BATCH, purse_json
from farthing.server.coming_in import (
    At,
    IdempotencyKey,
    Name,
    OwnerHere,
    Prefer,
    UnpaidRoute,
    refusals,
)
from farthing.server.job_records import Outcome
from farthing.server.jobs import Run
from farthing.server.problems import nothing_here
from farthing.server.service import Service

budget_router = APIRouter(prefix="/v1/owner", route_class=UnpaidRoute, tags=["owner"])


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


@budget_router.get("/datasets/{dataset}/grants", responses=refusals(404))
def list_purses(dataset: str, service: At, _: OwnerHere) -> dict[str, Any]:
    """Every purse, of the oldest tariff first."""
    return {"grants": [granted_json(one) for one in service.ledger.reader().purses(dataset)]}


@budget_router.post("/datasets/{dataset}/grants", responses=refusals(404, 409))
async def grant_purse(
    dataset: str,
    body: GrantBody,
    service: At,
    caller: OwnerHere,
    idempotency_key: IdempotencyKey = None,
) -> JSONResponse:
    """Give an analyst farthings; a second grant adds to the first."""

    def work() -> Outcome:
        purse = service.desk(caller.name).grant(dataset, **body.model_dump())
        return 200, granted_json(purse)

    asked = {"dataset": dataset, "grant": body.model_dump()}
    return await answered_once(service, caller, idempotency_key, asked, work)


@budget_router.delete("/datasets/{dataset}/grants/{analyst}", responses=refusals(404, 409))
def revoke_purse(dataset: str, analyst: str, service: At, caller: OwnerHere) -> dict[str, Any]:
    """Take back what is left of a purse; tokens stay valid, and see what was released: which ones
    is in the answer."""
    taken = service.desk(caller.name).revoke(dataset, analyst)
    tokens = [one.id for one in listed(service.access) if one.lets_in(analyst, dataset)]
    return {"taken": asdict(taken), "tokens_still_valid": tokens}


@budget_router.get("/datasets/{dataset}/accounts", responses=refusals(404))
def list_accounts(dataset: str, service: At, _: OwnerHere) -> dict[str, Any]:
    """Tariffs and registered lists, the oldest first."""
    return {"accounts": [account_json(one) for one in service.ledger.reader().accounts(dataset)]}


@budget_router.post("/tariffs", responses=refusals(408))
async def certify_tariff(
    body: TariffBody, service: At, caller: OwnerHere, prefer: Prefer = None
) -> JSONResponse:
    """Prove a budget and sign nothing: the certificate, to be looked at. Takes seconds."""

    def prepare() -> Later:
        run = Run(caller.key, None, "certify", not_interrupted)
        return Later(run, lambda: body.proved().to_json(), prefer)

    return await answered_once(service, caller, None, None, prepare)


@budget_router.post("/datasets/{dataset}/tariffs", responses=refusals(404, 408, 409))
async def sign_tariff(
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
        return account_json(signed)

    decision = _Decision(dataset, "sign", body)
    return await _decided(service, caller, decision, idempotency_key, prefer, sign)


@budget_router.post("/datasets/{dataset}/lists", responses=refusals(404, 408, 409))
async def register_list(
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
        return account_json(desk.register(dataset, body.name, body.queries, analyst=body.analyst))

    decision = _Decision(dataset, "register", body)
    return await _decided(service, caller, decision, idempotency_key, prefer, register)


class _Decision(NamedTuple):
    """What is decided about a dataset, as it was asked for."""

    dataset: str
    what: str
    body: BaseModel


async def _decided(
    service: Service,
    caller: OwnerCaller,
    decision: _Decision,
    key: str | None,
    prefer: str | None,
    decide: Callable[[], dict[str, Any]],
) -> JSONResponse:
    """Proved and written once, however often it is sent; as a job if that takes long."""
    dataset, what, body = decision

    def prepare() -> Later:
        if dataset not in service.ledger.reader().datasets():
            raise nothing_here()
        run = Run(caller.key, dataset, what, not_interrupted)
        return Later(run, decide, prefer)

    asked = {"dataset": dataset, what: body.model_dump()}
    return await answered_once(service, caller, key, asked, prepare)


def account_json(account: Account) -> dict[str, Any]:
    """A tariff or a list, as an owner sees it."""
    return asdict(account)


def granted_json(purse: Purse) -> dict[str, Any]:
    """A purse, as an owner sees it."""
    return {"analyst": purse.analyst, "account": purse.account, **purse_json(purse)}
