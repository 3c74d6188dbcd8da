"""The life of a spend, on both databases."""

from __future__ import annotations

import enum
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import NoReturn

import pytest
from sqlalchemy import text

import farthing as fa
from farthing.errors import InvalidInput
from farthing.ledger import (
    AlreadySettled,
    AlreadyThere,
    Analyst,
    Dataset,
    DoesNotFit,
    Ledger,
    Limits,
    NotInLedger,
    RegisteredBatch,
    Reservation,
    Unavailable,
    digest,
    verify,
)
from farthing.ledger.entries.fact import linked
from farthing.ledger.roles import analyst as kept_releases
from farthing.ledger.store import commands
from farthing.ledger.store.connection import Store


def test_a_reservation_is_charged_to_purse_and_cap(ledger: Ledger) -> None:
    held = ledger.analyst("events", "ann").reserve(
        {"select": 10, "threshold": 2}, question={"top": 10}
    )
    assert held.price == fa.Price(12, 2)
    assert held.question_digest == digest({"top": 10})
    assert ledger.analyst("events", "ann").remaining() == fa.Price(88, 8)
    (account,) = ledger.reader().accounts("events")
    assert (account.farthings_spent, account.delta_units_spent) == (12, 2)
    assert [r.entry for r in ledger.reader().open_reservations("events")] == [held.entry]


def test_closing_changes_no_balance_and_keeps_the_release(ledger: Ledger) -> None:
    ann = ledger.analyst("events", "ann")
    held = ann.reserve({"count": 3}, question={"count": "x"})
    ann.close(held, "d" * 64, release={"counts": [1, 2, 3]})
    assert ann.remaining() == fa.Price(88, 10)
    assert ledger.reader().open_reservations("events") == []
    found = ann.release_of({"count": "x"})
    assert found is not None
    assert found.release == {"counts": [1, 2, 3]}
    assert found.release_digest == "d" * 64
    assert (found.question, found.price) == ({"count": "x"}, fa.Price(12))
    assert ann.release(found.entry) == found
    (summary,) = ann.releases()
    assert not hasattr(summary, "release")
    assert (summary.entry, summary.time, summary.question, summary.price) == (
        found.entry,
        found.time,
        found.question,
        found.price,
    )


def released_to(analyst: Analyst) -> list[object]:
    kept = [analyst.release(one.entry) for one in analyst.releases()]
    return [one.release for one in kept if one is not None]


def test_a_page_reads_no_more_than_the_page(ledger: Ledger, monkeypatch) -> None:
    """Twenty-five releases of 130 000 labels took 12 seconds and a gigabyte to list one."""
    ledger.owner().grant("events", "bob", farthings=10)
    ann, bob = ledger.analyst("events", "ann"), ledger.analyst("events", "bob")
    for number in range(12):
        who = bob if number % 3 == 2 else ann
        labels = [f"label {n}" for n in range(5_000)]
        who.close(who.reserve({"select": 1}, question=number), "d", release=labels)
    parsed: list[int] = []

    def loads(text: str) -> object:
        parsed.append(len(text))
        return json.loads(text)

    monkeypatch.setattr(kept_releases, "json", SimpleNamespace(loads=loads))
    every = ann.releases()
    assert [one.question for one in every] == [10, 9, 7, 6, 4, 3, 1, 0]
    pages, before = [], None
    while page := ann.releases(before=before, limit=3):
        pages.append(page)
        before = page[-1].entry
    assert [len(page) for page in pages] == [3, 3, 2]
    assert [one for page in pages for one in page] == every
    assert max(parsed) < 1000, "no labels were read"
    assert bob.release(every[0].entry) is None
    assert ann.release(1) is None
    assert ann.release(10**6) is None


def test_a_question_that_is_too_large_to_keep_is_refused(ledger: Ledger) -> None:
    ann = ledger.analyst("events", "ann")
    with pytest.raises(InvalidInput, match="at most 1048576 characters as JSON"):
        ann.reserve({"select": 1}, question="x" * (1 << 20))
    assert ann.purse().farthings_spent == 0


def test_a_release_is_found_by_its_question_and_its_analyst(ledger: Ledger) -> None:
    ledger.owner().grant("events", "bob", farthings=10)
    for analyst, answer in (("ann", 1), ("ann", 2), ("bob", 3)):
        who = ledger.analyst("events", analyst)
        who.close(who.reserve({"select": 1}, question="q"), "d", release=answer)
    ann = ledger.analyst("events", "ann")
    ann.close(ann.reserve({"select": 1}, question="not kept"), "d")

    def found(question: str, analyst: str) -> object:
        release = ledger.analyst("events", analyst).release_of(question)
        return None if release is None else release.release

    assert found("q", "ann") == 2
    assert found("q", "bob") == 3
    assert found("q", "eve") is None
    assert found("not kept", "ann") is None
    assert released_to(ann) == [2, 1]
    unasked = ann.reserve({"select": 1})
    ann.close(unasked, "d", release=4)
    assert unasked.question_digest is None
    with pytest.raises(fa.InvalidInput, match="found by its question"):
        ann.release_of(None)


