"""Fingerprints of rows: the ledger and its export held a hash of tables in memory.

A version is what the owner declares. Every field of every entry is listed here with who says it;
none of them comes from a row, and a field that is added must be added here too.
"""

from __future__ import annotations

import json

import pytest

import farthing as fa
from farthing.ledger import (
    Dataset,
    Ledger,
    Limits,
    RegisteredBatch,
    RegisteredSet,
    Use,
    export_lines,
    move,
)
from farthing.schema import Column, Schema

#: By the ledger itself: kind, place, time, a random token, what is computed from prices.
LEDGER = {"kind", "dataset", "time", "token"}
FIELDS = {
    "dataset": {"description", "beside", "ledger"},  # the owner; the ledger's identity is random
    "version": {"description", "beside", "former"},  # the owner
    "describe": {"description", "beside"},  # the owner
    "relocate": {"description", "beside", "former"},  # the owner
    "account": {
        "account",
        "share",  # how many accounts the owner has opened
        "mode",
        "name",
        "certificate",
        "levels",
        "document",
        "analyst",
    },
    "grant": {"account", "analyst", "farthings", "delta_units", "renewal", "month"},
    "revoke": {"account", "analyst", "farthings", "delta_units"},
    "reserve": {  # the analyst: what was asked; the price from the tariff
        "account",
        "analyst",
        "question",
        "question_digest",
        "items",
        "farthings",
        "delta_units",
        "month",
    },
    "close": {  # what was released, which was paid for
        "settles",
        "account",
        "analyst",
        "question_digest",
        "unused",
        "farthings",
        "delta_units",
        "release_digest",
        "revoked",
        "release",
        "use",
    },
    "abandon": {
        "settles",
        "account",
        "analyst",
        "question_digest",
        "unused",
        "farthings",
        "delta_units",
        "reason",
    },
    "seal": {"successor"},
    "resume": {"seal", "ledger"},
}
DESCRIPTION = {"name", "unit", "owner", "relation", "schema", "limits", "location", "version"}


@pytest.fixture
def declared() -> Dataset:
    return Dataset(
        "clicks",
        unit="user",
        owner="team",
        schema=Schema((Column("user", "integer"), Column("page", "text"))),
        limits=Limits(3, 2),
        location="file:/data/clicks.parquet",
        version="spring",
    )


def test_no_entry_and_no_export_holds_more_than_was_declared_asked_or_released(
    ledger: Ledger, declared: Dataset, certificate: fa.Certificate, tmp_path: object
) -> None:
    owner = ledger.owner()
    owner.add(declared)
    owner.sign("clicks", certificate)
    owner.grant("clicks", "ann", farthings=50)
    owner.grant("clicks", "bob", farthings=5, renewal="monthly")
    owner.register("clicks", "board", RegisteredBatch({"q": [fa.PureDP(0.1)]}), analyst="ann")
    owner.register("clicks", "set", RegisteredSet({"s": (fa.PureDP(0.1), 2)}), analyst="ann")
    ann = ledger.analyst("clicks", "ann")
    use = Use("count", "1 key", (("lap:0.1", 1),))
    ann.close(ann.reserve({"count": 1}, question={"count": 1}), "d", use=use, release=7)
    ann.abandon(ann.reserve_list("board"), reason="failed")
    owner.describe(declared)
    owner.relocate("clicks", "file:/elsewhere/clicks.parquet")
    owner.declare_version("clicks", None)
    owner.revoke("clicks", "bob")
    with Ledger.open(f"{tmp_path}/there.db") as there:
        move(ledger, there, "clicks")
        seen = set()
        for line in list(export_lines(there.reader()))[1:]:
            fact = json.loads(line)["fact"]
            seen.add(fact["kind"])
            assert set(fact) <= LEDGER | FIELDS[fact["kind"]]
            if fact["kind"] in ("dataset", "describe"):
                assert fact["description"] == declared.to_json()
            if fact["kind"] in ("dataset", "describe", "version"):
                assert set(fact["description"]) == DESCRIPTION
    assert seen == set(FIELDS)


def test_a_version_is_what_the_owner_says_and_nothing_else(
    ledger: Ledger, declared: Dataset
) -> None:
    ledger.owner().add(declared)
    ann = ledger.analyst("clicks", "ann")
    assert ann.about() == declared
    for version in ("summer", "summer", None, "autumn"):
        ledger.owner().declare_version("clicks", version)
        assert ann.about().version == version
    said = [entry.fact["description"] for entry in ledger.reader().entries("clicks", "version")]
    assert [one["version"] for one in said] == ["summer", "summer", None, "autumn"]
    for bad in ("", "x" * 300, "a\x1b[2J"):
        with pytest.raises(fa.InvalidInput):
            ledger.owner().declare_version("clicks", bad)
