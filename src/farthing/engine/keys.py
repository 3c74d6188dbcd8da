"""Keys: what rows are grouped by. A column, or one of a few functions of a column.

    "country"                            the column itself
    Period("day", "month")               the month that a date or a time lies in
    Bins("salary", (0, 1e6, 5e6))        the range of a number: [0, 1000000), [1000000, 5000000)

The same as text, for plain data, SQL and people:

    "country"    "month(day)"    "bins(salary, 0, 1000000, 5000000)"    year("Release Date")

A name may stand in double quotes, as in SQL and in conditions; a quote within it is doubled.
A name that would be read wrongly is written as a table, {"column": "month(day)"}, and is
`Named("month(day)")` from then on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

from farthing.engine.filters import require_column
from farthing.errors import InvalidInput, require_choice, require_real
from farthing.schema import BOOLEAN, DATE, KEYS, NUMBERS, TEXT, TIMESTAMP, Bounds, Schema

#: The periods, from short to long.
PERIODS = ("hour", "day", "week", "month", "quarter", "year")
MOST_BINS = 1000
_BINS = "bins"
_BEYOND = 1 << 63
_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")
_NAME = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^,]*?))\s*(?:,(.*))?', re.DOTALL)
_CALL = re.compile(rf"({'|'.join((*PERIODS, _BINS))})\((.*)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Period:
    """The hour, day, week (from Monday), month, quarter or year of a date or a time.

    A label is the first day of the period; of an hour its first moment.
    """

    column: str
    period: str

    def __post_init__(self) -> None:
        require_column(self.column)
        require_choice("a period", self.period, PERIODS)

    def __str__(self) -> str:
        return f"{self.period}({self.column})"


@dataclass(frozen=True, slots=True)
class Bins:
    """The range between two neighbouring edges in which a number lies; outside it is missing.

    A range holds its lower edge and not its upper one. The last one holds both if it ends at the
    declared upper bound of the column, to which larger numbers are moved.
    """

    column: str
    edges: tuple[int | float, ...]

    def __post_init__(self) -> None:
        require_column(self.column)
        given: Any = self.edges
        if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
            raise InvalidInput(f"edges of bins must be a list of numbers, got {given!r:.60}")
        edges = tuple(_edge(edge) for edge in given)
        if not 2 <= len(edges) <= MOST_BINS + 1:
            raise InvalidInput(f"bins need 2 to {MOST_BINS + 1} edges, got {len(edges)}")
        if any(low >= high for low, high in pairwise(edges)):
            raise InvalidInput("the edges of bins must grow")
        object.__setattr__(self, "edges", edges)

    def labels(self, bounds: Bounds) -> tuple[str, ...]:
        """The ranges as text, in order, of a column with these declared bounds."""
        texts = [f"[{low}, {high})" for low, high in pairwise(self.edges)]
        return (*texts[:-1], texts[-1][:-1] + "]") if self.closed(bounds) else tuple(texts)

    def closed(self, bounds: Bounds) -> bool:
        """Whether the last range holds its upper edge."""
        return bounds[1] == self.edges[-1]

    def __str__(self) -> str:
        return f"{_BINS}({', '.join(map(str, (self.column, *self.edges)))})"


@dataclass(frozen=True, slots=True)
class Named:
    """A column whose name as a text would be read as something else."""

    column: str

    def __post_init__(self) -> None:
        require_column(self.column)

    def __str__(self) -> str:
        return self.column


Key: TypeAlias = str | Period | Bins | Named


def bins(column: str, edges: Iterable[float]) -> Bins:
    """The ranges between these edges, as a key."""
    return Bins(column, tuple(edges))


def hour(column: str) -> Period:
    """The hour of a time, as a key."""
    return Period(column, "hour")


def day(column: str) -> Period:
    """The day of a date or a time, as a key."""
    return Period(column, "day")


def week(column: str) -> Period:
    """The week of a date or a time, from Monday, as a key."""
    return Period(column, "week")


def month(column: str) -> Period:
    """The month of a date or a time, as a key."""
    return Period(column, "month")


def quarter(column: str) -> Period:
    """The quarter of a date or a time, as a key."""
    return Period(column, "quarter")


def year(column: str) -> Period:
    """The year of a date or a time, as a key."""
    return Period(column, "year")


def key_from(given: object) -> Key:
    """A key from its form, its text, or plain data for names that text cannot hold."""
    if isinstance(given, Period | Bins | Named):
        return given
    if isinstance(given, Mapping):
        return _from_mapping(given)
    name = require_column(given)
    call = _CALL.fullmatch(name)
    if call is None:
        return unquoted(name)
    if call[1] != _BINS:
        return Period(unquoted(call[2].strip()), call[1])
    quoted, bare, edges = _NAME.fullmatch(call[2]).groups()  # type: ignore[union-attr] # any text
    column = bare if quoted is None else quoted.replace('""', '"')
    given = [] if edges is None else edges.split(",")
    return Bins(column, tuple(_number(edge.strip()) for edge in given))


def unquoted(name: str) -> str:
    """The name of a column that may stand in double quotes."""
    match = _NAME.fullmatch(name)
    alone = match is not None and match[1] is not None and match[3] is None
    return match[1].replace('""', '"') if match is not None and alone else name


def key_to_json(key: Key) -> Any:
    """Plain data that `key_from` reads back: text if it is unambiguous, else a table."""
    if _says(str(key), key):
        return str(key)
    match key:
        case Period(column, period):
            return {"column": column, "period": period}
        case Bins(column, edges):
            return {"column": column, _BINS: list(edges)}
    return {"column": str(key)}


def _says(text: str, key: Key) -> bool:
    """Whether a text is read as this key."""
    try:
        return key_from(text) == key
    except InvalidInput:
        return False


def _from_mapping(given: Mapping[Any, Any]) -> Key:
    match dict(given):
        case {"column": column, **nothing} if not nothing:
            name = require_column(column)
            return name if _says(name, name) else Named(name)
        case {"column": column, "period": period, **nothing} if not nothing:
            return Period(column, period)
        case {"column": column, "bins": edges, **nothing} if not nothing:
            return Bins(column, edges)
    raise InvalidInput("a key is a table with column, and period or bins if it is a function of it")


def renamed_key(key: Key, rename: Callable[[str], str]) -> Key:
    """The key with another name for its column."""
    if isinstance(key, str):
        return rename(key)
    column = rename(key.column)
    if isinstance(key, Named):
        return key if column == key.column else column
    return replace(key, column=column)


def column_of(key: Key) -> str:
    """The column that a key looks at."""
    return key if isinstance(key, str) else key.column


def kind_of(key: Key, schema: Schema) -> str:
    """The kind of a key's labels; InvalidInput if its column cannot be grouped like that."""
    name = column_of(key)
    kind = schema[name].kind
    match key:
        case Bins():
            require_kind(name, kind, NUMBERS, "a column with bins")
            return TEXT
        case Period():
            require_kind(name, kind, (DATE, TIMESTAMP), f"a column with a {key.period}")
            if key.period == "hour" and kind == DATE:
                raise InvalidInput(f"{name} is {kind}: a date has no hour")
            return TIMESTAMP if key.period == "hour" else DATE
    require_kind(name, kind, KEYS, "a key")
    return kind


