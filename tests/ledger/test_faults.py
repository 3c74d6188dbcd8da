"""Full disks, read-only files, damaged files: a clear message, and never an overspent purse."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import farthing as fa
from farthing.ledger import Damaged, DoesNotFit, Ledger, LedgerError, Unavailable, verify
from tests.ledger.conftest import fill
from tests.ledger.server import Server


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """The operating system refuses to make any file longer, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def fill_until_it_fails(ledger: Ledger, question: str) -> list[int]:
    acknowledged = []
    for _ in range(100):
        try:
            held = ledger.analyst("events", "ann").reserve({"select": 1}, question=question)
        except Unavailable:
            return acknowledged
        acknowledged.append(held.entry)
    pytest.fail("the disk never filled up")


def check(ledger: Ledger, acknowledged: list[int]) -> None:
    verify(ledger.reader())
    numbers = {entry.number for entry in ledger.reader().entries("events")}
    assert set(acknowledged) <= numbers
    (account,) = ledger.reader().accounts("events")
    assert account.farthings_spent == len(numbers) - 3
    ledger.analyst("events", "ann").reserve({"select": 1})


def test_a_full_disk_on_sqlite(tmp_path: Path, certificate: fa.Certificate) -> None:
    path = tmp_path / "budget.db"
    with Ledger.open(path) as ledger:
        fill(ledger, certificate)
        with files_end_at(1_500_000):
            acknowledged = fill_until_it_fails(ledger, "x" * 100_000)
        assert acknowledged
    with Ledger.open(path) as ledger:
        check(ledger, acknowledged)


def test_a_file_that_may_not_grow(tmp_path: Path, certificate: fa.Certificate) -> None:
    path = tmp_path / "budget.db"
    with Ledger.open(path) as ledger:
        fill(ledger, certificate)
        with ledger.book.store.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 150")
        acknowledged = fill_until_it_fails(ledger, "x" * 20_000)
        assert acknowledged
        with pytest.raises(Unavailable, match="full"):
            ledger.analyst("events", "ann").reserve({"select": 1}, question="x" * 20_000)
        verify(ledger.reader())


@pytest.mark.slow
@pytest.mark.server
def test_a_full_disk_on_postgresql(folder: Path, certificate: fa.Certificate) -> None:
    """A server of its own, whose files end at 20 MB (its log segments are 16 MB)."""
    server = Server(folder / "cramped", largest_file=20 * 2**20)
    try:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("CREATE TABLE filler (x text)")
        with Ledger.open(server.url()) as ledger:
            fill(ledger, certificate)
            noise = os.urandom(500_000).hex()  # does not compress
            acknowledged = fill_until_it_fails(ledger, noise)
            assert acknowledged
            check(ledger, acknowledged)
    finally:
        server.stop()


@pytest.mark.usefixtures("without_root")
def test_a_read_only_file(certificate: fa.Certificate) -> None:
    place = Path(os.environ.get("TMPDIR", "/tmp"), f"ledger-{os.getpid()}")
    place.mkdir()
    try:
        path = place / "budget.db"
        with Ledger.open(path) as ledger:
            fill(ledger, certificate)
        path.chmod(0o444)
        with Ledger.open(path) as ledger:
            with pytest.raises(Unavailable, match=r"readonly.*must be writable"):
                ledger.analyst("events", "ann").reserve({"select": 1})
            assert ledger.analyst("events", "ann").remaining().farthings == 100
            verify(ledger.reader())
        path.chmod(0o000)
        with pytest.raises(Unavailable, match=r"unable to open.*must be writable"):
            Ledger.open(path)
        for file in place.iterdir():  # the log beside it was made read-only too
            file.chmod(0o644)
        with Ledger.open(path) as ledger:
            ledger.analyst("events", "ann").reserve({"select": 100})
            verify(ledger.reader())
    finally:
        shutil.rmtree(place)


def test_a_read_only_server(postgres_url: str, certificate: fa.Certificate) -> None:
    with Ledger.open(postgres_url) as ledger:
        fill(ledger, certificate)
    with Ledger.open(f"{postgres_url}&options=-c%20default_transaction_read_only%3Don") as ledger:
        with pytest.raises(Unavailable, match="read-only"):
            ledger.analyst("events", "ann").reserve({"select": 1})
        assert ledger.analyst("events", "ann").remaining().farthings == 100


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(Unavailable) as failed:
        Ledger.open("postgresql://user:secret@127.0.0.1:1/nothing?connect_timeout=2")
    assert "secret" not in str(failed.value)


