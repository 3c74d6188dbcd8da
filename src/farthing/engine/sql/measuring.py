"""Totals and weights of a numeric column per key, each unit limited before anything is added up.

The rows have the columns `who`, `key0`, `key1`, … and `value`, a whole number that is never
missing (`Rows.keyed`).

    rows  → one row for each (unit, key), with what the unit has there
          → of each unit the first Δ keys, in the order of `bounding.Order`
          → per key the sum of what each unit adds, moved into its limits

Without `who` each row is a unit, and so one pair.

A unit with more than τ rows for a key counts as τ rows, each with its own average: what it has
there is scaled down, and no row is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farthing.engine.sql.bounding import COUNT, LABEL, Order, key_text
from farthing.engine.sql.bounding import WHOLE as WHOLE
from farthing.optional import Later

if TYPE_CHECKING:
    import ibis
    import ibis.expr.types as ir
else:
    ibis = Later("ibis")

WHO, VALUE, ROWS = "who", "value", "rows"
#: What a row weighs whose unit is within its limit. Units with this many times more rows than they
#: may have weigh nothing.
WEIGHT = 1 << 20
#: What the rows with one value weigh at most, so that it fits into 64 bits: of 2^42 of them.
HEAVIEST = (1 << 62) - 1


@dataclass(frozen=True, slots=True)
class Grouped:
    """Rows with keys and values, the kinds of the keys, and how many keys of a unit count."""

    table: ir.Table
    kinds: Mapping[str, str]
    secret: str
    contribution_limit: int | None

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the key."""
        return tuple(name for name in self.table.columns if name.startswith("key"))

    @property
    def has_units(self) -> bool:
        """Whether several rows may be of one unit."""
        return WHO in self.table.columns

    def pairs(self, **aggregates: Any) -> ir.Table:
        """Each (unit, key) that counts, with aggregates of its rows."""
        if not self.has_units:
            made = {n: a(self.table) if callable(a) else a for n, a in aggregates.items()}
            alone = {name: of_one_row(aggregate) for name, aggregate in made.items()}
            return self.table.select(*self.keys, **alone)
        pairs = self.table.group_by([WHO, *self.keys]).aggregate(**aggregates)
        return self.first(pairs, ibis.row_number()) if self.keys else pairs

    def first(self, rows: ir.Table, place: Any) -> ir.Table:
        """Of each unit the rows with its first keys; `place` counts keys from 0."""
        if self.contribution_limit is None or not self.has_units:
            return rows
        order = Order(self.secret, self.kinds[WHO], [self.kinds[name] for name in self.keys])
        return order.first(rows, self.keys, place, self.contribution_limit)

    def label(self, table: ir.Table) -> dict[str, Any]:
        """The text of the key as a column, where there is a key."""
        if not self.keys:
            return {}
        columns = [table[name] for name in self.keys]
        return {LABEL: key_text(columns, [self.kinds[name] for name in self.keys])}


def of_one_row(aggregate: Any) -> Any:
    """What an aggregate gives of one row: a sum or an extreme its value, a count 1 or 0."""
    from ibis.expr import operations as ops

    def alone(node: Any, changed: Any) -> Any:
        if not isinstance(node, ops.Reduction):
            return node if changed is None else node.copy(**changed)
        where = True if node.where is None else node.where.to_expr()
        if isinstance(node, ops.Count | ops.CountDistinct):
            where = node.arg.to_expr().notnull() & where
        elif not isinstance(node, ops.CountStar):
            assert isinstance(node, ops.Sum | ops.Min | ops.Max), node
            value = node.arg.to_expr()
            return (value if where is True else ibis.ifelse(where, value, None)).op()
        return ibis.ifelse(where, 1, 0).cast("int64").op()

    return aggregate.op().replace(alone, filter=ops.Value).to_expr()


def totals(grouped: Grouped, pairs: ir.Table, amounts: Sequence[tuple[Any, int]]) -> ir.Table:
    """Columns `label` (with a key) and `n`, `n1`, …: the sum over units of each amount.

    An amount is an expression over `pairs` and the most that its size may be: whatever the rows
    hold, it is moved to within that.
    """
    named = {}
    for i, (amount, most) in enumerate(amounts):
        edge = ibis.literal(most).cast(WHOLE)
        inside = ibis.least(ibis.greatest(amount.cast(WHOLE), (-edge).cast(WHOLE)), edge)
        named[total_name(i)] = inside.cast(WHOLE)
    limited = pairs.select(*grouped.keys, **named)
    sums = {name: ibis.coalesce(limited[name].sum(), 0).cast(WHOLE) for name in named}
    if not grouped.keys:
        return limited.aggregate(**sums)
    summed = limited.group_by(list(grouped.keys)).aggregate(**sums)
    return summed.select(**grouped.label(summed), **{name: summed[name] for name in named})


def total_name(place: int) -> str:
    """The column of a total."""
    return COUNT if place == 0 else f"{COUNT}{place}"