def domain_of(key: Key, schema: Schema) -> tuple[str | int, ...] | None:
    """Every label that a key can have, where the question or the owner lists them, or its kind has
    only two."""
    match key:
        case Bins(column):
            return key.labels((schema[column].lower, schema[column].upper))
        case Period():
            return None
    own = schema[column_of(key)]
    return (False, True) if own.kind == BOOLEAN else own.categories


def order_of(key: Key, schema: Schema) -> Callable[[Any], Any] | None:
    """What the labels of a key are put in order by; None if they have no order of their own.

    Periods, dates, times, bins, and numbers with a bound that is declared or computed (weekdays,
    ages, years) have one. Names, and numbers that may be names, have none.
    """
    if isinstance(key, Bins):
        both = key.labels((None, None)), key.labels((None, key.edges[-1]))
        places = {label: i for labels in both for i, label in enumerate(labels)}
        return lambda label: places.get(label, len(places))
    column = schema[column_of(key)]
    bounded = column.kind in NUMBERS and (column.lower, column.upper) != (None, None)
    return (lambda label: label) if bounded or column.kind in (DATE, TIMESTAMP) else None


def require_kind(name: str, kind: str, allowed: tuple[str, ...], what: str) -> None:
    """The column can be used like this, or InvalidInput."""
    if kind not in allowed:
        raise InvalidInput(f"{what} must be {' or '.join(allowed)}, but {name} is {kind}")


def _number(text: str) -> int | float:
    """An edge as it is written; whole numbers keep all of their digits."""
    try:
        return int(text) if _WHOLE.fullmatch(text) else float(text)
    except ValueError:
        raise InvalidInput("bins are written bins(column, edge, edge, …)") from None


def _edge(value: Any) -> int | float:
    """0 and 0.0 are one edge. Whole numbers beyond 64 bits become floats."""
    number = require_real("an edge of bins", value)
    whole = value if isinstance(value, int) else int(number)
    return whole if whole == value and abs(whole) < _BEYOND else number
