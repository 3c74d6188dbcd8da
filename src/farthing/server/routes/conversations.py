"""Conversations: paid for when they are opened, asked as long as answers are negative."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from farthing.canonical import canonical
from farthing.engine import Conversation, query_from
from farthing.engine.conversation_kinds import CONVERSATIONS, ConversationKind, conversation_from
from farthing.engine.kinds.base import Query as EngineQuery
from farthing.engine.kinds.fields import help_of
from farthing.errors import InvalidInput, require_real
from farthing.interactive.stored import mechanism_to_json
from farthing.ledger import NotInLedger, OpenedConversation
from farthing.server.jobs import Outcome, Run
from farthing.server.problems import Refused, nothing_here
from farthing.server.routes.dependencies import (
    AnalystHere,
    At,
    IdempotencyKey,
    Later,
    UnpaidRoute,
    answered_once,
    not_interrupted,
    refusals,
)
from farthing.server.routes.requests import (
    Inquiry,
    PlannedPrice,
    on_time,
    plan_json,
    require_planned,
)

conversation_router = APIRouter(
    prefix="/v1/datasets/{dataset}/conversations", route_class=UnpaidRoute, tags=["conversations"]
)

#: Questions in one request at most, and in one conversation: every turn is kept for ever, and a
#: question that is answered with no costs nothing.
MOST_QUESTIONS, MOST_TURNS = 1000, 100_000


def _describe(schema: dict[str, Any]) -> None:
    """The fields of every kind; which of them a kind has, the kind itself checks."""
    schema["examples"] = [{"kind": "threshold", "positives": 1}]
    schema["additionalProperties"] = False
    for kind in CONVERSATIONS.values():
        for name, field in help_of(kind).items():
            described = {**TypeAdapter(field.type).json_schema(), "description": field.words}
            schema["properties"].setdefault(name, described)


class OpenBody(BaseModel):
    """A kind of conversation and its fields, and the price that its plan said."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_describe)

    kind: Annotated[str, Field(json_schema_extra={"enum": list(CONVERSATIONS)})]
    questions: Annotated[int, Field(ge=1, le=10**9, description="For the accuracy.")] = 100
    price: PlannedPrice = None

    def watch(self) -> ConversationKind:
        """What is to be opened."""
        given = {name: one for name, one in (self.model_extra or {}).items() if one is not None}
        return conversation_from({"kind": self.kind, **given})


