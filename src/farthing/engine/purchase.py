"""Which items of a tariff a query buys, and how many of each.

Items are matched by what they guarantee, not by their names:

    select   one draw of a selection           bounded range
    count    one noisy number                   Gaussian or pure DP, or discrete Gaussian for
                                                the same limit
    leak     the δ of an unknown domain         (ε, δ)-DP, best with ε = 0

A query names an item, or the ε that one should have at least (of a Gaussian 1/σ, the ε of pure DP
with the same ρ), which picks the cheapest that has it. Otherwise the item that has the name of its
role is taken if there is one, else the cheapest of the right kind. A δ has no price
of its own: it is bought as an item, so that one subtraction in the ledger covers everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from farthing.canonical import digest
from farthing.composition.tariffs.tariff import Price, Tariff
from farthing.engine.errors import ChargeMismatch
from farthing.engine.kinds.base import COUNT, LEAK, SELECT, Query
from farthing.errors import InvalidInput
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    PureDP,
)
from farthing.guarantees.losses import loss_of
from farthing.guarantees.notation import format_guarantee
from farthing.mechanisms import Uses


@dataclass(frozen=True, slots=True)
class Purchase:
    """A query with its items named: what each role is paid with, and how many items it takes."""

    query: Query
    paid: Mapping[str, Guarantee]
    guarantees: Mapping[str, Guarantee]
    items: Mapping[str, int]
    price: Price

    def listed_as(self, key: str) -> str:
        """Its name in a registered list: a name, and exactly what is asked."""
        return f"{key} {digest(self.query.to_json())}"

    def charge(self, uses: Uses) -> dict[str, int]:
        """The items that a mechanism's own guarantees amount to, counted a second time."""
        charged: Counter[str] = Counter(dict.fromkeys(self.items, 0))
        for guarantee, times in uses:
            paying = (n for n, sold in self.guarantees.items() if loss_of(sold).covers(guarantee))
            name = next(paying, None)
            if name is None:
                raise ChargeMismatch(
                    f"the mechanism uses {format_guarantee(guarantee)}, which was not bought"
                )
            charged[name] += times
        return dict(charged)


def buy(query: Query, tariff: Tariff) -> Purchase:
    """The items that a query needs at most. They depend on the question alone."""
    roles = query.roles()
    named = [role for role in (SELECT, COUNT) if role in roles and getattr(query, role) is not None]
    if query.epsilon is not None and named:
        raise InvalidInput(f"epsilon chooses the items: leave it out, or do not name {named[0]}")
    names = {role: _item(query, role, tariff) for role in roles}
    counted: Counter[str] = Counter()
    for role, times in roles.items():
        counted[names[role]] += times
    chosen = query.changed(epsilon=None, **names)
    sold = {name: tariff.items[name][0] for name in names.values()}
    return Purchase(
        chosen,
        MappingProxyType({role: sold[name] for role, name in names.items()}),
        MappingProxyType(sold),
        MappingProxyType(dict(counted)),
        tariff.price_of(counted),
    )


def items_together(several: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """How many of each item in all."""
    total: Counter[str] = Counter()
    for items in several:
        total.update(items)
    return dict(total)


def items_for(tariff: Tariff, query: Query, role: str) -> Iterator[str]:
    """Every item that can pay for this role of a query."""
    for name, (guarantee, _) in tariff.items.items():
        if query.suits(role, guarantee):
            yield name


def _item(query: Query, role: str, tariff: Tariff) -> str:
    named = getattr(query, role)  # a role is a field, which may name an item
    if named is not None:
        if named not in tariff.items:
            raise InvalidInput(
                f"{role} must be one of {', '.join(tariff.items)}, the items of the tariff, "
                f"got {named!r:.60}"
            )
        if not query.suits(role, tariff.items[named][0]):
            raise InvalidInput(
                f"{role} needs {query.needs(role)}, but {named} is "
                f"{format_guarantee(tariff.items[named][0])}"
            )
        return str(named)
    fitting = list(items_for(tariff, query, role))
    if not fitting:
        raise InvalidInput(f"this query needs {query.needs(role)}, and the tariff sells none")
    if query.epsilon is not None and role != LEAK:
        fitting = _reaching(query.epsilon, fitting, tariff)
    elif role in fitting:
        return role

    def dearness(name: str) -> tuple[float, int, int, str]:
        guarantee, price = tariff.items[name]
        wasted = guarantee.epsilon if isinstance(guarantee, ApproximateDP) else 0.0
        return wasted, price, tariff.price(name).delta_units, name

    return min(fitting, key=dearness)


def _reaching(epsilon: float, names: list[str], tariff: Tariff) -> list[str]:
    """The items with at least this ε: the next rung is the cheapest of them."""
    sold = {name: rung_epsilon(tariff.items[name][0]) for name in names}
    reaching = [name for name in names if sold[name] >= epsilon * (1 - 1e-9)]
    if not reaching:
        raise InvalidInput(
            f"epsilon must be at most {max(sold.values()):.4g}, the largest that the tariff "
            f"sells for this, got {epsilon:g}"
        )
    return reaching


def rung_epsilon(guarantee: Guarantee) -> float:
    """The ε that names a rung. For a Gaussian it is that of pure DP with the same ρ."""
    match guarantee:
        case PureDP(epsilon) | BoundedRange(epsilon) | ApproximateDP(epsilon, _):
            return epsilon
        case Gaussian(sigma) | DiscreteGaussian(sigma, _):
            return 1 / sigma
    return 0.0
