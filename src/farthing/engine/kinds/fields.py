"""Fields that kinds of questions share: their types, help texts and checks.

The text beside a type is what the command line says about the option.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from inspect import Parameter, signature
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from farthing.engine.filters import (
    Filter,
    filter_from,
    filter_to_json,
    renamed,
    require_column,
    require_value,
    value_from_json,
    value_to_json,
)
from farthing.engine.keys import Key, key_from, key_to_json, renamed_key
from farthing.engine.sql.bounding import Label, text_of
from farthing.engine.where_text.conditions import where_from
from farthing.errors import InvalidInput, require_count, require_real

T = TypeVar("T")

Where: TypeAlias = Annotated[
    Filter | Mapping[str, Any] | str | None,
    "Only rows that pass: \"age >= 18 and country == 'NO'\", country=NO,SE, or a filter in JSON.",
]
By: TypeAlias = Annotated[
    Key | Iterable[Key],
    "A column of the key, or month(COLUMN), bins(COLUMN, …); repeat for several.",
]
Categories: TypeAlias = Annotated[
    Iterable[Label] | None, "A label of a known domain; repeat for several."
]
ColumnName: TypeAlias = Annotated[str, "The column with the numbers."]
NumberBound: TypeAlias = int | float
Limit: TypeAlias = int | Literal["auto"] | None
Bound: TypeAlias = int | float | Literal["auto"] | None
ContributionLimit: TypeAlias = Annotated[Limit, "Labels of a unit that count: a number, or auto."]
LabelsOfUnit: TypeAlias = Annotated[int | None, "Labels of a unit that count."]
MaybeBy: TypeAlias = Annotated[
    Key | Iterable[Key] | None, "One answer for each label of this key; repeat for several."
]
ValueBound: TypeAlias = Annotated[
    Bound,
    "Values beyond are clipped to it; the schema's bounds are the default and the widest. Or auto.",
]
LeastSum: TypeAlias = Annotated[Bound, "The smallest sum of one unit: a number, or auto."]
MostSum: TypeAlias = Annotated[Bound, "The largest sum of one unit: a number, or auto."]
RowsOfUnit: TypeAlias = Annotated[
    int | None, "Rows of a unit that count for one label; more of them weigh less."
]
PerKeyLimit: TypeAlias = Annotated[int, "Rows of a unit that count for one label."]
Places: TypeAlias = Annotated[int | None, "Decimal places that are kept; else the schema's."]
Repeats: TypeAlias = Annotated[int, "Draw the numbers this often and average."]
Simultaneous: TypeAlias = Annotated[bool, "Intervals that hold for all bars together."]
MeasureLoss: TypeAlias = Annotated[bool, "Count also what the limit leaves out."]
SelectItem: TypeAlias = Annotated[str | None, "The tariff's item that pays for selections."]
CountItem: TypeAlias = Annotated[str | None, "The tariff's item that pays for counts."]
QuestionEpsilon: TypeAlias = Annotated[
    float | None, "The ε of each item that is bought, at least; instead of naming items."
]
LeakItem: TypeAlias = Annotated[str | None, "The tariff's item that pays for the δ."]


@dataclass(frozen=True, slots=True)
class Holds:
    """Columns that a field holds: how they are checked, and given other names. They may be
    computed."""

    check: Callable[[Any], Any]
    renamed: Callable[[Any, Callable[[str], str]], Any]


class FieldHelp(NamedTuple):
    """A field of a kind of question or conversation: its type, what it means, its default, and what
    columns it holds."""

    type: Any
    words: str
    default: Any
    holds: Holds | None = None

    @property
    def needed(self) -> bool:
        """Whether it has no default."""
        return self.default is Parameter.empty


@cache
def help_of(kind: type[Any]) -> Mapping[str, FieldHelp]:
    """The fields of a kind, in the order in which values without a name are taken."""
    hints = get_type_hints(kind, include_extras=True)
    described = {}
    for name, one in signature(kind).parameters.items():
        hint, words, more = hints[name], "", []
        if get_origin(hint) is Annotated:
            hint, words, *more = get_args(hint)
        holds = next((one for one in more if isinstance(one, Holds)), HOLDS.get(name))
        described[name] = FieldHelp(hint, words, one.default, holds)
    return described


#: A limit or a bound that is chosen before the question runs, by a small question of its own.
AUTO: Literal["auto"] = "auto"
#: Decimal places of fixed-point values stay below this, so that they fit 64 bits.
LARGEST_PLACES = 9
LARGEST_BOUND = 1 << 40
#: Most columns of a key. Spark never finishes a statement over many more.
MOST_KEYS = 6
LARGEST_REPEATS = 64
#: Limits per unit, and candidates, stay below this: engines count with 64 bits.
LARGEST_LIMIT = 10**9


def scaled(bound: NumberBound, places: int) -> int:
    """A bound in units of the last decimal place; it must be a whole number of them."""
    exact = Fraction(str(bound)) * 10**places
    if exact.denominator != 1:
        raise InvalidInput(f"a bound must have at most {places} decimal places, got {bound!r}")
    return int(exact)


def unscaled(number: int | float, places: int) -> int | float:
    """The value of a number that is given in units of the last decimal place."""
    return number if places == 0 else number / 10**places


def scaled_bounds(lower: NumberBound, upper: NumberBound, places: int) -> tuple[int, int]:
    """Both bounds in units of the last place, in order and not too large."""
    low, high = scaled(lower, places), scaled(upper, places)
    if low > high:
        raise InvalidInput(f"lower must be at most upper, got {lower} and {upper}")
    if max(abs(low), abs(high)) > LARGEST_BOUND:
        raise InvalidInput("lower and upper must be at most 2^40 in units of the last place")
    return low, high


class CheckedLabels(tuple[Label, ...]):
    """Labels that were checked before, for a key of this `width`, and need not be checked again."""

    width = 0


def require_categories(given: tuple[Label, ...] | None, width: int) -> None:
    """Different labels, each with one value for each column of the key.

    What is measured of a label is paid for once for each label of a unit, so labels that the rows
    cannot tell apart are refused: those with the same text.
    """
    if given is None or (isinstance(given, CheckedLabels) and given.width == width):
        return
    for label in given:
        parts = label if isinstance(label, tuple) else (label,)
        if len(parts) != width or (width > 1) != isinstance(label, tuple):
            raise InvalidInput(f"a category needs one value for each of the {width} columns of by")
        if any(isinstance(part, float) for part in parts):
            raise InvalidInput("a category is text, a whole number, a truth value or a date")
    if not given:
        raise InvalidInput("categories must list at least one label, got none")
    if len(set(map(text_of, given))) != len(given):
        raise InvalidInput("categories must be different from one another")
    if isinstance(given, CheckedLabels):
        given.width = width


def stated(limit: Limit) -> int | None:
    """The limit of a question that can run: a number or None, no longer automatic."""
    if limit == AUTO:
        raise InvalidInput(f'contribution_limit must be a number here, got "{AUTO}"')
    return limit


def require_number(limit: Limit, kind: str) -> None:
    """Refuses an automatic limit where a kind has none."""
    if limit == AUTO:
        raise InvalidInput(f'contribution_limit of a {kind} must be a number, got "{AUTO}"')


def known_bound(name: str, bound: Bound) -> NumberBound:
    """The bound of a question that can run, no longer automatic."""
    assert bound is not None, "a question is completed before it is asked"
    if bound == AUTO:
        raise InvalidInput(f'{name} must be a number here, got "{AUTO}"')
    return bound


def field_to_json(name: str, value: Any) -> Any:
    """A field of this name as plain data."""
    if name == "where":
        return filter_to_json(filter_from(value))
    if name == "by" and value is not None:
        return [key_to_json(key) for key in value]
    if name == "categories" and value is not None:
        return [label_to_json(label) for label in value]
    return list(value) if isinstance(value, tuple) else value


def label_to_json(label: Label) -> Any:
    """A label as plain data."""
    if isinstance(label, tuple):
        return [value_to_json(part) for part in label]
    return value_to_json(label)


def label_from_json(label: Any) -> Label:
    """The inverse of `label_to_json`."""
    if isinstance(label, list | tuple):
        return tuple(value_from_json(part) for part in label)
    return value_from_json(label)


def _count(most: int = LARGEST_LIMIT) -> Callable[[str, Any], int]:
    def check(name: str, value: Any) -> int:
        number = require_count(name, value, at_least=1)
        if number > most:
            raise InvalidInput(f"{name} must be at most {most}, got {number}")
        return number

    return check


def _limit(name: str, value: Any) -> Limit:
    return AUTO if value == AUTO else _count()(name, value)


def _item(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{name} must name an item of the tariff, got {value!r:.60}")
    return value


def _key(by: Any) -> tuple[Key, ...]:
    names = by if isinstance(by, list | tuple | set | frozenset) else (by,)
    if isinstance(by, int | float):
        raise InvalidInput(f"by must name at least one column, got {by!r:.60}")
    keys = tuple(key_from(name) for name in names)
    if not keys:
        raise InvalidInput("by must name at least one column, got none")
    if len(keys) > MOST_KEYS:
        raise InvalidInput(f"by must name at most {MOST_KEYS} columns, got {len(keys)}")
    if len(set(keys)) != len(keys):
        raise InvalidInput("by must name different columns")
    return keys


def _columns(given: Any) -> tuple[str, ...]:
    names = given if isinstance(given, list | tuple) else (given,)
    columns = tuple(map(require_column, names))
    if not columns or len(set(columns)) != len(columns):
        raise InvalidInput("a list of columns must name at least one, each of them once")
    return columns


def _labels(name: str, given: Any) -> CheckedLabels:
    if isinstance(given, CheckedLabels):
        return given
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidInput(f"{name} must be a list of labels, got {type(given).__name__}")
    return CheckedLabels(
        tuple(map(require_value, label))
        if isinstance(label, list | tuple)
        else require_value(label)
        for label in given
    )


def _each(check: Callable[[str, Any], T]) -> Callable[[str, Any], tuple[T, ...]]:
    def checked(name: str, value: Any) -> tuple[T, ...]:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise InvalidInput(f"{name} must be a list of numbers, got {type(value).__name__}")
        return tuple(check(name, number) for number in value)

    return checked


def _bound(name: str, value: Any) -> Bound:
    """0 and 0.0 are one question."""
    if value == AUTO:
        return AUTO
    bound = require_real(name, value)
    if isinstance(value, int):
        return value
    return int(bound) if bound.is_integer() else bound


def _probability(name: str, value: Any) -> float | tuple[float, ...]:
    """One of them, or several in their order."""
    check = partial(require_real, above=0, below=1)
    numbers = sorted(_each(check)(name, value if isinstance(value, Iterable) else (value,)))
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def _places(name: str, value: Any) -> int:
    places = require_count(name, value)
    if places > LARGEST_PLACES:
        raise InvalidInput(f"{name} must be at most {LARGEST_PLACES}, got {places}")
    return places


def _truth(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be True or False, got {value!r:.60}")
    return value


#: A field that holds a column says so beside its help: Annotated[str, "…", COLUMN]; or COLUMNS.
COLUMN = Holds(require_column, lambda name, rename: rename(name))
COLUMNS = Holds(_columns, lambda names, rename: tuple(map(rename, names)))
#: Fields that hold columns by their name, whatever kind has them.
HOLDS = {
    "where": Holds(where_from, renamed),
    "by": Holds(_key, lambda keys, rename: tuple(renamed_key(key, rename) for key in keys)),
    "column": COLUMN,
}
Per: TypeAlias = Annotated[str, "The column whose sum is divided by.", COLUMN]
On: TypeAlias = Annotated[
    str | Iterable[str],
    "A column that it is explained by, or compared with; several: repeat.",
    COLUMNS,
]
OnBounds: TypeAlias = Annotated[
    Iterable[NumberBound] | None, "Bounds of the columns in on, in their order; else the schema's."
]
OnPlaces: TypeAlias = Annotated[
    Iterable[int] | None, "Decimal places of the columns in on that are kept; else the schema's."
]
#: How any other field of this name is checked and put into its one form, whatever kind has it. A
#: field whose default is None may be None.
CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "categories": _labels,
    "per_upper": _bound,
    "on_lower": _each(_bound),
    "on_upper": _each(_bound),
    "on_places": _each(_places),
    "lower": _bound,
    "upper": _bound,
    "places": _places,
    "k": _count(100_000),
    "candidates": _count(),
    "most": _count(),
    "labels": _count(),
    "limits": _each(_count()),
    "noise": _each(lambda name, value: require_real(name, value, at_least=0)),
    "contribution_limit": _limit,
    "per_key_limit": _count(),
    "repeats": _count(LARGEST_REPEATS),
    "probability": _probability,
    "counts": _truth,
    "use_order": _truth,
    "simultaneous": _truth,
    "epsilon": lambda name, value: require_real(name, value, above=0),
    "measure_loss": _truth,
    "select": _item,
    "count": _item,
    "leak": _item,
}
