"""What the owner declares about the columns of a dataset: public, fixed, and kept in the ledger.

Questions are checked against the schema, never against the rows, and rows are read through it by
total functions. One rule for every question and engine:

    a value that does not fit its kind, or is not among the categories, is missing
    a number outside `lower` and `upper` is clipped to the nearest bound
    a filter compares the number as it is stored, and a unit is who is stored

A column that is not declared does not exist for anybody who asks.

    integer    whole numbers of 64 bits
    real       64-bit floats; not a number is missing
    decimal    numbers with `places` decimals, exact, of at most 18 digits
    text       Unicode, compared byte by byte
    boolean
    date       days of the years 1 to 9999; a timestamp is read as its day in `time_zone`
    timestamp  what a clock in `time_zone` shows, to the microsecond, in the years 1 to 9999. Where
               clocks are set back, two moments show the same time and are one value; times that
               are stored without a zone are taken as they are

A schema file is TOML with one block for each column:

    [[columns]]
    name = "age"
    kind = "integer"
    lower = 0
    upper = 120

    [[columns]]
    name = "country_code"
    kind = "text"
    title = "country"
    plural = "countries"
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias
from zoneinfo import available_timezones

from farthing.errors import InvalidInput, did_you_mean, require_choice, require_count, require_real

KINDS = ("integer", "real", "decimal", "text", "boolean", "date", "timestamp")
INTEGER, REAL, DECIMAL, TEXT, BOOLEAN, DATE, TIMESTAMP = KINDS
#: Kinds whose values can be labels or units: equal means equal on every engine.
KEYS = (INTEGER, DECIMAL, TEXT, BOOLEAN, DATE)
NUMBERS = (INTEGER, REAL, DECIMAL)
#: The unit where each row is one; a column of this name cannot be the unit.
ROW = "row"
#: A decimal has at most this many digits, so that it is a 64-bit number of its last place.
DIGITS = 18

#: Names in the database of time zones that are no zone, or another one on every machine.
_NO_PLACE = ("localtime", "Factory", "posixrules", "leapseconds", "tzdata.zi", "zone.tab")

#: A value of a column; a date may be a datetime, which is a time of no zone.
Value: TypeAlias = str | int | float | bool | Decimal | date | None
#: Titles are words in a sentence, so they are short.
LONGEST_TITLE = 40
_TITLES = ("title", "plural", "verb")
#: The declared `lower` and `upper` of a column.
Bounds: TypeAlias = tuple[int | float | None, int | float | None]


@dataclass(frozen=True, slots=True)
class Lookup:
    """A public table with a key, from which a column is joined to the private rows.

    `table` is where it is, on the engine of the private rows: the path of a file (with #name for a
    table in it), or a table of the same PostgreSQL database or of Spark's catalogue. A row gets
    what the table says in `column` (None: of the declared column's name) where its `key` equals the
    row's own column `by`, or what is computed from the row: by="left(zip, 3)". Several of each are
    compared together. The key must be unique; what the table has twice is missing.
    """

    table: str
    by: str | tuple[str, ...]
    key: str | tuple[str, ...]
    column: str | None = None

    def __post_init__(self) -> None:
        for name in ("by", "key"):
            several = getattr(self, name)
            if isinstance(several, list | tuple):
                one = several[0] if len(several) == 1 else tuple(several)
                object.__setattr__(self, name, one)
        by, keys, more = self.wanted, self.keys, () if self.column is None else (self.column,)
        if not all(isinstance(text, str) and text for text in (self.table, *by, *keys, *more)):
            raise InvalidInput(f"a lookup has texts as table, by, key, column, got {self!r:.120}")
        if not 0 < len(by) == len(keys) == len(set(keys)):
            raise InvalidInput(
                f"a lookup compares each of by with one column in key, got {by!r:.60} and "
                f"{keys!r:.60}"
            )
        if self.column in keys:
            raise InvalidInput(f"the key {self.column!r:.60} adds nothing to the column it equals")

    @property
    def wanted(self) -> tuple[str, ...]:
        """What of a row is looked up: columns, or expressions of them."""
        return self.by if isinstance(self.by, tuple) else (self.by,)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the table that it is compared with."""
        return self.key if isinstance(self.key, tuple) else (self.key,)

    def to_json(self) -> dict[str, Any]:
        """Plain data: what was declared."""
        given = {"table": self.table, "by": _plain(self.by), "key": _plain(self.key)}
        return given if self.column is None else given | {"column": self.column}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its kind and, where the owner says so, which values it can have.

    `lower` and `upper` are for numbers, `categories` for kinds that can be labels, `places` for
    decimals, `time_zone` for times, and for dates that are stored as times. A text column with
    `parts` is made from other columns as they are stored: two rows have the same value if they have
    the same in each, and where one of them is missing it is missing. A column with a `lookup` comes
    from a public table. A column with an `expression` is computed from others: "price * quantity".

    `title` and `plural` are what captions call it: "article" and "articles". Without a plural it
    is the title and an s. `verb` is what units do with it: "read by" gives "the articles read by
    the most members". Titles are only words: they change no question, answer or price.
    """

    name: str
    kind: str
    places: int | None = None
    lower: int | float | None = None
    upper: int | float | None = None
    categories: tuple[str | int, ...] | None = None
    time_zone: str | None = None
    parts: tuple[str, ...] | None = None
    lookup: Lookup | None = None
    expression: str | None = None
    title: str | None = None
    plural: str | None = None
    verb: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidInput(f"a column must be named by text, got {self.name!r:.60}")
        require_choice(f"the kind of {self.name!r:.60}", self.kind, KINDS)
        self._check_places()
        self._check_bounds()
        self._check_categories()
        self._check_parts()
        self._check_lookup()
        self._check_expression()
        self._check_titles()
        if self.time_zone is not None:
            self._only_for("time_zone", DATE, TIMESTAMP)
            if self.time_zone in _NO_PLACE or self.time_zone not in available_timezones():
                raise InvalidInput(f"there is no time zone {self.time_zone!r:.60}")

    def _check_places(self) -> None:
        if self.kind == DECIMAL:
            places = require_count(f"places of {self.name!r:.60}", self.places)
            if places > DIGITS:
                raise InvalidInput(f"places must be at most {DIGITS}, got {places}")
        elif self.places is not None:
            self._only_for("places", DECIMAL)

    def _check_bounds(self) -> None:
        given = [bound for bound in (self.lower, self.upper) if bound is not None]
        if given:
            self._only_for("lower and upper", *NUMBERS)
        for bound in given:
            require_real(f"a bound of {self.name!r:.60}", bound)
        if len(given) == 2 and given[0] > given[1]:
            raise InvalidInput(f"lower must be at most upper, got {given[0]} and {given[1]}")

    def _check_categories(self) -> None:
        if self.categories is None:
            return
        self._only_for("categories", TEXT, INTEGER)
        fits = str if self.kind == TEXT else int
        labels = tuple(self.categories)
        if not labels or not all(type(label) is fits for label in labels):
            raise InvalidInput(f"categories of {self.name!r:.60} must be a list of {self.kind}")
        if len(set(labels)) != len(labels):
            raise InvalidInput(f"categories of {self.name!r:.60} must differ from one another")
        object.__setattr__(self, "categories", labels)

    def _check_parts(self) -> None:
        if self.parts is None:
            return
        self._only_for("parts", TEXT)
        parts = tuple(self.parts)
        if len(set(parts)) < 2 or len(set(parts)) != len(parts) or self.categories is not None:
            raise InvalidInput(f"parts of {self.name!r:.60} must be two or more different columns")
        object.__setattr__(self, "parts", parts)

    def _check_lookup(self) -> None:
        if self.lookup is None:
            return
        if self.parts is not None:
            raise InvalidInput(f"{self.name!r:.60} has parts, so it cannot be looked up")
        if self.lookup.column is None:
            object.__setattr__(self, "lookup", replace(self.lookup, column=self.name))

    def _check_expression(self) -> None:
        if self.expression is None:
            return
        if not isinstance(self.expression, str) or not self.expression:
            raise InvalidInput(f"the expression of {self.name!r:.60} must be a text")
        if self.parts is not None or self.lookup is not None:
            raise InvalidInput(f"{self.name!r:.60} is computed: it has no parts and no lookup")

    def _check_titles(self) -> None:
        for name in _TITLES:
            text = getattr(self, name)
            if text is None:
                continue
            if self.title is None:
                raise InvalidInput(f"{self.name!r:.60} has a {name} and no title")
            words = isinstance(text, str) and 0 < len(text) <= LONGEST_TITLE
            if not words or text != text.strip() or not text.isprintable() or "`" in text:
                raise InvalidInput(
                    f"the {name} of {self.name!r:.60} must be 1 to {LONGEST_TITLE} printable "
                    "characters, without backquotes and without spaces around them"
                )

    @property
    def is_stored(self) -> bool:
        """Whether it is a column of the rows themselves."""
        return self.parts is None and self.lookup is None and self.expression is None

    @property
    def untitled(self) -> Column:
        """The same column without its titles."""
        return replace(self, title=None, plural=None, verb=None)

    def _only_for(self, what: str, *kinds: str) -> None:
        if self.kind not in kinds:
            raise InvalidInput(f"{what} of {self.name!r:.60} is only for {' and '.join(kinds)}")

    def to_json(self) -> dict[str, Any]:
        """Plain data: the name, the kind, and what was declared besides."""
        given = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {name: _plain(value) for name, value in given if value is not None}


@dataclass(frozen=True, slots=True)
class DeclaredValues:
    """What captions say of columns: their bounds, how many labels are declared, their titles, and
    whether one of them is called row."""

    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    labels: Mapping[str, int] = field(default_factory=dict)
    titled: Mapping[str, Column] = field(default_factory=dict)
    has_row: bool = False


@dataclass(frozen=True)
class Schema:
    """The columns that exist for analysts, in order."""

    columns: tuple[Column, ...]
    _by_name: Mapping[str, Column] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        columns = tuple(self.columns)
        if not columns:
            raise InvalidInput("a schema needs at least one column, got none")
        names = [column.name for column in columns]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidInput(f"the column {twice!r:.60} is declared twice")
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "_by_name", dict(zip(names, columns, strict=True)))
        for column in columns:
            for part in map(self.__getitem__, column.parts or ()):
                self._require_stored_key("a part", part)
            for name in () if column.lookup is None else column.lookup.wanted:
                if name in self or name.isidentifier():  # else an expression, checked by the engine
                    self._require_stored_key("what is looked up", self[name])
        lookups = [column.lookup for column in columns if column.lookup is not None]
        if len(set(lookups)) != len(lookups):
            raise InvalidInput("a column of a public table is looked up twice by the same column")

    def _require_stored_key(self, what: str, column: Column) -> None:
        """The join key must be a stored column whose equality is the same on every engine."""
        if column.kind not in KEYS or not column.is_stored:
            raise InvalidInput(
                f"{what} must be {' or '.join(KEYS)} and a column of the rows, "
                f"got {column.name!r:.60}"
            )

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        """The kind of each column."""
        return {column.name: column.kind for column in self.columns}

    @cached_property
    def declared(self) -> DeclaredValues:
        """Bounds, labels and titles of the columns that have them."""
        pairs = {column.name: (column.lower, column.upper) for column in self.columns}
        return DeclaredValues(
            {name: pair for name, pair in pairs.items() if pair != (None, None)},
            {c.name: len(c.categories) for c in self.columns if c.categories},
            {c.name: c for c in self.columns if c.title is not None},
            ROW in self,
        )

    @property
    def untitled(self) -> Schema:
        """The same schema without titles: what every question depends on."""
        return Schema(tuple(column.untitled for column in self.columns))

    def __getitem__(self, name: str) -> Column:
        self.require(name)
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def require(self, *names: str) -> None:
        """Every one of these columns is declared, or InvalidInput."""
        unknown = sorted(set(names) - set(self._by_name))
        if unknown:
            declared = ", ".join(self.kinds)
            hint = did_you_mean(unknown[0], self.kinds)
            raise InvalidInput(f"there is no column {unknown[0]:.60}; there are {declared}{hint}")

    def to_json(self) -> list[dict[str, Any]]:
        """Plain data that `schema_from_json` reads."""
        return [column.to_json() for column in self.columns]


def schema_from_json(data: object) -> Schema:
    """A schema from plain data: a list of tables with name, kind and what is declared besides."""
    if isinstance(data, Mapping | str) or not isinstance(data, Iterable):
        raise InvalidInput("a schema must be a list of columns")
    return Schema(tuple(_column(entry) for entry in data))


def _column(entry: object) -> Column:
    given = _table("a column", Column, entry, {"name", "kind"})
    for name in ("categories", "parts"):
        if isinstance(given.get(name), list):
            given[name] = tuple(given[name])
    lookup = given.get("lookup")
    if lookup is not None:
        given["lookup"] = Lookup(**_table("a lookup", Lookup, lookup, {"table", "by", "key"}))
    return Column(**given)


def _table(what: str, of: type[Column | Lookup], entry: object, needed: set[str]) -> dict[str, Any]:
    """The fields of a column or a lookup, with all that are needed and no other."""
    known = {f.name for f in fields(of)}
    if not isinstance(entry, Mapping) or not needed <= set(entry) <= known:
        raise InvalidInput(f"{what} has {', '.join(sorted(known))}, got {entry!r:.120}")
    return dict(entry)


def _plain(value: Any) -> Any:
    if isinstance(value, Lookup):
        return value.to_json()
    return list(value) if isinstance(value, tuple) else value


def read_schema(path: str | os.PathLike[str]) -> Schema:
    """A schema from a TOML file with a list [[columns]]."""
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{os.fspath(path)} is not a readable schema: {error}") from None
    if set(data) != {"columns"}:
        raise InvalidInput(f"{os.fspath(path)} must have one list [[columns]]")
    return schema_from_json(data["columns"])


def columns_to_toml(columns: tuple[Column, ...]) -> str:
    """Columns as TOML that `read_schema` reads."""
    blocks = []
    for column in columns:
        lines = [f"{key} = {_toml(value)}" for key, value in column.to_json().items()]
        blocks.append("\n".join(["[[columns]]", *lines]))
    return "\n\n".join(blocks) + "\n"


def _toml(value: object) -> str:
    """Text and lists as in JSON, which TOML reads the same; DEL is the one exception."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
