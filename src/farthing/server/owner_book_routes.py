"""What the book says: statement, verification, history, budget over time, profile, planner."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, replace
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from farthing.composition.accounts.account_profiles import whole_by_addition, whole_by_moments
from farthing.composition.planning import largest_repeats
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.verification import certificate_from_json
from farthing.engine.context import record_in_words
from farthing.errors import FarthingError
from farthing.guarantees.notation import parse_item
from farthing.ledger import Asked, history, markdown, odometer, statement, verify
from farthing.server.access.callers import OwnerCaller
from farthing.server.answering import Later, answered_once, not_interrupted
from farthing.server.coming_in import At, OwnerHere, Prefer, UnpaidRoute, refusals
from farthing.server.jobs import Run
from farthing.server.problems import nothing_here
from farthing.server.service import Service

book_router = APIRouter(prefix="/v1/owner", route_class=UnpaidRoute, tags=["owner"])

Delta = Annotated[float, Query(gt=0, lt=1, description="The δ of the statement.")]
#: δ at which the other bounds are drawn beside the certified profile.
DRAWN = tuple(10.0**-k for k in range(1, 13))


class PlannerBody(BaseModel):
    """What one question buys, such as ["10xbr:0.1", "10xdp:0.1"], and the budget for it."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"items": ["10xbr:0.1", "10xdp:0.05"], "epsilon": 3, "delta": 1e-6}]
        },
    )

    items: Annotated[list[str], Field(min_length=1, max_length=50)]
    epsilon: float
    delta: float
    months: Annotated[int, Field(ge=1, le=1200)] = 1


@book_router.get("/datasets/{dataset}/statement", responses=refusals(404, 408))
async def show_statement(
    dataset: str,
    service: At,
    caller: OwnerHere,
    delta: Delta = 1e-6,
    prefer: Prefer = None,
) -> JSONResponse:
    """What the deployment says about itself, as data and as a page. May take seconds."""

    def make() -> dict[str, Any]:
        said = statement(service.ledger.reader(), dataset, delta=delta)
        return {"statement": said, "markdown": markdown(said)}

    return await _page(
        service, caller, Later(Run(caller.key, dataset, "statement", not_interrupted), make, prefer)
    )


@book_router.post("/datasets/{dataset}/verify", responses=refusals(404, 408))
async def verify_book(
    dataset: str,
    service: At,
    caller: OwnerHere,
    prove: Annotated[bool, Query(description="Every certificate once more, from nothing.")] = False,
    prefer: Prefer = None,
) -> JSONResponse:
    """Walk the chain and play every entry again; `head` may be kept elsewhere, as a witness."""

    def check() -> dict[str, Any]:
        found = verify(service.ledger.reader(), dataset, prove=prove)
        return {"verified": [asdict(one) for one in found]}

    return await _page(
        service, caller, Later(Run(caller.key, dataset, "verify", not_interrupted), check, prefer)
    )


@book_router.get("/datasets/{dataset}/history", responses=refusals(404))
def show_history(
    dataset: str,
    service: At,
    _: OwnerHere,
    analyst: Annotated[str | None, Query(max_length=200, description="Only theirs.")] = None,
    since: Annotated[datetime | None, Query(description="From then on.")] = None,
    until: Annotated[datetime | None, Query(description="Before then.")] = None,
) -> dict[str, Any]:
    """Who asked what, when, and for how much."""
    _require_known(service, dataset)
    found = history(service.ledger.reader(), dataset, analyst, since=since, until=until)
    return {"asked": [{**one.to_json(), "caption": _words(one)} for one in found]}