@pytest.mark.parametrize("name", ['A"n_n', "a%", "_", "ann\\", "Ångström", "ANN", "%"])
def test_releases_are_found_whatever_their_analyst_is_called(ledger: Ledger, name: str) -> None:
    ledger.owner().grant("events", name, farthings=10)
    for analyst in (name, "ann"):
        who = ledger.analyst("events", analyst)
        who.close(who.reserve({"select": 1}, question="q"), "d", release=analyst)
    for analyst in (name, "ann"):
        assert released_to(ledger.analyst("events", analyst)) == [analyst]


def test_pay_what_you_get_returns_what_the_output_shows_unused(ledger: Ledger) -> None:
    held = ledger.analyst("events", "ann").reserve({"select": 10, "count": 10})
    ledger.analyst(held.dataset, held.analyst).close(held, "d", used={"select": 4, "count": 3})
    assert ledger.analyst("events", "ann").remaining() == fa.Price(100 - 4 - 12, 10)
    (account,) = ledger.reader().accounts("events")
    assert account.farthings_spent == 16
    verify(ledger.reader())


def test_what_is_abandoned_stays_spent(ledger: Ledger) -> None:
    held = ledger.analyst("events", "ann").reserve({"select": 10})
    entry = ledger.owner().abandon(held, reason="the engine failed")
    assert entry.fact.settles == held.entry
    assert ledger.analyst("events", "ann").remaining().farthings == 90
    assert ledger.reader().open_reservations("events") == []


def test_a_request_that_does_not_fit_changes_nothing(ledger: Ledger) -> None:
    before = (
        ledger.reader().purses("events"),
        ledger.reader().accounts("events"),
        list(ledger.reader().entries("events")),
    )
    with pytest.raises(DoesNotFit) as refused:
        ledger.analyst("events", "ann").reserve({"select": 30, "count": 30})
    assert refused.value.requested == fa.Price(150)
    assert refused.value.remaining == fa.Price(100, 10)
    assert refused.value.largest_that_fits == {"select": 20, "count": 20}
    ledger.analyst("events", "ann").reserve(refused.value.largest_that_fits)
    after = (
        ledger.reader().purses("events"),
        ledger.reader().accounts("events"),
        list(ledger.reader().entries("events")),
    )
    assert len(after[2]) == len(before[2]) + 1
    copy = pickle.loads(pickle.dumps(refused.value))
    assert (copy.requested, copy.largest_that_fits) == (fa.Price(150), {"select": 20, "count": 20})


def test_delta_units_run_out_too(ledger: Ledger) -> None:
    with pytest.raises(DoesNotFit) as refused:
        ledger.analyst("events", "ann").reserve({"threshold": 11})
    assert refused.value.requested == fa.Price(11, 11)
    assert refused.value.largest_that_fits == {"threshold": 10}
    with pytest.raises(DoesNotFit) as refused:
        ledger.analyst("events", "ann").reserve({"select": 1001, "threshold": 1})
    assert refused.value.largest_that_fits == {"select": 99, "threshold": 1}
    ledger.analyst("events", "ann").reserve({"select": 100})
    with pytest.raises(DoesNotFit, match="largest that fits: nothing"):
        ledger.analyst("events", "ann").reserve({"select": 1})


def test_the_cap_binds_when_purses_promise_more(ledger: Ledger) -> None:
    ledger.owner().grant("events", "bob", farthings=1000)
    ledger.analyst("events", "bob").reserve({"select": 450})
    with pytest.raises(DoesNotFit) as refused:
        ledger.analyst("events", "ann").reserve({"select": 51})
    assert refused.value.remaining == fa.Price(50, 10)
    ledger.analyst("events", "ann").reserve({"select": 50})
    (account,) = ledger.reader().accounts("events")
    assert account.farthings_spent == account.farthings == 500
    verify(ledger.reader())


