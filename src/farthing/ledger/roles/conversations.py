"""Write about conversations: open one, ask in it, end it. They outlive the process.

Opening is one transaction with the charge: the entry, which holds a commitment to the noise, and
the noise itself in a table that nothing shows. Each turn (one question, or many that are answered
together) is one transaction too: lock, read the noise, answer, write the new noise and what was
said, commit. Only then are the answers given. So

    a crash before the commit     nothing was told; the conversation is where it was
    a crash after the commit      the answers are in the transcript, and are not drawn again

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
from farthing.ledger.entries.analyst import EndConversation, OpenConversation, Said
from farthing.ledger.entries.fact import Entry, linked, start_of
from farthing.ledger.errors import (
    AlreadySettled,
    Damaged,
    LedgerError,
    NotInLedger,
    RowsChanged,
    TariffChanged,
)
from farthing.ledger.records import (
    Answered,
    OpenedConversation,
    Use,
    answered_from_json,
    require_name,
)
from farthing.ledger.roles.charges import Request, charge
from farthing.ledger.store import commands
from farthing.ledger.store.commands import Runs, Standing
from farthing.ledger.store.open_book import InForce, OpenBook
from farthing.ledger.store.queries import declared_in, entry_at, row_of_dataset
from farthing.ledger.store.tables import conversations, turns

#: The book notes the end of the chain of turns each time that so many questions were asked.
NOTED_EVERY = 10_000
#: The most questions that one transaction answers: others wait for it.
MOST_IN_A_TURN = 1000
#: Why a conversation ended.
CLOSED = "closed"
HALTED = "halted: it has given all the answers that it was charged for"
ROWS_CHANGED = "the rows change, and its guarantee is about rows that do not"

#: The most turns on one page of a transcript, and characters unless one turn alone has more.
MOST_ON_A_PAGE, PAGE_SIZE = 1000, 1 << 18
#: The most characters that are kept of one conversation: negative answers cost nothing.
MOST_KEPT = 1 << 24
#: A question in public words, and the same with the true number, for the mechanism.
Asking: TypeAlias = tuple[Any, Any]


def open_conversation(
    book: OpenBook, request: Request, mechanism: Part, use: Use | None
) -> DurableConversation:
    """Draw, charge in full, and write both, in one transaction; or raise and change nothing."""
    terms = book.in_force(request.dataset).terms
    if request.under not in (None, terms.account):
        raise TariffChanged(request.under, terms.account)
    unknown = request.items.keys() - terms.tariff.items.keys()
    if unknown:
        raise InvalidInput(f"the tariff in force has no item {min(unknown)}")
    require_paid(terms.tariff, request.items, mechanism.guarantees)
    identity = commands.new_token()
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

    def alongside(run: Runs, in_force: InForce, entry: Entry) -> None:
        commands.begin_conversation(
            run,
            {
                "its_id": identity,
                "dataset": in_force.row,
                "its_entry": entry.number,
                "who": request.analyst,
                "its_head": start_of(identity),
                "its_commitment": sealed.commitment,
                "its_state": canonical(sealed.secret),
            },
        )

    opened = _opened(charge(book, wanted, alongside), asked=0, is_open=True)
    return DurableConversation(book, opened)


class DurableConversation:
    """An open conversation as the analyst who opened it holds it; its noise is not here.

    A question is asked as a pair: in public words, which are kept in the transcript, and as the
    mechanism's question, which carries the true number and is never written.
    """

    def __init__(self, book: OpenBook, opened: OpenedConversation) -> None:
        self.id = opened.id  # by which the same analyst finds it again
        self.mechanism = opened.mechanism
        self._book = book
        self._opened = opened
        self._dataset = opened.dataset
        self._versions: dict[int, str | None] = {}

    def __repr__(self) -> str:
        return f"DurableConversation({self.id}, {self.mechanism!r})"

    def require_open(self, asking: Iterable[Any] = ()) -> None:
        """ConversationOver if it has ended or cannot keep what is asked; looks at no data."""
        is_open = select(conversations.c.open).filter_by(id=self.id)
        kept = select(func.sum(func.length(turns.c.said))).filter_by(conversation=self.id)
        still, size = self._book.store.ask(lambda c: (c.scalar(is_open), c.scalar(kept) or 0))
        if still != 1:
            raise ConversationOver("nothing more can be asked: the conversation is over")
        if size + len(canonical(list(asking))) > MOST_KEPT:
            raise ConversationOver(
                f"what is kept of a conversation has at most {MOST_KEPT} characters; open another"
            )

    def ask(self, public: Any, question: Any) -> Verdict:
        """One answer; it is on disk before it is given."""
        return self._ask([(public, question)])[0]

    def ask_many(self, asking: Iterable[Asking]) -> list[Verdict]:
        """Several questions that are fixed now, answered in order, a thousand in a transaction.

        There are fewer answers than questions if the conversation ends before the last.
        """
        pairs, told = list(asking), list[Verdict]()
        for start in range(0, max(len(pairs), 1), MOST_IN_A_TURN):
            try:
                told += self._ask(pairs[start : start + MOST_IN_A_TURN])
            except ConversationOver:
                if told:
                    break  # it halted in the piece before, or somebody else asked
                raise
        return told

    def close(self) -> None:
        """End it. Nothing is paid back."""
        self.give_up(CLOSED)

    def give_up(self, reason: str) -> None:
        """End it because something went wrong, which may depend on the data. It stays spent."""
        end_conversation(self._book, self._dataset, self.id, reason, by=self._opened.analyst)

    def standing(self) -> OpenedConversation:
        """How much was asked, and whether it is still open, as of now."""
        return look_at(self._book, self._dataset, self.id, self._opened.analyst)

    def transcript(self) -> list[Answered]:
        """Everything that was asked and answered, even if a crash kept it from being told."""
        return transcript_of(self._book, self.id)

    def said_after(self, turn: int) -> tuple[list[Answered], int | None]:
        """A page of the transcript after this turn (0: the first page), and the turn after which
        the next page begins; None at the end."""

        def read(connection: Connection) -> tuple[list[Answered], int | None]:
            own = select(turns.c.number, turns.c.said).filter_by(conversation=self.id)
            later = own.where(turns.c.number > turn).order_by(turns.c.number)
            page, size, last = list[str](), 0, turn
            with connection.execute(later, execution_options={"yield_per": 10}) as rows:
                for number, said in rows:
                    size += len(said)
                    if page and (size > PAGE_SIZE or len(page) == MOST_ON_A_PAGE):
                        return _answered(page), last
                    page.append(said)
                    last = number
            return _answered(page), None

        return self._book.store.ask(read)

    def _ask(self, pairs: list[Asking]) -> list[Verdict]:
        """Answers, written before they are given; only those before it halted."""
        if not pairs:
            raise InvalidInput("at least one question must be asked, got none")
        token = commands.new_token()

        def work(run: Runs) -> list[Answered] | FarthingError:
            return self._turn(run, pairs, token)

        def done(connection: Connection) -> list[Answered] | FarthingError | None:
            commands.lock_conversation(connection, self.id)  # waits for a server still writing
            own = select(turns.c.said).filter_by(conversation=self.id)
            words = connection.scalar(own.where(turns.c.said.contains(token)))
            return None if words is None else _answered([words])

        told = self._book.store.write_fast(work, done=done, whole=True)
        if isinstance(told, FarthingError):
            raise told
        return [answer.told for answer in told]

    def _turn(self, run: Runs, pairs: list[Asking], token: str) -> list[Answered] | FarthingError:
        """Everything between the lock and the commit."""
        standing = _locked(run, self._dataset, self.id)
        if standing.open == 0:
            commands.require_writable(run, standing.dataset)
            return ConversationOver("nothing more can be asked: the conversation is over")
        conversation = self._unsealed(run, standing)
        if not self._goes_on(run, conversation, standing):
            _end(self._book, run, standing, ROWS_CHANGED)
            return RowsChanged(self._dataset)
        answers = conversation.ask_many(question for _, question in pairs)
        sealed = seal(conversation)
        answered = [
            Answered(public, answer) for (public, _), answer in zip(pairs, answers, strict=False)
        ]
        words = canonical(
            {
                "conversation": self.id,
                "turn": standing.turns + 1,
                "asked": standing.asked,
                "time": self._book.now(),
                "version": self._version(run, standing),
                "answered": [answer.to_json() for answer in answered],
                "commitment": sealed.commitment,
                "token": token,
            }
        )
        after = replace(
            standing,
            turns=standing.turns + 1,
            asked=standing.asked + len(answers),
            head=linked(standing.head, sha256(words)),
            commitment=sealed.commitment,
        )
        if not commands.write_turn(run, after, canonical(sealed.secret), words):
            commands.require_writable(run, standing.dataset)
            raise NotInLedger("there is no such conversation any more")
        if conversation.over:
            _end(self._book, run, after, HALTED)
        elif standing.asked // NOTED_EVERY < after.asked // NOTED_EVERY:
            commands.append(run, after.dataset, Said(**_progress(self._book, after)))
        return answered

    def _unsealed(self, run: Runs, standing: Standing) -> Held:
        secret = commands.noise_of(run, self.id)
        if secret is None:
            raise Damaged("the noise of an open conversation is missing", self._dataset)
        try:
            return unseal(SealedState(json.loads(secret), standing.commitment))
        except (ValueError, FarthingError):
            raise Damaged(
                "the noise of a conversation is not what was committed to", self._dataset
            ) from None

    def _goes_on(self, run: Runs, conversation: Held, standing: Standing) -> bool:
        """Whether the guarantee covers rows that change, or these are declared not to have."""
        if covers_growing_rows(conversation.mechanism):
            return True
        before = declared_in(commands.fact_at(run, standing.dataset, standing.declared))
        now = self._version(run, standing)
        return now is not None and before.dataset.version == now  # None: they change unsaid

    def _version(self, run: Runs, standing: Standing) -> str | None:
        """The version of the rows that is declared now."""
        if standing.now not in self._versions:
            declared = declared_in(commands.fact_at(run, standing.dataset, standing.now))
            self._versions = {standing.now: declared.dataset.version}
        return self._versions[standing.now]


def end_conversation(
    book: OpenBook, dataset: str, identity: str, reason: str, *, by: str | None = None
) -> None:
    """End a conversation. Nothing is paid back. `by` is the analyst; None for the owner."""
    require_name("reason", reason)

    def work(run: Runs) -> bool | LedgerError:
        standing = _locked(run, dataset, identity)
        if by is not None and standing.analyst != by:
            return _unknown()
        if standing.open == 0:
            commands.require_writable(run, standing.dataset)
            return AlreadySettled("the conversation has ended before")
        _end(book, run, standing, reason)
        return True

    def done(connection: Connection) -> bool | None:
        standing = commands.lock_conversation(connection, identity)
        return True if standing is not None and standing.open == 0 else None

    outcome = book.store.write_fast(work, done=done, whole=True)
    if isinstance(outcome, LedgerError):
        raise outcome


def end_all_conversations(book: OpenBook, dataset: str, reason: str) -> None:
    """End every conversation of a dataset that is still open."""
    for opened in book.store.ask(lambda connection: opened_conversations(connection, dataset)):
        if opened.open:
            try:
                end_conversation(book, dataset, opened.id, reason)
            except AlreadySettled:
                continue  # it ended by itself in between


def look_at(
    book: OpenBook, dataset: str, identity: str, analyst: str | None = None
) -> OpenedConversation:
    """The public part of a conversation; NotInLedger if it is not this analyst's."""
    opened = book.store.ask(lambda c: opened_conversations(c, dataset, id=identity))
    if not opened or analyst not in (None, opened[0].analyst):
        raise _unknown()
    return opened[0]


