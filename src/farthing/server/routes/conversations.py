"""Conversations: paid for when they are opened, asked as long as answers are negative."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from farthing.canonical import canonical
from farthing.engine import Watch, WatchConversation, query_from
from farthing.errors import InvalidInput
from farthing.interactive.stored import mechanism_to_json
from farthing.ledger import NotInLedger, OpenedConversation
from farthing.server.jobs import Outcome, Run
from farthing.server.problems import Refused, nothing_here
from farthing.server.routes.dependencies import (
    AnalystHere,
    At,
    IdempotencyKey,
    UnpaidRoute,
    refusals,
)
from farthing.server.routes.requests import Inquiry, PlannedPrice, on_time, require_planned
from farthing.server.routes.responses import Later, answered_once, not_interrupted

conversation_router = APIRouter(
    prefix="/v1/datasets/{dataset}/conversations", route_class=UnpaidRoute, tags=["conversations"]
)

#: Questions in one request at most, and in one conversation: every turn is kept for ever, and a
#: question that is answered with no costs nothing.
MOST_QUESTIONS, MOST_TURNS = 1000, 100_000
THRESHOLD, GUESS = "threshold", "guess"


class OpenBody(BaseModel):
    """What will be asked about: thresholds (`positives`, …) or guesses (`tolerance`, …)."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"kind": "threshold", "positives": 1}]}
    )

    kind: Literal["threshold", "guess"]
    positives: int | None = None
    refresh_after: int | None = None
    monotone: bool | None = None
    tolerance: int | None = None
    corrections: int | None = None
    item: str | None = None
    value_item: str | None = None
    per_unit: int = 1
    questions: Annotated[int, Field(ge=1, le=10**9, description="For the accuracy.")] = 100
    price: PlannedPrice = None

    def watch(self, inquiry: Inquiry) -> Watch:
        """What is to be opened."""
        wanted = self.model_dump(exclude_none=True, exclude={"kind", "questions", "price"})
        other = {"tolerance", "corrections"} if self.kind == THRESHOLD else {
            "positives", "refresh_after", "monotone"
        }  # fmt: skip # one choice
        strange = other & wanted.keys()
        if strange:
            raise InvalidInput(f"a conversation over a {self.kind} has no {min(strange)}")
        if self.kind == THRESHOLD:
            return inquiry.session.watch(**wanted)
        if self.tolerance is None:
            raise InvalidInput("a conversation over guesses needs a tolerance")
        return inquiry.session.watch_guesses(**wanted)


class OneAsked(BaseModel):
    """A query, and what its number is held against."""

    model_config = ConfigDict(extra="forbid")

    query: dict[str, Any]
    threshold: float | None = None
    guess: float | None = None


class ConversationBody(BaseModel):
    """Questions that are fixed now and answered together."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"questions": [{"query": {"kind": "count"}, "threshold": 1000}]}]
        },
    )

    questions: Annotated[list[OneAsked], Field(min_length=1, max_length=MOST_QUESTIONS)]


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
        planned = replace(
            body.watch(inquiry).plan(questions=body.questions), remaining=inquiry.left()
        )
        if plan:
            lines = [list(line[:2]) for line in planned.lines()]
            return 200, {**planned.to_json(), "lines": lines}
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
        kind = _kind_of(body)
        pairs = [(query_from(one.query), _held_against(one, kind)) for one in body.questions]

        def go() -> dict[str, Any]:
            told = found.exceeds_many(pairs) if kind == THRESHOLD else found.check_many(pairs)
            answers = [{"positive": one.positive, "value": one.value} for one in told]
            return {"answers": answers, **_shown(found.standing())}

        run = Run(caller.key, dataset, "ask", service.sources[dataset].interrupt)
        return Later(run, lambda: on_time(inquiry, go))

    def known() -> WatchConversation:
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


def _own(inquiry: Inquiry, identity: str) -> WatchConversation:
    """The same refusal for what is somebody else's and for what is not."""
    if not (identity.isascii() and identity.isalnum() and len(identity) <= 64):
        raise nothing_here()
    try:
        return inquiry.session.conversation(identity)
    except NotInLedger:
        raise nothing_here() from None


def _kind_of(body: ConversationBody) -> str:
    kinds = {THRESHOLD if one.guess is None else GUESS for one in body.questions}
    if len(kinds) != 1:
        raise InvalidInput("every question must have a threshold, or every one a guess")
    return kinds.pop()


def _held_against(one: OneAsked, kind: str) -> float:
    held = one.threshold if kind == THRESHOLD else one.guess
    if held is None or (one.threshold is not None and one.guess is not None):
        raise InvalidInput("a question in a conversation has a threshold or a guess")
    return held


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
