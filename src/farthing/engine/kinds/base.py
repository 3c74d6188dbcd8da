"""What a kind of question is.

A kind is one frozen class: its fields, what it may be asked of, what it buys, the mechanism, the
statement, and how it reads. It round-trips through plain data. Which table it is asked of, and by
whom, is not part of it. `kinds/__init__.py` lists the kinds, and no kind knows another one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, cast

from farthing.engine.filters import Filter, columns_of
from farthing.engine.kinds.fields import (
    CHECKS,
    QuestionEpsilon,
    Where,
    field_to_json,
    help_of,
    label_from_json,
    unscaled,
)
from farthing.engine.show.captions import Names, Words, caption, offered
from farthing.engine.sql.bounding import Bounded, Label
from farthing.engine.sql.conditions import Rows
from farthing.engine.where_text.conditions import clipped_columns
from farthing.errors import InvalidInput, did_you_mean
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    PureDP,
)
from farthing.ledger.declared_data import Limits
from farthing.mechanisms import Expectation, KnownCounts, Mechanism, Release, ThresholdedCounts
from farthing.mechanisms.noise.discrete import Coordinate
from farthing.mechanisms.protocol import Interval
from farthing.schema import Bounds, DeclaredValues, Schema

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
ANYWHERE: Interval = (-math.inf, math.inf)
#: The noisy number of units of a label, and the two ends of its interval.
NoisyUnits: TypeAlias = tuple[int, float, float]


@dataclass(frozen=True, slots=True)
class Result:
    """A release in the words of the question: labels, numbers, and the error of each number.

    `intervals`, one for each number, where they are not all number ± half_width.
    """

    labels: tuple[Label, ...]
    counts: tuple[int | float, ...] | None
    half_width: float | None
    intervals: tuple[Interval, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(ABC):
    """A question without the table it is asked of: which rows, and the ε of its items.

    Subclasses are frozen dataclasses. A kind must define `columns`, `roles`, `mechanism_for`,
    `bounded`, `data` and `words`; the rest has defaults. Fields are checked when the query is made:
    those that hold columns (`where`, `by`, `column`, and others that say so with `COLUMN` or
    `COLUMNS`) as such, and what `CHECKS` knows by name.
    """

    where: Where = None
    epsilon: QuestionEpsilon = None

    #: The word for it in plain data and on the command line.
    kind: ClassVar[str]
    #: Whether it asks what a limit does, so that its limits are the question.
    about_limits: ClassVar[bool] = False
    #: What the released numbers are called.
    number: ClassVar[str] = "count"
    #: Whether `half_width` counts ranks around the one value that is released.
    in_ranks: ClassVar[bool] = False
    #: What is counted there.
    ranks: ClassVar[str] = "ranks"

    def __post_init__(self) -> None:
        for name, own in help_of(type(self)).items():
            value = getattr(self, name)
            if value is None and own.default is None:
                continue
            if own.holds is not None:
                object.__setattr__(self, name, own.holds.check(value))
            elif name in CHECKS:
                object.__setattr__(self, name, CHECKS[name](name, value))
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
        """The columns it looks at besides those of `where`."""

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
        """How often each of SELECT, COUNT and LEAK is bought at most. One that is bought is a field
        too, which may name the item that pays."""

    def needs(self, role: str) -> str:
        """What pays for a role, in words."""
        return ROLES[role]

    def suits(self, role: str, guarantee: Guarantee) -> bool:
        """An item with this guarantee can pay for the role."""
        match role, guarantee:
            case ("select", BoundedRange(epsilon)) | ("count", PureDP(epsilon)):
                return epsilon > 0
            case "count", Gaussian():
                return True
            case "count", DiscreteGaussian(_, sensitivity):
                return sensitivity == self.noise_limit
            case "leak", ApproximateDP(_, delta):
                return delta > 0
        return False

    @property
    def noise_limit(self) -> int | None:
        """How much of one noisy number a unit changes: discrete Gaussian noise is for that alone.

        None where noise is made as wide as any limit asks for, which no such item is.
        """
        return None

    @property
    def most_repeats(self) -> int:
        """How often the numbers can be drawn and averaged."""
        return 1

    @abstractmethod
    def mechanism_for(self, paid: Paid) -> Mechanism[Any]:
        """What runs, with the guarantees it is paid with."""

    @abstractmethod
    def bounded(self, rows: Rows) -> Bounded:
        """What the mechanism runs on as an expression, each unit limited at least as the mechanism
        assumes (`Step.charge` compares)."""

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
        """How far off the released numbers are, or an interval for each; None: as expected."""
        return None

    def width_times_rows(self, mechanism: Mechanism[Any], confidence: float) -> float | None:
        """About the largest half-width of a number, times its rows, if only that is known."""
        return None

    def in_order(self, release: Release, schema: Schema) -> Release:
        """The same labels in the order in which they are shown."""
        return release

    def result(self, release: Release, expectation: Expectation) -> Result:
        """The release, read as an answer."""
        error = expectation.selection if self.in_ranks else expectation.counts
        half_width = None if error is None else error.half_width
        return Result(self.labels_in(release), self.numbers_in(release), half_width)

    def labels_in(self, release: Release) -> tuple[Label, ...]:
        """The labels that a release has."""
        return release.labels

    def numbers_in(self, release: Release) -> tuple[int | float, ...] | None:
        """The numbers that it has, in the units of the question."""
        return release.counts

    def units_in(
        self, mechanism: Mechanism[Any], release: Release, confidence: float
    ) -> tuple[NoisyUnits, ...] | None:
        """How many units each label has, where finding the labels paid for that."""
        return None

    @property
    def possible(self) -> Interval:
        """Where the true numbers must lie, by the question alone."""
        return ANYWHERE

    def shown(self, result: Result) -> tuple[int | float, ...]:
        """The numbers that people see: each within its interval."""
        ends = zip(result.counts or (), result.intervals or (), strict=True)
        return tuple(min(max(number, low), high) for number, (low, high) in ends)

    @property
    def together(self) -> bool:
        """Whether its intervals hold for all numbers together."""
        return False

    def notes(self, _intervals: Sequence[Interval] | None) -> tuple[str, ...]:
        """What else to know about an answer with these intervals."""
        return ()

    @abstractmethod
    def words(self, names: Names) -> Words:
        """How it reads, in the words for this dataset's columns."""

    def clipped(self, declared: DeclaredValues) -> dict[str, Bounds]:
        """The bounds that its columns are clipped to."""
        bounds, clipped = declared.bounds, self.columns()
        if not all(name.isidentifier() for name in clipped | columns_of(self.filter)):
            clipped = clipped_columns(clipped, self.filter)
        return {name: bounds[name] for name in sorted(clipped) if name in bounds}

    def caption(self, unit: str, declared: DeclaredValues) -> str:
        """One sentence: what is counted, the filter, and every bound and limit."""
        names, clipped = Names(unit, declared), self.clipped(declared)
        return caption(
            self.words(names), names, self.filter, columns=self.columns(), clipped=clipped
        )

    def offered(self, unit: str, declared: DeclaredValues) -> tuple[str, ...]:
        """What can be asked to see how much bounds and limits change, for a plan."""
        return offered(self.words(Names(unit, declared)), self.clipped(declared))

    @property
    def headings(self) -> tuple[str, ...]:
        """What the labels are called."""
        return ("what",)

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """Names of the fields, in the order in which values without a name are taken."""
        return tuple(help_of(cls))

    def to_json(self) -> dict[str, Any]:
        """Plain data with every field, so that a new default changes no old query. Only an ε that
        was not asked for is left out."""
        data: dict[str, Any] = {"kind": self.kind}
        for name in self.field_names():
            if name == "epsilon" and self.epsilon is None:
                continue
            data[name] = field_to_json(name, getattr(self, name))
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The query that plain data describes; fields that are left out have their defaults."""
        values = {name: value for name, value in data.items() if name != "kind"}
        require_known(cls.kind, values, cls.field_names())
        if isinstance(values.get("categories"), list | tuple):
            values["categories"] = tuple(map(label_from_json, values["categories"]))
        return cls.from_fields(values)

    @classmethod
    def from_fields(cls, values: Mapping[str, Any]) -> Self:
        """Made from its fields; InvalidInput if one is not known or is missing."""
        require_known(cls.kind, values, cls.field_names())
        needed = [
            f"{name} ({one.words[:1].lower()}{one.words[1:].rstrip('.')})"
            for name, one in help_of(cls).items()
            if one.needed and name not in values
        ]
        if needed:
            raise InvalidInput(f"{cls.kind} needs {' and '.join(needed)}")
        return cls(**values)


def require_known(what: str, values: Iterable[str], known: Sequence[str]) -> None:
    """Refuses fields that something does not have."""
    for name in values:
        if name not in known:
            hint = did_you_mean(name, known) or f"; it has {', '.join(known)}"
            raise InvalidInput(f"{what} has no {name!s:.60}{hint}")


def counts_with(paid: Paid, contribution_limit: int, per_key_limit: int) -> KnownCounts:
    """Noisy counts of a known domain."""
    return KnownCounts(
        coordinate=coordinate_of(paid),
        contribution_limit=contribution_limit,
        per_key_limit=per_key_limit,
    )


def thresholded(
    paid: Paid, contribution_limit: int, per_key_limit: int, *, truncated: bool = False
) -> ThresholdedCounts:
    """Noisy counts of an unknown domain, of which those above a threshold are released."""
    return ThresholdedCounts(
        coordinate=coordinate_of(paid),
        delta=delta_of_leak(paid),
        contribution_limit=contribution_limit,
        per_key_limit=per_key_limit,
        truncated=truncated,
    )


def coordinate_of(paid: Paid) -> Coordinate:
    """What one noisy number is paid with."""
    guarantee = paid[COUNT]
    assert isinstance(guarantee, Coordinate)
    return guarantee


def epsilon_of_selection(paid: Paid) -> float:
    """ε of one selection."""
    guarantee = paid[SELECT]
    assert isinstance(guarantee, BoundedRange)
    return guarantee.epsilon


def delta_of_leak(paid: Paid) -> float:
    """δ of an unknown domain."""
    guarantee = paid[LEAK]
    assert isinstance(guarantee, ApproximateDP)
    return guarantee.delta
