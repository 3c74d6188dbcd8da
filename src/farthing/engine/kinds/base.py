"""What a kind of question is.

A kind is one frozen class in one file: its fields, what it may be asked of, what it buys, the
mechanism, the statement, and how the release reads. It round-trips through plain data. Which table
it is asked of, and by whom, is not part of it. `kinds/__init__.py` lists them, a line each; no kind
knows another one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, get_args, get_type_hints

from farthing.engine.filters import (
    Between,
    Filter,
    columns_of,
    filter_from,
    filter_to_json,
)
from farthing.engine.keys import key_to_json
from farthing.engine.kinds.captions import beyond_values, caption, moved_in_words
from farthing.engine.kinds.fields import CHECKS, label_from_json, label_to_json, unscaled
from farthing.engine.kinds.rows import Rows
from farthing.engine.sql.bounding import Bounded
from farthing.engine.sql.conditions import check_filter, require_possible
from farthing.engine.sql.keys import Label
from farthing.engine.where_text.writing import condition_in_sql
from farthing.errors import InvalidInput, did_you_mean
from farthing.guarantees.kinds import ApproximateDP, BoundedRange, Guarantee, PureDP
from farthing.ledger.declared_data import Limits
from farthing.mechanisms import Expectation, Mechanism, Release
from farthing.mechanisms.accuracy import Interval
from farthing.schema import Bounds, DeclaredValues, Schema
from farthing.wording import many

if TYPE_CHECKING:
    import pyarrow as pa

#: What an item can be bought for, and what a tariff must sell for it.
SELECT, COUNT, LEAK = "select", "count", "leak"
ROLES = {
    SELECT: "a bounded-range item (br:ε)",
    COUNT: "a Gaussian or pure-DP item (gauss:σ, dp:ε)",
    LEAK: "an item with a delta (adp:0,δ)",
}
#: What a thing is bought for, and the guarantee it is paid with.
Paid = Mapping[str, Guarantee]


@dataclass(frozen=True, slots=True)
class Result:
    """A release in the words of the question: labels, numbers, and the error of each number.

    `intervals`, one for each number, where they are not all number ± half_width.
    """

    labels: tuple[Label, ...]
    counts: tuple[int | float, ...] | None
    half_width: float | None
    intervals: tuple[Interval, ...] | None = None


@dataclass(frozen=True, slots=True)
class Query(ABC):
    """A question without the table it is asked of.

    Subclasses are frozen dataclasses. A field that `CHECKS` knows is checked when it is made.
    """

    #: The word for it in plain data and on the command line.
    kind: ClassVar[str]
    #: What the released numbers are called.
    number: ClassVar[str] = "count"
    #: Whether `half_width` counts ranks around the one value that is released.
    in_ranks: ClassVar[bool] = False
    #: What is counted there.
    ranks: ClassVar[str] = "ranks"

    @property
    @abstractmethod
    def where(self) -> object:
        """Which rows it is about: a field of every kind."""

    @property
    @abstractmethod
    def epsilon(self) -> float | None:
        """What its items should have at least: a field of every kind."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in CHECKS and (value is not None or one.default is not None):
                object.__setattr__(self, one.name, CHECKS[one.name](one.name, value))
        self.check_fields()

    @property
    def single(self) -> bool:
        """Whether it is answered by one number."""
        return False

    @property
    def filter(self) -> Filter | None:
        """Which rows it is about: `where` in its one form."""
        return cast(Filter | None, self.where)

    def check_fields(self) -> None:  # noqa: B027 # most fields need no others
        """What must hold between the fields, or InvalidInput."""

    @abstractmethod
    def columns(self) -> frozenset[str]:
        """The columns it looks at besides those of the filter."""

    def check_columns(self, schema: Schema) -> None:  # noqa: B027 # a count has no columns
        """The columns can be used like this, or InvalidInput. Looks at the schema alone."""

    def within(self, limits: Limits) -> Self:
        """The same, with the owner's limits where it states none; InvalidInput if it wants more."""
        given = {}
        for name, most in (
            ("contribution_limit", limits.contribution_limit),
            ("per_key_limit", limits.per_key_limit),
        ):
            if most is None or name not in self.field_names():
                continue
            wanted = getattr(self, name)
            if isinstance(wanted, int) and wanted > most:
                raise InvalidInput(f"{name} must be at most {most} for this data, got {wanted}")
            given[name] = most if wanted is None else wanted
        return self.changed(**given)

    def changed(self, **given: Any) -> Self:
        """The same, with other values of these fields."""
        return replace(self, **given)

    @property
    def needed_limits(self) -> Mapping[str, str]:
        """Limits that the question or the owner must state, and what each of them limits."""
        return {}

    def completed(self, schema: Schema) -> Self:
        """The same, with what the schema says where it says nothing."""
        return self

    @abstractmethod
    def roles(self) -> dict[str, int]:
        """How often each role is bought at most."""

    def needs(self, role: str) -> str:
        """What pays for a role, in words."""
        return ROLES[role]

    def suits(self, role: str, guarantee: Guarantee) -> bool:
        """An item with this guarantee can pay for the role."""
        match role, guarantee:
            case ("select", BoundedRange(epsilon)) | ("count", PureDP(epsilon)):
                return epsilon > 0
            case "leak", ApproximateDP(_, delta):
                return delta > 0
        return False

    @property
    def most_repeats(self) -> int:
        """How often the numbers can be drawn and averaged."""
        return 1

    @abstractmethod
    def mechanism_for(self, paid: Paid) -> Mechanism[Any]:
        """What runs, with the guarantees it is paid with."""

    @abstractmethod
    def bounded(self, rows: Rows) -> Bounded:
        """What the mechanism runs on as an expression, each unit limited."""

    @abstractmethod
    def data(self, rows: pa.Table) -> Any:
        """What the mechanism runs on, from the rows of the statement."""

    @property
    def monotone(self) -> bool:
        """Whether the one number that it is about never falls when a unit is added."""
        return False

    @property
    def decimal_places(self) -> int:
        """The decimal places of that number; the statement gives it in units of the last one."""
        return 0

    def ranks_at(self, rows: Rows, value: int) -> Bounded:
        """One number that is not negative exactly if the released value is at least this one."""
        raise InvalidInput(f"a {self.kind} is a number itself, not a value among others")

    def watched_number(self, number: int) -> int | float:
        """A number that a conversation gives out, in the units of the question."""
        return unscaled(number, self.decimal_places)

    def expect(self, mechanism: Mechanism[Any], confidence: float) -> Expectation:
        """What to expect, in the units of the question."""
        return mechanism.expect(confidence)

    def errors(
        self, mechanism: Mechanism[Any], release: Release, confidence: float
    ) -> float | tuple[Interval, ...] | None:
        """How far off the released numbers are, or an interval for each.

        None: what was expected, `half_width` of the result.
        """
        return None

    def width_times_rows(self, expectation: Expectation) -> float | None:
        """About the largest half-width of a number times the rows that it is made from, where that
        is what is known before."""
        return None

    def in_order(self, release: Release) -> Release:
        """The same labels in the order in which they are shown."""
        return release

    @abstractmethod
    def result(self, release: Release, expectation: Expectation) -> Result:
        """The release, read as an answer."""

    @property
    def together(self) -> bool:
        """Whether its intervals hold for all numbers together."""
        return False

    @property
    def shown_things(self) -> str:
        """What a label must have enough of to be shown."""
        return "members"

    @property
    @abstractmethod
    def title(self) -> str:
        """The question in a few words."""

    def subject(self, unit: str) -> str:
        """What the numbers are about, where `unit` is the column that says whose row it is."""
        return self.title

    def limited(self, unit: str) -> str | None:
        """How much of a unit counts, as the end of a caption; None if nothing can be left out."""
        return None if self.counted is None else f"of each {unit} {self.counted}"

    def moved(self, declared: DeclaredValues) -> dict[str, Bounds]:
        """The bounds that its columns are moved into."""
        bounds = declared.bounds
        return {name: bounds[name] for name in sorted(self.columns()) if name in bounds}

    @property
    def listed(self) -> str | None:
        """Which labels there are, as the end of a caption, where they are known."""
        return None

    def caption(self, unit: str, declared: DeclaredValues) -> str:
        """What is counted, the filter, and every bound and limit that is applied, in words."""
        moved = (moved_in_words(*pair) for pair in self.moved(declared).items())
        grouped = self.columns() if self.listed is None else frozenset()
        others = (
            f"{name} has {many(declared.labels[name], 'declared label')} and others are missing"
            for name in sorted(grouped | beyond_values(self.filter))
            if name in declared.labels
        )
        applied = (*moved, *others, self.limited(unit), self.listed)
        return caption(self.subject(unit), self.filter, applied)

    def offered(self, declared: DeclaredValues) -> tuple[str, ...]:
        """What can be asked to see how much bounds and limits change, for a plan."""
        beyond = " or ".join(
            condition_in_sql(Between(name, **{side: bound}))
            for name, bounds in self.moved(declared).items()
            for side, bound in zip(("below", "above"), bounds, strict=True)
            if bound is not None
        )
        told = f"count(where='{beyond}') says how many have values that are moved"
        return (told,) if beyond else ()

    @property
    def described(self) -> str:
        """The kind, and how it is answered where there are several ways."""
        return self.kind

    @property
    def counted(self) -> str | None:
        """How much of a unit counts, in words, where that may surprise."""
        return None

    @property
    @abstractmethod
    def contribution(self) -> str:
        """How much of a unit counts, for the statement of the dataset."""

    @property
    def headings(self) -> tuple[str, ...]:
        """What the labels are called."""
        return ("what",)

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """Names of the fields, in order."""
        return tuple(f.name for f in fields(cls))

    def to_json(self) -> dict[str, Any]:
        """Plain data with every field: a default that changes later changes no old query.

        Only an ε that was not asked for is left out: once items are named there is none.
        """
        data: dict[str, Any] = {"kind": self.kind}
        for name in self.field_names():
            if name == "epsilon" and self.epsilon is None:
                continue
            data[name] = _plain(name, getattr(self, name))
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The query that plain data describes; fields that are left out have their defaults."""
        values = {name: value for name, value in data.items() if name != "kind"}
        cls._require_known(values)
        if isinstance(values.get("categories"), list | tuple):
            values["categories"] = tuple(map(label_from_json, values["categories"]))
        return cls.from_fields(values)

    @classmethod
    def from_fields(cls, values: Mapping[str, Any]) -> Self:
        """Made from its fields; InvalidInput if one is not known or is missing."""
        cls._require_known(values)
        needed = [name for name in _required(cls) if name not in values]
        if needed:
            hints = get_type_hints(cls, include_extras=True)
            meant = (f"{name} ({_words(hints[name])})" for name in needed)
            raise InvalidInput(f"{cls.kind} needs {' and '.join(meant)}")
        return cls(**values)

    @classmethod
    def _require_known(cls, values: Mapping[str, Any]) -> None:
        known = cls.field_names()
        for name in values:
            if name not in known:
                hint = did_you_mean(name, known) or f"; it has {', '.join(known)}"
                raise InvalidInput(f"{cls.kind} has no {name!s:.60}{hint}")


def completed_query(query: Query, schema: Schema, unit: str, limits: Limits) -> Query:
    """The query with everything said that the schema and the owner's limits say, and checked.

    What nobody says about how much of a unit counts is asked for: nothing is dropped by default.
    """
    check_query(query, schema, unit)
    require_possible(query.filter, schema)
    whole = query.within(limits).completed(schema)
    for name, words in whole.needed_limits.items():
        if getattr(whole, name) is None:
            raise InvalidInput(
                f"{name} must be given: {words}. Nothing is dropped by default: ask with {name}, "
                "or let the owner declare it as a limit of the data"
            )
    return whole


def check_query(query: Query, schema: Schema, unit: str) -> None:
    """The declared columns can be used like this; nothing is known about the rows."""
    used = query.columns() | columns_of(query.filter)
    schema.require(*used)
    if unit in used:
        raise InvalidInput(
            f"{unit} is the unit of privacy: it cannot be filtered, grouped or added up"
        )
    check_filter(query.filter, schema.kinds)
    query.check_columns(schema)


def _required(cls: type[Query]) -> list[str]:
    return [f.name for f in fields(cls) if f.default is MISSING]


def _words(hint: Any) -> str:
    """What stands beside the type of a field, as part of a sentence."""
    text = str(get_args(hint)[-1]).rstrip(".")
    return text[0].lower() + text[1:]


def _plain(name: str, value: Any) -> Any:
    if name == "where":
        return filter_to_json(filter_from(value))
    if name == "by" and value is not None:
        return [key_to_json(key) for key in value]
    if name == "categories" and value is not None:
        return [label_to_json(label) for label in value]
    return list(value) if isinstance(value, tuple) else value