#: The column of the number of units beside weights.
UNITS = total_name(1)


def scaled_to(total: Any, rows: Any, limit: int) -> Any:
    """What a unit's total is when its rows count as at most `limit`; both are at least 0."""
    share = rounded_quotient(total.cast("float64") * float(limit), rows)
    return (rows <= limit).ifelse(total.cast(WHOLE), share.cast(WHOLE))


def rounded_quotient(number: Any, by: Any) -> Any:
    """The whole number nearest to a quotient of two that are at least 0 and 1, half up.

    ⌊(2n + b)/2b⌋ in floats. Whole numbers below 2^53 are divided correctly rounded, so nothing
    below a whole number becomes one, and every engine gets the same.
    """
    divisor = float(by) if isinstance(by, int) else by.cast("float64")
    return ((2.0 * number.cast("float64") + divisor) / (2.0 * divisor)).floor()


def weighed_ranks(
    grouped: Grouped, threshold: int, weights: tuple[int, int], per_key_limit: int
) -> ir.Table:
    """One row, one column `n`: w₊·#{x ≥ threshold} − w₋·#{x < threshold} for weights (w₊, w₋).

    A unit with more than `per_key_limit` rows counts as that many, on the two sides in the
    proportion of its rows, to the nearest whole row. So it moves the number by at most
    w₊·per_key_limit upwards or w₋·per_key_limit downwards.
    """
    (above, below), limit = weights, per_key_limit
    reached = (grouped.table[VALUE] >= ibis.literal(threshold, "int64")).ifelse(1, 0)
    pairs = grouped.pairs(reached=reached.sum(), rows=lambda t: t.count())
    kept = scaled_to(pairs.reached, pairs[ROWS], limit)
    rest = ibis.least(pairs[ROWS], limit).cast(WHOLE) - kept
    return totals(grouped, pairs, [(above * kept - below * rest, max(weights) * limit)])


def weighted_values(grouped: Grouped, per_key_limit: int, *, units: bool) -> ir.Table:
    """Columns `label` (with a key), `value` and `n`: what the rows with each value weigh.

    A row weighs WEIGHT; those of a unit with more than `per_key_limit` rows for a key weigh less,
    together at most per_key_limit·WEIGHT. With `units` there is a column `n1` too, and a row more
    for each label: nothing weighs anything there, and `n1` is the number of its units.
    """
    keys = list(grouped.keys)
    owner = [WHO, *keys] if grouped.has_units else keys
    rows = grouped.table.group_by([*owner, VALUE]).aggregate(rows=lambda t: t.count())
    each = ibis.literal(WEIGHT)
    if grouped.has_units:
        if keys:
            rows = grouped.first(rows, ibis.dense_rank())
        rows = rows.mutate(all_rows=rows[ROWS].sum().over(group_by=[rows[name] for name in owner]))
        most = ibis.least(rows.all_rows, per_key_limit)
        each = (most.cast("float64") * float(WEIGHT) / rows.all_rows.cast("float64")).floor()
    heavy = rows.select(*keys, VALUE, weight=rows[ROWS].cast(WHOLE) * each.cast(WHOLE))
    total = ibis.least(heavy.weight.cast(WHOLE).sum(), ibis.literal(HEAVIEST).cast(WHOLE))
    summed = heavy.group_by([*keys, VALUE]).aggregate(**{COUNT: total.cast(WHOLE)})
    summed = summed.filter(summed[COUNT] > 0)
    named = {**grouped.label(summed), VALUE: summed[VALUE], COUNT: summed[COUNT]}
    if not units:
        return summed.select(**named)
    nothing = ibis.literal(0).cast(WHOLE)
    if grouped.has_units:
        rows = rows.select(*owner).distinct().mutate(rows=1)
    owners = rows.group_by(keys).aggregate(units=rows[ROWS].sum())
    counted = {VALUE: ibis.literal(0, "int64"), COUNT: nothing, UNITS: owners.units.cast(WHOLE)}
    weights = summed.select(**named, **{UNITS: nothing})
    return weights.union(owners.select(**grouped.label(owners), **counted))


def weighed_sums(grouped: Grouped, most: int) -> ir.Table:
    """Columns `value` and `n`: WEIGHT for each unit (and key) that adds up to the value, which is
    moved to within ± `most`."""
    pairs = grouped.pairs(total=grouped.table[VALUE].cast(WHOLE).sum())
    edge = ibis.literal(most).cast(WHOLE)
    inside = ibis.least(ibis.greatest(pairs.total, (-edge).cast(WHOLE)), edge).cast("int64")
    found = pairs.select(**{VALUE: inside}).group_by(VALUE).aggregate(rows=lambda t: t.count())
    heavy = ibis.least(found[ROWS].cast(WHOLE) * WEIGHT, ibis.literal(HEAVIEST).cast(WHOLE))
    return found.select(**{VALUE: found[VALUE], COUNT: heavy.cast(WHOLE)})
