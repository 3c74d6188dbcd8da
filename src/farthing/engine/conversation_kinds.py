"""Every kind of conversation: its fields with help, the items that pay, a mechanism.

A kind is a frozen dataclass, and a line in `ConversationKinds`. The method of a session, the HTTP
body, the options of `farthing converse open` and the form of the console follow from its fields.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections import Counter
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
from farthing.engine.kinds.base import Query, require_known
from farthing.errors import InvalidInput, require_choice
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
        given = {name: value for name, value in data.items() if name != "kind"}
        what = f"a conversation over a {cls.against}"
        require_known(what, given, [one.name for one in fields(cls)])
        for one in fields(cls):
            if one.default is MISSING and one.name not in given:
                raise InvalidInput(f"{what} needs a {one.name}")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdWatch(ConversationKind):
    """A conversation that tells when a number of this data reaches a threshold.

    It answers until `positives` answers were positive; negative ones are not limited. `item` pays
    for each noisy threshold, which serves `refresh_after` positive answers (all of them if None);
    with `value_item` a positive answer comes with a number, paid for each time. With `monotone`
    only numbers may be asked about that never fall when a unit is added, and the noise is half as
    wide. One unit may change a number by at most `per_unit`.
    """

    positives: Annotated[int, "How many positive answers it gives."] = 1
    item: Item = None
    value_item: ValueItem = None
    refresh_after: Annotated[
        int | None, "Positive answers of one noisy threshold; all if left out."
    ] = None
    per_unit: PerUnit = 1
    monotone: Annotated[bool, "Only numbers that never fall when a unit is added."] = True

    against = "threshold"
    described = "watch over thresholds"
    runs = SparseVector

    def mechanism_for(self, tariff: Tariff) -> SparseVector:
        value = None if self.value_item is None else epsilon_of(tariff, self.value_item)
        return SparseVector.from_epsilon(
            epsilon_of(tariff, paying_item(tariff, self.item)),
            positives=self.positives,
            sensitivity=self.per_unit,
            monotone=self.monotone,
            refresh_after=self.refresh_after,
            value_epsilon=value,
        )

    def items_for(self, tariff: Tariff) -> dict[str, int]:
        """One item for each threshold, one for each number."""
        bought = Counter({paying_item(tariff, self.item): self.mechanism_for(tariff).thresholds})
        if self.value_item is not None:
            bought[self.value_item] += self.positives
        return dict(bought)

    @classmethod
    def require_askable(cls, query: Query, mechanism: Watcher, /) -> None:
        if isinstance(mechanism, SparseVector) and mechanism.monotone and not query.monotone:
            raise InvalidInput(
                f"this {query.kind} may fall when a unit is added; open the watch with "
                "monotone=False"
            )

    @classmethod
    def units(cls, number: Fraction) -> int:
        """A threshold is reached from it on."""
        return math.ceil(number)

    @classmethod
    def asked(cls, number: int, units: int) -> Exceeds:
        return Exceeds(number, units)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessWatch(ConversationKind):
    """A conversation that says which guesses are off by more than `tolerance`.

    It corrects up to `corrections` of them; right guesses are not limited. `item` pays for
    checking, `value_item` (the same one if None) for each correction. One unit may change a number
    by at most `per_unit`.
    """

    tolerance: Annotated[int, "How far off a guess may be and still is right."]
    corrections: Annotated[int, "How many wrong guesses it corrects."] = 1
    item: Item = None
    value_item: ValueItem = None
    per_unit: PerUnit = 1

    against = "guess"
    described = "watch over guesses"
    runs = GuessAndCheck

    def mechanism_for(self, tariff: Tariff) -> GuessAndCheck:
        checking, correcting = self._names(tariff)
        return GuessAndCheck.from_epsilons(
            epsilon_of(tariff, checking),
            epsilon_of(tariff, correcting),
            corrections=self.corrections,
            tolerance=self.tolerance,
            sensitivity=self.per_unit,
        )

    def items_for(self, tariff: Tariff) -> dict[str, int]:
        """One item for checking, one for each correction."""
        checking, correcting = self._names(tariff)
        bought = Counter({checking: 1})
        bought[correcting] += self.corrections
        return dict(bought)

    def _names(self, tariff: Tariff) -> tuple[str, str]:
        checking = paying_item(tariff, self.item)
        return checking, checking if self.value_item is None else self.value_item

    @classmethod
    def require_askable(cls, query: Query, _: Watcher) -> None:
        if query.in_ranks:
            raise InvalidInput(
                f"a {query.kind} is watched over thresholds; a guess of it has no error"
            )

    @classmethod
    def units(cls, number: Fraction) -> int:
        return round(number)

    @classmethod
    def asked(cls, number: int, units: int) -> Guess:
        return Guess(number, units)


class ConversationKinds:
    """What can be opened, as methods of a session."""

    watch = Opens(ThresholdWatch)
    watch_guesses = Opens(GuessWatch)


#: The kinds by what a number is compared with, which is the word for them in plain data.
CONVERSATIONS: Mapping[str, type[ConversationKind]] = {
    one.kind.against: one.kind for one in vars(ConversationKinds).values() if isinstance(one, Opens)
}


def conversation_from(data: Mapping[str, Any]) -> ConversationKind:
    """A conversation from its plain data."""
    kind = require_choice("kind", data.get("kind"), CONVERSATIONS)
    return CONVERSATIONS[kind].from_json(data)


def kind_run_by(mechanism: object) -> type[ConversationKind]:
    """The kind that a mechanism was opened by."""
    for kind in CONVERSATIONS.values():
        if isinstance(mechanism, kind.runs):
            return kind
    raise InvalidInput("this conversation was not opened about numbers of a table")
