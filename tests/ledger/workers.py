"""What the processes of the race and crash tests do."""

from __future__ import annotations

import random
from multiprocessing.connection import Connection

import sqlalchemy.dialects.postgresql.psycopg
import sqlalchemy.dialects.sqlite.pysqlite  # noqa: F401 # imported once, not after every kill

from farthing.ledger import DoesNotFit, Ledger


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
