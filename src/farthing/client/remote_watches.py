"""Conversations with a service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

from farthing.client.remote_data import RemoteData
from farthing.client.remote_plans import ToldPlan
from farthing.composition.tariffs.tariff import Price
from farthing.engine.any_conversation import AnyConversation, AskedPair, WatchAnswer, asked_pairs
from farthing.engine.watch_kinds import ThresholdWatch, WatchKind
from farthing.interactive import WatchAccuracy
from farthing.interactive.stored import mechanism_from_json
from farthing.ledger import Answered, OpenedConversation
from farthing.ledger.records import answered_from_json

#: Questions in one request.
AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class RemoteWatch:
    """What will be asked about, and how often. Nothing happens until `plan` or `open`."""

    _context: RemoteData = field(repr=False)
    kind: WatchKind

    def plan(self, *, questions: int = 100) -> RemoteWatchPlan:
        """Price, what remains, and how far off the answers to so many questions can be."""
        body = {**self._body(), "questions": questions}
        told = self._context.post("conversations", body, params={"plan": 1})
        return RemoteWatchPlan(self._context, told, self.kind, self._body())

    def open(self) -> RemoteConversation:
        """Pay for all of it, and begin."""
        return self.plan().open()

    def _body(self) -> dict[str, Any]:
        word = "threshold" if isinstance(self.kind, ThresholdWatch) else "guess"
        given = {name: one for name, one in asdict(self.kind).items() if one is not None}
        return {"kind": word, **given}


@dataclass(frozen=True, slots=True, repr=False)
class RemoteWatchPlan(ToldPlan):
    """What a conversation costs in full, and its accuracy. `open()` opens exactly this one."""

    kind: WatchKind
    _body: Mapping[str, Any] = field(compare=False)

    @property
    def caption(self) -> str:
        """The kind of conversation."""
        return self.kind.kind

    @property
    def items(self) -> Mapping[str, int]:
        """What is bought."""
        return dict(self._told["items"])

    @property
    def questions(self) -> int:
        """For how many the accuracy holds together."""
        return int(self._told["questions"])

    @property
    def accuracy(self) -> WatchAccuracy:
        """How far off answers can be."""
        return WatchAccuracy(**self._told["accuracy"])

    def open(self) -> RemoteConversation:
        """Pay and begin. Nothing is paid back, whether anything is asked or not."""
        return RemoteConversation(
            self._context, str(self.paid_for("conversations", self._body)["id"])
        )


class RemoteConversation(AnyConversation):
    """A conversation about numbers of a table, until it is closed or has halted."""

    def __init__(self, data: RemoteData, identity: str) -> None:
        self._context = data
        #: By it the same analyst finds the conversation again: `session.conversation(id)`.
        self.id = identity

    def close(self) -> None:
        self._context.post(f"conversations/{self.id}/close", {})

    def standing(self) -> OpenedConversation:
        return opened_from(self._context, self._context.get(f"conversations/{self.id}"))

    def transcript(self) -> list[Answered]:
        said: list[Answered] = []
        after: int | None = 0
        while after is not None:
            page = self._context.get(f"conversations/{self.id}?after={after}")
            said += [answered_from_json(one) for one in page["transcript"]]
            after = page["next"]
        return said

    def __repr__(self) -> str:
        return f"<WatchConversation {self.id} on {self._context.about.name}>"

    def _ask(self, pairs: Iterable[AskedPair], what: str) -> list[WatchAnswer]:
        asked = iter(
            [
                {"query": query.to_json(), what: against}
                for query, against in asked_pairs(pairs, what, self._context)
            ]
        )
        answers: list[WatchAnswer] = []
        for several in _in_parts(asked):
            path, body = f"conversations/{self.id}/ask", {"questions": several}
            told = self._context.post(path, body, once=True)["answers"]
            answers += [WatchAnswer(one["positive"], one["value"]) for one in told]
            if len(told) < len(several):
                break
        return answers


def opened_from(data: RemoteData, told: Mapping[str, Any]) -> OpenedConversation:
    """A conversation as the service shows it."""
    return OpenedConversation(
        id=told["id"],
        dataset=data.about.name,
        analyst=data.analyst,
        time=told["at"],
        mechanism=mechanism_from_json(told["mechanism"]),
        question=told["question"],
        price=Price(**told["price"]),
        asked=told["asked"],
        open=told["open"],
    )


def _in_parts(asked: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while several := list(islice(asked, AT_ONCE)):
        yield several
