"""What an analyst may ask of the service: plan, run, see what is theirs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from farthing.composition.tariffs.certificate import ASSUMPTIONS
from farthing.composition.tariffs.tariff import Price
from farthing.engine import EngineFailure, Plan
from farthing.engine.answer import spending_of
from farthing.ledger import AlreadySettled
from farthing.ledger.records import BATCH
from farthing.server.callers import AnalystCaller, granted, grants_of
from farthing.server.jobs import Outcome, Run
from farthing.server.problems import does_not_fit, nothing_here
from farthing.server.routes.dependencies import (
    AnalystHere,
    AnyCaller,
    At,
    IdempotencyKey,
    Later,
    Prefer,
    UnpaidRoute,
    answered_once,
    is_used,
    refusals,
)
from farthing.server.routes.requests import (
    AskBody,
    Inquiry,
    RunBody,
    on_time,
    plan_json,
    purse_json,
    remembered_answer,
    require_planned,
)
from farthing.server.service import Circumstances

#: What is light, and answered whatever else its caller does.
light_router = APIRouter(prefix="/v1", tags=["everybody"])
analyst_router = APIRouter(prefix="/v1", route_class=UnpaidRoute, tags=["analyst"])

#: Releases on one page at most.
LARGEST_PAGE = 200


@light_router.get("/me", responses=refusals())
def who_am_i(service: At, caller: AnyCaller) -> dict[str, Any]:
    """Who the token is, and which datasets it is for."""
    if isinstance(caller, AnalystCaller):
        return {
            "role": "analyst",
            "name": caller.name,
            "datasets": _offered(service, caller),
        }
    return {"role": "owner", "name": caller.name, "datasets": list(service.sources)}


@analyst_router.get("/datasets", responses=refusals())
def list_datasets(service: At, caller: AnalystHere) -> dict[str, Any]:
    """Every dataset that was granted, with what is left."""
    return {
        "datasets": [
            Inquiry.of(service, caller, name).overview() for name in _offered(service, caller)
        ]
    }


@analyst_router.get("/datasets/{dataset}", responses=refusals(404))
def show_dataset(dataset: str, service: At, caller: AnalystHere) -> dict[str, Any]:
    """Columns, limits, prices, what everything together guarantees, and what is left."""
    return Inquiry.of(service, caller, dataset).overview()


@analyst_router.post("/datasets/{dataset}/plan", responses=refusals(404, 409))
def plan_question(dataset: str, body: AskBody, service: At, caller: AnalystHere) -> Response:
    """Price, accuracy and what remains; no row is looked at, nothing is paid."""

    circumstances = _circumstances(service, caller, dataset)

    def make() -> dict[str, Any]:
        inquiry = Inquiry.for_plan(service, circumstances)
        plan = inquiry.plan(body)
        known = None if plan.known is None else inquiry.told(plan.run())
        return {**plan_json(plan), "told": known}

    asked = {"plan": body.model_dump()}
    found = remembered_answer(service, circumstances, asked, make)
    assert found is not None
    return found


@analyst_router.post("/datasets/{dataset}/run", responses=refusals(402, 404, 408, 409))
async def run_question(
    dataset: str,
    body: RunBody,
    service: At,
    caller: AnalystHere,
    idempotency_key: IdempotencyKey = None,
    prefer: Prefer = None,
) -> Response:
    """Pay and run. What was asked before is given out again at no cost, unless `again`.

    202 with a job if it takes long, or at once with `Prefer: respond-async`.
    """

    asked = {"dataset": dataset, "run": body.model_dump()}
    planned: list[tuple[Inquiry, Plan[Any]]] = []

    def told_before() -> dict[str, Any] | None:
        """What was told before; otherwise None, and the plan is kept for `prepare`."""
        inquiry = Inquiry.granted(service, caller, dataset)
        plan = inquiry.plan(body)
        if plan.known is not None and not body.again:
            return inquiry.told(plan.run())
        planned.append((inquiry, plan))
        return None

    def earlier() -> Response | None:
        circumstances = _circumstances(service, caller, dataset)
        if body.again or is_used(service.access, caller.key, idempotency_key):
            return None
        return remembered_answer(service, circumstances, asked, told_before)

    def prepare() -> Outcome | Later:
        known = None if planned else told_before()
        if known is not None:
            return 200, known
        inquiry, ready = planned[0]
        require_planned(ready.price_again if body.again else ready.price, body.price)
        run = Run(caller.key, dataset, "run", service.sources[dataset].interrupt)
        return Later(run, lambda: _run(inquiry, ready, body), prefer)

    known = await service.unpaid.do(caller.key, earlier)
    if known is not None:
        return known
    return await answered_once(service, caller, idempotency_key, asked, prepare)


@analyst_router.get("/datasets/{dataset}/releases", responses=refusals(404))
def list_releases(
    dataset: str,
    service: At,
    caller: AnalystHere,
    limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="How many.")] = 50,
    before: Annotated[str | None, Query(max_length=64, description="Earlier than this id.")] = None,
) -> dict[str, Any]:
    """The caller's own releases, the latest first; `before` is the last of the page before."""
    inquiry = Inquiry.of(service, caller, dataset)
    earlier_than = None if before is None else inquiry.entry_of(before)
    if before is not None and earlier_than is None:
        raise nothing_here()
    kept = inquiry.analyst.releases(before=earlier_than, limit=limit + 1)
    return {"releases": list(map(inquiry.release, kept[:limit])), "more": len(kept) > limit}


