"""What a deployment says about itself: the items that NIST SP 800-226 asks for, with numbers.

Plain data; `page.markdown` shows it to people. Nothing here is computed that the certificates
and the odometer do not prove.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any

from farthing.composition.certificate import ASSUMPTIONS
from farthing.errors import FarthingError, require_real
from farthing.guarantees.notation import format_guarantee
from farthing.ledger.asked import asked
from farthing.ledger.blocks import epsilon_of
from farthing.ledger.facts import TARIFF, Account
from farthing.ledger.lifetime import Lifetimes, proved
from farthing.ledger.odometer import THEOREM as ODOMETER
from farthing.ledger.odometer import odometer, purses_are_separate, within_reach
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


def statement(ledger: Reader, dataset: str, *, delta: float = 1e-6) -> dict[str, Any]:
    """Everything a reader needs to judge what is released about this dataset."""
    delta = require_real("delta", delta, above=0, below=1)
    about = ledger.dataset(dataset)
    lifetimes = Lifetimes(ledger, dataset, delta)
    return {
        "format": FORMAT,
        "dataset": about.name,
        "owner": about.owner,
        "unit_of_privacy": about.unit,
        "neighbouring_relation": about.relation,
        "contribution_limits": dict(about.contribution_limits),
        "delta": delta,
        "lifetime": lifetimes.whole(),
        "per_analyst": lifetimes.per_analyst(),
        "colluding": lifetimes.colluding(),
        "so_far": _so_far(ledger, dataset, delta),
        "asked_so_far": asked(ledger, dataset),
        "accounts": [_account(lifetimes, book) for book in lifetimes.books],
        "trust_model": list(TRUST),
        "assumptions": list(ASSUMPTIONS),
        "numerical_measures": list(NUMERICS),
        "farthing_version": metadata.version("farthing"),
    }


def _so_far(ledger: Reader, dataset: str, delta: float) -> dict[str, Any]:
    try:
        reading = odometer(ledger, dataset, delta=delta)
    except FarthingError as error:
        return {"epsilon": None, "delta": delta, "why": str(error), "theorem": ODOMETER}
    return {**reading.to_json(), "who": "all analysts together"}


def _account(lifetimes: Lifetimes, book: Account) -> dict[str, Any]:
    """One account by itself; what it proves together with others is stated above."""
    ledger, dataset = lifetimes.ledger, lifetimes.dataset
    document = ledger.document(dataset, book.number)
    claims = [
        {
            "delta": claim["delta"],
            "epsilon": claim["upper"],
            "theorem": claim.get("theorem") or document["theorem"],
        }
        for claim in document["epsilon_at"]
    ]
    common = {
        "number": book.number,
        "name": book.name,
        "mode": book.mode,
        "in_force": book.open,
        "digest": document["digest"],
        "versions": document["versions"],
        "claims": claims,
    }
    if book.mode != TARIFF:
        return {
            **common,
            "analyst": book.analyst,
            "adaptivity": document["adaptivity"],
            "list": document["list"],
            "whole": _epsilon(lifetimes, book, 0),
        }
    tariff = ledger.tariff(dataset, book.number)
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
        **_analysts(lifetimes, book),
    }


def _analysts(lifetimes: Lifetimes, book: Account) -> dict[str, Any]:
    """Per analyst, per period, and all of them colluding, within one tariff."""
    own = [purse for purse in lifetimes.purses if purse.account == book.number]
    together = within_reach(book, own)
    separate = purses_are_separate(book, own)
    analysts = []
    for purse in own:
        alone = min(purse.farthings, book.farthings)
        row = {
            "analyst": purse.analyst,
            "farthings": purse.farthings,
            "delta_units": purse.delta_units,
            "farthings_spent": purse.farthings_spent,
            "renewal": purse.renewal,
            "lifetime": _epsilon(lifetimes, book, alone if separate else together),
        }
        if purse.renewal is not None:
            row["month"] = purse.month
            row["in_one_month"] = _epsilon(lifetimes, book, alone)
        analysts.append(row)
    return {
        "per_analyst": analysts,
        "purses_are_separate": separate,
        "colluding": {
            **_epsilon(lifetimes, book, together),
            "farthings": together,
            "theorem": "a coalition is one analyst who spends the sum (docs/theory/tariffs.md)",
        },
    }


def _epsilon(lifetimes: Lifetimes, book: Account, farthings: int) -> dict[str, Any]:
    delta = lifetimes.delta
    part = lifetimes.part(book.number, farthings)
    return {"epsilon": proved(lambda: epsilon_of([part], delta)), "delta": delta}
