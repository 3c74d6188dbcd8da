"""What was reserved when a purse was revoked came back to it when it was closed: whoever was then
granted 7 farthings could spend as many more as had been reserved and not used."""

from __future__ import annotations

import pytest

import farthing as fa
from farthing.ledger import DoesNotFit, Ledger, verify


@pytest.mark.parametrize("granted_first", [False, True])
def test_a_grant_after_it_is_just_that(ledger: Ledger, granted_first: bool) -> None:
    owner, ann = ledger.owner(), ledger.analyst("events", "ann")
    cap = ledger.reader().accounts("events")[0].farthings
    held = ann.reserve({"select": 40})
    owner.revoke("events", "ann")
    if granted_first:
        owner.grant("events", "ann", farthings=7, delta_units=0)
        ann.close(held, "digest", used={"select": 10})
    else:
        ann.close(held, "digest", used={"select": 10})
        owner.grant("events", "ann", farthings=7, delta_units=0)
    assert ann.remaining() == fa.Price(7)
    with pytest.raises(DoesNotFit):
        ann.reserve({"select": 8})
    account = ledger.reader().accounts("events")[0]
    assert (account.farthings, account.farthings_spent) == (cap, 10), "the dataset spent no more"
    verify(ledger.reader())


def test_what_is_reserved_after_it_comes_back(ledger: Ledger) -> None:
    owner, ann = ledger.owner(), ledger.analyst("events", "ann")
    owner.revoke("events", "ann")
    owner.grant("events", "ann", farthings=7, delta_units=0)
    ann.close(ann.reserve({"select": 5}), "digest", used={"select": 1})
    assert ann.remaining() == fa.Price(6)
    verify(ledger.reader())
