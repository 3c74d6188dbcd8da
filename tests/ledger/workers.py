"""What the processes of the race and crash tests do."""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from multiprocessing.connection import Connection
from typing import Any

import sqlalchemy.dialects.postgresql.psycopg
import sqlalchemy.dialects.sqlite.pysqlite  # noqa: F401 # imported once, not after every kill

from farthing.interactive import ConversationOver, Exceeds, SparseVector
from farthing.ledger import DoesNotFit, Ledger, NotInLedger, ReadOnly, move
from farthing.ledger.store import commands


def race(target: str, analyst: str, attempts: int, items: dict[str, int], out: Connection) -> None:
    """Reserve as often as possible; report how often it worked and every unexpected error."""
    worked, strange = 0, []
    with Ledger.open(target, upgrade=False) as ledger:
        out.send("ready")
        out.recv()
        for _ in range(attempts):
            try:
                ledger.analyst("events", analyst).reserve(items)
                worked += 1
            except DoesNotFit:
                pass
            except Exception as error:
                strange.append(repr(error))
    out.send((worked, strange))


def spend_forever(target: str, seed: int, out: Connection) -> None:
    """Reserve, close and abandon; say of which reservation after each. Meant to be killed."""
    choose = random.Random(seed)
    with Ledger.open(target, upgrade=False) as ledger:
        ann = ledger.analyst("events", "ann")
        while True:
            try:
                held = ann.reserve({"select": 2}, question=choose.random())
            except DoesNotFit:
                out.send(("refused", 0))
                continue
            out.send(("reserve", held.entry))
            if choose.random() < 0.8:
                ann.close(held, "digest", used={"select": choose.randint(0, 1)})
                out.send(("close", held.entry))
            else:
                ann.abandon(held, reason="test")
                out.send(("abandon", held.entry))


def spend_until_told(target: str, out: Connection) -> None:
    """Reserve and close until told to stop; report what was acknowledged and what went wrong."""
    acknowledged, strange = [], []
    with Ledger.open(target, upgrade=False) as ledger:
        ann = ledger.analyst("events", "ann")
        out.send("ready")
        while not out.poll():
            try:
                held = ann.reserve({"select": 1})
                acknowledged.append(("reserve", held.entry))
                ann.close(held, "d", used={"select": 0})
                acknowledged.append(("close", held.entry))
            except Exception as error:
                strange.append(repr(error))
    out.send((acknowledged, strange))


def ask_and_die(target: str, conversation: str, moment: str, out: Connection) -> None:
    """Ask once, and be killed when the answer is drawn, when it is written, or when it is told."""

    def die(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with Ledger.open(target, upgrade=False) as ledger:
        held = ledger.analyst("events", "ann").conversation(conversation)
        if moment == "drawn":
            commands.write_turn = die  # never comes back
        answer = held.ask({"n": 1}, Exceeds(2000, 1000))
        if moment == "told":
            out.send(answer.positive)
        die()


def open_and_die(target: str, out: Connection) -> None:
    """Be killed when the noise is written and the transaction is not yet committed."""
    begin = commands.begin_conversation

    def die(*arguments: Any) -> None:
        begin(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    with Ledger.open(target, upgrade=False) as ledger:
        commands.begin_conversation = die
        watch = SparseVector.from_epsilon(60.0, positives=2, monotone=True)
        ledger.analyst("events", "ann").open_conversation(watch)
        out.send("opened")


def ask_forever(target: str, conversation: str, turn: int, out: Connection) -> None:
    """Ask, and say which question was answered. Meant to be killed."""
    with Ledger.open(target, upgrade=False) as ledger:
        held = ledger.analyst("events", "ann").conversation(conversation)
        for n in itertools.count(1000 * turn):
            try:
                held.ask(n, Exceeds(2000, 1000))
                out.send(n)
            except ConversationOver:
                out.send(-1)
                time.sleep(60)


def ask_until_over(target: str, conversation: str, out: Connection) -> None:
    """Ask low and high in turns until it is over; report how many answers were positive."""
    positive, strange = 0, []
    with Ledger.open(target, upgrade=False) as ledger:
        held = ledger.analyst("events", "ann").conversation(conversation)
        out.send("ready")
        out.recv()
        try:
            while True:
                pair = [("low", Exceeds(0, 1000)), ("high", Exceeds(2000, 1000))]
                positive += sum(one.positive for one in held.ask_many(pair))
        except ConversationOver:
            pass
        except Exception as error:
            strange.append(repr(error))
    out.send((positive, strange))


def ask_until_told(target: str, conversation: str, number: int, out: Connection) -> None:
    """Ask until told to stop; report what was answered and what went wrong."""
    answered, strange = [], []
    with Ledger.open(target, upgrade=False) as ledger:
        held = ledger.analyst("events", "ann").conversation(conversation)
        out.send("ready")
        for n in itertools.count():
            if out.poll():
                break
            try:
                held.ask([number, n], Exceeds(2000, 1000))
                answered.append([number, n])
            except Exception as error:
                strange.append(repr(error))
    out.send((answered, strange))


def spend_wherever_it_goes_on(targets: list[str], analyst: str, seed: int, out: Connection) -> None:
    """Reserve in whichever ledger sells, close some with less; say so after each. Meant to be
    killed."""
    choose = random.Random(seed)
    ledgers = [Ledger.open(target, upgrade=False) for target in targets]
    while True:
        for place, ledger in enumerate(ledgers):
            try:
                mine = ledger.analyst("events", analyst)
                held = mine.reserve({"select": choose.randint(1, 3)}, question=seed)
                out.send((f"reserve {place}", held.entry))
                if choose.random() < 0.3:
                    mine.close(held, "d", used={"select": 1})
                    out.send((f"close {place}", held.entry))
            except (DoesNotFit, ReadOnly, NotInLedger):
                out.send(("refused", -1))


def move_book(source: str, target: str, out: Connection) -> None:
    """Move everything, and say so. Meant to be killed."""
    with Ledger.open(source) as here, Ledger.open(target) as there:
        out.send("ready")
        out.send(move(here, there))
