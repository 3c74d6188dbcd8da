"""Bounded histograms as one expression: each unit is limited before anything is counted.

The rows have been read through the schema, so every column has the type of its kind, texts are
compared as bytes and no value is strange.

    rows → pairs (unit, key) with the number of rows
         → per key the sum of min(rows, τ)
         → less, for units with more than Δ keys, what comes after their first Δ in `Order`

Where each row is a unit, there is no column that says whose row it is, and nothing to limit: a row
has one key and counts once.

The order within a unit depends on the secret, the unit and its keys only, so adding a unit
changes nothing about the others: it raises at most Δ counts, each by at most τ.

A key has one text on every engine. It decides which keys of a unit are kept, how ties are broken
and which bytes leave the engine:

    missing    n
    text       s and the text
    integer    i and its decimal digits
    decimal    m and the decimal digits of the number times 10^18
    boolean    b0 or b1
    date       d and year·10000 + month·100 + day in decimal digits
    timestamp  t, the same, and hour, minute and second in two digits each

Several columns are joined by |; inside their texts ~ is written ~~ and | is written ~p.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from farthing.engine.filters import require_value
from farthing.engine.sql.statement import as_bytes, keyed_number
from farthing.errors import InvalidInput
from farthing.optional import Later
from farthing.schema import BOOLEAN, DATE, DECIMAL, DIGITS, INTEGER, TEXT, TIMESTAMP, Value

if TYPE_CHECKING:
    import ibis
    import ibis.expr.types as ir
    import pyarrow as pa
else:
    ibis = Later("ibis")

#: The label of one row of a histogram: a value, or one value for each column of the key.
Label: TypeAlias = Value | tuple[Value, ...]
JOINT = "|"
#: Digits on both sides of the point of any number that can be a label.
EXACT = Context(prec=3 * DIGITS)


def key_text(columns: Sequence[Any], kinds: Sequence[str]) -> ir.StringValue:
    """The text of a key of one or several columns, compared as bytes."""
    if len(columns) == 1:
        return as_bytes(value_text(columns[0], kinds[0]))
    texts = (
        _escaped(value_text(column, kind)) if kind == TEXT else value_text(column, kind)
        for column, kind in zip(columns, kinds, strict=True)
    )
    return as_bytes(reduce(lambda left, right: left + JOINT + right, texts))


def value_text(column: Any, kind: str) -> ir.StringValue:
    """The text of one value."""
    if kind == TEXT:
        text = ibis.literal("s") + column
    elif kind == INTEGER:
        text = ibis.literal("i") + column.cast("string")
    elif kind == DECIMAL:
        places = column.type().scale
        wide = column.cast(f"decimal({2 * DIGITS}, {places})")  # room for the product on DuckDB too
        units = (wide * 10**places).cast("int64")
        zeros = ibis.literal("0" * (DIGITS - places))
        text = (units == 0).ifelse("m0", ibis.literal("m") + units.cast("string") + zeros)
    elif kind == BOOLEAN:
        text = column.isnull().ifelse(ibis.null("string"), column.ifelse("b1", "b0"))
    else:
        digits = column.year() * 10000 + column.month() * 100 + column.day()
        if kind == TIMESTAMP:
            digits = digits.cast("int32").cast("int64")  # what Ibis takes for 64 bits may be 32
            for part in (column.hour(), column.minute(), column.second()):
                digits = digits * 100 + part.cast("int64")
        text = ibis.literal("d" if kind == DATE else "t") + digits.cast("string")
    return ibis.coalesce(text, "n")


def text_of(label: Label) -> str:
    """The text of a label, as the engines write it."""
    if isinstance(label, tuple):
        return JOINT.join(_escaped(_text(part)) for part in label)
    return _text(label)


def labels_of(texts: Sequence[str], width: int) -> tuple[Label, ...]:
    """The labels that have these texts."""
    if width == 1:
        kinds = {text[0] for text in texts}
        if kinds == {"s"}:
            return tuple([text[1:] for text in texts])
        if kinds == {"i"}:
            return tuple([int(text[1:]) for text in texts])
        return tuple(map(_value, texts))
    return tuple(tuple(_value(_unescape(p)) for p in t.split(JOINT)) for t in texts)


def _text(value: Value) -> str:
    match value:
        case None:
            return "n"
        case bool():
            return "b1" if value else "b0"
        case int():
            return f"i{value}"
        case Decimal():
            return f"m{int(value.scaleb(DIGITS, context=EXACT))}"
        case datetime():
            return f"t{value.year * 10000 + value.month * 100 + value.day}{value:%H%M%S}"
        case date():
            return f"d{value.year * 10000 + value.month * 100 + value.day}"
        case _:
            return f"s{value}"


def _value(text: str) -> Value:
    match text[:1]:
        case "n":
            return None
        case "s":
            return text[1:]
        case "i":
            return int(text[1:])
        case "b":
            return text == "b1"
        case "m":
            return require_value(Decimal(text[1:]).scaleb(-DIGITS, context=EXACT))
    days, clock = (text[1:], "") if text[0] == "d" else (text[1:-6], text[-6:])
    year, rest = divmod(int(days), 10000)
    month, day = divmod(rest, 100)
    if not clock:
        return date(year, month, day)
    return datetime(year, month, day, int(clock[:2]), int(clock[2:4]), int(clock[4:]))  # of no zone


def _unescape(text: str) -> str:
    return "~".join(part.replace("~p", JOINT) for part in text.split("~~"))


def _escaped(text: Any) -> Any:
    """Of a text, or of an expression that is one."""
    return text.replace("~", "~~").replace(JOINT, "~p")


#: An expression, and the kind of what it holds.
TypedColumn: TypeAlias = tuple[Any, str]
LABEL, COUNT = "label", "n"
#: Whose row it is; None where each row is a unit.
Owner: TypeAlias = TypedColumn | None
#: The type of every sum.
WHOLE = "decimal(38, 0)"
#: Products of two digests stay below 2^63; their remainders fill 31 bits.
PRIME = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Bounded:
    """An expression, and how much one unit can change what it gives.

    At most `contribution_limit` numbers (None: any number), each by at most `per_key_limit`;
    `others` and `total` as in `Contribution`.
    """

    expression: ir.Table
    contribution_limit: int | None = 1
    per_key_limit: int = 1
    others: tuple[int, ...] = ()
    total: int | None = None

    def __post_init__(self) -> None:
        """Nothing that it gives can be missing, and every column has exactly its type."""
        table = self.expression
        present = {
            name: ibis.coalesce(table[name], "" if dtype.is_string() else 0).cast(
                dtype.copy(nullable=False)
            )
            for name, dtype in table.schema().items()
        }
        object.__setattr__(self, "expression", table.select(**present))


def bounded_histogram(
    rows: ir.Table,
    unit: Owner,
    keys: Sequence[TypedColumn],
    *,
    secret: str,
    contribution_limit: int | None,
    per_key_limit: int,
) -> Bounded:
    """Columns `label` (the text of the key) and `n`. A column is an expression and its kind."""
    counted = _limited(
        *(rows, unit, keys),
        secret=secret,
        contribution_limit=contribution_limit,
        per_key_limit=per_key_limit,
    )
    return Bounded(_labelled(counted, keys), contribution_limit, per_key_limit)


def distinct_values(
    rows: ir.Table,
    unit: Owner,
    keys: Sequence[TypedColumn],
    value: TypedColumn,
    *,
    secret: str,
    contribution_limit: int,
) -> Bounded:
    """Columns `label` (with a key) and `n`: how many values each label has.

    Of each unit so many pairs of a label and a value are kept. A pair that a unit has adds at
    most 1 to the number of its label, and takes nothing from another one.
    """
    kept = _limited(
        *(rows, unit, [*keys, value]),
        secret=secret,
        contribution_limit=contribution_limit,
        per_key_limit=1,
    )
    if not keys:
        number = kept.aggregate(**{COUNT: kept.count().cast(WHOLE)})
        return Bounded(number, 1, contribution_limit)
    counted = _added_up(kept.drop("amount"), [f"key{i}" for i in range(len(keys))])
    limits = contribution_limit, contribution_limit
    return Bounded(_labelled(counted, keys), *limits, total=contribution_limit)


def _limited(
    rows: ir.Table,
    unit: Owner,
    keys: Sequence[TypedColumn],
    *,
    secret: str,
    contribution_limit: int | None,
    per_key_limit: int,
) -> Any:
    """Columns `key0`, `key1`, … and `amount`, each unit limited."""
    columns = [f"key{i}" for i in range(len(keys))]
    kinds = [kind for _, kind in keys]
    pairs = _pairs(_owned(rows, unit, dict(zip(columns, keys, strict=True))), per_key_limit)
    counted = _added_up(pairs, columns)
    if contribution_limit is not None and unit is not None:
        late = Order(secret, unit[1], kinds).late(pairs, counted, contribution_limit)
        late = _added_up(late, columns)
        less = late.select(*columns, amount=(-late.amount).cast(WHOLE))
        counted = _added_up(counted.union(less), columns).filter(lambda t: t.amount > 0)
    return counted


def _labelled(counted: Any, keys: Sequence[TypedColumn]) -> Any:
    columns = [counted[f"key{i}"] for i in range(len(keys))]
    text = key_text(columns, [kind for _, kind in keys])
    return counted.select(**{LABEL: text, COUNT: counted.amount})


def largest(histogram: ir.Table, count: int) -> ir.Table:
    """The `count` largest counts; ties go by the text of the label, in code-point order."""
    return histogram.order_by(ibis.desc(COUNT), ibis.asc(histogram[LABEL])).limit(count)


def counted_rows(rows: ir.Table, unit: Owner, per_key_limit: int) -> Bounded:
    """One row, one column `n`: the sum over units of min(rows, per_key_limit)."""
    if unit is None:
        return Bounded(rows.aggregate(**{COUNT: rows.count().cast(WHOLE)}))
    owned = _owned(rows, unit, {})
    units = owned.group_by("who").aggregate(rows=lambda t: t.count())
    amount = ibis.least(units.rows, per_key_limit)
    total = units.aggregate(**{COUNT: ibis.coalesce(amount.sum(), 0).cast(WHOLE)})
    return Bounded(total, per_key_limit=per_key_limit)


def _owned(rows: Any, unit: Owner, columns: Mapping[str, TypedColumn]) -> Any:
    """Rows with a unit, under names of our own: whatever the table calls its columns is gone."""
    named = {name: column for name, (column, _) in columns.items()}
    if unit is None:
        return rows.select(**named)
    owned = rows.select(who=unit[0], **named)
    return owned.filter(owned.who.notnull())


def _pairs(owned: Any, per_key_limit: int) -> Any:
    """Each (unit, key) once, with the amount it adds where that is not 1: min(rows, limit)."""
    if "who" not in owned.columns:
        return owned
    if per_key_limit == 1:
        return owned.distinct()
    counted = owned.group_by(owned.columns).aggregate(rows=lambda t: t.count())
    amount = ibis.least(counted.rows, per_key_limit)
    return counted.select(*owned.columns, amount=amount)


def _added_up(amounts: Any, columns: Sequence[str]) -> Any:
    return amounts.group_by(columns).aggregate(
        amount=lambda t: (t.amount.sum() if "amount" in t.columns else t.count()).cast(WHOLE)
    )


def labels_of_units(
    rows: ir.Table, unit: TypedColumn, keys: Sequence[TypedColumn], most: int
) -> ir.Table:
    """One row for each unit: `labels`, how many different ones it has, counted up to `most`."""
    pairs = _owned(rows, unit, {f"key{i}": key for i, key in enumerate(keys)}).distinct()
    units = pairs.group_by("who").aggregate(labels=lambda t: t.count())
    return units.select(labels=ibis.least(units.labels, most))


def pairs_above(units: ir.Table, limit: int, most: int) -> Bounded:
    """One row, one column `n`: the labels of units beyond their first `limit`.

    A unit with m labels, counted up to `most`, adds max(m − limit, 0) ≤ most − limit.
    """
    above: Any = ibis.greatest(units.labels - limit, 0)
    total = units.aggregate(**{COUNT: ibis.coalesce(above.sum(), 0).cast(WHOLE)})
    return Bounded(total, per_key_limit=most - limit)


def shape_of(units: ir.Table) -> ir.Table:
    """How many units have how many labels: `label` is u and the number of labels."""
    return _tallied(units, "u", units.labels)


def sizes_of(histogram: ir.Table, most: int) -> ir.Table:
    """How many labels have which count, up to `most`: `label` is l and the count."""
    return _tallied(histogram, "l", ibis.least(histogram[COUNT], most).cast("int64"))


def _tallied(table: ir.Table, mark: str, number: Any) -> ir.Table:
    shapes = table.select(shape=ibis.literal(mark) + number.cast("string"))
    counted = shapes.group_by("shape").aggregate(n=lambda t: t.count())
    return counted.select(**{LABEL: counted["shape"], COUNT: counted["n"].cast(WHOLE)})


def labels_and_counts(rows: pa.Table) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """The two columns of a bounded histogram as arrays; labels are objects, never fixed-width."""
    labels = np.empty(rows.num_rows, dtype=object)
    labels[:] = rows.column(LABEL).to_pylist()
    return labels, counts_of(rows)


def counts_of(rows: pa.Table, name: str = COUNT) -> npt.NDArray[np.int64]:
    """A column of counts."""
    numbers: npt.NDArray[np.int64] = rows.column(name).cast("int64").to_numpy()
    return numbers


@dataclass(frozen=True, slots=True)
class Order:
    """Which keys of a unit are kept: the first ones in an order of the unit's own, on any engine.

        place of a key in a unit = u·k mod PRIME

    u is a keyed digest of the unit and k one of the key, each from 1 to 2^28. Keys in one place go
    by themselves. A digest is taken once for a unit and once for a key, not once for each pair.
    Over the secret the numbers of the keys are exchangeable, so no key is preferred; over the units
    u moves the keys around. The digest is MD5 because DuckDB, Spark and PostgreSQL all have it and
    agree on it. Privacy does not rest on it: the order depends on the secret, the unit and its own
    keys alone. `secret` is the key of the digests; the kinds are those of the unit and of the
    columns of its keys.
    """

    secret: str
    unit_kind: str
    kinds: Sequence[str]

    def __post_init__(self) -> None:
        """The secret is the only text of ours that varies: letters and digits alone."""
        if not (self.secret.isascii() and self.secret.isalnum()):
            raise InvalidInput("the key of the digest must be letters and digits")

    def late(self, pairs: Any, totals: Any, limit: int) -> Any:
        """The pairs that come after the first `limit` of their unit.

        Only units above the limit are ranked; on most data they are few. `totals` has every key
        once, so that its digest is taken there; a key with a missing part is equal to none and
        gets its digest here.
        """
        columns = [f"key{i}" for i in range(len(self.kinds))]
        many = (
            pairs.group_by(over="who")
            .aggregate(keys=lambda t: t.count())
            .filter(lambda t: t["keys"] > limit)
            .select("over", of_unit=lambda t: self._number(value_text(t.over, self.unit_kind)))
        )
        numbers = {f"known{name}": totals[name] for name in columns}
        known = totals.select(of_key=self._of_key(totals, columns), **numbers)
        rest = pairs.join(many, pairs.who == many.over)
        rest = rest.left_join(known, [rest[name] == known[f"known{name}"] for name in columns])
        of_key = ibis.coalesce(rest.of_key, self._of_key(rest, columns))
        rest = rest.select(*pairs.columns, order=rest.of_unit * of_key % PRIME)
        placed = _placed(rest, columns, ibis.row_number())
        return placed.filter(placed.place >= limit).select(
            *(name for name in pairs.columns if name != "who")
        )

    def first(self, rows: Any, columns: Sequence[str], place: Any, limit: int) -> Any:
        """The rows with the first `limit` keys of their unit; `place` counts keys from 0."""
        of_unit = self._number(value_text(rows.who, self.unit_kind))
        ordered = rows.mutate(order=of_unit * self._of_key(rows, columns) % PRIME)
        placed = _placed(ordered, columns, place)
        return placed.filter(placed.place < limit).drop("order", "place")

    def _of_key(self, table: Any, columns: Sequence[str]) -> Any:
        return self._number(key_text([table[name] for name in columns], self.kinds))

    def _number(self, text: Any) -> Any:
        """From 1 to 2^28."""
        return keyed_number(ibis.literal(self.secret) + text) + 1


def _placed(rows: Any, columns: Sequence[str], place: Any) -> Any:
    """With the place of each key in its unit: by its number, then by itself."""
    ties = [ibis.asc(rows[name], nulls_first=True) for name in columns]
    return rows.mutate(place=place.over(group_by=rows.who, order_by=[rows.order, *ties]))