class ConversationBody(BaseModel):
    """Questions that are fixed now and answered together."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"questions": [{"query": {"kind": "count"}, "threshold": 1000}]}]
        },
    )

    questions: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST_QUESTIONS)]

    def pairs(self) -> tuple[str, list[tuple[EngineQuery, float]]]:
        """What numbers are compared with, and each query with that number."""
        words = {word for asked in self.questions for word in asked if word != "query"}
        if len(words) != 1 or not words <= CONVERSATIONS.keys():
            known = " or a ".join(CONVERSATIONS)
            raise InvalidInput(f"every question must have a query and, all alike, a {known}")
        (against,) = words
        pairs = []
        for asked in self.questions:
            if asked.keys() != {"query", against}:
                raise InvalidInput(f"every question must have a query and a {against}")
            pairs.append((query_from(asked["query"]), require_real(against, asked[against])))
        return against, pairs


@conversation_router.get("", responses=refusals(404))
def list_conversations(dataset: str, service: At, caller: AnalystHere) -> dict[str, Any]:
    """Every conversation that the caller opened about this dataset."""
    inquiry = Inquiry.of(service, caller, dataset)
    return {"conversations": [_shown(one) for one in inquiry.session.conversations()]}


@conversation_router.post("", responses=refusals(402, 404, 408, 409))
async def open_conversation_here(
    dataset: str,
    body: OpenBody,
    service: At,
    caller: AnalystHere,
    plan: Annotated[bool, Query(description="Only what it would cost.")] = False,
    idempotency_key: IdempotencyKey = None,
) -> JSONResponse:
    """Pay for all of it and begin; with `plan=1` what it would cost, and nothing is paid."""

    def prepare() -> Outcome | Later:
        inquiry = Inquiry.of(service, caller, dataset)
        planned = inquiry.session.watching(body.watch()).plan(questions=body.questions)
        if plan:
            return 200, plan_json(planned)
        require_planned(planned.price, body.price)
        # not in the thread of the request: who waits for the clock must not keep others waiting
        run = Run(caller.key, dataset, "open", not_interrupted)
        return Later(run, lambda: on_time(inquiry, lambda: _shown(planned.open().standing())))

    # before a key answers
    await service.unpaid.do(caller.key, lambda: Inquiry.of(service, caller, dataset))
    asked = {"dataset": dataset, "conversation": body.model_dump(), "plan": plan}
    return await answered_once(service, caller, None if plan else idempotency_key, asked, prepare)


@conversation_router.get("/{identity}", responses=refusals(404))
def show_conversation(
    dataset: str,
    identity: str,
    service: At,
    caller: AnalystHere,
    after: Annotated[int, Query(ge=0, le=10**9, description="`next` of the page before.")] = 0,
) -> dict[str, Any]:
    """How it stands, and what was asked and answered, page by page until `next` is null."""
    inquiry = Inquiry.of(service, caller, dataset)
    found, about = _own(inquiry, identity), inquiry.analyst.about()
    page, following = found.said_after(after)
    captions: dict[str, str] = {}
    said = []
    for one in page:
        asked = canonical(one.asked["query"])
        if asked not in captions:
            captions[asked] = query_from(one.asked["query"]).caption(
                about.unit, about.declared_schema.declared
            )
        said.append({**one.to_json(), "caption": captions[asked]})
    return {**_shown(found.standing()), "transcript": said, "next": following}


@conversation_router.post("/{identity}/ask", responses=refusals(404, 408, 409))
async def ask_conversation(
    dataset: str,
    identity: str,
    body: ConversationBody,
    service: At,
    caller: AnalystHere,
    idempotency_key: IdempotencyKey = None,
) -> JSONResponse:
    """Answers, written before they are told; fewer than questions if it halts on the way."""

    def prepare() -> Outcome | Later:
        inquiry = Inquiry.of(service, caller, dataset)
        found = _own(inquiry, identity)
        if found.standing().asked + len(body.questions) > MOST_TURNS:
            words = f"a conversation has at most {MOST_TURNS} questions here; open another"
            raise Refused(409, "over", words)
        against, pairs = body.pairs()

        def go() -> dict[str, Any]:
            answers = [asdict(answer) for answer in found.ask(pairs, against)]
            return {"answers": answers, **_shown(found.standing())}

        run = Run(caller.key, dataset, "ask", service.sources[dataset].interrupt)
        return Later(run, lambda: on_time(inquiry, go))

    def known() -> Conversation:
        return _own(Inquiry.of(service, caller, dataset), identity)

    await service.unpaid.do(caller.key, known)  # before a key answers
    asked = {"dataset": dataset, "conversation": identity, "ask": body.model_dump()}
    return await answered_once(service, caller, idempotency_key, asked, prepare)


@conversation_router.post("/{identity}/close", responses=refusals(404, 409))
def close_conversation(
    dataset: str, identity: str, service: At, caller: AnalystHere
) -> dict[str, Any]:
    """Nothing can be asked any more. Nothing is paid back."""
    found = _own(Inquiry.of(service, caller, dataset), identity)
    found.close()
    return _shown(found.standing())


def _own(inquiry: Inquiry, identity: str) -> Conversation:
    """The same refusal for what is somebody else's and for what is not."""
    if not (identity.isascii() and identity.isalnum() and len(identity) <= 64):
        raise nothing_here()
    try:
        return inquiry.session.conversation(identity)
    except NotInLedger:
        raise nothing_here() from None


def _shown(one: OpenedConversation) -> dict[str, Any]:
    """As its analyst may see it."""
    return {
        "id": one.id,
        "at": one.time,
        "mechanism": mechanism_to_json(one.mechanism),
        "question": one.question,
        "price": asdict(one.price),
        "asked": one.asked,
        "open": one.open,
    }
