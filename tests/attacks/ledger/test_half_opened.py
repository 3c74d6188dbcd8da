"""A dataset that was added and never granted: opening one was three transactions.

Whatever goes wrong in between, there is a dataset with a tariff and a purse, or there is none.
"""

from __future__ import annotations

import pytest

import farthing as fa
from farthing.ledger import AlreadyThere, Dataset, Ledger, Owner, verify
from farthing.ledger.store import commands

VISITS = Dataset("visits", unit="member", owner="team", location="file:/data/visits")


def test_it_is_what_add_sign_and_grant_write(ledger: Ledger, certificate: fa.Certificate) -> None:
    purse = ledger.owner().begin(VISITS, certificate, analyst="ann", farthings=50)
    assert (purse.farthings, purse.delta_units, purse.account) == (50, 10, 1)
    entries = list(ledger.reader().entries("visits"))
    assert [entry.kind for entry in entries] == ["dataset", "account", "grant"]
    ann = ledger.analyst("visits", "ann")
    ann.close(ann.reserve({"select": 3}), "d")
    assert ann.remaining().farthings == 47
    assert [found.dataset for found in verify(ledger.reader(), prove=True)] == ["events", "visits"]
    with pytest.raises(AlreadyThere, match="a dataset visits already"):
        ledger.owner().begin(VISITS, certificate, analyst="ann", farthings=50)


@pytest.mark.parametrize("kind", ["dataset", "account", "grant"])
def test_a_failure_anywhere_leaves_nothing(
    ledger: Ledger, certificate: fa.Certificate, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    real = commands.append

    def failing(run, dataset, fact, token):
        entry = real(run, dataset, fact, token)
        if fact.kind == kind:
            raise KeyboardInterrupt
        return entry

    with monkeypatch.context() as during:
        during.setattr(commands, "append", failing)
        with pytest.raises(KeyboardInterrupt):
            ledger.owner().begin(VISITS, certificate, analyst="ann", farthings=50)
    assert list(ledger.reader().datasets()) == ["events"]
    other = fa.Tariff({"select": (fa.BoundedRange(0.1), 2)}, farthings=20)
    dear = other.certify(tolerance=0.3, deltas=(1e-3,), epsilons=(1.0,))
    ledger.owner().begin(VISITS, dear, analyst="ann", farthings=10)
    ann = ledger.analyst("visits", "ann")
    ann.reserve({"select": 3})  # at the price of this tariff, and not of the one that failed
    assert ann.remaining().farthings == 4
    verify(ledger.reader())


@pytest.mark.parametrize(
    ("analyst", "farthings", "delta_units"), [("", 5, None), ("ann", -1, None), ("ann", 5, 2**60)]
)
def test_what_is_refused_leaves_nothing(
    ledger: Ledger, certificate: fa.Certificate, analyst: str, farthings: int, delta_units: int
) -> None:
    owner: Owner = ledger.owner()
    with pytest.raises(fa.InvalidInput):
        owner.begin(
            VISITS, certificate, analyst=analyst, farthings=farthings, delta_units=delta_units
        )
    assert list(ledger.reader().datasets()) == ["events"]
