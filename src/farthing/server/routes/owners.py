"""What an owner may do over HTTP: one route for each operation that has a path."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, create_model

import farthing.engine.desk  # noqa: F401 # declares the operations
from farthing.engine.desk.operations import NEEDED, OPERATIONS, Given, Operation
from farthing.server.callers import OwnerCaller
from farthing.server.jobs import Outcome, Run
from farthing.server.problems import nothing_here
from farthing.server.routes.dependencies import (
    At,
    IdempotencyKey,
    Later,
    OwnerHere,
    Prefer,
    UnpaidRoute,
    answered_once,
    not_interrupted,
    refusals,
)
from farthing.server.service import Service

owner_router = APIRouter(prefix="/v1/owner", route_class=UnpaidRoute)

#: Characters of a name, of a dataset or an analyst or anything else.
LONGEST_NAME = 200
#: The name of a body in a signature.
_BODY = "body"


def _type_of(field: Given) -> Any:
    """The type of a field in a request."""
    kind = field.sent or field.type
    if field.choices:
        kind = Literal[field.choices]
        return kind if field.default is NEEDED else kind | None
    if kind in (str, str | None):
        return Annotated[kind, Field(min_length=1, max_length=LONGEST_NAME)]
    return kind if field.most is None else Annotated[kind, Field(max_length=field.most)]


def _body_of(operation: Operation) -> type[BaseModel]:
    title = operation.name.title().replace("_", "")
    needed = [one for one in operation.requested if one.default is NEEDED]
    shown = needed or [one for one in operation.requested if one.example is not None]
    extra: Any = {"examples": [{one.name: one.example for one in shown}]}
    fields: dict[str, Any] = {
        field.name: (
            Annotated[_type_of(field), Field(description=field.words)],
            ... if field.default is NEEDED else field.default,
        )
        for field in operation.requested
    }
    return create_model(
        f"{title}Body",
        __config__=ConfigDict(extra="forbid", json_schema_extra=extra),
        __doc__=operation.words,
        **fields,
    )


def _signature(operation: Operation) -> dict[str, tuple[Any, Any]]:
    """What FastAPI reads of a route: names, types, defaults."""
    asked: dict[str, tuple[Any, Any]] = {
        "service": (At, NEEDED),
        "caller": (OwnerHere, NEEDED),
        **{field.name: (str, NEEDED) for field in operation.parameters if field.in_path},
    }
    if operation.in_body:
        asked[_BODY] = (_body_of(operation), NEEDED)
    else:
        for field in operation.requested:
            words = Query(description=field.words)
            asked[field.name] = (Annotated[_type_of(field), words], field.default)
    if operation.once:
        asked["idempotency_key"] = (IdempotencyKey, None)
    if operation.slow:
        asked["prefer"] = (Prefer, None)
    return asked


def _route(operation: Operation) -> Callable[..., Any]:
    async def answer(
        service: Service,
        caller: OwnerCaller,
        body: BaseModel | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        **given: Any,
    ) -> JSONResponse:
        fields = {**given, **({} if body is None else body.model_dump())}
        dataset = given.get("dataset")

        def work() -> dict[str, Any]:
            return operation.tell(service.desk(caller.name).office, fields)

        def prepare() -> Outcome | Later:
            if not operation.slow:
                return 200, work()
            if dataset is not None and dataset not in service.ledger.reader().datasets():
                raise nothing_here()
            # reading a book is unpaid work of its caller; deciding about a budget is not
            metered = dataset is not None and not operation.once
            run = Run(caller.key, dataset, operation.name, not_interrupted)
            timed = (lambda: service.unpaid.timed(caller.key, work)) if metered else work
            return Later(run, timed, prefer)

        asked = {"operation": operation.name, **given, _BODY: body and body.model_dump(mode="json")}
        return await answered_once(service, caller, idempotency_key, asked, prepare)

    answer.__name__, answer.__doc__ = operation.name, operation.words
    answer.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # FastAPI reads it
        [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default
            )
            for name, (kind, default) in _signature(operation).items()
        ]
    )
    return answer


for _operation in OPERATIONS.values():
    if _operation.path:
        owner_router.add_api_route(
            _operation.path,
            _route(_operation),
            methods=[_operation.method],
            responses=refusals(404, 408, 409),
            tags=["tokens" if _operation.path.startswith("/tokens") else "owner"],
        )