@analyst_router.get("/datasets/{dataset}/releases/{identity}", responses=refusals(404))
def show_release(dataset: str, identity: str, service: At, caller: AnalystHere) -> dict[str, Any]:
    """One of the caller's own releases, as it was told."""
    inquiry = Inquiry.of(service, caller, dataset)
    entry = inquiry.entry_of(identity)
    kept = None if entry is None else inquiry.analyst.release(entry)
    if kept is None:
        raise nothing_here()
    return inquiry.release(kept)


@analyst_router.get("/datasets/{dataset}/purse", responses=refusals(404))
def show_purse(dataset: str, service: At, caller: AnalystHere) -> dict[str, Any]:
    """What was granted to the caller, and what is left of it."""
    return purse_json(Inquiry.of(service, caller, dataset).analyst.purse())


@analyst_router.get("/datasets/{dataset}/lists", responses=refusals(404))
def list_registered(dataset: str, service: At, caller: AnalystHere) -> dict[str, Any]:
    """The lists that an owner registered for the caller; each is run once, as a batch."""
    analyst = Inquiry.of(service, caller, dataset).analyst
    accounts = service.ledger.reader().accounts(analyst.dataset)
    own = [one for one in accounts if one.mode == BATCH and one.analyst == analyst.name]
    return {"lists": [{"name": one.name, "open": one.open} for one in own]}


@analyst_router.get("/datasets/{dataset}/statement", responses=refusals(404))
def show_own_statement(dataset: str, service: At, caller: AnalystHere) -> dict[str, Any]:
    """What is proved about everything this dataset releases, and what the caller spent of it."""
    inquiry = Inquiry.of(service, caller, dataset)
    moment = inquiry.analyst.snapshot()
    about, so_far = moment.about, spending_of(moment, Price(0), paid=False)
    known, overview = so_far.epsilon_before is not None, inquiry.overview()
    return {
        "dataset": about.name,
        "unit_of_privacy": about.protects,
        "neighbouring_relation": about.relation,
        "limits": about.limits.to_json(),
        "version": about.version,
        "everything_ever": overview["guarantee"],
        "meaning": overview["meaning"],
        "told_you_so_far": (
            {"epsilon": so_far.epsilon_before, "delta": so_far.delta} if known else None
        ),
        "purse": purse_json(inquiry.analyst.purse()),
        "assumptions": list(ASSUMPTIONS),
    }


def _circumstances(service: At, caller: AnalystCaller, dataset: str) -> Circumstances:
    """Of this caller at this dataset; Refused where there is nothing of theirs."""
    found = grants_of(service.ledger, caller, dataset)
    if found is None:
        raise nothing_here()
    month = service.ledger.book.this_month()
    return Circumstances(caller.name, caller.datasets, dataset, month, found)


def _offered(service: At, caller: AnalystCaller) -> list[str]:
    """Granted, served here, and with a purse under the tariff in force."""
    return [name for name in granted(service.ledger, caller) if name in service.sources]


def _run(inquiry: Inquiry, plan: Plan[Any], body: RunBody) -> dict[str, Any]:
    """In a thread of the runner. Whatever comes of it leaves when the clock says so."""

    def go() -> dict[str, Any]:
        price = plan.price_again if body.again else plan.price
        if body.registered is None and not plan.chooses_limits and not price.within(plan.remaining):
            raise does_not_fit(price, plan.remaining)  # before a statement is written
        try:
            return inquiry.told(plan.run(registered=body.registered, again=body.again))
        except AlreadySettled:  # an owner abandoned it; the number of its entry is not for analysts
            raise EngineFailure from None

    return on_time(inquiry, go)
