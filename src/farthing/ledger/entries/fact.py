"""What an entry says (a fact), what its fields may hold, and its place in the chain of hashes.

    content_n = SHA-256(canonical JSON of the fact)
    hash_n    = SHA-256(hash_{n−1} content_n),    hash_0 = GENESIS

The database computes hash_n itself, in the command that takes the dataset's lock, so that two
writers can never build on the same head (`LINKED` in store/commands.py).

To add a kind, write a subclass of `Fact` with its fields and `apply`, and put `@kind` above it. The
type of each field says what a ledger writes there; anything else in a book is refused.

A book is replayed by applying its facts to a `State`, a second, plain model of the whole ledger.
`verify` compares it with the tables, and `import` fills the tables from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    TypeAlias,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from farthing.canonical import canonical, sha256
from farthing.composition.tariffs.tariff import Price, Tariff
from farthing.errors import FarthingError, InvalidInput
from farthing.interactive.protocol import Part
from farthing.ledger.declared_data import Declared
from farthing.ledger.errors import Damaged
from farthing.ledger.records import (
    EVERYBODY,
    LARGEST,
    TARIFF,
    month_name,
    month_number,
    require_name,
    written_time,
)
from farthing.progress import tell

if TYPE_CHECKING:
    from farthing.ledger.entries.analyst import Reserve

GENESIS = "0" * 64
#: Whether a field may hold a value; an error of Python or InvalidInput counts as no.
Rule: TypeAlias = Callable[[Any], object]


def linked(previous: str, content: str) -> str:
    """The hash of an entry from the previous hash and the digest of its own fact."""
    return sha256(previous + content)


def start_of(conversation: str) -> str:
    """The hash before the first turn of a conversation; its turns are linked in the same way."""
    return sha256(f"farthing conversation {conversation}")


def one_of(*allowed: object) -> Rule:
    """One of these values, of the same type."""
    return lambda value: any(type(value) is type(one) and value == one for one in allowed)


def is_whole(value: Any, at_least: int = 0, at_most: int = LARGEST) -> bool:
    """A whole number of JSON; True is none."""
    return type(value) is int and at_least <= value <= at_most


def is_name(value: Any) -> bool:
    """A name of something that people call by it."""
    return bool(require_name("it", value))


def _is_time(value: Any) -> bool:
    return type(value) is str and written_time(datetime.fromisoformat(value)) == value


def _is_month(value: Any) -> bool:
    return type(value) is str and month_name(month_number(value)) == value


def _is_hex(digits: int) -> Rule:
    pattern = re.compile(f"[0-9a-f]{{{digits}}}")
    return lambda value: type(value) is str and pattern.fullmatch(value) is not None


Name = Annotated[str, is_name]
Time = Annotated[str, _is_time]
Month = Annotated[str, _is_month]
Token = Annotated[str, _is_hex(32)]
Hash = Annotated[str, _is_hex(64)]
#: The number of an entry or of an account.
Number = Annotated[int, lambda value: is_whole(value, at_least=1)]
Amount = Annotated[int, is_whole]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What every entry says: about which dataset, when, and a token to find it by.

    `later` are the fields that earlier formats did not write, `absent` those that this fact lacks.
    `told_by` is the field that distinguishes a class from others of the same kind. Only a fact with
    `after_seal` can follow a seal.
    """

    kind: ClassVar[str]
    told_by: ClassVar[str] = "kind"
    later: ClassVar[frozenset[str]] = frozenset()
    after_seal: ClassVar[bool] = False
    rules: ClassVar[Mapping[str, Rule]]

    dataset: Name
    time: Time
    token: Token = ""  # given when it is written
    absent: frozenset[str] = field(default=frozenset(), repr=False)

    def apply(self, state: State, number: int) -> None:
        """Change the balances as entry `number`; Broken if it cannot follow what came before."""
        raise NotImplementedError  # not abstract: reports look entries up by this type

    def to_json(self) -> dict[str, Any]:
        """Plain data. The chain of hashes covers its canonical text."""
        names = self.rules.keys() - self.absent
        return {"kind": self.kind, **{name: getattr(self, name) for name in names}}

    def written(self) -> str:
        """The canonical text."""
        return canonical(self.to_json())


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


