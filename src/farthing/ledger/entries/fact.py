"""What an entry says: a frozen type for each kind, read from plain data and written as it.

To add a kind, write a subclass of `Fact` with its fields and `apply`, and put `@kind` above it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self, TypeVar, get_type_hints

from farthing.canonical import canonical
from farthing.errors import InvalidInput
from farthing.ledger.entries.rules import Name, Rule, Time, Token, holds, rule_of
from farthing.ledger.entries.state import State
from farthing.ledger.errors import Damaged


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(ABC):
    """What every entry says: about which dataset, when, and a token to find it by.

    `later` are the fields that earlier formats did not write, `absent` those that this one lacks.
    `told_by` is the field that tells a type from others of the same kind.
    """

    kind: ClassVar[str]
    told_by: ClassVar[str] = "kind"
    later: ClassVar[frozenset[str]] = frozenset()
    rules: ClassVar[Mapping[str, Rule]]

    dataset: Name
    time: Time
    token: Token = ""  # given when it is written
    absent: frozenset[str] = field(default=frozenset(), repr=False)

    @abstractmethod
    def apply(self, state: State, number: int) -> None:
        """What entry `number` does to the balances; Broken if it cannot follow what came before."""

    def to_json(self) -> dict[str, Any]:
        """Plain data. Its canonical text is what the chain of hashes covers."""
        names = self.rules.keys() - self.absent
        return {"kind": self.kind, **{name: getattr(self, name) for name in names}}

    def written(self) -> str:
        """The canonical text."""
        return canonical(self.to_json())

    def signed(self, token: str) -> Self:
        """The same with its token."""
        return replace(self, token=token)


_KINDS: dict[str, list[type[Fact]]] = {}
_Some = TypeVar("_Some", bound=Fact)


def kind(name: str) -> Callable[[type[_Some]], type[_Some]]:
    """Entries of this kind are of the class below."""

    def register(cls: type[_Some]) -> type[_Some]:
        hints = get_type_hints(cls, include_extras=True)
        own = [one.name for one in fields(cls) if one.name != "absent"]
        cls.kind, cls.rules = name, {one: rule_of(hints[one]) for one in own}
        _KINDS.setdefault(name, []).append(cls)
        return cls

    return register


def read_fact(said: Mapping[str, Any]) -> Fact:
    """The fact that plain data is, every field checked; InvalidInput if it is none."""
    cls = _class_of(said)
    missing = cls.rules.keys() - cls.later - said.keys()
    for name, value in said.items():
        if name not in cls.rules and name != "kind":
            raise InvalidInput(f"{name!r:.60} is not a field of it")
        if name != "kind" and not holds(cls.rules[name], value):
            raise InvalidInput(f"its {name} is nothing that a ledger writes there")
    if missing:
        raise InvalidInput(f"{min(missing)!r:.60} is missing")
    return _made(cls, said)


def written_fact(written: str) -> Fact:
    """The fact in a row of this ledger; `verify` is what checks it."""
    said = json.loads(written)
    try:
        return _made(_class_of(said), said)
    except (TypeError, InvalidInput):
        raise Damaged(
            "an entry has other fields than its kind; see `farthing ledger verify`"
        ) from None


def _class_of(said: Mapping[str, Any]) -> type[Fact]:
    name = said.get("kind")
    if not isinstance(name, str) or name not in _KINDS:
        raise InvalidInput(f"there is no kind of entry {name!r:.60}")
    *others, last = _KINDS[name]
    for cls in others:
        if holds(cls.rules[cls.told_by], said.get(cls.told_by)):
            return cls
    return last


def _made(cls: type[Fact], said: Mapping[str, Any]) -> Fact:
    values = dict(said)
    del values["kind"]
    complete = len(values) == len(cls.rules)
    return cls(absent=frozenset(() if complete else cls.rules.keys() - said.keys()), **values)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the book: a fact, and its place in the chain."""

    number: int
    fact: Fact = field(repr=False)
    previous: str = field(repr=False)
    hash: str

    @property
    def kind(self) -> str:
        return self.fact.kind

    def __repr__(self) -> str:
        return f"<Entry {self.number}: {self.kind}, {self.hash[:16]}…>"
