"""What can be asked. Every query is a frozen description that round-trips through JSON.

A query names columns, limits and, if it wants to, the items of the tariff that pay for it
(`select`, `count`, `leak`). Which data it is asked of, and by whom, is not part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

from farthing.engine.filters import (
    Filter,
    Value,
    columns_of,
    filter_from,
    filter_to_json,
    require_column,
    require_value,
    value_from_json,
    value_to_json,
)
from farthing.errors import InvalidInput, require_choice, require_count, require_real

#: A label: one value, or a tuple with one value for each column of the key.
Label: TypeAlias = Value | tuple[Value, ...]

#: Decimal places of fixed-point values stay below this, so that they fit 64 bits.
LARGEST_PLACES = 9
LARGEST_BOUND = 1 << 40
LARGEST_REPEATS = 64
LARGEST_K = 100_000
#: Limits per unit, and candidates, stay below this: engines count with 64 bits.
LARGEST_LIMIT = 10**9
#: Mechanisms that release labels and counts in one step.
AT_ONCE = ("noise", "truncated")


@dataclass(frozen=True, slots=True, kw_only=True)
class CountQuery:
    """How many units have a row that passes the filter.

    With per_key_limit above 1: how many rows, of which each unit contributes at most that many.
    """

    where: Filter | None = None
    per_key_limit: int = 1
    count: str | None = None
    repeats: int = 1
    kind: ClassVar[str] = "count"

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramQuery:
    """How many units (or rows, as in a count) have each label.

    With `categories` the labels are those, present or not. Without, they are discovered: a label
    is released if its noisy count reaches a threshold.
    """

    by: tuple[str, ...]
    categories: tuple[Label, ...] | None = None
    where: Filter | None = None
    contribution_limit: int = 1
    per_key_limit: int = 1
    count: str | None = None
    leak: str | None = None
    repeats: int = 1
    kind: ClassVar[str] = "histogram"

    def __post_init__(self) -> None:
        _check(self)
        if self.categories is None and self.repeats > 1:
            raise InvalidInput("repeats needs categories: a thresholded histogram is drawn once")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKQuery:
    """The k labels with about the largest counts, in order, with counts if wanted.

    `mechanism` is "gumbel" (select labels, then count the selected ones), "noise" (noisy counts
    of everything, the largest of them) or "truncated" (the same with Gaussian noise that has no
    tails, for an unknown domain). An unknown domain is looked at through its `candidates`
    largest counts. `contribution_limit` None: a unit may have any number of labels. `use_order`
    fits Gaussian counts to the discovered order (CountMLE), which costs nothing.
    """

    by: tuple[str, ...]
    k: int
    categories: tuple[Label, ...] | None = None
    where: Filter | None = None
    counts: bool = True
    mechanism: str = "gumbel"
    candidates: int | None = None
    contribution_limit: int | None = None
    per_key_limit: int = 1
    use_order: bool = False
    select: str | None = None
    count: str | None = None
    leak: str | None = None
    repeats: int = 1
    kind: ClassVar[str] = "top_k"

    def __post_init__(self) -> None:
        _check(self)
        if self.k > LARGEST_K:
            raise InvalidInput(f"k must be at most {LARGEST_K}, got {self.k}")
        require_choice("mechanism", self.mechanism, ("gumbel", *AT_ONCE))
        for name in ("counts", "use_order"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(f"{name} must be True or False, got {getattr(self, name)!r:.60}")
        if self.categories is not None and self.k > len(self.categories):
            raise InvalidInput(
                f"k must be at most the number of categories, got k = {self.k} "
                f"and {len(self.categories)} categories"
            )
        if self.candidates is not None and self.candidates < self.k:
            raise InvalidInput(
                f"candidates must be at least k, got {self.candidates} and k = {self.k}"
            )
        if self.mechanism in AT_ONCE:
            self._check_at_once()
        if self.use_order and (not self.counts or self.repeats > 1):
            raise InvalidInput("use_order is for counts that are drawn once")
        if self.repeats > 1 and not self.counts:
            raise InvalidInput("repeats makes counts more accurate; without counts it must be 1")

    def _check_at_once(self) -> None:
        name = self.mechanism
        if self.contribution_limit is None:
            raise InvalidInput(f'mechanism "{name}" needs a contribution_limit')
        if not self.counts or self.repeats > 1:
            raise InvalidInput(f'mechanism "{name}" draws its counts once and releases them')
        if self.use_order:
            raise InvalidInput(f'mechanism "{name}" discovers no order; use_order needs "gumbel"')
        if name == "truncated" and self.categories is not None:
            raise InvalidInput('mechanism "truncated" is for an unknown domain, without categories')


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileQuery:
    """A value of a numeric column near a quantile, between `lower` and `upper`.

    Values are kept to `places` decimals and moved to the nearest bound. Of each unit
    `contribution_limit` different values count, each at most `per_key_limit` times.
    """

    column: str
    probability: float
    lower: int | float
    upper: int | float
    places: int = 0
    where: Filter | None = None
    contribution_limit: int = 1
    per_key_limit: int = 1
    select: str | None = None
    kind: ClassVar[str] = "quantile"

    def __post_init__(self) -> None:
        _check(self)
        require_real("probability", self.probability, above=0, below=1)
        _check_bounds(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SumQuery:
    """The sum of a numeric column, to `places` decimals.

    The values of a unit are added up and the sum is moved to the nearest of `lower` and `upper`;
    the answer is about the sum of these.
    """

    column: str
    lower: int | float
    upper: int | float
    places: int = 0
    where: Filter | None = None
    count: str | None = None
    repeats: int = 1
    kind: ClassVar[str] = "sum"

    def __post_init__(self) -> None:
        _check(self)
        _check_bounds(self)
        if scaled(self.lower, self.places) == scaled(self.upper, self.places) == 0:
            raise InvalidInput("lower and upper must not both be 0: the sum would always be 0")


Query: TypeAlias = CountQuery | HistogramQuery | TopKQuery | QuantileQuery | SumQuery
KINDS: dict[str, type[Query]] = {
    query.kind: query for query in (CountQuery, HistogramQuery, TopKQuery, QuantileQuery, SumQuery)
}


def query_to_json(query: Query) -> dict[str, Any]:
    """Plain data with every field, so that a default that changes later changes no old query."""
    data: dict[str, Any] = {"kind": query.kind}
    for field in fields(query):
        value = getattr(query, field.name)
        if field.name == "where":
            value = filter_to_json(value)
        elif field.name == "categories" and value is not None:
            value = [_label_to_json(label) for label in value]
        elif field.name == "by":
            value = list(value)
        data[field.name] = value
    return data


def query_from(given: object) -> Query:
    """A query as it is, or from its plain data."""
    return given if isinstance(given, Query) else query_from_json(given)


def query_from_json(data: object) -> Query:
    """The query that this plain data describes; fields that are left out have their defaults."""
    if not isinstance(data, Mapping):
        raise InvalidInput(f"a query must be a table of fields, got {type(data).__name__}")
    kind = require_choice("kind", data.get("kind"), KINDS)
    made = KINDS[kind]
    known = {field.name for field in fields(made)}
    unknown = set(data) - known - {"kind"}
    if unknown:
        raise InvalidInput(f"a {kind} query has no {', '.join(sorted(map(str, unknown)))}")
    values = {name: value for name, value in data.items() if name != "kind"}
    if values.get("categories") is not None:
        values["categories"] = _labels_from_json(values["categories"])
    try:
        return made(**values)
    except TypeError:
        required = {field.name for field in fields(made) if field.default is MISSING}
        needed = required - set(values)
        raise InvalidInput(f"a {kind} query is not complete: {', '.join(sorted(needed))}") from None


def columns_used(query: Query) -> frozenset[str]:
    """Every column that a query looks at."""
    own = query.by if isinstance(query, HistogramQuery | TopKQuery) else ()
    value = (query.column,) if isinstance(query, QuantileQuery | SumQuery) else ()
    return frozenset((*own, *value)) | columns_of(query.where)


def scaled(bound: int | float, places: int) -> int:
    """A bound in units of the last decimal place; it must be a whole number of them."""
    exact = Fraction(str(bound)) * 10**places
    if exact.denominator != 1:
        raise InvalidInput(f"a bound must have at most {places} decimal places, got {bound!r}")
    return int(exact)


def _check(query: Any) -> None:
    """What all queries share, checked the same way everywhere."""
    names = {field.name for field in fields(query)}

    def put(name: str, value: object) -> None:
        object.__setattr__(query, name, value)

    put("where", filter_from(query.where))
    for name in ("k", "per_key_limit", "repeats", "contribution_limit", "candidates"):
        if name in names and getattr(query, name) is not None:
            put(name, require_count(name, getattr(query, name), at_least=1))
            if getattr(query, name) > LARGEST_LIMIT:
                raise InvalidInput(f"{name} must be at most {LARGEST_LIMIT}")
    if "repeats" in names and query.repeats > LARGEST_REPEATS:
        raise InvalidInput(f"repeats must be at most {LARGEST_REPEATS}, got {query.repeats}")
    unlimited = "contribution_limit" in names and query.contribution_limit is None
    if unlimited and not isinstance(query, TopKQuery):
        raise InvalidInput("contribution_limit must be a whole number of at least 1, got None")
    for name in ("select", "count", "leak"):
        item = getattr(query, name) if name in names else None
        if item is not None and (not isinstance(item, str) or not item):
            raise InvalidInput(f"{name} must name an item of the tariff, got {item!r:.60}")
    if "by" in names:
        put("by", _key(query.by))
    if "column" in names:
        require_column(query.column)
    if "categories" in names and query.categories is not None:
        put("categories", _categories(query.categories, len(query.by)))


def _key(by: object) -> tuple[str, ...]:
    names = (by,) if isinstance(by, str) else by
    if not isinstance(names, list | tuple) or not names:
        raise InvalidInput(f"by must name at least one column, got {by!r:.60}")
    if len(set(names)) != len(names):
        raise InvalidInput("by must name different columns")
    return tuple(require_column(name) for name in names)


def _categories(given: object, width: int) -> tuple[Label, ...]:
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        raise InvalidInput(f"categories must be a list of labels, got {type(given).__name__}")
    labels: list[Label] = []
    for entry in given:
        label = tuple(entry) if isinstance(entry, list | tuple) else entry
        parts = label if isinstance(label, tuple) else (label,)
        if len(parts) != width or (width > 1) != isinstance(label, tuple):
            raise InvalidInput(f"a category needs one value for each of the {width} columns of by")
        if any(isinstance(require_value(part), float) for part in parts):
            raise InvalidInput("a category is text, a whole number, a truth value or a date")
        labels.append(label)
    if not labels:
        raise InvalidInput("categories must list at least one label, got none")
    if len({(type(label), label) for label in labels}) != len(labels):
        raise InvalidInput("categories must be different from one another")
    return tuple(labels)


def _check_bounds(query: QuantileQuery | SumQuery) -> None:
    places = require_count("places", query.places)
    if places > LARGEST_PLACES:
        raise InvalidInput(f"places must be at most {LARGEST_PLACES}, got {places}")
    for name in ("lower", "upper"):
        bound = require_real(name, getattr(query, name))
        if bound.is_integer():  # 0 and 0.0 are one question
            object.__setattr__(query, name, int(bound))
    lower, upper = scaled(query.lower, places), scaled(query.upper, places)
    if lower > upper:
        raise InvalidInput(f"lower must be at most upper, got {query.lower} and {query.upper}")
    if max(abs(lower), abs(upper)) > LARGEST_BOUND:
        raise InvalidInput("lower and upper must be at most 2^40 in units of the last place")


def _label_to_json(label: Label) -> Any:
    if isinstance(label, tuple):
        return [value_to_json(part) for part in label]
    return value_to_json(label)


def _labels_from_json(labels: object) -> tuple[Label, ...]:
    if not isinstance(labels, list | tuple):
        raise InvalidInput("categories must be a list of labels")
    return tuple(
        tuple(value_from_json(part) for part in label)
        if isinstance(label, list | tuple)
        else value_from_json(label)
        for label in labels
    )