def transcript_of(book: OpenBook, identity: str) -> list[Answered]:
    """Everything that was asked and answered in a conversation, in order."""
    said = select(turns.c.said).filter_by(conversation=identity).order_by(turns.c.number)
    return book.store.ask(lambda connection: _answered(connection.scalars(said)))


def opened_conversations(
    connection: Connection, dataset: str, **wanted: str
) -> list[OpenedConversation]:
    """The conversations of a dataset that are kept here, oldest first, without their noise.

    `wanted` is the analyst or the id.
    """
    row = row_of_dataset(connection, dataset)
    rows = connection.execute(
        select(conversations).filter_by(dataset_id=row, **wanted).order_by(conversations.c.entry)
    )
    return [
        _opened(entry_at(connection, row, kept.entry), asked=kept.asked, is_open=kept.open == 1)
        for kept in rows.all()
    ]


def _opened(entry: Entry, *, asked: int, is_open: bool) -> OpenedConversation:
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


def _locked(run: Runs, dataset: str, identity: str) -> Standing:
    standing = commands.lock_conversation(run, identity)
    if standing is None or standing.dataset_name != dataset:
        raise _unknown()
    return standing


def _end(book: OpenBook, run: Runs, standing: Standing, reason: str) -> None:
    """The conversation is over, in its row and in the book."""
    fact = EndConversation(**_progress(book, standing), settles=standing.entry, reason=reason)
    commands.append(run, standing.dataset, fact)
    commands.close_conversation(run, standing.id)


def _progress(book: OpenBook, standing: Standing) -> dict[str, Any]:
    """What the book says of how much was asked."""
    return {
        **book.stamp(standing.dataset_name),
        "conversation": standing.id,
        "analyst": standing.analyst,
        "asked": standing.asked,
        "head": standing.head,
    }


def _unknown() -> NotInLedger:
    return NotInLedger("there is no such conversation of this analyst")


def _answered(said: Iterable[str]) -> list[Answered]:
    return [answered_from_json(turn) for words in said for turn in json.loads(words)["answered"]]
