"""Lists that are registered in advance: each is an account with a certified profile of its own.

batch    a dashboard: queries that are all fixed before the first of them runs, and run once,
         together. Across queries nothing is adaptive. Inside a query the later draws of a
         top-k, and the counts of the labels it found, depend on the earlier ones. So if one
         query mixes a bounded-range draw with anything else, the whole list gets the adaptive
         bound in the order given, which is never below the non-adaptive one.
setwise  a multiset of items that may be used one by one, in any order, chosen as you go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import metadata
from types import MappingProxyType
from typing import Any, TypeAlias

from farthing.canonical import canonical
from farthing.composition.bounds import Bracket
from farthing.composition.compose import compose
from farthing.composition.items import Items, items_from
from farthing.composition.tariffs.tariff import USUAL_DELTAS
from farthing.errors import InvalidInput, NotCertified, Unattainable, Unsupported, require_real
from farthing.guarantees.kinds import Guarantee
from farthing.guarantees.losses import loss_of
from farthing.guarantees.notation import format_guarantee, parse_guarantee
from farthing.ledger.records import BATCH, SETWISE, require_items, require_name

#: The only item of a batch, which is reserved whole.
EVERYTHING = "everything"
#: The relative width of a bracket.
TOLERANCE = 1e-3
#: Another machine may round a lower bound differently; nobody is charged by it.
LAST_DIGITS = 1e-9

Pairs: TypeAlias = Iterable[Guarantee | tuple[Guarantee, int]]


@dataclass(frozen=True)
class RegisteredBatch:
    """Queries by name, each with its guarantees in the order in which it uses them."""

    queries: Mapping[str, Pairs]

    mode = BATCH

    def __post_init__(self) -> None:
        if not self.queries:
            raise InvalidInput("a batch needs at least one query, got none")
        checked = {}
        for name, items in self.queries.items():
            require_name("a query's name", name)
            checked[name] = _sellable(items_from(items)).pairs
        object.__setattr__(self, "queries", MappingProxyType(checked))

    @property
    def adaptivity(self) -> str:
        """none, unless a query's own steps may depend on one another."""
        lists = (items_from(items) for items in self.queries.values())
        depends = any(items.total > 1 and items.facing().ranges for items in lists)
        return "adaptive" if depends else "none"

    @property
    def items(self) -> Items:
        """Everything in it, in order."""
        return items_from(pair for items in self.queries.values() for pair in items_from(items))

    @property
    def lots(self) -> dict[str, int]:
        return {EVERYTHING: 1}

    def listed(self) -> list[Any]:
        return [
            [name, [[format_guarantee(guarantee), count] for guarantee, count in items_from(items)]]
            for name, items in self.queries.items()
        ]


@dataclass(frozen=True)
class RegisteredSet:
    """Items by name, each a guarantee and how often it may be used."""

    items_by_name: Mapping[str, tuple[Guarantee, int]]

    mode = SETWISE
    adaptivity = "setwise"

    def __post_init__(self) -> None:
        if not self.items_by_name:
            raise InvalidInput("a set-wise list needs at least one item, got none")
        for name, pair in self.items_by_name.items():
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise InvalidInput(f"item {name} must be (guarantee, times), got {pair!r:.60}")
        require_items({name: times for name, (_, times) in self.items_by_name.items()})
        _sellable(self.items)
        object.__setattr__(self, "items_by_name", MappingProxyType(dict(self.items_by_name)))

    @property
    def items(self) -> Items:
        """Everything in it."""
        return items_from(self.items_by_name.values())

    @property
    def lots(self) -> dict[str, int]:
        return {name: times for name, (_, times) in self.items_by_name.items()}

    def listed(self) -> list[Any]:
        return [
            [name, [format_guarantee(guarantee), times]]
            for name, (guarantee, times) in self.items_by_name.items()
        ]


Registered: TypeAlias = RegisteredBatch | RegisteredSet


