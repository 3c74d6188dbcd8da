"""Owner's powers in an analyst's hand, and one table with many budgets.

An analyst could register lists outside purse and cap, anybody could be granted a purse by asking,
and a second name for the same data began a fresh budget. What an analyst holds has none of these
methods, and a budget belongs to the data.
"""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor

import pytest

import farthing as fa
from farthing.composition.accounts.account_profiles import (
    CAP_SHARE,
    epsilon_of,
    profiles_when_spent,
)
from farthing.ledger import (
    AlreadyThere,
    Analyst,
    Dataset,
    Ledger,
    NotInLedger,
    Owner,
    Reader,
    RegisteredBatch,
    markdown,
    odometer,
    statement,
    verify,
)
from farthing.ledger.declared_data import overlap, require_location


def public(role: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(role) if not name.startswith("_")}


def dataset(name: str, location: str | None) -> Dataset:
    return Dataset(name, unit="user", owner="team", location=location)


def test_three_roles_share_no_power() -> None:
    powers = {
        "add", "begin", "describe", "declare_version", "sign", "grant", "revoke", "register",
        "seal", "abandon", "end_conversation", "retire", "relocate",
    }  # fmt: skip # a set
    assert public(Owner) == powers
    assert public(Analyst) == {
        "about", "terms", "secret", "purse", "remaining", "reserve", "reserve_list", "registered",
        "close", "abandon", "release_of", "releases", "open_conversation", "conversation",
        "conversations", "certificate", "snapshot", "earlier_release", "release",
        "sees_the_cap",
    }  # fmt: skip # a set
    assert not public(Reader) & (powers | {"reserve", "reserve_list", "close"})
    assert public(Ledger) == {"open", "shut", "owner", "analyst", "reader", "datasets_at"}
    for one, other in ((Owner, Analyst), (Owner, Reader), (Analyst, Reader)):
        assert not issubclass(one, other)
        assert not issubclass(other, one)


def test_an_analyst_without_a_purse_gets_none_by_asking(ledger: Ledger) -> None:
    eve = ledger.analyst("events", "eve")
    for attempt in (eve.purse, eve.remaining, lambda: eve.reserve({"select": 1})):
        with pytest.raises(NotInLedger, match="eve has no purse"):
            attempt()
    ledger.owner().register(
        "events", "list", RegisteredBatch({"q": [fa.PureDP(0.1)]}), analyst="ann"
    )
    for attempt in (lambda: eve.reserve_list("list"), lambda: eve.registered("list")):
        with pytest.raises(NotInLedger, match="eve has no list"):
            attempt()
    assert list(ledger.analyst("events", "ann").registered("list").queries) == ["q"]


def test_an_analyst_settles_and_sees_only_what_is_theirs(ledger: Ledger) -> None:
    ann, eve = (ledger.analyst("events", name) for name in ("ann", "eve"))
    held = ann.reserve({"select": 5}, question="q")
    for attempt in (
        lambda: eve.close(held, "d", used={"select": 0}),
        lambda: eve.abandon(held, reason="r"),
    ):
        with pytest.raises(NotInLedger, match="not one of eve"):
            attempt()
    ann.close(held, "d", release=1)
    assert eve.release_of("q") is None
    assert eve.releases() == []


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("file:/data/a.parquet", "file:/data/a.parquet", True),
        ("file:/data", "file:/data/a.parquet", True),
        ("file:/", "file:/data/a.parquet", True),
        ("file:/data/b.duckdb", "file:/data/b.duckdb#events", True),
        ("file:/data", "file:/data/b.duckdb#events", True),
        ("file:/data/b.duckdb#events", "file:/data/b.duckdb#visits", False),
        ("file:/data/a", "file:/data/ab", False),
        ("file:/data/a.parquet", "file:/data/b.parquet", False),
        ("postgresql:7/db/public.t", "postgresql:7/db/public.t", True),
        ("postgresql:7/db/public.t", "postgresql:8/db/public.t", False),
        ("spark:c.d.t", "spark:c.d", False),
    ],
)
def test_which_locations_share_data(one: str, other: str, shared: bool) -> None:
    assert overlap(one, other) == overlap(other, one) == shared


