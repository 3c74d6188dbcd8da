"""Entries about conversations: opened, how much was asked, ended."""

from __future__ import annotations

from farthing.interactive import mechanism_from_json, require_paid
from farthing.ledger.entries.charges import Charge
from farthing.ledger.entries.fact import (
    Amount,
    Fact,
    Hash,
    MechanismData,
    Month,
    Name,
    Number,
    Token,
    UseData,
    kind,
    start_of,
)
from farthing.ledger.entries.replay import Opened, State, require


@kind("open")
class OpenConversation(Charge):
    """A conversation is opened, and charged in full for its mechanism."""

    month: Month
    conversation: Token
    mechanism: MechanismData
    commitment: Hash
    use: UseData | None

    def apply(self, state: State, number: int) -> None:
        self.require_question()
        self.spend(state)
        mechanism = mechanism_from_json(self.mechanism)
        require_paid(state.tariffs[self.account], self.items, mechanism.guarantees)
        require(self.conversation not in state.conversations, "it was opened before")
        state.conversations[self.conversation] = Opened(
            number, self.analyst, state.declared, mechanism, self.commitment
        )


@kind("said")
class Said(Fact):
    """How much was asked, and the end of the chain of turns."""

    conversation: Token
    analyst: Name
    asked: Amount
    head: Hash

    def apply(self, state: State, number: int) -> None:
        opened = state.conversation(self.conversation)
        require(opened.open, "the conversation had ended before")
        require(opened.analyst == self.analyst, "it is the conversation of somebody else")
        before, head = opened.marks[-1] if opened.marks else (0, start_of(self.conversation))
        require(self.asked >= before, "less was asked than before")
        same = (self.asked == before) == (self.head == head)
        require(same, "its number of questions and the end of its turns do not agree")
        opened.marks.append((self.asked, self.head))


@kind("end")
class EndConversation(Said):
    """Nothing more can be asked."""

    settles: Number
    reason: Name

    def apply(self, state: State, number: int) -> None:
        Said.apply(self, state, number)
        opened = state.conversation(self.conversation)
        require(self.settles == opened.entry, "it ends another conversation")
        opened.open = False
