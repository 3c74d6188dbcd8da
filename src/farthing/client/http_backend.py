"""The backend of `fa.connect`: a dataset of a service, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import quote

from farthing.client.wire import Wire, refused_price
from farthing.composition.tariffs.tariff import Price
from farthing.engine.answer import Answer, Spending
from farthing.engine.answers import Answers
from farthing.engine.conversation import ConversationAnswer
from farthing.engine.conversation_kinds import ConversationKind
from farthing.engine.kinds import query_from
from farthing.engine.kinds.base import Query
from farthing.engine.kinds.fields import AUTO
from farthing.engine.plan import ONLY, ConversationPlan, PastRelease, Plan
from farthing.engine.purchase import Aim
from farthing.errors import InvalidInput
from farthing.interactive import WatchAccuracy
from farthing.interactive.stored import mechanism_from_json
from farthing.ledger import Answered, Dataset, DoesNotFit, Limits, OpenedConversation, Purse
from farthing.ledger.records import answered_from_json
from farthing.schema import schema_from_json

#: Questions of a conversation in one request.
AT_ONCE = 1000


class HttpBackend:
    """One dataset of a service, as its analyst may know it. Withheld fields are 0 or empty."""

    def __init__(self, wire: Wire, dataset: str, analyst: str) -> None:
        """NotInLedger if the service tells nothing of this dataset."""
        self._wire = wire
        self._path = f"/v1/datasets/{quote(dataset, safe='')}"
        self.analyst_name = analyst
        self.place: str | None = wire.url
        told = wire.send("GET", self._path, dataset)
        self.about = Dataset(
            name=told["name"],
            unit=told["unit"],
            owner="owner",  # the service does not say who it is
            schema=schema_from_json(told["columns"]) if told["columns"] else None,
            limits=Limits(**told["limits"]),
            version=told["version"],
        )

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        """Something under the dataset's address."""
        return self._wire.send("GET", f"{self._path}/{path}", self.about.name, params=params)

    def post(
        self, path: str, body: Mapping[str, Any], *, once: bool = False, **params: Any
    ) -> dict[str, Any]:
        """Something sent there; with `once` it is charged once."""
        at, name = f"{self._path}/{path}", self.about.name
        return self._wire.send("POST", at, name, body=body, once=once, params=params)

    def plan(self, queries: Mapping[str, Query], aim: Aim | None = None) -> Plan[Any]:
        """The plan for questions by name."""
        wanted = {} if aim is None else {aim.name: aim.wanted, "rows": aim.rows}
        told = self.post("plan", {**_asked(queries), **wanted})
        known: Any = None if told["told"] is None else self._answers(told["told"])
        if known is not None and ONLY in queries:
            known = known[ONLY]
        # an automatic limit is sent as it was asked: the answer says if it is the largest tried
        chosen = {name: query for name, query in queries.items() if aim is None and _auto(query)}
        return replace(Plan.from_json(told, self, known), _details=chosen)

    def run(self, plan: Plan[Any], *, registered: str | None, again: bool) -> Answers:
        """Pay for a plan and run it, at the price that it says at most."""
        queries = {name: question.query for name, question in plan.questions.items()}
        body = {**_asked({**queries, **plan._details}), "registered": registered, "again": again}
        price = plan.price_again if again else plan.price
        return self._answers(self._paid("run", body, price))

    def plan_conversation(self, kind: ConversationKind, questions: int) -> ConversationPlan:
        """The plan for a conversation, with its accuracy for so many questions."""
        body = {**kind.to_json(), "questions": questions}
        told = self.post("conversations", body, plan=1)
        return ConversationPlan(
            kind=kind,
            items=dict(told["items"]),
            price=Price(**told["price"]),
            remaining=Price(**told["remaining"]),
            questions=told["questions"],
            accuracy=WatchAccuracy(**told["accuracy"]),
            backend=self,
        )

    def open(self, plan: ConversationPlan) -> HttpConversation:
        """Pay for a conversation and open it."""
        told = self._paid("conversations", plan.kind.to_json(), plan.price)
        return HttpConversation(self, str(told["id"]))

    def conversation(self, identity: str) -> HttpConversation:
        """A conversation that this analyst opened; NotInLedger if there is none."""
        if not (identity.isascii() and identity.isalnum()):
            raise InvalidInput("a conversation's id has letters and digits only")
        opened = HttpConversation(self, identity)
        opened.status()
        return opened

    def conversations(self) -> list[OpenedConversation]:
        """Every conversation that this analyst opened about this data."""
        return [self.opened(told) for told in self.get("conversations")["conversations"]]

    def history(self) -> list[PastRelease]:
        """Everything that was released to this analyst about this data, the latest first."""
        releases: list[PastRelease] = []
        before: dict[str, str] = {}
        while True:
            page = self.get("releases", **before)
            for told in page["releases"]:
                queries = told["batch"] or {ONLY: told["query"]}
                price = Price(**told["price"])
                releases.append(PastRelease.of(told["at"], told["asked"], price, queries))
            if not page["more"]:
                return releases
            before = {"before": page["releases"][-1]["id"]}

    def purse(self) -> Purse:
        """What was granted, and what is spent of it."""
        told = {name: value for name, value in self.get("purse").items() if name != "left"}
        return Purse(account=0, analyst=self.analyst_name, **told)

    def remaining(self) -> Price:
        """Farthings and δ units that are left."""
        return Price(**self.get("purse")["left"])

    def shut(self) -> None:
        """Give the connections back."""
        self._wire.shut()

    def opened(self, told: Mapping[str, Any]) -> OpenedConversation:
        """A conversation as the service shows it."""
        return OpenedConversation(
            id=told["id"],
            dataset=self.about.name,
            analyst=self.analyst_name,
            time=told["at"],
            mechanism=mechanism_from_json(told["mechanism"]),
            question=told["question"],
            price=Price(**told["price"]),
            asked=told["asked"],
            open=told["open"],
        )

    def _paid(self, path: str, body: Mapping[str, Any], price: Price) -> dict[str, Any]:
        """What comes of something that costs at most this price, or DoesNotFit."""
        try:
            return self.post(path, {**body, "price": asdict(price)}, once=True)
        except DoesNotFit as refused:
            raise refused_price(price, self.remaining(), str(refused)) from None

    def _answers(self, told: Mapping[str, Any]) -> Answers:
        answers = told["answers"] if "answers" in told else {ONLY: told["answer"]}
        return Answers({name: _answer(one) for name, one in answers.items()})


