"""Conversations that outlive their process: charged when opened, written before they are told.

Opening is one transaction with the charge: the entry, which holds a commitment to the noise, and
the noise itself in a table that nothing shows. Each turn (one question, or many that are answered
together) is one transaction too: lock, read the noise, answer, write the new noise and what was
said, commit, and only then tell. So

    a crash before the commit     nothing was told; the conversation is where it was
    a crash after the commit      the answers are in the transcript, and are read, not drawn

Turns have a chain of hashes of their own. The book holds its end whenever a conversation ends, and
each time that a few thousand questions were asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from sqlalchemy import Connection, func, select

from farthing.canonical import canonical, sha256
from farthing.errors import FarthingError, InvalidInput
from farthing.interactive import (
    Conversation,
    ConversationOver,
    SealedState,
    Verdict,
    covers_growing_rows,
    mechanism_from_json,
    mechanism_to_json,
    require_paid,
    seal,
    unseal,
)
from farthing.interactive.protocol import OpenConversation as Held
from farthing.interactive.protocol import Part
from farthing.ledger.chain import linked, start_of
from farthing.ledger.charging import Request, charge
from farthing.ledger.entries import EndConversation, Entry, OpenConversation, Said
from farthing.ledger.errors import (
    AlreadySettled,
    Damaged,
    LedgerError,
    NotInLedger,
    RowsChanged,
    TariffChanged,
)
from farthing.ledger.lookups import declared_in, entry_at, row_of_dataset
from farthing.ledger.open_book import InForce, OpenBook
from farthing.ledger.records import (
    Answered,
    OpenedConversation,
    Use,
    answered_from_json,
    require_name,
)
from farthing.ledger.store import conversation_statements as stored
from farthing.ledger.store import statements
from farthing.ledger.store.conversation_statements import Standing
from farthing.ledger.store.statements import Runs
from farthing.ledger.store.tables import conversations, turns

#: The book notes the end of the chain of turns each time that so many questions were asked.
NOTED_EVERY = 10_000
#: Why a conversation ended.
HALTED = "halted: it has given all the answers that it was charged for"
ROWS_CHANGED = "the rows change, and its guarantee is about rows that do not"
WITHOUT_NOISE = "its book was taken over from an export, which holds no noise"

#: Turns on one page of a transcript at most, and characters unless one turn alone has more.
MOST_ON_A_PAGE, PAGE_SIZE = 1000, 1 << 18
#: Characters that are kept of one conversation at most: what is answered with no costs nothing.
MOST_KEPT = 1 << 24
#: What is asked in public words, and the same with the true number, for the mechanism.
Asking: TypeAlias = tuple[Any, Any]


def open_conversation(
    book: OpenBook, request: Request, mechanism: Part, use: Use | None
) -> OpenedConversation:
    """Draw, charge in full, and write both, in one transaction; or raise and change nothing."""
    terms = book.in_force(request.dataset).terms
    if request.under not in (None, terms.account):
        raise TariffChanged(request.under, terms.account)
    unknown = request.items.keys() - terms.tariff.items.keys()
    if unknown:
        raise InvalidInput(f"the tariff in force has no item {min(unknown)}")
    require_paid(terms.tariff, request.items, mechanism.guarantees)
    identity = statements.new_token()
    sealed = seal(Conversation(mechanism))
    entry = partial(
        OpenConversation,
        conversation=identity,
        mechanism=mechanism_to_json(mechanism),
        commitment=sealed.commitment,
        use=None if use is None else use.to_json(),
    )
    # under no other tariff: there the same names may promise less
    wanted = replace(request, under=terms.account, entry=entry)

    def alongside(run: Runs, found: InForce, entry: Entry) -> None:
        stored.begin(
            run,
            {
                "its_id": identity,
                "dataset": found.row,
                "its_entry": entry.number,
                "who": request.analyst,
                "its_head": start_of(identity),
                "its_commitment": sealed.commitment,
                "its_state": canonical(sealed.secret),
            },
        )

    return opened_conversation(charge(book, wanted, alongside), asked=0, is_open=True)


class Talk:
    """One conversation of the book, talked to, looked at or ended; none of its noise is here."""

    def __init__(self, book: OpenBook, dataset: str, conversation: str) -> None:
        self._book = book
        self._dataset = dataset
        self._id = conversation
        self._versions: dict[int, str | None] = {}

    def ask(self, asking: Iterable[Asking]) -> list[Verdict]:
        """Answers, written before they are told; as many as there were before it halted."""
        pairs = [(public, question) for public, question in asking]
        if not pairs:
            raise InvalidInput("at least one question must be asked, got none")
        token = statements.new_token()

        def work(run: Runs) -> list[Answered] | FarthingError:
            return self._turn(run, pairs, token)

        def done(connection: Connection) -> list[Answered] | FarthingError | None:
            stored.standing(connection, self._id)  # waits for a server that is still at it
            return self._said_with(connection, token)

        told = self._book.store.write_together(work, done=done)
        if isinstance(told, FarthingError):
            raise told
        return [one.told for one in told]

    def _turn(self, run: Runs, pairs: list[Asking], token: str) -> list[Answered] | FarthingError:
        """Everything between the lock and the commit."""
        standing = self._standing(run)
        if standing.open == 0:
            statements.require_writable(run, standing.dataset)
            return ConversationOver("nothing more can be asked: the conversation is over")
        conversation = self._unsealed(run, standing)
        if not self._goes_on(run, conversation, standing):
            self._end(run, standing, ROWS_CHANGED)
            return RowsChanged(self._dataset)
        answers = conversation.ask_many(question for _, question in pairs)
        sealed = seal(conversation)
        answered = [
            Answered(public, answer) for (public, _), answer in zip(pairs, answers, strict=False)
        ]
        words = canonical(
            {
                "conversation": self._id,
                "turn": standing.turns + 1,
                "asked": standing.asked,
                "time": self._book.now(),
                "version": self._version(run, standing),
                "answered": [one.to_json() for one in answered],
                "commitment": sealed.commitment,
                "token": token,
            }
        )
        after = {
            "its_id": self._id,
            "its_turns": standing.turns + 1,
            "its_asked": standing.asked + len(answers),
            "its_head": linked(standing.head, sha256(words)),
            "its_commitment": sealed.commitment,
            "its_state": canonical(sealed.secret),
            "its_words": words,
        }
        if not stored.write_turn(run, after):
            statements.require_writable(run, standing.dataset)
            raise NotInLedger("there is no such conversation any more")
        self._note(run, standing, after, over=conversation.over)
        return answered

    def _note(self, run: Runs, standing: Standing, after: dict[str, Any], *, over: bool) -> None:
        """The end of the chain of turns, in the book."""
        now = replace(standing, asked=after["its_asked"], head=after["its_head"])
        if over:
            self._end(run, now, HALTED)
        elif standing.asked // NOTED_EVERY < now.asked // NOTED_EVERY:
            self._append(run, now, Said(**self._said(now)))

    def end(self, reason: str, *, by: str | None = None) -> None:
        """Nothing can be asked any more. Nothing is paid back.

        `by` is the analyst who ends it; None for the owner.
        """
        require_name("reason", reason)

        def work(run: Runs) -> bool | LedgerError:
            standing = self._standing(run)
            if by is not None and standing.analyst != by:
                return _unknown()
            if standing.open == 0:
                statements.require_writable(run, standing.dataset)
                return AlreadySettled("the conversation has ended before")
            self._end(run, standing, reason)
            return True

        def done(connection: Connection) -> bool | None:
            standing = stored.standing(connection, self._id)
            return True if standing is not None and standing.open == 0 else None

        outcome = self._book.store.write_together(work, done=done)
        if isinstance(outcome, LedgerError):
            raise outcome

    def look(self, analyst: str | None = None) -> OpenedConversation:
        """What is public about it; NotInLedger if it is not this analyst's."""
        found = self._book.store.ask(lambda c: opened_conversations(c, self._dataset, id=self._id))
        if not found or analyst not in (None, found[0].analyst):
            raise _unknown()
        return found[0]

    def is_open(self) -> bool:
        """Whether it goes on, as of now."""
        query = select(conversations.c.open).filter_by(id=self._id)
        return self._book.store.ask(lambda connection: connection.scalar(query)) == 1

    def kept(self) -> int:
        """How many characters its transcript has."""
        query = select(func.sum(func.length(turns.c.said))).filter_by(conversation=self._id)
        return self._book.store.ask(lambda connection: connection.scalar(query)) or 0

    def transcript(self) -> list[Answered]:
        """Everything that was asked and answered, in order."""

        def read(connection: Connection) -> list[Answered]:
            said = connection.scalars(
                select(turns.c.said).filter_by(conversation=self._id).order_by(turns.c.number)
            )
            return _answered(said)

        return self._book.store.ask(read)

    def said_after(self, turn: int) -> tuple[list[Answered], int | None]:
        """What was said after this turn, as much as one page holds, and the turn to go on after.

        Questions that are answered with no cost nothing, so a transcript may be of any size.
        """

        def read(connection: Connection) -> tuple[list[Answered], int | None]:
            own = turns.c.conversation == self._id
            sizes = connection.execute(
                select(turns.c.number, func.length(turns.c.said))
                .where(own, turns.c.number > turn)
                .order_by(turns.c.number)
                .limit(MOST_ON_A_PAGE + 1)
            ).all()
            total, last = 0, turn
            for number, size in sizes[:MOST_ON_A_PAGE]:
                total += size
                if total > PAGE_SIZE and last != turn:
                    break
                last = number
            said = connection.scalars(
                select(turns.c.said)
                .where(own, turns.c.number > turn, turns.c.number <= last)
                .order_by(turns.c.number)
            )
            page = _answered(said)
            return page, last if sizes and sizes[-1][0] > last else None

        return self._book.store.ask(read)

    def _standing(self, run: Runs) -> Standing:
        found = stored.standing(run, self._id)
        if found is None or found.dataset_name != self._dataset:
            raise _unknown()
        return found

    def _unsealed(self, run: Runs, standing: Standing) -> Held:
        secret = stored.kept_noise(run, self._id)
        if secret is None:
            raise Damaged("the noise of an open conversation is missing", self._dataset)
        try:
            return unseal(SealedState(json.loads(secret), standing.commitment))
        except (ValueError, FarthingError):
            raise Damaged(
                "the noise of a conversation is not what was committed to", self._dataset
            ) from None

    def _goes_on(self, run: Runs, conversation: Held, standing: Standing) -> bool:
        """Whether the guarantee covers rows that change, or they are known not to have changed."""
        if covers_growing_rows(conversation.mechanism):
            return True
        before = declared_in(self._fact(run, standing, standing.declared))
        now = self._version(run, standing)
        return now is not None and before.dataset.version == now  # None: they change unsaid

    def _version(self, run: Runs, standing: Standing) -> str | None:
        """The version of the rows that is declared now."""
        if standing.now not in self._versions:
            declared = declared_in(self._fact(run, standing, standing.now))
            self._versions = {standing.now: declared.dataset.version}
        return self._versions[standing.now]

    def _fact(self, run: Runs, standing: Standing, number: int) -> str:
        return stored.declared_fact(run, standing.dataset, number)

    def _end(self, run: Runs, standing: Standing, reason: str) -> None:
        """The conversation is over, here and in the book."""
        fact = EndConversation(**self._said(standing), settles=standing.entry, reason=reason)
        self._append(run, standing, fact)
        stored.end(run, self._id)

    def _said(self, standing: Standing) -> dict[str, Any]:
        """What the book says of how far it came."""
        return {
            **self._book.stamp(self._dataset),
            "conversation": self._id,
            "analyst": standing.analyst,
            "asked": standing.asked,
            "head": standing.head,
        }

    def _append(self, run: Runs, standing: Standing, fact: Said) -> None:
        statements.append(run, standing.dataset, fact, statements.new_token())

    def _said_with(self, connection: Connection, token: str) -> list[Answered] | None:
        """The answers of a turn that was written though nobody acknowledged it."""
        words = connection.scalar(
            select(turns.c.said)
            .filter_by(conversation=self._id)
            .where(turns.c.said.contains(token))
        )
        if words is None:
            return None
        return [answered_from_json(one) for one in json.loads(words)["answered"]]