@book_router.get("/datasets/{dataset}/budget-over-time", responses=refusals(404))
def show_budget_over_time(dataset: str, service: At, _: OwnerHere) -> dict[str, Any]:
    """What each analyst had spent after each question, and the cap of each account."""
    _require_known(service, dataset)
    reader = service.ledger.reader()
    spent: dict[str, int] = defaultdict(int)
    lines: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for one in history(reader, dataset):
        spent[one.analyst] += one.price.farthings
        lines[one.analyst].append((one.time, spent[one.analyst]))
    accounts = [one for one in reader.accounts(dataset) if one.mode == "tariff"]
    return {
        "analysts": [{"analyst": name, "points": points} for name, points in lines.items()],
        "granted": [
            {"analyst": one.analyst, "account": one.account, "farthings": one.farthings}
            for one in reader.purses(dataset)
        ],
        "caps": [
            {"account": one.name, "farthings": one.farthings, "spent": one.farthings_spent}
            for one in accounts
        ],
    }


@book_router.get("/datasets/{dataset}/odometer", responses=refusals(404, 408))
async def show_odometer(
    dataset: str, service: At, caller: OwnerHere, delta: Delta = 1e-6, prefer: Prefer = None
) -> JSONResponse:
    """What everybody together has learned up to now."""

    def read() -> dict[str, Any]:
        return odometer(service.ledger.reader(), dataset, delta=delta).to_json()

    return await _page(
        service, caller, Later(Run(caller.key, dataset, "odometer", not_interrupted), read, prefer)
    )


@book_router.get("/datasets/{dataset}/profile", responses=refusals(404))
def show_profile(dataset: str, service: At, _: OwnerHere) -> dict[str, Any]:
    """The certified δ(ε) of the tariff in force, beside what other bounds would say."""
    _require_known(service, dataset)
    certificate = _in_force(service, dataset)
    tariff = certificate.tariff
    moments = [(whole_by_moments(tariff, delta), delta) for delta in DRAWN]
    added = whole_by_addition(tariff)
    points = [x for x, _ in certificate.profile if x >= 0]
    step = max(1, len(points) // 200)
    return {
        "farthings": tariff.farthings,
        "claims": [
            {"delta": delta, "lower": bracket.lower, "upper": bracket.upper}
            for delta, bracket in certificate.epsilons
        ],
        "theorem": certificate.theorem,
        "curves": [
            {
                "name": "certified",
                "points": [[x, certificate.delta_at(x)] for x in points[::step]],
            },
            {
                "name": "zero-concentrated DP",
                "points": [[epsilon, delta] for epsilon, delta in moments if epsilon is not None],
            },
            {
                "name": "adding up",
                "points": [] if added == float("inf") else [[added, 0.0]],
            },
        ],
    }


@book_router.get("/datasets/{dataset}/certificate", responses=refusals(404))
def show_certificate(dataset: str, service: At, _: OwnerHere) -> dict[str, Any]:
    """The certificate of the tariff in force, as it was signed."""
    _require_known(service, dataset)
    return _in_force(service, dataset).to_json()


@book_router.post("/planner", responses=refusals())
def plan_budget(body: PlannerBody, _service: At, _: OwnerHere) -> dict[str, Any]:
    """How often such a question fits into a budget, at least: found by moments, at once."""
    items = [parse_item(text) for text in body.items]
    times = largest_repeats(items, epsilon=body.epsilon, delta=body.delta)
    return {"questions": times, "a_month": times // body.months, "by": "moments; at least"}


async def _page(service: Service, caller: OwnerCaller, page: Later) -> JSONResponse:
    """A page about a dataset that takes long: as much unpaid work as a short one."""

    def prepare() -> Later:
        _require_known(service, page.run.dataset or "")
        return replace(page, work=lambda: service.unpaid.timed(caller.key, page.work))

    return await answered_once(service, caller, None, None, prepare)


def _require_known(service: Service, dataset: str) -> None:
    if dataset not in service.ledger.reader().datasets():
        raise nothing_here()


def _in_force(service: Service, dataset: str) -> Certificate:
    reader = service.ledger.reader()
    opened = [one for one in reader.accounts(dataset) if one.mode == "tariff" and one.open]
    if not opened:
        raise nothing_here()
    return certificate_from_json(reader.document(dataset, opened[-1].number))


def _words(one: Asked) -> str:
    try:
        return record_in_words(one.question)
    except FarthingError:
        return "a conversation" if isinstance(one.question, dict) else "not stated"
