"""Captions: a question as one sentence that names the filter, every bound and every limit.

A kind of question says in `Words` what it is about. The names of columns become words here: the
owner's title where there is one, else the name itself in backquotes.

    The 10 articles read by the most members, where country is NO
    The mean of `pay` (`pay` is clipped to at most 9; each `player` counts with at most 1 row)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from farthing.engine.filters import (
    AllOf,
    AnyOf,
    Between,
    Equals,
    Filter,
    Not,
    OneOf,
    Present,
    columns_of,
)
from farthing.engine.keys import Bins, Key, Period, column_of
from farthing.engine.where_text.conditions import is_spelled
from farthing.engine.where_text.writing import condition_in_sql
from farthing.schema import ROW, Bounds, DeclaredValues, Value
from farthing.wording import many

_SIDES = {"at_least": "at least", "above": "above", "at_most": "at most", "below": "below"}
#: Longer lists of values are told by their length.
_MOST_VALUES = 5


@dataclass(frozen=True, slots=True)
class Noun:
    """A thing in a sentence: "for each article", "the article", "articles"; and what is said
    between it and the units that have it."""

    each: str
    one: str
    several: str
    verb: str = "with"

    def many(self, count: int) -> str:
        """So many of them."""
        return f"{count} {self.one if count == 1 else self.several}"


@dataclass(frozen=True, slots=True)
class Names:
    """What a dataset's columns and its unit are called in sentences."""

    unit_column: str = "unit"
    declared: DeclaredValues = field(default_factory=DeclaredValues)

    def column(self, name: str) -> str:
        """A column."""
        titled = self.declared.titled.get(name)
        return _name(name) if titled is None else str(titled.title)

    @property
    def rows(self) -> bool:
        """Whether each row is a unit."""
        return self.unit_column == ROW and not self.declared.has_row

    @property
    def unit(self) -> Noun:
        """Whose rows they are."""
        name = self.unit_column
        if self.rows:
            return Noun(ROW, ROW, f"{ROW}s")
        if name in self.declared.titled:
            return self._titled(name)
        return Noun(_name(name), f"distinct {_name(name)}", f"distinct {_name(name)}")

    def labels(self, keys: Sequence[Key]) -> Noun:
        """What rows are grouped by."""
        if len(keys) == 1:
            return self._label(keys[0])
        together = " and ".join(self._label(key).each for key in keys)
        return Noun(together, f"combination of {together}", f"combinations of {together}")

    def _label(self, key: Key) -> Noun:
        name = column_of(key)
        titled = name in self.declared.titled
        match key:
            case Period(_, period):
                of = f"of {'the ' if titled else ''}{self.column(name)}"
                return Noun(f"{period} {of}", f"{period} {of}", f"{period}s {of}")
            case Bins(_, edges):
                of = f"of {self.column(name)} between {edges[0]} and {edges[-1]}"
                return Noun(f"range {of}", f"range {of}", f"ranges {of}")
        if titled:
            return self._titled(name)
        return Noun(_name(name), f"value of {_name(name)}", f"values of {_name(name)}")

    def _titled(self, name: str) -> Noun:
        column = self.declared.titled[name]
        title = str(column.title)
        return Noun(title, title, column.plural or f"{title}s", column.verb or "with")


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """How a question reads.

    `subject`: what its numbers are about. `limit`: how much of a unit counts, for a caption;
    None if nothing can be left out. `listed`: which labels there are, where they are known.
    `contribution` says the same as `limit` for the statement of the dataset, without names.
    `described`: the kind, and how it is answered where there are several ways. `things`: what a
    label must have enough of to be shown. `measurable`: measure_loss would say how much the limit
    leaves out.
    """

    subject: str
    contribution: str
    described: str
    limit: str | None = None
    listed: str | None = None
    things: str = "units"
    measurable: bool = False


