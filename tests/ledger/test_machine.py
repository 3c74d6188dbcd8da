"""A Hypothesis state machine drives the ledger against a model of ten lines."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

import farthing as fa
from farthing.ledger import Dataset, DoesNotFit, Ledger, Reservation, verify

PRICES = {"select": (1, 0), "count": (4, 0), "threshold": (1, 1)}
CAP = (500, 100)
NAMES = (f"d{i}" for i in itertools.count())


class Model:
    """What must be true, without a database."""

    def __init__(self) -> None:
        self.granted: dict[str, list[int]] = {}
        self.spent: dict[str, list[int]] = {}

    def price(self, items: dict[str, int]) -> list[int]:
        return [sum(PRICES[name][i] * times for name, times in items.items()) for i in (0, 1)]

    def fits(self, who: str, price: list[int]) -> bool:
        total = [sum(amounts) for amounts in zip(*self.spent.values(), strict=True)]
        own = all(self.spent[who][i] + price[i] <= self.granted[who][i] for i in (0, 1))
        return own and all(total[i] + price[i] <= CAP[i] for i in (0, 1))

    def charge(self, who: str, price: list[int], sign: int = 1) -> None:
        self.spent[who] = [self.spent[who][i] + sign * price[i] for i in (0, 1)]


def machine_for(ledger: Ledger, certificate: fa.Certificate) -> type[RuleBasedStateMachine]:
    class Machine(RuleBasedStateMachine):
        held = Bundle("held")
        settled = Bundle("settled")

        @initialize()
        def start(self) -> None:
            self.name = next(NAMES)
            self.model = Model()
            self.entries = 2
            ledger.owner().add(Dataset(self.name, unit="u", owner="o"))
            ledger.owner().sign(self.name, certificate)
            for who in ("ann", "bob"):
                self.grant(who, 200, 5)

        @rule(who=st.sampled_from(["ann", "bob"]), f=st.integers(0, 200), d=st.integers(0, 60))
        def grant(self, who: str, f: int, d: int) -> None:
            ledger.owner().grant(self.name, who, farthings=f, delta_units=d)
            before = self.model.granted.get(who, [0, 0])
            self.model.granted[who] = [before[0] + f, before[1] + d]
            self.model.spent.setdefault(who, [0, 0])
            self.entries += 1

        @rule(
            target=held,
            who=st.sampled_from(["ann", "bob"]),
            items=st.dictionaries(
                st.sampled_from(sorted(PRICES)), st.integers(1, 90), min_size=1, max_size=3
            ),
        )
        def reserve(self, who: str, items: dict[str, int]) -> object:
            price = self.model.price(items)
            try:
                held = ledger.analyst(self.name, who).reserve(items)
            except DoesNotFit as refused:
                assert not self.model.fits(who, price)
                fits = refused.largest_that_fits
                assert not fits or self.model.fits(who, self.model.price(dict(fits)))
                return multiple()
            assert self.model.fits(who, price)
            self.model.charge(who, price)
            self.entries += 1
            return held

        @rule(target=settled, held=consumes(held), data=st.data())
        def close(self, held: Reservation, data: st.DataObject) -> Reservation:
            used = {n: data.draw(st.integers(0, times)) for n, times in held.items.items()}
            ledger.analyst(held.dataset, held.analyst).close(held, "d", used=used)
            unused = {n: times - used[n] for n, times in held.items.items()}
            self.model.charge(held.analyst, self.model.price(unused), sign=-1)
            self.entries += 1
            return held

        @rule(target=settled, held=consumes(held))
        def abandon(self, held: Reservation) -> Reservation:
            ledger.owner().abandon(held, reason="r")
            self.entries += 1
            return held

        @rule(held=settled)
        def settle_again(self, held: Reservation) -> None:
            with pytest.raises(fa.FarthingError):
                ledger.analyst(held.dataset, held.analyst).close(
                    held, "d", used=dict.fromkeys(held.items, 0)
                )

        @invariant()
        def balances_agree(self) -> None:
            if not hasattr(self, "name"):
                return
            for purse in ledger.reader().purses(self.name):
                spent = [purse.farthings_spent, purse.delta_units_spent]
                assert spent == self.model.spent[purse.analyst]

        def teardown(self) -> None:
            if hasattr(self, "name"):
                (found,) = verify(ledger.reader(), self.name)
                assert found.entries == self.entries

    return Machine


@pytest.mark.slow
def test_the_ledger_does_what_the_model_does(ledger: Ledger, certificate: fa.Certificate) -> None:
    run_state_machine_as_test(
        machine_for(ledger, certificate),
        settings=settings(max_examples=25, stateful_step_count=30, deadline=None),
    )
