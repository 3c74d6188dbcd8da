"""Older and newer schemas, and who may change them."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text

import farthing as fa
from farthing.ledger import Ledger, WrongSchema, verify
from farthing.ledger.store import tables
from tests.ledger.conftest import fill


def note(connection: Connection) -> None:
    """A migration of the future."""
    connection.execute(text("ALTER TABLE farthing_entries ADD COLUMN note TEXT"))


@pytest.fixture
def future(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Act like a farthing that has one more migration; undo() acts like this one again."""
    monkeypatch.setattr(tables, "UPGRADES", {**tables.UPGRADES, "0004": note})
    monkeypatch.setattr(tables, "REVISION", "0004")
    return monkeypatch


def test_the_migrations_make_the_tables_that_the_code_uses(ledger: Ledger) -> None:
    with ledger.book.store.engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": tables.version.name, "compare_type": True}
        )
        assert compare_metadata(context, tables.metadata) == []


def test_an_older_ledger_is_upgraded_with_its_entries(
    target: str, certificate: fa.Certificate, future: pytest.MonkeyPatch
) -> None:
    with future.context() as now:
        now.setattr(tables, "REVISION", "0003")
        now.delitem(tables.UPGRADES, "0004")
        with Ledger.open(target) as ledger:
            fill(ledger, certificate)
            held = ledger.analyst("events", "ann").reserve({"select": 7})
    with pytest.raises(WrongSchema, match="farthing owner upgrade") as refused:
        Ledger.open(target, upgrade=False)
    assert (refused.value.found, refused.value.known) == ("0003", "0004")
    with Ledger.open(target) as ledger:
        assert ledger.reader().open_reservations("events") == [held]
        verify(ledger.reader())


def test_a_newer_ledger_is_left_alone(target: str, future: pytest.MonkeyPatch) -> None:
    Ledger.open(target).shut()
    future.undo()
    for may_upgrade in (True, False):
        with pytest.raises(WrongSchema, match="newer farthing") as refused:
            Ledger.open(target, upgrade=may_upgrade)
        assert (refused.value.found, refused.value.known) == ("0004", "0003")


def test_a_process_that_was_open_during_an_upgrade_stops_writing(
    ledger: Ledger, target: str, request: pytest.FixtureRequest
) -> None:
    held = ledger.analyst("events", "ann").reserve({"select": 1})
    request.getfixturevalue("future")
    Ledger.open(target).shut()
    for attempt in (
        lambda: ledger.analyst("events", "ann").reserve({"select": 1}),
        lambda: ledger.analyst(held.dataset, held.analyst).close(held, "d"),
        lambda: ledger.owner().grant("events", "ann", farthings=1),
    ):
        with pytest.raises(WrongSchema, match="upgraded while open"):
            attempt()
    (account,) = ledger.reader().accounts("events")
    assert account.farthings_spent == 1


def test_opening_without_the_right_to_upgrade(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS reader")
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
        connection.execute("GRANT USAGE ON SCHEMA public TO reader")
    with pytest.raises(WrongSchema, match="may not upgrade"):
        Ledger.open(postgres_url.replace("postgres:@", "reader:@"))


def test_an_empty_database_is_not_a_ledger(target: str) -> None:
    if target.startswith("postgresql"):
        with pytest.raises(WrongSchema, match="found none"):
            Ledger.open(target, upgrade=False)
    else:
        Path(target).touch()
        with pytest.raises(WrongSchema, match="found none"):
            Ledger.open(target, upgrade=False)
    with Ledger.open(target) as ledger:
        assert ledger.reader().datasets() == []
    with Ledger.open(target, upgrade=False) as ledger:
        assert verify(ledger.reader()) == []


def test_durability_is_asked_for(ledger: Ledger) -> None:
    with ledger.book.store.engine.connect() as connection:
        if ledger.book.store.is_sqlite:
            assert connection.execute(text("PRAGMA synchronous")).scalar() == 2
            assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        else:
            assert connection.execute(text("SHOW synchronous_commit")).scalar() != "off"
