"""What every plan can do for people: print, and be looked at in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from rich.console import RenderableType

from farthing.composition.tariffs.tariff import Price
from farthing.engine.show import notebook, terminal
from farthing.engine.show.sheet import amount, number, width
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