def test_closing_twice_or_otherwise_wrongly_is_refused(ledger: Ledger) -> None:
    held = ledger.analyst("events", "ann").reserve({"select": 5, "count": 1})
    for used, why in (
        ({"select": 6, "count": 1}, "at most 5"),
        ({"select": 5}, "each of"),
        ({"select": 5, "count": 1, "other": 0}, "each of"),
        ({"select": -1, "count": 1}, "at least 0"),
        ({"select": 1.5, "count": 1}, "whole number"),
    ):
        with pytest.raises(fa.InvalidInput, match=why):
            ledger.analyst(held.dataset, held.analyst).close(held, "d", used=used)
    forged = Reservation("events", held.entry, "ann", 1, {"select": 9}, fa.Price(9), "x")
    with pytest.raises(NotInLedger, match="not the reservation"):
        ledger.analyst(forged.dataset, forged.analyst).close(forged, "d", used={"select": 0})
    ledger.analyst(held.dataset, held.analyst).close(held, "d")
    with pytest.raises(AlreadySettled):
        ledger.analyst(held.dataset, held.analyst).close(held, "d", used={"select": 0, "count": 0})
    with pytest.raises(AlreadySettled):
        ledger.owner().abandon(held, reason="late")
    assert ledger.analyst("events", "ann").remaining().farthings == 91
    verify(ledger.reader())


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ({}, "non-empty"),
        (None, "non-empty"),
        ({"select": 0}, "at least 1"),
        ({"select": -3}, "at least 1"),
        ({"select": True}, "whole number"),
        ({"select": 2.0}, "whole number"),
        ({"select": float("nan")}, "whole number"),
        ({"unknown": 1}, "one of count, select, threshold"),
        ({"": 1}, "1 to 200"),
    ],
)
def test_bad_items_are_refused(ledger: Ledger, items: dict[str, int], why: str) -> None:
    with pytest.raises(fa.InvalidInput, match=why):
        ledger.analyst("events", "ann").reserve(items)
    assert ledger.analyst("events", "ann").remaining().farthings == 100


def test_absurdly_large_requests_are_refused_not_wrapped_around(ledger: Ledger) -> None:
    for times in (2**31, 2**62, 2**63, 2**64 + 1, 10**40):
        with pytest.raises(DoesNotFit):
            ledger.analyst("events", "ann").reserve({"select": times})
    with pytest.raises(fa.InvalidInput):
        ledger.owner().grant("events", "ann", farthings=2**60)
    assert ledger.analyst("events", "ann").remaining().farthings == 100


def test_who_and_what_is_unknown_is_refused(ledger: Ledger) -> None:
    with pytest.raises(NotInLedger, match="no dataset"):
        ledger.analyst("other", "ann").reserve({"select": 1})
    with pytest.raises(NotInLedger, match="bob has no purse"):
        ledger.analyst("events", "bob").reserve({"select": 1})
    with pytest.raises(NotInLedger, match="ann has no list"):
        ledger.analyst("events", "ann").reserve_list("list", items={"select": 1})
    with pytest.raises(AlreadyThere):
        ledger.owner().add(Dataset("events", unit="x", owner="y"))
    ledger.owner().add(Dataset("empty", unit="x", owner="y"))
    with pytest.raises(NotInLedger, match="no tariff is in force"):
        ledger.owner().grant("empty", "ann", farthings=1)
    with pytest.raises(fa.InvalidInput, match="plain JSON"):
        ledger.analyst("events", "ann").reserve({"select": 1}, question=float("nan"))
    with pytest.raises(fa.InvalidInput):
        Dataset("x", unit="", owner="y")
    with pytest.raises(fa.InvalidInput):
        Limits(contribution_limit=0)


def test_a_new_tariff_retires_the_old_one(ledger: Ledger, certificate: fa.Certificate) -> None:
    old = ledger.analyst("events", "ann").reserve({"select": 60})
    with pytest.raises(AlreadyThere, match="another name"):
        ledger.owner().sign("events", certificate)
    account = ledger.owner().sign("events", certificate, name="second")
    assert (account.number, account.open) == (2, True)
    with pytest.raises(NotInLedger, match="no purse"):
        ledger.analyst("events", "ann").reserve({"select": 1})
    ledger.owner().grant("events", "ann", farthings=7)
    assert ledger.analyst("events", "ann").remaining().farthings == 7
    ledger.analyst(old.dataset, old.analyst).close(old, "d", used={"select": 10})
    first, second = ledger.reader().accounts("events")
    assert (first.open, first.farthings_spent) == (False, 10)
    assert second.farthings_spent == 0
    verify(ledger.reader())


def test_another_process_signing_is_noticed(
    ledger: Ledger, target: str, certificate: fa.Certificate
) -> None:
    ledger.analyst("events", "ann").reserve({"select": 1})  # the terms are remembered now
    with Ledger.open(target) as other:
        other.owner().sign("events", certificate, name="second")
        other.owner().grant("events", "ann", farthings=3)
    assert ledger.analyst("events", "ann").reserve({"select": 3}).account == 2


