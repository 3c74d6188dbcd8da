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

With an `Aim` the cheapest items are taken that reach a stated accuracy. No row is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from farthing.canonical import digest
from farthing.composition.tariffs.tariff import Price, Tariff
from farthing.engine.errors import ChargeMismatch
from farthing.engine.kinds.base import COUNT, LEAK, SELECT, Query
from farthing.engine.show.sheet import width
from farthing.errors import InvalidInput, Unattainable, require_count, require_real
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
from farthing.mechanisms import Mechanism, Uses
from farthing.numerics.search import last_whole


@dataclass(frozen=True, slots=True)
class Purchase:
    """A query with its items named: what each role is paid with, and how many items it takes."""

    query: Query
    paid: Mapping[str, Guarantee]
    guarantees: Mapping[str, Guarantee]
    items: Mapping[str, int]
    price: Price

    def mechanism(self) -> Mechanism[Any]:
        """What runs, paid with these items."""
        return self.query.mechanism_for(self.paid)

    def listed_as(self, key: str) -> str:
        """Its name in a registered list: a name, and exactly what is asked."""
        return f"{key} {digest(self.query.to_json())}"

    def charge(self, uses: Uses) -> dict[str, int]:
        """The items that a mechanism's own guarantees amount to, counted a second time."""
        charged: Counter[str] = Counter(dict.fromkeys(self.items, 0))
        for guarantee, times in uses:
            sold = sorted(self.guarantees.items(), key=lambda item: item[1] != guarantee)
            name = next((name for name, paid in sold if pays(paid, guarantee)), None)
            if name is None:
                raise ChargeMismatch(
                    f"the mechanism uses {format_guarantee(guarantee)}, which was not bought"
                )
            charged[name] += times
        return dict(charged)


def pays(sold: Guarantee, used: Guarantee) -> bool:
    """Whether an item with one guarantee pays for a step with the other."""
    return sold == used or loss_of(sold).covers(used)


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


@dataclass(frozen=True, slots=True)
class Aim:
    """How accurate an answer should be: at most `wanted`, measured in what is expected of it.

    `half_width`: each number is within ± that. `tells_apart`: of two labels whose counts differ
    by that much the larger comes first. Both with the confidence of the session. The half-width
    of a mean or a variance is that over so many `rows`.
    """

    name: str
    wanted: float
    rows: int | None = None

    @staticmethod
    def of(
        half_width: float | None, tells_apart: float | None, rows: int | None = None
    ) -> Aim | None:
        """One of them, or none."""
        if half_width is not None and tells_apart is not None:
            raise InvalidInput("give half_width or tells_apart, not both")
        if half_width is not None:
            counted = None if rows is None else require_count("rows", rows, at_least=1)
            return Aim("half_width", require_real("half_width", half_width, above=0), counted)
        if tells_apart is not None:
            return Aim("tells_apart", require_real("tells_apart", tells_apart, above=0))
        return None

    def measured(self, query: Query, mechanism: Mechanism[Any], confidence: float) -> float:
        """What is to be at most `wanted`."""
        expected = query.expect(mechanism, confidence)
        if self.name == "tells_apart":
            reached = expected.told_apart
        else:
            accuracy = expected.counts or expected.selection
            reached = None if accuracy is None else accuracy.half_width
        if reached is not None:
            return reached
        times_rows = query.width_times_rows(mechanism, confidence)
        if times_rows is None:
            raise Unattainable(
                f"how wide the interval of a {query.kind} is depends on the answer: "
                f"{self.name} cannot choose an item"
            )
        if self.rows is None:
            raise InvalidInput(
                f"how wide the interval of a {query.kind} is depends on how many rows count: "
                "say rows besides half_width"
            )
        return times_rows / self.rows


#: What it costs, with which item, drawn how often.
_Found: TypeAlias = tuple[tuple[int, int], str, int]


def cheapest(query: Query, tariff: Tariff, aim: Aim, confidence: float) -> Query:
    """The query with the item, and the number of repeats, that reach the aim for least.

    First every item that can pay, bought once. Then those that are not good enough, drawn again
    and averaged (n times the price for an interval narrower by √n), as long as that is cheaper.
    """
    roles = query.roles()
    numbers = COUNT in roles and not query.in_ranks
    role = COUNT if numbers and aim.name == "half_width" else SELECT
    if role not in roles:
        raise Unattainable(f"a {query.kind} selects nothing: {aim.name} has no item to choose")
    names = list(items_for(tariff, query, role))
    if not names:
        raise Unattainable(f"the tariff sells nothing that pays for this {query.kind}")
    plain = query.changed(epsilon=None)

    def trial(name: str, repeats: int) -> Query:
        """The question with this item, drawn so often."""
        more = {"repeats": repeats} if repeats > 1 else {}
        return plain.changed(**{role: name}, **more)

    def dearness(name: str, repeats: int) -> tuple[int, int]:
        """Farthings first."""
        price = buy(trial(name, repeats), tariff).price
        return price.farthings, price.delta_units

    def reached(name: str, repeats: int) -> float:
        """What it would be."""
        bought = buy(trial(name, repeats), tariff)
        return aim.measured(bought.query, bought.mechanism(), confidence)

    def repeated(name: str, best: _Found | None) -> _Found | None:
        """The fewest repeats of an item that are good enough, if they cost less than `best`."""
        most = query.most_repeats
        if best is not None:
            dearest = best[0]
            most = last_whole(lambda n: dearness(name, n) < dearest, 1, most + 1)
        if most == 1 or reached(name, most) > aim.wanted:
            return best
        few = last_whole(lambda n: reached(name, n) > aim.wanted, 1, most) + 1
        return dearness(name, few), name, few

    once = {name: reached(name, 1) for name in names}
    best = min(
        ((dearness(name, 1), name, 1) for name in names if once[name] <= aim.wanted), default=None
    )
    for name in names:
        if once[name] > aim.wanted:
            best = repeated(name, best)
    if best is None:
        narrowest = min(reached(name, query.most_repeats) for name in names)
        raise Unattainable(
            f"no item reaches {aim.name} = {aim.wanted:g}; the narrowest is {width(narrowest)}"
        )
    return trial(*best[1:])