def opened_conversations(
    connection: Connection, dataset: str, **wanted: str
) -> list[OpenedConversation]:
    """The conversations of a dataset that are kept here, the oldest first; none of their noise.

    `wanted` says of which analyst, or which one.
    """
    row = row_of_dataset(connection, dataset)
    rows = connection.execute(
        select(conversations).filter_by(dataset_id=row, **wanted).order_by(conversations.c.entry)
    )
    return [
        opened_conversation(
            entry_at(connection, row, one.entry), asked=one.asked, is_open=one.open == 1
        )
        for one in rows.all()
    ]


def opened_conversation(entry: Entry, *, asked: int, is_open: bool) -> OpenedConversation:
    """A conversation from the entry that opened it."""
    fact = entry.fact
    if not isinstance(fact, OpenConversation):
        raise Damaged(f"entry {entry.number} opens no conversation", fact.dataset, entry.number)
    return OpenedConversation(
        id=fact.conversation,
        dataset=fact.dataset,
        analyst=fact.analyst,
        time=fact.time,
        mechanism=mechanism_from_json(fact.mechanism),
        question=fact.question,
        price=fact.price,
        asked=asked,
        open=is_open,
    )


def _unknown() -> NotInLedger:
    return NotInLedger("there is no such conversation of this analyst")


def _answered(said: Iterable[str]) -> list[Answered]:
    return [answered_from_json(one) for words in said for one in json.loads(words)["answered"]]
