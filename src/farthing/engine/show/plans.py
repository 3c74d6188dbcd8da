"""What every plan shows: in print and in a notebook, and what to expect of a release in words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from rich.console import RenderableType

from farthing.composition.tariffs.tariff import Price
from farthing.engine.show import notebook, terminal
from farthing.engine.show.sheet import amount, number, percent, whole, width
from farthing.mechanisms import Expectation
from farthing.wording import plain

#: What a line is about, what it says, and how it looks in a terminal.
Line: TypeAlias = tuple[str, str, str]
#: Whether enough remains.
FITS: Mapping[bool, Line] = {True: ("fits", "yes", "green"), False: ("fits", "no", "bold red")}
#: That nothing has to be paid.
KNOWN: Line = "known", "asked before: running costs nothing", "green"


def limit_lines(limits: Mapping[str, Any]) -> Iterator[Line]:
    """How a contribution limit is chosen: the price of the search, and of each limit."""
    first = limits["first"]
    yield "first", f"{first['caption']}: {amount(Price(**first['price']))}", ""
    for choice in limits["choices"]:
        noise = f"each number off by {number(choice['expected_error'])} on average"
        price = amount(Price(choice["farthings"], choice["delta_units"]))
        wide = f"± {width(choice['half_width'])}: {price} ({choice['item']})"
        yield f"at limit {choice['limit']}", f"{noise}, {wide}", ""
    if limits["may_lose_more"]:
        yield "beyond", "nothing larger is tried; if it would be better, the answer says so", ""


class ShownPlan(ABC):
    """A caption, and lines of which the first is the price."""

    __slots__ = ()

    @property
    @abstractmethod
    def caption(self) -> str:
        """What it is a plan for."""

    @abstractmethod
    def lines(self) -> Iterator[Line]:
        """Price, what remains, and what to expect, in words."""

    def __rich__(self) -> RenderableType:
        return terminal.plan_table(self.caption, self.lines())

    def __str__(self) -> str:
        return terminal.as_text(self.__rich__())

    def __repr__(self) -> str:
        _, price, _ = next(self.lines())
        return plain(f"<{type(self).__name__}: {self.caption}: {price}>")

    def _repr_html_(self) -> str:
        return notebook.plan_html(self.caption, self.lines())


def expectation_lines(
    expectation: Expectation, confidence: float, *, in_ranks: bool, times_rows: float | None
) -> Iterator[Line]:
    """A line for each thing that is known.

    `in_ranks`: selections are off by ranks. `times_rows`: the half-width of a number times the rows
    that it is made from.
    """
    level = percent(confidence)
    if expectation.counts is not None:
        counts = expectation.counts
        wide = f"± {width(counts.half_width)} at {percent(counts.confidence)}"
        yield "each number", f"{wide}, on average off by {number(counts.expected_error)}", ""
    if times_rows is not None:
        text = f"at most about ± {width(times_rows)}/n at {level}, where n rows count"
        yield "each number", text, ""
    if expectation.selection is not None:
        chosen, at = expectation.selection, percent(expectation.selection.confidence)
        if in_ranks:
            yield "each selection", f"within {width(chosen.half_width)} ranks at {at}", ""
        else:
            off = whole(chosen.half_width)
            text = f"its count is at most {off} below the best that was left, at {at}"
            yield "each selection", text, ""
    if expectation.told_apart is not None:
        gap = whole(expectation.told_apart)
        text = f"of two labels whose counts differ by {gap} the larger comes first, at {level}"
        yield "order", text, ""
    if expectation.found_from is not None:
        lead = whole(expectation.found_from)
        text = f"each label {lead} above the largest count that is not looked at, at {level}"
        yield "found", text, ""
    if expectation.threshold is not None:
        yield "threshold", f"noisy counts below {expectation.threshold} are withheld", ""
    if expectation.above_cutoff is not None:
        lead = number(expectation.above_cutoff)
        yield "threshold", f"counts must be about {lead} above the largest not looked at", ""