def caption(
    words: Words,
    names: Names,
    where: Filter | None,
    *,
    columns: Collection[str],
    clipped: Mapping[str, Bounds],
) -> str:
    """One sentence: what is counted, the filter, and every bound and limit that is applied."""
    grouped, labels = columns if words.listed is None else (), names.declared.labels
    applied = [
        *(_clipped(names.column(name), bounds) for name, bounds in clipped.items()),
        *(
            f"{names.column(name)} has {many(labels[name], 'declared value')}, "
            "and others count as missing"
            for name in sorted({*grouped, *_beyond_values(where)})
            if name in labels
        ),
        *(clause for clause in (words.limit, words.listed) if clause is not None),
        *(["each row is protected on its own"] if names.rows else ()),
    ]
    passing = "" if where is None else f", where {_in_words(where, names)}"
    return f"{words.subject}{passing}" + (f" ({'; '.join(applied)})" if applied else "")


def offered(words: Words, clipped: Mapping[str, Bounds]) -> tuple[str, ...]:
    """What can be asked to see how much bounds, and a limit on labels, change."""
    beyond = " or ".join(
        condition_in_sql(Between(name, **{side: bound}))
        for name, bounds in clipped.items()
        for side, bound in zip(("below", "above"), bounds, strict=True)
        if bound is not None
    )
    told = f"count(where='{beyond}') says how many have values that are clipped"
    lost = "measure_loss says how much the limit leaves out"
    return (*([told] if beyond else ()), *([lost] if words.measurable else ()))


def listed_labels(labels: Noun, count: int, missing: bool) -> str:
    """How many labels are listed, and what becomes of rows with others."""
    named = labels.many(count)
    if missing:
        named = "only missing values" if count == 0 else f"{named} and missing values"
    are = "is" if count == 1 and not missing else "are"
    return f"{named} {are} listed, and rows with others are left out"


def _name(name: str) -> str:
    """A name, marked as one."""
    return f"`{name}`"


def _clipped(column: str, bounds: Bounds) -> str:
    match bounds:
        case (None, upper):
            return f"{column} is clipped to at most {upper}"
        case (lower, None):
            return f"{column} is clipped to at least {lower}"
        case (lower, upper):
            return f"{column} is clipped to the range {lower} to {upper}"


def _beyond_values(where: Filter | None) -> frozenset[str]:
    """The columns of a filter that is not about listed values alone."""
    match where:
        case None | Equals(_, str() | int() | float()):
            return frozenset()
        case OneOf(_, values) if None not in values:
            return frozenset()
        case AllOf(parts) | AnyOf(parts):
            return frozenset().union(*map(_beyond_values, parts))
        case _:
            return columns_of(where)


def _in_words(where: Filter, names: Names) -> str:
    """A filter as somebody would say it."""

    def part(inner: Filter) -> str:
        words = _in_words(inner, names)
        return f"({words})" if isinstance(inner, AllOf | AnyOf) else words

    match where:
        case AllOf(parts):
            return " and ".join(map(part, parts))
        case AnyOf(parts):
            return " or ".join(map(part, parts))
        case Not(Equals(column, True)) if is_spelled(column):
            return f"not {names.column(column)}"
        case Equals(column, True) if is_spelled(column):
            return names.column(column)
        case Not(Equals(column, value)) if value is not None:
            return f"{names.column(column)} is not {_said(value)}"
        case Not(inner):
            return f"not ({_in_words(inner, names)})"
        case Equals(value=value):
            said = _said(value)
        case OneOf(values=values):
            said = _one_of(values)
        case Between():
            said = " and ".join(f"{_SIDES[name]} {_said(value)}" for name, value in where.sides)
        case Present():
            said = "not missing"
    return f"{names.column(where.column)} is {said}"


def _one_of(values: tuple[Value, ...]) -> str:
    if len(values) > _MOST_VALUES:
        return f"one of {len(values)} values"
    said = [*map(_said, values)]
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} or {said[-1]}"


def _said(value: Value) -> str:
    return "missing" if value is None else str(value)