_KINDS: dict[str, list[type[Fact]]] = {}
_Some = TypeVar("_Some", bound=Fact)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def kind(name: str) -> Callable[[type[_Some]], type[_Some]]:
    """Make the class below a frozen dataclass, and register it for entries of this kind."""

    def register(plain: type[_Some]) -> type[_Some]:
        cls = dataclass(frozen=True, slots=True, kw_only=True)(plain)
        hints = get_type_hints(cls, include_extras=True)
        own = [known.name for known in fields(cls) if known.name != "absent"]
        cls.kind, cls.rules = name, {field_: _rule_of(hints[field_]) for field_ in own}
        _KINDS.setdefault(name, []).append(cls)
        return cls

    return register


def kinds_of(*classes: type[Fact]) -> tuple[str, ...]:
    """The kinds of entries whose facts are of these classes."""
    return tuple(
        name for name, known in _KINDS.items() if any(issubclass(cls, classes) for cls in known)
    )


def read_fact(said: Mapping[str, Any]) -> Fact:
    """A fact from plain data, every field checked; InvalidInput if it is not one."""
    cls = _class_of(said)
    missing = cls.rules.keys() - cls.later - said.keys()
    for name, value in said.items():
        if name not in cls.rules and name != "kind":
            raise InvalidInput(f"{name!r:.60} is not a field of it")
        if name != "kind" and not _holds(cls.rules[name], value):
            raise InvalidInput(f"its {name} has a value that no ledger writes")
    if missing:
        raise InvalidInput(f"{min(missing)!r:.60} is missing")
    return _made(cls, said)


def written_fact(written: str) -> Fact:
    """The fact in a row of this ledger. Its values are not checked; `verify` does that."""
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
        if _holds(cls.rules[cls.told_by], said.get(cls.told_by)):
            return cls
    return last


def _made(cls: type[Fact], said: Mapping[str, Any]) -> Fact:
    values = dict(said)
    del values["kind"]
    complete = len(values) == len(cls.rules)
    return cls(absent=frozenset(() if complete else cls.rules.keys() - said.keys()), **values)


def _rule_of(hint: Any) -> Rule:
    """The rule in the type of a field."""
    origin = get_origin(hint)
    if origin is Annotated:
        rule: Rule = get_args(hint)[1]
        return rule
    if origin in (Union, UnionType):
        (inner,) = (one for one in get_args(hint) if one is not NoneType)
        required = _rule_of(inner)
        return lambda value: value is None or required(value)
    raise TypeError(f"{hint} is not a type of a field")


