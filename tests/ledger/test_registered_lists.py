"""Registered lists: dashboards that run once, and multisets used in any order."""

from __future__ import annotations

import pytest

import farthing as fa
from farthing.ledger import (
    AlreadyThere,
    DoesNotFit,
    Ledger,
    NotInLedger,
    RegisteredBatch,
    RegisteredSet,
    verify,
)
from farthing.ledger.registered_lists import document, from_document

BR, LAP, DP = fa.BoundedRange(0.1), fa.Laplace(0.1), fa.PureDP(0.1)


def test_across_queries_nothing_is_adaptive_but_inside_a_top_k_it_is() -> None:
    assert RegisteredBatch({"a": [BR], "b": [BR], "c": [(LAP, 10)]}).adaptivity == "none"
    assert RegisteredBatch({"a": [(BR, 2)]}).adaptivity == "adaptive"
    assert RegisteredBatch({"a": [BR], "b": [BR, LAP]}).adaptivity == "adaptive"
    assert RegisteredBatch({"a": [(DP, 5)], "b": [(LAP, 5)]}).adaptivity == "none"


def test_a_dashboard_gets_the_bound_that_its_adaptivity_allows() -> None:
    single = RegisteredBatch({f"q{i}": [BR] for i in range(20)})
    peeled = RegisteredBatch({"top": [(BR, 20)]})

    def epsilon(listed: RegisteredBatch) -> float:
        claims = {claim["delta"]: claim["upper"] for claim in document(listed)["epsilon_at"]}
        return float(claims[1e-6])

    none = fa.compose([(BR, 20)], adaptivity="none").epsilon_at(1e-6)
    adaptive = fa.compose([(BR, 20)], adaptivity="adaptive").epsilon_at(1e-6)
    assert epsilon(single) == none.upper
    assert epsilon(peeled) == adaptive.upper
    assert epsilon(single) < adaptive.lower


def test_a_batch_runs_once_and_whole(ledger: Ledger) -> None:
    account = ledger.owner().register(
        "events", "dashboard", RegisteredBatch({"a": [(BR, 3), (LAP, 3)], "b": [DP]}), analyst="ann"
    )
    assert (account.mode, account.number) == ("batch", 2)
    with pytest.raises(fa.InvalidInput, match="whole"):
        ledger.analyst("events", "ann").reserve_list("dashboard", items={"a": 1})
    held = ledger.analyst("events", "ann").reserve_list("dashboard", question="monday")
    assert held.price == fa.Price(0)
    with pytest.raises(fa.InvalidInput, match="nothing of it is unused"):
        ledger.analyst(held.dataset, held.analyst).close(held, "d", used={"everything": 0})
    ledger.analyst(held.dataset, held.analyst).close(held, "d", release=[1])
    with pytest.raises(DoesNotFit, match="largest that fits: nothing"):
        ledger.analyst("events", "ann").reserve_list("dashboard")
    assert ledger.analyst("events", "ann").remaining().farthings == 100
    assert ledger.analyst("events", "ann").release_of("monday") is not None
    verify(ledger.reader(), prove=False)


def test_a_setwise_list_is_used_item_by_item(ledger: Ledger) -> None:
    ledger.owner().register(
        "events", "set", RegisteredSet({"s": (BR, 10), "c": (LAP, 5)}), analyst="ann"
    )
    ledger.analyst("events", "ann").reserve_list("set", items={"s": 4, "c": 1})
    held = ledger.analyst("events", "ann").reserve_list("set", items={"s": 4})
    with pytest.raises(DoesNotFit) as refused:
        ledger.analyst("events", "ann").reserve_list("set", items={"s": 3, "c": 4})
    assert refused.value.remaining == {"c": 4, "s": 2}
    assert refused.value.largest_that_fits == {"s": 2, "c": 4}
    ledger.analyst(held.dataset, held.analyst).close(held, "d", used={"s": 1})
    ledger.analyst("events", "ann").reserve_list("set", items={"s": 5, "c": 4})
    assert {lot.item: lot.spent for lot in ledger.reader().lots("events", "set")} == {
        "s": 10,
        "c": 5,
    }
    with pytest.raises(fa.InvalidInput, match="not other"):
        ledger.analyst("events", "ann").reserve_list("set", items={"other": 1})
    with pytest.raises(DoesNotFit):
        ledger.analyst("events", "ann").reserve_list("set", items={"s": 2**70})
    verify(ledger.reader())


def test_a_list_belongs_to_one_analyst(ledger: Ledger) -> None:
    ledger.owner().register("events", "set", RegisteredSet({"s": (BR, 1)}), analyst="ann")
    with pytest.raises(NotInLedger, match="bob has no list"):
        ledger.analyst("events", "bob").reserve_list("set", items={"s": 1})
    with pytest.raises(NotInLedger, match="ann has no list 'tariff'"):
        ledger.analyst("events", "ann").reserve_list("tariff", items={"select": 1})
    with pytest.raises(AlreadyThere):
        ledger.owner().register("events", "set", RegisteredSet({"s": (BR, 1)}), analyst="ann")


def test_lists_round_trip_through_their_documents() -> None:
    for listed in (
        RegisteredBatch({"b": [(BR, 3), LAP], "a": [DP]}),
        RegisteredSet({"s": (BR, 2), "c": (LAP, 1)}),
    ):
        again = from_document(document(listed))
        assert again == listed
        assert again.items == listed.items


def test_bad_lists_are_refused() -> None:
    for make in (
        lambda: RegisteredBatch({}),
        lambda: RegisteredBatch({"a": []}),
        lambda: RegisteredSet({}),
        lambda: RegisteredSet({"s": (BR, 0)}),
        lambda: RegisteredSet({"s": BR}),
    ):
        with pytest.raises(fa.InvalidInput):
            make()
    with pytest.raises(fa.Unsupported):
        RegisteredBatch({"a": [fa.ZeroConcentratedDP(0.1)]})


def test_every_claim_names_its_own_theorem() -> None:
    """At δ = 10⁻³ the optimum is better than the sum, at 10⁻¹² it is not."""
    claims = document(RegisteredBatch({"q": [(DP, 2)]}))["epsilon_at"]
    theorems = {claim["delta"]: claim["theorem"] for claim in claims}
    assert theorems[1e-3].startswith("optimal composition")
    assert theorems[1e-12].startswith("basic composition")