@pytest.mark.parametrize(
    "bad", ["", "data.csv", "file:data.csv", "file:/a/../b", "file:/a/", "file:/a//b", "file://a",
            ":x", "file:/a\x1b", None]
)  # fmt: skip # a list
def test_a_location_has_one_spelling(bad: object) -> None:
    with pytest.raises(fa.InvalidInput):
        require_location(bad)


def test_a_second_name_for_the_same_data_is_refused(ledger: Ledger) -> None:
    owner = ledger.owner()
    owner.add(dataset("clicks", "file:/data/clicks"))
    for again in ("file:/data/clicks", "file:/data", "file:/data/clicks/2026.parquet"):
        with pytest.raises(AlreadyThere, match="as the dataset clicks"):
            owner.add(dataset("fresh", again))
    assert "fresh" not in ledger.reader().datasets()
    owner.add(dataset("elsewhere", "file:/data/visits"))
    with pytest.raises(AlreadyThere, match="elsewhere"):  # beside one, but not beside the other
        owner.add(dataset("both", "file:/data"), beside="clicks")
    owner.add(dataset("both", "file:/data"), beside=("clicks", "elsewhere"))
    assert ledger.reader().beside("clicks") == ("both", "clicks", "elsewhere")
    assert ledger.datasets_at("file:/data/clicks") == ("clicks",)
    assert ledger.datasets_at("file:/data/none") == ()
    verify(ledger.reader())


def test_beside_needs_a_dataset_of_the_same_unit(ledger: Ledger) -> None:
    owner = ledger.owner()
    with pytest.raises(NotInLedger):
        owner.add(dataset("a", "file:/a"), beside="nobody")
    owner.add(dataset("a", "file:/a"))
    household = Dataset("b", unit="household", owner="team", location="file:/a")
    with pytest.raises(fa.InvalidInput, match="one unit"):
        owner.add(household, beside="a")


def test_datasets_beside_each_other_are_one_budget(
    ledger: Ledger, certificate: fa.Certificate
) -> None:
    owner = ledger.owner()
    owner.add(dataset("clicks", "file:/data/clicks"))
    owner.add(dataset("again", "file:/data/clicks"), beside="clicks")
    for name in ("clicks", "again"):
        owner.sign(name, certificate)
        owner.grant(name, "ann", farthings=100)
    ledger.analyst("again", "ann").reserve({"select": 50})
    both = [profiles_when_spent(certificate.tariff, frozenset({100}), 1e-6)[100]] * 2
    for name, other in (("clicks", "again"), ("again", "clicks")):
        data = statement(ledger.reader(), name)
        assert data["beside"] == [other]
        (ann,) = data["per_analyst"]
        assert ann["accounts"] == ["1", f"1 of {other}"]
        assert (
            ann["epsilon"]
            == epsilon_of(both, 1e-6, share=CAP_SHARE)
            > 1.2 * epsilon_of(both[:1], 1e-6)
        )
        assert data["so_far"]["farthings_spent"] == 50
        assert data["so_far"]["cap"] == 1000
        assert f"On the same data: {other}" in markdown(data)
        assert odometer(ledger.reader(), name).epsilon == data["so_far"]["epsilon"]


def test_of_two_who_add_the_same_data_at_once_one_does(target: str) -> None:
    with Ledger.open(target) as one, Ledger.open(target) as other:

        def add(number: int) -> bool:
            ledger = (one, other)[number % 2]
            try:
                ledger.owner().add(dataset(f"d{number}", "file:/data"))
            except AlreadyThere:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(add, range(8))) == 1
        assert len(one.reader().datasets()) == 1