class HttpConversation:
    """An open conversation with a service."""

    def __init__(self, backend: HttpBackend, identity: str) -> None:
        self.id = identity
        self._backend = backend
        self._path = f"conversations/{identity}"

    def ask(
        self, questions: Sequence[tuple[Query, float]], against: str
    ) -> list[ConversationAnswer]:
        """The answers in order, until it halts."""
        bodies = [{"query": query.to_json(), against: number} for query, number in questions]
        answers: list[ConversationAnswer] = []
        for start in range(0, max(len(bodies), 1), AT_ONCE):
            several = bodies[start : start + AT_ONCE]
            told = self._backend.post(f"{self._path}/ask", {"questions": several}, once=True)
            answers += [ConversationAnswer(**one) for one in told["answers"]]
            if len(told["answers"]) < len(several):
                break
        return answers

    def status(self) -> OpenedConversation:
        """How much was asked, and whether it goes on."""
        return self._backend.opened(self._backend.get(self._path))

    def said_after(self, turn: int) -> tuple[list[Answered], int | None]:
        """A page of the transcript after this turn, and the turn after which the next begins."""
        page = self._backend.get(self._path, after=turn)
        return [answered_from_json(said) for said in page["transcript"]], page["next"]

    def close(self) -> None:
        """End it."""
        self._backend.post(f"{self._path}/close", {})


def _auto(query: Query) -> bool:
    return any(getattr(query, name) == AUTO for name in query.field_names())


def _asked(queries: Mapping[str, Query]) -> dict[str, Any]:
    if ONLY in queries:
        return {"query": queries[ONLY].to_json()}
    return {"batch": {name: query.to_json() for name, query in queries.items()}}


def _answer(told: Mapping[str, Any]) -> Answer:
    """The answer that was sent."""
    answer = Answer.from_json(told, query_from(told["query"]), remaining=Price(**told["remaining"]))
    spending = told["spending"]
    return replace(
        answer,
        cached=told["cached"],
        spending=None if spending is None else Spending.from_json(spending),
    )
