"""A ledger that the first format wrote: it opens, verifies, and goes on."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

import farthing as fa
from farthing.ledger import (
    AlreadyThere,
    Dataset,
    DoesNotFit,
    Ledger,
    Limits,
    WrongSchema,
    export_lines,
    import_lines,
    markdown,
    move,
    odometer,
    statement,
    verify,
)
from farthing.schema import Column, Schema

DATA = Path(__file__).with_name("data")
OLD = DATA / "ledger-0001.db"
#: A book with every kind of entry, as version 1.0.0 exported it after a move and a restore.
BOOK = DATA / "book-1.0.0.jsonl"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copy(OLD, tmp_path / "old.db"))


def test_it_is_not_touched_without_being_told(old: Path) -> None:
    before = old.read_bytes()
    with pytest.raises(WrongSchema, match="farthing owner upgrade") as refused:
        Ledger.open(old, upgrade=False)
    assert refused.value.found == "0001"
    assert old.read_bytes()[100:] == before[100:]  # the header counts who opened it


def test_everything_works_after_the_upgrade(old: Path) -> None:
    with Ledger.open(old) as ledger:
        reader, owner = ledger.reader(), ledger.owner()
        (events, visits) = verify(reader, prove=True)
        assert (events.entries, visits.entries) == (13, 1)
        about = reader.dataset("events")
        assert (about.limits.contribution_limit, about.limits.per_key_limit) == (3, None)
        assert (about.schema, about.location, about.version) == (None, None, None)
        assert len(reader.identity()) == 32
        assert odometer(reader, "events").epsilon > 0
        page = markdown(statement(reader, "events"))
        assert "at most 3 keys" in page
        assert "not stated" in page  # closed before there was a word for its use

        ann = ledger.analyst("events", "ann")
        left = ann.remaining()
        held = ann.reserve({"select": 2})
        ann.close(held, "digest")
        assert ann.remaining().farthings == left.farthings - 2
        with pytest.raises(DoesNotFit):
            ann.reserve({"select": left.farthings})
        question = {"query": {"kind": "top_k", "k": 10}}
        found = ann.release_of(question)
        assert found is not None
        assert (found.release, found.price) == ({"labels": ["a"]}, fa.Price(8))
        for reservation in reader.open_reservations("events"):
            owner.abandon(reservation, reason="left open")
        owner.declare_version("events", "2026-04")
        assert reader.dataset("events").version == "2026-04"
        verify(reader)


def test_it_moves_like_any_other(old: Path, tmp_path: Path) -> None:
    with Ledger.open(old) as here, Ledger.open(tmp_path / "new.db") as there:
        assert move(here, there) == {"events": 15, "visits": 3}
        lines = list(export_lines(here.reader()))
        assert len(lines) == 17
        assert set(lines) < set(export_lines(there.reader()))
        there.analyst("events", "ann").reserve({"select": 1})
        verify(there.reader())


def test_what_the_first_format_could_not_say_is_declared_once(old: Path) -> None:
    schema = Schema((Column("member", "integer"), Column("page", "text")))
    with Ledger.open(old) as ledger:
        owner, reader = ledger.owner(), ledger.reader()
        owner.add(Dataset("pages", unit="member", owner="team", location="file:/data/pages"))
        said = dataclasses.replace(reader.dataset("events"), schema=schema, version="1")
        for place, unlike in (
            ("unit", dataclasses.replace(said, unit="page")),
            ("contribution_limit", dataclasses.replace(said, limits=Limits(contribution_limit=9))),
        ):
            with pytest.raises(fa.InvalidInput, match=f"{place} of events was declared"):
                owner.describe(unlike)
        here = dataclasses.replace(said, location="file:/data")
        with pytest.raises(AlreadyThere, match="as the dataset pages"):
            owner.describe(here)
        owner.describe(here, beside="pages")
        assert ledger.analyst("events", "ann").about() == here
        assert ledger.datasets_at("file:/data") == ("events",)
        assert reader.beside("pages") == ("events", "pages")
        other = Schema((Column("member", "integer"),))
        with pytest.raises(fa.InvalidInput, match="schema of events was declared"):
            owner.describe(dataclasses.replace(here, schema=other))
        owner.declare_version("events", "2")
        assert reader.dataset("events") == dataclasses.replace(here, version="2")
        assert reader.beside("pages") == ("events", "pages")
        verify(reader)


def test_a_book_of_version_1_verifies_unchanged(tmp_path: Path) -> None:
    lines = BOOK.read_text(encoding="utf-8").splitlines()
    with Ledger.open(tmp_path / "copy.db") as ledger:
        assert import_lines(ledger, lines) == {"e": len(lines) - 1}
        (found,) = verify(ledger.reader(), prove=True)
        assert found.head == json.loads(lines[-1])["hash"]
        assert list(export_lines(ledger.reader())) == lines
        assert {entry.kind for entry in ledger.reader().entries("e")} == {
            "abandon", "account", "close", "dataset", "describe", "end", "grant", "open",
            "reserve", "restore", "resume", "retire", "revoke", "said", "seal", "version",
        }  # fmt: skip # every kind that version 1 writes
        statement(ledger.reader(), "e")
