"""What can be said in a conversation, wherever it is held: here, or with a service."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from farthing.engine.any_question import AboutData, AnyQuestion
from farthing.engine.kinds.base import Query
from farthing.errors import InvalidInput
from farthing.ledger import Answered, OpenedConversation

#: What a number is held against.
THRESHOLD, GUESS = "threshold", "guess"

#: What is asked about: a query, or a question about the data of the conversation.
About: TypeAlias = Query | AnyQuestion[Any]
#: That, and what its number is held against.
AskedPair: TypeAlias = tuple[About, float]


@dataclass(frozen=True, slots=True)
class WatchAnswer:
    """What a conversation says.

    `positive`: the number reaches its threshold, or the guess is wrong. `value`: the number with
    noise, in the units of the question, where numbers were bought and the answer is positive; for a
    quantile, by how many values it is beyond the threshold.
    """

    positive: bool
    value: int | float | None = None


class AnyConversation(ABC):
    """A conversation about numbers of a table, until it is closed or has halted."""

    def exceeds(self, query: About, threshold: float) -> WatchAnswer:
        """Is the number at least `threshold`? `query` is a query, or a question about this data."""
        return self.exceeds_many([(query, threshold)])[0]

    def exceeds_many(self, pairs: Iterable[AskedPair]) -> list[WatchAnswer]:
        """The same for pairs of a query and a threshold, which are fixed now.

        Each different query is run once. The answers are on disk together, a thousand in a
        transaction; there are fewer answers than questions if it halts on the way.
        """
        return self._ask(pairs, THRESHOLD)

    def check(self, query: About, guess: float) -> WatchAnswer:
        """Is the guess right within the tolerance? If not, the answer brings a number."""
        return self.check_many([(query, guess)])[0]

    def check_many(self, pairs: Iterable[AskedPair]) -> list[WatchAnswer]:
        """The same for pairs of a query and a guess, as in `exceeds_many`."""
        return self._ask(pairs, GUESS)

    @abstractmethod
    def close(self) -> None:
        """Nothing can be asked any more. Nothing is paid back."""

    @abstractmethod
    def standing(self) -> OpenedConversation:
        """How much was asked, and whether it goes on."""

    @abstractmethod
    def transcript(self) -> list[Answered]:
        """Everything that was asked and answered, also what a crash kept from being told."""

    @abstractmethod
    def _ask(self, pairs: Iterable[AskedPair], what: str) -> list[WatchAnswer]:
        """The answers to all of them, in order, until it halts."""


def asked_pairs(
    pairs: Iterable[AskedPair], what: str, context: AboutData
) -> list[tuple[Query, float]]:
    """Queries, and what their numbers are held against; refused if it is anything else."""
    if not isinstance(pairs, Iterable):
        raise InvalidInput(f"questions must be pairs of a query and a {what}")
    return [_asked_pair(pair, what, context) for pair in pairs]


def _asked_pair(pair: AskedPair, what: str, context: AboutData) -> tuple[Query, float]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise InvalidInput(f"questions must be pairs of a query and a {what}")
    given, against = pair
    if isinstance(given, AnyQuestion):
        if not given.is_asked_of(context):
            raise InvalidInput("the question must be asked of the data of the conversation")
        given = given.query
    if not isinstance(given, Query):
        raise InvalidInput(f"a query, or a question about this data, is asked; got {given!r:.60}")
    return given, against