def test_names_of_any_script_and_quotes_are_kept(
    ledger: Ledger, certificate: fa.Certificate
) -> None:
    name = "données'\"; DROP TABLE x; -- 表"
    ledger.owner().add(Dataset(name, unit="u", owner="o"))
    ledger.owner().sign(name, certificate)
    ledger.owner().grant(name, "Ωmega O'Brien", farthings=5)
    held = ledger.analyst(name, "Ωmega O'Brien").reserve(
        {"select": 5}, question={"where": "\x00é\n"}
    )
    assert ledger.reader().entry(name, held.entry).fact.question == {"where": "\x00é\n"}
    verify(ledger.reader())


def test_threads_share_one_ledger(ledger: Ledger) -> None:
    def attempt(_: int) -> int:
        try:
            ledger.analyst("events", "ann").reserve({"select": 3})
        except DoesNotFit:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(60))) == 33
    assert ledger.analyst("events", "ann").remaining().farthings == 1
    verify(ledger.reader())


def test_the_database_links_the_chain_as_python_does(ledger: Ledger) -> None:
    with ledger.book.store.read() as connection:
        one = "SELECT CAST(:hash AS VARCHAR) AS hash"
        command = text(f"SELECT {commands.LINKED} FROM ({one}) AS one")
        computed = connection.scalar(command, {"hash": "a" * 64, "content": "b" * 64})
    assert computed == linked("a" * 64, "b" * 64)


class Number(enum.IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    "value",
    [{2: "a", 10: "b"}, {"a": [{1.5: 1}]}, {"a": ({True: 1},)}, {Number.ONE: 1}, {None: 1}],
)
def test_keys_that_are_not_text_are_refused(ledger: Ledger, value: object) -> None:
    """JSON would make text of them, sorted as they were: the book would not verify."""
    with pytest.raises(fa.InvalidInput, match="key"):
        digest(value)
    with pytest.raises(fa.InvalidInput, match="key"):
        ledger.analyst("events", "ann").reserve({"select": 1}, question=value)
    held = ledger.analyst("events", "ann").reserve({"select": 1}, question="q")
    with pytest.raises(fa.InvalidInput, match="key"):
        ledger.analyst(held.dataset, held.analyst).close(held, "d", release=value)
    verify(ledger.reader())


def test_what_cannot_be_json_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (endless, deep, float("nan"), {1, 2}, "\ud800", object()):
        with pytest.raises(fa.InvalidInput, match="plain JSON"):
            digest(value)


def test_tuples_are_lists(ledger: Ledger) -> None:
    held = ledger.analyst("events", "ann").reserve({"select": 1}, question={"keys": ("a", (1, 2))})
    ledger.analyst(held.dataset, held.analyst).close(held, "d", release=("x", ()))
    found = ledger.analyst("events", "ann").release_of({"keys": ["a", [1, 2]]})
    assert found is not None
    assert found.release == ["x", []]
    verify(ledger.reader())


def test_what_was_granted_or_signed_is_not_lost_with_a_later_read(
    ledger: Ledger, certificate: fa.Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller who sees an error grants once more; so there is nothing after the write."""

    def unreachable(_: object) -> NoReturn:
        raise Unavailable("the server went away")

    with monkeypatch.context() as away:
        away.setattr(Store, "_snapshot", unreachable)
        granted = ledger.owner().grant("events", "ann", farthings=11, delta_units=1)
        signed = ledger.owner().sign("events", certificate, name="second")
        monthly = ledger.owner().grant("events", "may", farthings=5, renewal="monthly")
        listed = ledger.owner().register(
            "events", "list", RegisteredBatch({"q": [fa.PureDP(0.1)]}), analyst="may"
        )
    assert (granted.farthings, granted.delta_units) == (111, 11)
    assert granted == ledger.reader().purses("events")[0]
    assert monthly == ledger.analyst("events", "may").purse()
    assert ledger.reader().accounts("events")[1:] == [signed, listed]


def test_a_write_that_a_server_ran_late_is_found_once(ledger: Ledger) -> None:
    """Two entries with one token, as a statement leaves them that came after its client gave up."""
    held = ledger.analyst("events", "ann").reserve({"select": 1})
    fact = ledger.reader().entry("events", held.entry).fact
    token = fact.token
    find = ledger.book.finder("events", token)
    for _ in range(2):
        ledger.book.store.write(lambda connection: commands.append(connection, 1, fact, token))
    with ledger.book.store.engine.connect() as connection, connection.begin():
        found = find(connection)
    assert found is not None
    assert found.number == held.entry + 1
