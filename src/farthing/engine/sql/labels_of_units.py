"""How many labels units have: what a limit leaves out, and what it would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from farthing.engine.sql.bounding import COUNT, LABEL, Bounded, TypedColumn

if TYPE_CHECKING:
    import ibis.expr.types as ir


def labels_of_units(
    rows: ir.Table, unit: TypedColumn, keys: Sequence[TypedColumn], most: int
) -> ir.Table:
    """One row for each unit: `labels`, how many different ones it has, counted up to `most`."""
    import ibis

    columns = {f"key{i}": column for i, (column, _) in enumerate(keys)}
    owned = rows.select(who=unit[0], **columns)
    pairs = owned.filter(owned.who.notnull()).distinct()
    units = pairs.group_by("who").aggregate(labels=lambda t: t.count())
    return units.select(labels=ibis.least(units.labels, most))


def pairs_above(units: ir.Table, limit: int, most: int) -> Bounded:
    """One row, one column `n`: the labels of units beyond their first `limit`.

    A unit with m labels, counted up to `most`, adds max(m − limit, 0) ≤ most − limit.
    """
    import ibis

    above: Any = ibis.greatest(units.labels - limit, 0)
    total = units.aggregate(**{COUNT: ibis.coalesce(above.sum(), 0).cast("decimal(38, 0)")})
    return Bounded(total, per_key_limit=most - limit)


def shape_of(units: ir.Table) -> ir.Table:
    """How many units have how many labels: `label` is u and the number of labels."""
    import ibis

    text = ibis.literal("u") + units.labels.cast("string")
    counted = units.mutate(shape=text).group_by("shape").aggregate(n=lambda t: t.count())
    return _shape(counted)


def sizes_of(histogram: ir.Table, most: int) -> ir.Table:
    """How many labels have which count, up to `most`: `label` is l and the count."""
    import ibis

    size = ibis.least(histogram[COUNT], most).cast("int64")
    text = ibis.literal("l") + size.cast("string")
    counted = histogram.select(shape=text).group_by("shape").aggregate(n=lambda t: t.count())
    return _shape(counted)


def _shape(counted: Any) -> ir.Table:
    return counted.select(**{LABEL: counted["shape"], COUNT: counted["n"].cast("decimal(38, 0)")})