def test_places_that_cannot_be_ledgers(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no ledger at"):
        Ledger.open(tmp_path / "missing.db", upgrade=False)
    with pytest.raises(Unavailable, match="folder"):
        Ledger.open(tmp_path / "no" / "budget.db")
    with pytest.raises(Unavailable):
        Ledger.open(tmp_path)
    for address in (":memory:", "sqlite://", "mysql://x/y", "nonsense://x"):
        with pytest.raises(fa.InvalidInput):
            Ledger.open(address)
    letter = tmp_path / "letter.db"
    letter.write_text("Dear Sir or Madam, " * 500)
    with pytest.raises(Damaged, match="not a database"):
        Ledger.open(letter)
    assert letter.read_text().startswith("Dear Sir")


@pytest.fixture
def file_of_sixty(tmp_path: Path, certificate: fa.Certificate) -> Path:
    """A ledger in one file (the log written back) with 60 entries."""
    path = tmp_path / "budget.db"
    with Ledger.open(path) as ledger:
        fill(ledger, certificate)
        for i in range(60):
            ledger.analyst("events", "ann").reserve(
                {"select": 1}, question={"n": i, "text": "y" * 500}
            )
    return path


def test_a_truncated_file(file_of_sixty: Path, tmp_path: Path) -> None:
    whole = file_of_sixty.read_bytes()
    assert not Path(f"{file_of_sixty}-wal").exists()
    for part in (1, 2, 5, 10, 30, 60, 90, 99):
        path = tmp_path / f"cut{part}.db"
        path.write_bytes(whole[: len(whole) * part // 100])
        with pytest.raises(Damaged), Ledger.open(path, upgrade=False) as ledger:
            verify(ledger.reader())
        _cannot_overspend(path)


def _cannot_overspend(path: Path) -> None:
    """Whatever is left of the file, it never sells more than 40 of the 100 farthings again."""
    sold = 0
    try:
        with Ledger.open(path, upgrade=False) as ledger:
            for _ in range(101):
                ledger.analyst("events", "ann").reserve({"select": 1})
                sold += 1
    except LedgerError:
        pass
    assert sold <= 40


def test_an_edited_byte_is_found(file_of_sixty: Path, tmp_path: Path) -> None:
    """One changed byte in the text of an entry, as a hexadecimal editor would do it."""
    whole = file_of_sixty.read_bytes()
    for number in (7, 20, 55):
        old = b'"question":{"n":%d,' % number
        assert whole.count(old) == 1
        path = tmp_path / f"edited{number}.db"
        path.write_bytes(whole.replace(old, b'"question":{"n":%s,' % (b"0" * len(str(number)))))
        with Ledger.open(path) as ledger, pytest.raises(Damaged) as found:
            verify(ledger.reader())
        assert found.value.entry == 4 + number
        assert f"entry {4 + number} of events is bad" in str(found.value)


def test_every_page_scribbled_over_is_found_or_harmless(
    file_of_sixty: Path, tmp_path: Path
) -> None:
    whole = file_of_sixty.read_bytes()
    found = 0
    pages = range(0, len(whole), 4096)
    for start in pages:
        path = tmp_path / "scribbled.db"
        path.write_bytes(whole[:start] + b"\xa5" * 4096 + whole[start + 4096 :])
        try:
            with Ledger.open(path, upgrade=False) as ledger:
                verify(ledger.reader())
        except LedgerError:
            found += 1
        path.unlink()
    assert found >= len(pages) - 2  # a page on the list of free ones holds nothing


def test_a_missing_log_loses_only_what_it_held(tmp_path: Path, certificate: fa.Certificate) -> None:
    """Copying the file without its log is a copy of the past, and verifies as such."""
    path, copy = tmp_path / "budget.db", tmp_path / "copy.db"
    with Ledger.open(path) as ledger:
        fill(ledger, certificate)
        with sqlite3.connect(path) as raw:
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        raw.close()
        head = verify(ledger.reader())[0].head
        ledger.analyst("events", "ann").reserve({"select": 100})
        new = verify(ledger.reader())[0].head
        shutil.copy(path, copy)
        with pytest.raises(DoesNotFit):
            ledger.analyst("events", "ann").reserve({"select": 1})
    with Ledger.open(copy) as old:
        assert verify(old.reader(), contains=head)[0].entries == 3
        with pytest.raises(Damaged, match="cut or replaced"):
            verify(old.reader(), contains=new)
