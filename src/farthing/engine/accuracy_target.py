"""The cheapest items that reach a stated accuracy. No row is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from farthing.composition.tariffs.tariff import Tariff
from farthing.engine.kinds.base import COUNT, SELECT, Query
from farthing.engine.purchase import buy, items_for
from farthing.engine.show.sheet import width
from farthing.errors import InvalidInput, Unattainable, require_count, require_real
from farthing.mechanisms import Expectation
from farthing.numerics.search import last_whole


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

    def measured(self, query: Query, expected: Expectation) -> float:
        """What is to be at most `wanted`."""
        if self.name == "tells_apart":
            reached = expected.told_apart
        else:
            accuracy = expected.counts or expected.selection
            reached = None if accuracy is None else accuracy.half_width
        if reached is not None:
            return reached
        times_rows = query.width_times_rows(expected)
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
    search = _Search(plain, tariff, role, aim, confidence)
    once = {name: search.reached(name, 1) for name in names}
    best = min(
        ((search.dearness(name, 1), name, 1) for name in names if once[name] <= aim.wanted),
        default=None,
    )
    for name in names:
        if once[name] > aim.wanted:
            best = search.repeated(name, best)
    if best is None:
        narrowest = min(search.reached(name, query.most_repeats) for name in names)
        raise Unattainable(
            f"no item reaches {aim.name} = {aim.wanted:g}; the narrowest is {width(narrowest)}"
        )
    return search.trial(*best[1:])


#: What it costs, with which item, drawn how often.
_Found: TypeAlias = tuple[tuple[int, int], str, int]


@dataclass(frozen=True, slots=True)
class _Search:
    """One question, one role, and everything that could pay for it."""

    query: Query
    tariff: Tariff
    role: str
    aim: Aim
    confidence: float

    def trial(self, name: str, repeats: int) -> Query:
        """The question with this item, drawn so often."""
        more = {"repeats": repeats} if repeats > 1 else {}
        return self.query.changed(**{self.role: name}, **more)

    def dearness(self, name: str, repeats: int) -> tuple[int, int]:
        """Farthings first."""
        price = buy(self.trial(name, repeats), self.tariff).price
        return price.farthings, price.delta_units

    def reached(self, name: str, repeats: int) -> float:
        """What it would be."""
        bought = buy(self.trial(name, repeats), self.tariff)
        mechanism = bought.query.mechanism_for(bought.paid)
        return self.aim.measured(bought.query, bought.query.expect(mechanism, self.confidence))

    def repeated(self, name: str, best: _Found | None) -> _Found | None:
        """The fewest repeats of an item that are good enough, if they cost less than `best`."""
        most = self.query.most_repeats
        if best is not None:
            dearest = best[0]
            most = last_whole(lambda n: self.dearness(name, n) < dearest, 1, most + 1)
        if most == 1 or self.reached(name, most) > self.aim.wanted:
            return best
        few = last_whole(lambda n: self.reached(name, n) > self.aim.wanted, 1, most) + 1
        return self.dearness(name, few), name, few
