"""Which items of a tariff a query buys, and how many of each.

Items are matched by what they guarantee, not by their names:

    select   one draw of a selection           bounded range
    count    one coordinate of noisy counts     pure DP, or discrete Gaussian for the same limit
    leak     the δ of an unknown domain         (ε, δ)-DP, best with ε = 0

The cheapest item of the right kind is taken, unless the query names another one. A δ has no price
of its own: it is bought as an item, so that one subtraction in the ledger covers everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from farthing.composition.tariff import Tariff
from farthing.engine.errors import ChargeMismatch
from farthing.engine.queries import (
    AT_ONCE,
    CountQuery,
    HistogramQuery,
    QuantileQuery,
    Query,
    SumQuery,
    TopKQuery,
)
from farthing.errors import InvalidInput
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    DiscreteGaussian,
    Guarantee,
    PureDP,
)
from farthing.guarantees.notation import format_guarantee
from farthing.mechanisms import Items

_WHAT = {
    "select": "a bounded-range item (br:ε)",
    "count": "a pure-DP item (dp:ε)",
    "leak": "an item with a delta (adp:0,δ)",
}


@dataclass(frozen=True, slots=True)
class Purchase:
    """A query with its items named, what they guarantee, and how many of each are needed."""

    query: Query
    guarantees: Mapping[str, Guarantee]
    items: Mapping[str, int]

    def guarantee(self, role: str) -> Guarantee:
        """What the item in this role promises."""
        return self.guarantees[getattr(self.query, role)]


def buy(query: Query, tariff: Tariff) -> Purchase:
    """The items a query needs at most, from what is asked alone."""
    roles = _roles(query)
    names = {role: _item(query, role, tariff) for role in roles}
    counted: Counter[str] = Counter()
    for role, times in roles.items():
        counted[names[role]] += times
    return Purchase(
        replace(query, **names),  # type: ignore[arg-type] # roles are fields of the query
        MappingProxyType({name: tariff.items[name][0] for name in names.values()}),
        MappingProxyType(dict(counted)),
    )


def charge_of(guarantees: Items, purchase: Purchase) -> dict[str, int]:
    """The items that a mechanism's own guarantees amount to; the other way to the same numbers."""
    charged: Counter[str] = Counter(dict.fromkeys(purchase.items, 0))
    for guarantee, times in guarantees:
        name = next((n for n, g in purchase.guarantees.items() if covers(g, guarantee)), None)
        if name is None:
            raise ChargeMismatch(
                f"the mechanism uses {format_guarantee(guarantee)}, which was not bought"
            )
        charged[name] += times
    return dict(charged)


def covers(sold: Guarantee, used: Guarantee) -> bool:
    """An item with guarantee `sold` pays for a step with guarantee `used`."""
    match sold, used:
        case (PureDP(granted), PureDP(needed)) | (BoundedRange(granted), BoundedRange(needed)):
            return needed <= granted
        case ApproximateDP(granted, delta), ApproximateDP(needed, leaked):
            return needed <= granted and leaked <= delta
        case DiscreteGaussian(), DiscreteGaussian():
            return sold == used
    return False


def items_for(tariff: Tariff, query: Query, role: str) -> Iterator[str]:
    """Every item that can pay for this role of a query."""
    for name, (guarantee, _) in tariff.items.items():
        if _suits(query, role, guarantee):
            yield name


def _roles(query: Query) -> dict[str, int]:
    """How often each role is needed at most."""
    match query:
        case CountQuery() | SumQuery():
            return {"count": query.repeats}
        case QuantileQuery():
            return {"select": 1}
        case HistogramQuery(categories=None):
            return {"count": query.contribution_limit, "leak": 1}
        case HistogramQuery():
            assert query.categories is not None
            coordinates = min(query.contribution_limit, len(query.categories))
            return {"count": coordinates * query.repeats}
    return _top_k_roles(query)


def _top_k_roles(query: TopKQuery) -> dict[str, int]:
    leak = {"leak": 1} if query.categories is None else {}
    limit = query.contribution_limit
    if query.mechanism in AT_ONCE:
        assert limit is not None
        size = limit if query.categories is None else min(limit, len(query.categories))
        return {"count": size, **leak}
    found = query.k if limit is None else min(query.k, limit)
    counts = {"count": found * query.repeats} if query.counts else {}
    return {"select": query.k, **counts, **leak}


def _item(query: Query, role: str, tariff: Tariff) -> str:
    named = getattr(query, role)
    if named is not None:
        if named not in tariff.items:
            raise InvalidInput(
                f"{role} must be one of {', '.join(tariff.items)}, the items of the tariff, "
                f"got {named!r:.60}"
            )
        if not _suits(query, role, tariff.items[named][0]):
            raise InvalidInput(
                f"{role} needs {_what(query, role)}, but {named} is "
                f"{format_guarantee(tariff.items[named][0])}"
            )
        return str(named)
    fitting = list(items_for(tariff, query, role))
    if not fitting:
        raise InvalidInput(f"this query needs {_what(query, role)}, and the tariff sells none")

    def dearness(name: str) -> tuple[float, int, int, str]:
        guarantee, price = tariff.items[name]
        wasted = guarantee.epsilon if isinstance(guarantee, ApproximateDP) else 0.0
        return wasted, price, tariff.price(name).delta_units, name

    return min(fitting, key=dearness)


def _what(query: Query, role: str) -> str:
    if role == "count" and _needs_gaussian(query):
        return f"a discrete Gaussian item (dgauss:σ,{_per_key_limit(query)})"
    return _WHAT[role]


def _suits(query: Query, role: str, guarantee: Guarantee) -> bool:
    match role, guarantee:
        case "select", BoundedRange(epsilon):
            return epsilon > 0
        case "count", PureDP(epsilon):
            return epsilon > 0 and not _needs_gaussian(query)
        case "leak", ApproximateDP(_, delta):
            return delta > 0
        case "count", DiscreteGaussian(_, sensitivity):
            return not isinstance(query, SumQuery) and sensitivity == _per_key_limit(query)
    return False


def _needs_gaussian(query: Query) -> bool:
    return isinstance(query, TopKQuery) and (query.use_order or query.mechanism == "truncated")


def _per_key_limit(query: Query) -> int | None:
    return None if isinstance(query, SumQuery) else query.per_key_limit
