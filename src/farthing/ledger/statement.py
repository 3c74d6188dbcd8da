"""What a deployment says about itself: the items that NIST SP 800-226 asks for, with numbers.

Plain data; `page.markdown` shows it to people. Nothing here is computed that the certificates
and the odometer do not prove.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from typing import Any

from farthing.composition.certificate import ASSUMPTIONS
from farthing.errors import FarthingError, require_real
from farthing.guarantees.notation import format_guarantee
from farthing.ledger import lists
from farthing.ledger.blocks import Part, epsilon_of, list_part
from farthing.ledger.facts import TARIFF, Account, Purse
from farthing.ledger.odometer import THEOREM as ODOMETER
from farthing.ledger.odometer import odometer, parts_of, purses_are_separate
from farthing.ledger.reading import Reader

FORMAT = "farthing statement 1"
TRUST = (
    "A trusted curator holds the raw data and runs the mechanisms; analysts see releases only.",
    "An analyst learns what is left of their own purse; entry numbers, times and the other "
    "analysts' entries are for the owner.",
    "Whoever can write to the database can forge it; the hash chain shows it to anybody who kept "
    "an earlier head.",
)
NUMERICS = (
    "Closed forms are enclosed in ball arithmetic; profiles are bounded from above on grids, with "
    "rounding errors added on the safe side.",
    "Prices and balances are whole numbers.",
    "Noise is drawn exactly, without floating point.",
)
PLANNED = "the accounts and grants were decided without looking at releases"
UNPLANNED = "whatever led to opening these accounts (sum of their epsilons, an ex-post statement)"


def statement(ledger: Reader, dataset: str, *, delta: float = 1e-6) -> dict[str, Any]:
    """Everything a reader needs to judge what is released about this dataset."""
    delta = require_real("delta", delta, above=0, below=1)
    about = ledger.dataset(dataset)
    books, purses = ledger.accounts(dataset), ledger.purses(dataset)
    return {
        "format": FORMAT,
        "dataset": about.name,
        "owner": about.owner,
        "unit_of_privacy": about.unit,
        "neighbouring_relation": about.relation,
        "contribution_limits": dict(about.contribution_limits),
        "delta": delta,
        "lifetime": _lifetime(ledger, dataset, books, purses, delta),
        "so_far": _so_far(ledger, dataset, delta),
        "accounts": [_account(ledger, dataset, book, purses, delta) for book in books],
        "trust_model": list(TRUST),
        "assumptions": list(ASSUMPTIONS),
        "numerical_measures": list(NUMERICS),
        "farthing_version": metadata.version("farthing"),
    }


def _lifetime(
    ledger: Reader, dataset: str, books: list[Account], purses: list[Purse], delta: float
) -> list[dict[str, Any]]:
    """All accounts spent to the end by everybody together, under two assumptions."""
    if not books:
        return [{"epsilon": 0.0, "delta": 0.0, "if": "no account was opened; nothing is released"}]
    whole = [_whole(ledger, dataset, book, purses, delta) for book in books]
    total = _proved(
        lambda: (
            sum(epsilon_of([p], delta / 2**i) for i, p in enumerate(whole, start=1)) * (1 + 1e-12)
        )
    )
    return [
        {"epsilon": _proved(lambda: epsilon_of(whole, delta)), "delta": delta, "if": PLANNED},
        {"epsilon": total, "delta": delta, "if": UNPLANNED},
    ]


def _whole(ledger: Reader, dataset: str, book: Account, purses: list[Purse], delta: float) -> Part:
    if book.mode == TARIFF:
        return parts_of(ledger, dataset, book, purses, delta)[book.farthings]
    return list_part(lists.from_document(ledger.document(dataset, book.number)), delta)


def _so_far(ledger: Reader, dataset: str, delta: float) -> dict[str, Any]:
    try:
        reading = odometer(ledger, dataset, delta=delta)
    except FarthingError as error:
        return {"epsilon": None, "delta": delta, "why": str(error), "theorem": ODOMETER}
    return {**reading.to_json(), "who": "all analysts together"}


def _account(
    ledger: Reader, dataset: str, book: Account, purses: list[Purse], delta: float
) -> dict[str, Any]:
    document = ledger.document(dataset, book.number)
    common = {
        "number": book.number,
        "name": book.name,
        "mode": book.mode,
        "in_force": book.open,
        "composition_theorem": document["theorem"],
        "digest": document["digest"],
        "versions": document["versions"],
        "claims": [{"delta": c["delta"], "epsilon": c["upper"]} for c in document["epsilon_at"]],
    }
    if book.mode != TARIFF:
        return {
            **common,
            "analyst": book.analyst,
            "adaptivity": document["adaptivity"],
            "list": document["list"],
            "whole": _epsilon(_whole(ledger, dataset, book, purses, delta), delta),
        }
    tariff = ledger.tariff(dataset, book.number)
    own = [purse for purse in purses if purse.account == book.number]
    return {
        **common,
        "farthings": book.farthings,
        "delta_units": book.delta_units,
        "delta_unit": tariff.delta_unit,
        "farthings_spent": book.farthings_spent,
        "delta_units_spent": book.delta_units_spent,
        "per_query": [
            {
                "item": name,
                "guarantee": format_guarantee(guarantee),
                "farthings": price,
                "delta_units": tariff.price(name).delta_units,
            }
            for name, (guarantee, price) in tariff.items.items()
        ],
        **_analysts(parts_of(ledger, dataset, book, purses, delta), book, own, delta),
    }


def _analysts(
    parts: Mapping[int, Part], book: Account, own: list[Purse], delta: float
) -> dict[str, Any]:
    """Per analyst, per period, and all of them colluding."""
    together = sum(purse.farthings for purse in own)
    if any(purse.renewal is not None for purse in own):
        together = book.farthings
    together = min(together, book.farthings)
    separate = purses_are_separate(book, own)
    everybody = _epsilon(parts[together], delta)
    analysts = []
    for purse in own:
        part = parts[min(purse.farthings, book.farthings)] if separate else parts[together]
        row = {
            "analyst": purse.analyst,
            "farthings": purse.farthings,
            "delta_units": purse.delta_units,
            "farthings_spent": purse.farthings_spent,
            "renewal": purse.renewal,
            "lifetime": _epsilon(part, delta),
        }
        if purse.renewal is not None:
            row["month"] = purse.month
            row["in_one_month"] = _epsilon(parts[min(purse.farthings, book.farthings)], delta)
        analysts.append(row)
    return {
        "per_analyst": analysts,
        "purses_are_separate": separate,
        "colluding": {
            **everybody,
            "farthings": together,
            "theorem": "a coalition is one analyst who spends the sum (docs/theory/tariffs.md)",
        },
    }


def _epsilon(part: Part, delta: float) -> dict[str, Any]:
    return {"epsilon": _proved(lambda: epsilon_of([part], delta)), "delta": delta}


def _proved(compute: Any) -> float | None:
    """None where nothing is proved at this δ; never a guess."""
    try:
        return float(compute())
    except FarthingError:
        return None
