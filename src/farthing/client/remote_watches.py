"""Conversations with a service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, TypeAlias

from farthing.client.remote_data import RemoteData
from farthing.client.remote_plans import ToldPlan
from farthing.client.remote_questions import RemoteQuestion
from farthing.composition.tariff import Price
from farthing.engine.converse import WatchAnswer
from farthing.engine.kinds.base import Query
from farthing.engine.watches import ThresholdWatch, WatchKind
from farthing.errors import InvalidInput
from farthing.interactive import WatchAccuracy
from farthing.interactive.stored import mechanism_from_json
from farthing.ledger import Answered, OpenedConversation
from farthing.ledger.records import answered_from_json

#: A query, or a question about the same data, and what its number is held against.
RemotePair: TypeAlias = tuple[Query | RemoteQuestion, float]
#: Questions in one request.
AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class RemoteWatch:
    """What will be asked about, and how often. Nothing happens until `plan` or `open`."""

    _data: RemoteData = field(repr=False)
    kind: WatchKind

    def plan(self, *, questions: int = 100) -> RemoteWatchPlan:
        """Price, what remains, and how far off the answers to so many questions can be."""
        body = {**self._body(), "questions": questions}
        told = self._data.post("conversations", body, params={"plan": 1})
        return RemoteWatchPlan(self._data, told, self.kind, self._body())

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
        return RemoteConversation(self._data, str(self.paid_for("conversations", self._body)["id"]))


class RemoteConversation:
    """A conversation about numbers of a table, until it is closed or has halted."""

    def __init__(self, data: RemoteData, identity: str) -> None:
        self._data = data
        #: By it the same analyst finds the conversation again: `session.conversation(id)`.
        self.id = identity

    def exceeds(self, query: Query | RemoteQuestion, threshold: float) -> WatchAnswer:
        """Is the number at least `threshold`? `query` is a query, or a question about this data."""
        return self.exceeds_many([(query, threshold)])[0]

    def exceeds_many(self, pairs: Iterable[RemotePair]) -> list[WatchAnswer]:
        """The same for pairs of a query and a threshold; fewer answers if it halts on the way."""
        return self._ask(pairs, "threshold")

    def check(self, query: Query | RemoteQuestion, guess: float) -> WatchAnswer:
        """Is the guess right within the tolerance? If not, the answer brings a number."""
        return self.check_many([(query, guess)])[0]

    def check_many(self, pairs: Iterable[RemotePair]) -> list[WatchAnswer]:
        """The same for pairs of a query and a guess, as in `exceeds_many`."""
        return self._ask(pairs, "guess")

    def close(self) -> None:
        """Nothing can be asked any more. Nothing is paid back."""
        self._data.post(f"conversations/{self.id}/close", {})

    def standing(self) -> OpenedConversation:
        """How much was asked, and whether it goes on."""
        return opened_from(self._data, self._data.get(f"conversations/{self.id}"))

    def transcript(self) -> list[Answered]:
        """Everything that was asked and answered."""
        told = self._data.get(f"conversations/{self.id}")["transcript"]
        return [answered_from_json(one) for one in told]

    def __repr__(self) -> str:
        return f"<WatchConversation {self.id} on {self._data.about.name}>"

    def _ask(self, pairs: Iterable[RemotePair], what: str) -> list[WatchAnswer]:
        asked = iter([self._written(pair, what) for pair in pairs])
        answers: list[WatchAnswer] = []
        for several in _in_parts(asked):
            path, body = f"conversations/{self.id}/ask", {"questions": several}
            told = self._data.post(path, body, once=True)["answers"]
            answers += [WatchAnswer(one["positive"], one["value"]) for one in told]
            if len(told) < len(several):
                break
        return answers

    def _written(self, pair: RemotePair, what: str) -> dict[str, Any]:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InvalidInput(f"questions must be pairs of a query and a {what}")
        given, against = pair
        if isinstance(given, RemoteQuestion):
            if not given.is_asked_of(self._data):
                raise InvalidInput("the question must be asked of the data of the conversation")
            given = given.query
        if not isinstance(given, Query):
            raise InvalidInput(
                f"a query, or a question about this data, is asked; got {given!r:.60}"
            )
        return {"query": given.to_json(), what: against}


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