def _holds(rule: Rule, value: Any) -> bool:
    try:
        return bool(rule(value))
    except (InvalidInput, AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return False


#: How many entries are read between two reports of progress.
ENTRIES_BETWEEN_NEWS = 1000
Row: TypeAlias = dict[str, Any]


class Broken(Exception):
    """An entry cannot follow from those before it; says why."""


def require(holds: bool, otherwise: str) -> None:
    """Broken unless it holds."""
    if not holds:
        raise Broken(otherwise)


@dataclass
class Opened:
    """A conversation according to the entries.

    `marks` are the ends of its chain of turns that the book holds: how much was asked, the hash.
    """

    entry: int
    analyst: str
    declared: int
    mechanism: Part
    commitment: str
    open: bool = True
    marks: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class State:
    """What the entries so far add up to.

    `declared` is the entry that last declared the data. `home` is the ledger that the book is in,
    if an entry says so; `sealed_for` the one that may take it over, while it is sealed. `restored`
    is the entry that last restored the book from a copy.
    """

    declaration: Declared | None = None
    declared: int = 1
    home: str | None = None
    sealed_for: str | None = None
    restored: int = 0
    last_hash: str = ""
    last_share: int = 0
    accounts: dict[int, Row] = field(default_factory=dict)
    purses: dict[tuple[int, str], Row] = field(default_factory=dict)
    lots: dict[tuple[int, str], Row] = field(default_factory=dict)
    documents: dict[int, Row] = field(default_factory=dict)
    tariffs: dict[int, Tariff] = field(default_factory=dict)
    revoked: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    held: dict[int, Reserve] = field(default_factory=dict)
    conversations: dict[str, Opened] = field(default_factory=dict)

    def take(self, number: int, said: Mapping[str, Any], previous: str) -> Fact:
        """Apply one more entry, which follows the hash `previous`; Broken if it cannot follow."""
        self.last_hash = previous
        try:
            fact = read_fact(said)
            sealed = self.sealed_for is not None
            require(sealed == fact.after_seal, "only a resumption can follow a seal")
            require(number == 1 or self.declaration is not None, "a book begins with its dataset")
            fact.apply(self, number)
            about = self.declared_data().dataset.name
            require(fact.dataset == about, "it belongs to another dataset")
        except FarthingError as error:
            raise Broken(str(error)) from None
        return fact

    def declared_data(self) -> Declared:
        """The data as it is declared; Broken before the first entry."""
        if self.declaration is None:
            raise Broken("a book begins with its dataset")
        return self.declaration

    def account(self, number: int) -> Row:
        """The row of an account; Broken if it was never opened."""
        require(number in self.accounts, f"there is no account {number}")
        return self.accounts[number]

    def purse(self, account: int, analyst: str) -> Row:
        """The row of a purse; Broken if nothing was granted."""
        require((account, analyst) in self.purses, "nothing was granted to this analyst")
        return self.purses[account, analyst]

    def conversation(self, identity: str) -> Opened:
        """A conversation; Broken if it was never opened."""
        require(identity in self.conversations, "there is no such conversation")
        return self.conversations[identity]

    def require_in_force(self, account: int) -> None:
        """Broken unless the account is a tariff that can be spent."""
        require(self.account(account)["mode"] == TARIFF, "only a tariff has purses")
        require(self.purse(account, EVERYBODY)["open"] == 1, "the tariff was retired before")


def new_purse(account: int, analyst: str, granted: Price) -> Row:
    """A purse of which nothing is spent."""
    return {
        "account": account,
        "analyst": analyst,
        "farthings": granted.farthings,
        "delta_units": granted.delta_units,
        "farthings_spent": 0,
        "delta_units_spent": 0,
        "month": None,
        "open": 1,
    }


class ChainCheck:
    """Takes the entries of a dataset one by one, and names the first that is wrong."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        self.number = 0
        self.previous = GENESIS
        self.hash = GENESIS
        self.state = State()

    def take(self, number: int, written: str, previous: str, hash_: str) -> Fact:
        """The fact of the next entry, or Damaged."""
        if number != self.number + 1:
            raise self.bad(self.number + 1, f"it is missing; the next one there is {number}")
        if previous != self.hash:
            raise self.bad(number, "it does not continue the entry before it")
        if hash_ != linked(previous, sha256(written)):
            raise self.bad(number, "its hash does not match what it says")
        try:
            said = json.loads(written)
            if not isinstance(said, dict) or canonical(said) != written:
                raise Broken("it is not in canonical form")
            fact = self.state.take(number, said, previous)
        except (ValueError, RecursionError, Broken) as error:
            raise self.bad(number, str(error)) from None
        self.number, self.previous, self.hash = number, previous, hash_
        if number % ENTRIES_BETWEEN_NEWS == 0:
            tell(f"{number} entries of {self.dataset}")
        return fact

    def bad(self, number: int, why: str) -> Damaged:
        return Damaged(f"entry {number} of {self.dataset} is bad: {why}", self.dataset, number)


def require_company(known: Mapping[str, Declared], walk: ChainCheck) -> None:
    """Datasets that share data must be in one ledger and have one unit."""
    declared = walk.state.declared_data()
    for other in declared.beside:
        if other not in known:
            raise InvalidInput(f"{walk.dataset} stands beside {other}, which must come with it")
        if known[other].dataset.protects != declared.dataset.protects:
            raise InvalidInput(f"{walk.dataset} and {other} share data, but not their unit")
