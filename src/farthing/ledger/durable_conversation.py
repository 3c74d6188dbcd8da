"""A conversation as the analyst who opened it holds it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from farthing.canonical import canonical
from farthing.interactive import ConversationOver, Verdict
from farthing.interactive.protocol import Part
from farthing.ledger.conversations import MOST_KEPT, Asking, Talk
from farthing.ledger.records import Answered, OpenedConversation

#: How many questions one transaction answers at most: others wait for it.
MOST_IN_A_TURN = 1000
#: Why it ended, if its analyst ended it.
CLOSED = "closed"


class DurableConversation:
    """An open conversation as the analyst who opened it holds it.

    A question is asked as a pair: in public words, which are kept in the transcript, and as the
    mechanism's question, which carries the true number and is never written.
    """

    def __init__(self, talk: Talk, opened: OpenedConversation) -> None:
        self._talk = talk
        self._opened = opened

    @property
    def id(self) -> str:
        """By it the conversation is found again, by the same analyst."""
        return self._opened.id

    @property
    def mechanism(self) -> Part:
        """What was opened."""
        return self._opened.mechanism

    def require_open(self, asking: Iterable[Any] = ()) -> None:
        """ConversationOver if it has ended, or has no room to keep what is asked: before anything
        is looked at that it is about."""
        if not self._talk.is_open():
            raise ConversationOver("nothing more can be asked: the conversation is over")
        if self._talk.kept() + len(canonical(list(asking))) > MOST_KEPT:
            raise ConversationOver(
                f"what is kept of a conversation has at most {MOST_KEPT} characters; open another"
            )

    def ask(self, public: Any, question: Any) -> Verdict:
        """One answer; it is on disk before it is told."""
        return self._talk.ask([(public, question)])[0]

    def ask_many(self, asking: Iterable[Asking]) -> list[Verdict]:
        """Several questions that are fixed now, answered in order, a thousand in a transaction.

        There are fewer answers than questions if it halts on the way.
        """
        pairs, told = list(asking), list[Verdict]()
        for start in range(0, max(len(pairs), 1), MOST_IN_A_TURN):
            try:
                told += self._talk.ask(pairs[start : start + MOST_IN_A_TURN])
            except ConversationOver:
                if told:
                    break  # it halted in the piece before, or somebody else was there
                raise
        return told

    def close(self) -> None:
        """Nothing can be asked any more. Nothing is paid back."""
        self._talk.end(CLOSED, by=self._opened.analyst)

    def give_up(self, reason: str) -> None:
        """It ends because something went wrong, which may depend on the data. It stays spent."""
        self._talk.end(reason, by=self._opened.analyst)

    def standing(self) -> OpenedConversation:
        """How much was asked, and whether it goes on, as of now."""
        return self._talk.look(self._opened.analyst)

    def transcript(self) -> list[Answered]:
        """Everything that was asked and answered: what a crash kept from being told is here."""
        return self._talk.transcript()

    def said_after(self, turn: int) -> tuple[list[Answered], int | None]:
        """A page of the transcript, from after this turn (0: the first page), and where the next
        page begins; None at its end."""
        return self._talk.said_after(turn)

    def __repr__(self) -> str:
        return f"DurableConversation({self.id}, {self.mechanism!r})"
