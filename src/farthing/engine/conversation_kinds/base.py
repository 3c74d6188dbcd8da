"""What every kind of conversation has: fields with help, the items that pay, a mechanism.

A kind is a frozen dataclass in a file of its own; `__init__` lists them, a line each. The method of
a session, the HTTP body, the options of `farthing converse open` and the form of the console follow
from its fields.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from fractions import Fraction
from functools import wraps
from types import NoneType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    get_args,
    get_type_hints,
)

from farthing.composition.tariffs.tariff import Tariff
from farthing.engine.kinds.base import Query
from farthing.errors import InvalidInput, did_you_mean
from farthing.guarantees.kinds import PureDP
from farthing.guarantees.notation import format_guarantee
from farthing.interactive import Exceeds, Guess, GuessAndCheck, SparseVector, require_chargeable

P = ParamSpec("P")
W = TypeVar("W", covariant=True)

#: What runs in a conversation about numbers of a table, and what it is asked.
Watcher = SparseVector | GuessAndCheck
WatcherQuestion = Exceeds | Guess

#: The item that pays for a conversation if none is named and the tariff sells it.
PURE = "pure"

_TYPES = {int: "a whole number", str: "a text", bool: "true or false", NoneType: "left out"}

Item = Annotated[str | None, "The item that pays."]
ValueItem = Annotated[str | None, "The item that pays for each number that is told."]
PerUnit = Annotated[int, "How much one unit may change any number that is asked about."]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationKind(ABC):
    """A kind of conversation about numbers of a table.

    `per_unit`: 1 for counts of units, the limit for counts of rows, the larger bound for sums in
    units of their last decimal place, max(a, b − a) times the rows that count of a unit for the
    quantile a/b.
    """

    #: What a number is compared with: the word for the kind in plain data.
    against: ClassVar[str]
    #: The kind in words, as ledgers keep it.
    described: ClassVar[str]
    #: The mechanism that runs.
    runs: ClassVar[type[Any]]

    @property
    @abstractmethod
    def per_unit(self) -> int:
        """How much one unit may change any number: a field of every kind."""

    @abstractmethod
    def mechanism_for(self, tariff: Tariff) -> Watcher:
        """What runs, paid with items of this tariff."""

    @abstractmethod
    def items_for(self, tariff: Tariff) -> dict[str, int]:
        """The items that pay for all of it."""

    @classmethod
    @abstractmethod
    def require_askable(cls, query: Query, mechanism: Watcher, /) -> None:
        """InvalidInput if this kind cannot ask about a query that is one number."""

    @classmethod
    @abstractmethod
    def units(cls, number: Fraction) -> int:
        """What a number is compared with, in whole units of the last decimal place."""

    @classmethod
    @abstractmethod
    def asked(cls, number: int, units: int) -> WatcherQuestion:
        """What the mechanism is asked, with the exact number."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for one in fields(self):
            value, allowed = getattr(self, one.name), hints[one.name]
            types = get_args(allowed) or (allowed,)
            if type(value) not in types:
                expected = " or ".join(_TYPES[each] for each in types)
                raise InvalidInput(f"{one.name} must be {expected}, got {value!r:.60}")

    def record(self) -> dict[str, Any]:
        """The kind and its fields, as a ledger keeps them."""
        return {"kind": self.described, **asdict(self)}

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` reads it back."""
        return {"kind": self.against, **asdict(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The conversation that plain data describes; fields that are left out have defaults."""
        known = [one.name for one in fields(cls)]
        given = {name: value for name, value in data.items() if name != "kind"}
        for name in given:
            if name not in known:
                hint = did_you_mean(name, known) or f"; it has {', '.join(known)}"
                raise InvalidInput(f"a conversation over a {cls.against} has no {name!s:.60}{hint}")
        for one in fields(cls):
            if one.default is MISSING and one.name not in given:
                raise InvalidInput(f"a conversation over a {cls.against} needs a {one.name}")
        return cls(**given)


class Watching(Protocol[W]):
    """Who can open a conversation."""

    def watching(self, kind: ConversationKind) -> W:
        """A conversation of this kind, not open yet."""


class Opens(Generic[P]):
    """A kind of conversation as a method of a session: its parameters are the kind's fields."""

    def __init__(self, kind: Callable[P, ConversationKind]) -> None:
        assert isinstance(kind, type)
        assert issubclass(kind, ConversationKind)
        self.kind: type[ConversationKind] = kind
        self.__doc__ = kind.__doc__

    def __get__(self, session: Watching[W], _: type[Any]) -> Callable[P, W]:
        kind = self.kind

        @wraps(kind, updated=())
        def watch(*_: P.args, **given: P.kwargs) -> W:
            return session.watching(kind.from_json(given))

        watch.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined] # for help()
        return watch


def guarantees_of(tariff: Tariff, items: Mapping[str, int]) -> dict[str, str]:
    """What each item guarantees, in words that the ledger keeps."""
    return {name: format_guarantee(tariff.items[name][0]) for name in items}


def paying_item(tariff: Tariff, named: str | None) -> str:
    """The item that is named, or the one called pure, or the cheapest that can pay."""
    if named is not None:
        return named
    pure = [n for n, (g, _) in tariff.items.items() if isinstance(g, PureDP) and g.epsilon > 0]
    if not pure:
        raise InvalidInput("a conversation needs a pure-DP item (dp:ε), and the tariff sells none")
    return PURE if PURE in pure else min(pure, key=lambda n: (tariff.price(n).farthings, n))


def epsilon_of(tariff: Tariff, name: str) -> float:
    """ε of a pure-DP item that can pay for a conversation."""
    tariff.price(name)  # refuses a name that is not there
    guarantee = tariff.items[name][0]
    require_chargeable(((guarantee, 1),))
    if not isinstance(guarantee, PureDP):
        raise InvalidInput(
            f"a conversation needs a pure-DP item (dp:ε), but {name} is "
            f"{format_guarantee(guarantee)}"
        )
    return guarantee.epsilon
