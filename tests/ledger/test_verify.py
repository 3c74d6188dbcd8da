"""Whatever is changed behind the ledger's back is found, and the first bad entry is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update

import farthing as fa
from farthing.canonical import canonical, sha256
from farthing.ledger import Damaged, Ledger, NotInLedger, RegisteredBatch, odometer, verify
from farthing.ledger.entries.fact import linked
from farthing.ledger.records import EVERYBODY
from farthing.ledger.store.tables import accounts, datasets, entries, lots, purses


@pytest.fixture
def book(ledger: Ledger) -> Ledger:
    """Entries 4 to 9: two reservations, both settled, a list, one reservation of it."""
    for used in ({"select": 2}, None):
        held = ledger.analyst("events", "ann").reserve({"select": 5}, question={"n": 1})
        ledger.analyst(held.dataset, held.analyst).close(
            held, "d", used=used, release={"answer": 1}
        )
    ledger.owner().register(
        "events", "list", RegisteredBatch({"q": [fa.PureDP(0.1)]}), analyst="ann"
    )
    ledger.analyst("events", "ann").reserve_list("list")
    return ledger


def tamper(book: Ledger, statement: Any) -> None:
    with book.book.store.engine.connect() as connection, connection.begin():
        assert connection.execute(statement).rowcount != 0


def rewrite(book: Ledger, number: int, change: Any, *, to_the_end: bool = True) -> None:
    """Change a fact and, like a clever forger, every hash after it."""
    with book.book.store.engine.connect() as connection, connection.begin():
        rows = list(connection.execute(select(entries).order_by(entries.c.number)))
        previous = rows[number - 1].previous
        for row in rows[number - 1 :]:
            fact = json.loads(row.fact)
            if row.number == number:
                change(fact)
            written = canonical(fact)
            hash_ = linked(previous, sha256(written))
            connection.execute(
                update(entries)
                .filter_by(number=row.number)
                .values(fact=written, previous=previous, hash=hash_)
            )
            last, previous = previous, hash_
        if to_the_end:
            connection.execute(update(datasets).values(previous=last, hash=previous))


def bad_entry(book: Ledger, **options: Any) -> tuple[int | None, str]:
    with pytest.raises(Damaged) as found:
        verify(book.reader(), **options)
    assert found.value.dataset == "events"
    return found.value.entry, str(found.value)


def test_an_honest_book_verifies(book: Ledger) -> None:
    (found,) = verify(book.reader())
    assert (found.entries, found.certificates, found.proved) == (9, 2, False)
    assert found.head == list(book.reader().entries("events"))[-1].hash
    (alone,) = verify(book.reader(), "events", contains=book.reader().entry("events", 5).hash)
    assert alone == found
    with pytest.raises(NotInLedger, match="no dataset"):
        verify(book.reader(), "other")


@pytest.mark.parametrize("number", [1, 4, 6, 9])
def test_a_changed_fact_is_found(book: Ledger, number: int) -> None:
    row = canonical({**book.reader().entry("events", number).fact.to_json(), "time": "2020"})
    tamper(book, update(entries).filter_by(number=number).values(fact=row))
    assert bad_entry(book) == (
        number, f"entry {number} of events is bad: its hash does not match what it says",
    )  # fmt: skip # the place and the message


def test_a_missing_entry_is_found(book: Ledger) -> None:
    tamper(book, delete(entries).filter_by(number=6))
    assert bad_entry(book)[0] == 6


def test_a_missing_last_entry_is_found(book: Ledger) -> None:
    tamper(book, delete(entries).filter_by(number=9))
    entry, message = bad_entry(book)
    assert entry == 9
    assert "does not end where" in message


def test_an_added_entry_is_found(book: Ledger) -> None:
    last = book.reader().entry("events", 9)
    fact = last.fact.written()
    hash_ = linked(last.hash, sha256(fact))
    tamper(
        book,
        insert(entries).values(
            dataset_id=1, number=10, fact=fact, kind="reserve", previous=last.hash, hash=hash_
        ),
    )  # fmt: skip # a row
    assert bad_entry(book)[0] == 10


@pytest.mark.parametrize(
    ("number", "change", "why"),
    [
        (4, lambda fact: fact.update(farthings=4), "price is wrong"),
        (4, lambda fact: fact.update(items={"select": 400}, farthings=400), "overspent"),
        (4, lambda fact: fact.update(analyst="bob"), "nothing was granted"),
        (5, lambda fact: fact.update(farthings=-5), "more or less than was unused"),
        (5, lambda fact: fact.update(settles=3), "not reserved"),
        (7, lambda fact: fact.update(settles=4), "settled before"),
        (7, lambda fact: fact.update(unused={"select": 9}, farthings=-9), "more select unused"),
        (2, lambda fact: fact["certificate"]["tariff"].update(farthings=900), "digest"),
        (3, lambda fact: fact.update(farthings=-1), "its farthings"),
        (9, lambda fact: fact.update(items={"everything": 2}), "overspent"),
        (8, lambda fact: fact["document"].update(list=[["q", [["dp:0.01", 1]]]]), "digest"),
        (1, lambda fact: fact["description"].update(unit=""), "1 to 200"),
        (6, lambda fact: fact.pop("items"), "'items' is missing"),
        (6, lambda fact: fact.update(dataset="other"), "another dataset"),
    ],
)
def test_a_forged_fact_with_right_hashes_breaks_the_rules(
    book: Ledger, number: int, change: Any, why: str
) -> None:
    rewrite(book, number, change)
    entry, message = bad_entry(book)
    assert entry == number
    assert why in message


def test_a_forged_grant_does_not_add_up(book: Ledger) -> None:
    rewrite(book, 3, lambda fact: fact.update(farthings=400))
    entry, message = bad_entry(book)
    assert entry is None
    assert "do not add up to its purses" in message


def test_hashes_rewritten_but_not_the_head(book: Ledger) -> None:
    rewrite(book, 6, lambda fact: fact.update(token="0" * 32), to_the_end=False)
    assert "does not end where" in bad_entry(book)[1]


@pytest.mark.parametrize(
    "statement",
    [
        update(purses).values(farthings_spent=0),
        update(purses).values(farthings=10**6),
        update(purses).filter_by(analyst=EVERYBODY).values(farthings_spent=1),
        update(purses).filter_by(analyst=EVERYBODY).values(open=0),
        update(accounts).filter_by(number=2).values(analyst="eve"),
        update(lots).values(spent=0),
        delete(purses),
        delete(lots),
    ],
)
def test_a_changed_balance_is_found(book: Ledger, statement: Any) -> None:
    tamper(book, statement)
    assert "do not add up" in bad_entry(book)[1]


@pytest.mark.parametrize(
    "values", [{"settles": None}, {"released": None}, {"kind": "grant"}, {"settles": 3}]
)
def test_a_changed_column_is_found(book: Ledger, values: dict[str, Any]) -> None:
    tamper(book, update(entries).filter_by(number=5).values(**values))
    assert bad_entry(book)[0] == 5


def test_a_claim_that_is_too_good_is_not_proved(ledger: Ledger) -> None:
    def boast(fact: Any) -> None:
        document = fact["certificate"]
        document["epsilon_at"][0]["upper"] = document["epsilon_at"][0]["lower"] = 0.1
        document.pop("digest")
        document["digest"] = sha256(canonical(document))

    assert verify(ledger.reader(), prove=True)[0].proved
    rewrite(ledger, 2, boast)
    verify(ledger.reader())
    entry, message = bad_entry(ledger, prove=True)
    assert entry == 2
    assert "not proved again" in message


def test_a_list_that_claims_too_much_is_not_proved(ledger: Ledger) -> None:
    ledger.owner().register(
        "events", "list", RegisteredBatch({"q": [(fa.BoundedRange(0.1), 5)]}), analyst="ann"
    )

    def boast(fact: Any) -> None:
        document = fact["document"]
        document["epsilon_at"][0]["upper"] *= 0.9
        document.pop("digest")
        document["digest"] = sha256(canonical(document))

    rewrite(ledger, 4, boast)
    assert bad_entry(ledger, prove=True)[0] == 4


def test_the_benchmark_fills_its_ledgers_with_valid_entries(ledger: Ledger) -> None:
    from benchmarks.parts.ledger import fill

    fill(ledger, 200)
    assert verify(ledger.reader())[0].entries == 203
    ledger.analyst("events", "ann").reserve({"select": 100})
    verify(ledger.reader())


def test_a_cap_that_is_gone_is_damage_and_not_an_empty_account(book: Ledger) -> None:
    tamper(book, delete(purses).filter_by(analyst=EVERYBODY))
    for attempt in (
        lambda: book.analyst("events", "ann").reserve({"select": 1}),
        lambda: book.reader().accounts("events"),
        lambda: book.analyst("events", "ann").remaining(),
        lambda: odometer(book.reader(), "events"),
    ):
        with pytest.raises(Damaged, match="lost its cap"):
            attempt()


def test_a_month_before_the_one_a_purse_is_in_is_found(ledger: Ledger) -> None:
    ledger.owner().grant("events", "may", farthings=5, renewal="monthly")
    ledger.analyst("events", "may").reserve({"select": 1})
    rewrite(ledger, 5, lambda fact: fact.update(month="2026-02"))
    entry, message = bad_entry(ledger)
    assert entry == 5
    assert "later month" in message