#: What a list claims: ε at each δ.
Claims: TypeAlias = dict[float, Bracket]


def _claims_of(listed: Registered, tolerance: float = TOLERANCE) -> Claims:
    """The claims of a document: ε at every usual δ for which there is one."""
    composed = compose(listed.items, adaptivity=listed.adaptivity, tolerance=tolerance)
    claims = {}
    for delta in USUAL_DELTAS:
        with suppress(Unattainable):  # at or below what the approximate items leak
            claims[delta] = composed.epsilon_at(delta)
    if not claims:
        raise Unattainable("the list leaks more than every delta that is stated")
    return claims


def document(listed: Registered) -> dict[str, Any]:
    """The list with what it proves, as plain data, for `register` to sign."""
    return _written(listed, _claims_of(listed), metadata.version("farthing"))


def _written(listed: Registered, claims: Claims, version: str) -> dict[str, Any]:
    return {
        "mode": listed.mode,
        "adaptivity": listed.adaptivity,
        "list": listed.listed(),
        "epsilon_at": [{"delta": delta, **asdict(claims[delta])} for delta in claims],
        "versions": {"farthing": version},
    }


def stated_in(data: Mapping[str, Any]) -> tuple[Registered, Claims]:
    """Read a document, which must be word for word what a ledger writes; claims are not proved."""
    try:
        claims = {
            require_real("delta", claim["delta"], above=0, below=1): Bracket(
                require_real("lower", claim["lower"]),
                require_real("upper", claim["upper"]),
                require_name("a theorem", claim["theorem"]),
            )
            for claim in data["epsilon_at"]
        }
        version = require_name("the version", data["versions"]["farthing"])
        listed = from_document(data)
        body = {key: value for key, value in data.items() if key != "digest"}
        same = canonical(_written(listed, claims, version)) == canonical(body)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"this is not a registered list: {error!r:.200}") from None
    if not same:
        raise InvalidInput("the document of a list holds something that none says")
    return listed, claims


def from_document(data: Mapping[str, Any]) -> Registered:
    """The list that a document holds."""
    if data["mode"] == BATCH:
        return RegisteredBatch(
            {
                name: [(parse_guarantee(text), count) for text, count in items]
                for name, items in data["list"]
            }
        )
    return RegisteredSet(
        {name: (parse_guarantee(text), times) for name, (text, times) in data["list"]}
    )


def _sellable(items: Items) -> Items:
    for guarantee, _ in items:
        if not loss_of(guarantee).sold:
            raise Unsupported(
                "a list may hold dp, br, adp, lap, gauss, dgauss and poisson, got "
                f"{format_guarantee(guarantee)}"
            )
    return items


def prove_list(document: Mapping[str, Any]) -> None:
    """Prove again what a list claims, or NotCertified.

    No ε may be smaller than what is proved now, and no lower bound larger. Of two proofs, one on a
    finer grid, the better counts.
    """
    _prove_list(canonical(document))


@lru_cache(maxsize=64)
def _prove_list(written: str) -> None:
    listed, stated = stated_in(json.loads(written))
    again = [_claims_of(listed, tolerance) for tolerance in (TOLERANCE, TOLERANCE / 4)]
    if list(stated) != list(again[0]):
        raise NotCertified("a list states epsilon at every usual delta, and at no other")
    for delta, claim in stated.items():
        proved = [claims[delta] for claims in again]
        if claim.theorem not in {bracket.theorem for bracket in proved}:
            raise NotCertified(f"at {delta:g} another theorem is the one that proves it")
        if claim.upper < min(bracket.upper for bracket in proved):
            raise NotCertified(f"epsilon <= {claim.upper!r} at {delta:g}")
        if claim.lower > max(bracket.lower for bracket in proved) * (1 + LAST_DIGITS):
            raise NotCertified(f"epsilon >= {claim.lower!r} at {delta:g}")
