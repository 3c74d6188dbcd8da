"""WHERE: a filter, and the labels of the groups where it lists the values of every key."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from sqlglot import expressions as sge

from farthing.engine.filters import Filter, as_declared, value_as_declared
from farthing.engine.keys import Key
from farthing.engine.sql.keys import Label
from farthing.engine.where_text.reading import ConditionReader, operands
from farthing.schema import Schema

#: Labels that follow from lists of values are written out up to this many.
MOST_LISTED = 10_000


def filter_and_labels(
    condition: sge.Expr, keys: Sequence[Key], reader: ConditionReader, schema: Schema
) -> tuple[Filter | None, list[Label] | None]:
    """What is left of the condition without the lists of the keys' values, and the labels.

    `WHERE a IN ('x', 'y') GROUP BY a` says which labels there are. Unless every key has its list,
    the condition is a filter as a whole.
    """
    nodes = operands(condition) if isinstance(condition, sge.And) else (condition,)
    lists = _lists(nodes, keys, reader, schema)
    size = prod(len(values) for values, _ in lists.values())
    if not keys or set(lists) != set(keys) or size > MOST_LISTED:
        return as_declared(reader.every(nodes), schema.kinds), None
    values = [lists[key][0] for key in keys]
    labels: list[Label] = list(product(*values)) if len(keys) > 1 else list(values[0])
    places = {place for _, place in lists.values()}
    rest = [node for place, node in enumerate(nodes) if place not in places]
    return as_declared(reader.every(rest), schema.kinds) if rest else None, labels


def _lists(
    nodes: Sequence[sge.Expr], keys: Sequence[Key], reader: ConditionReader, schema: Schema
) -> dict[Key, tuple[list[Any], int]]:
    """For each key the values that a condition lists, and where it does so first."""
    lists: dict[Key, tuple[list[Any], int]] = {}
    for place, node in enumerate(nodes):
        bare = node.unnest()
        if not isinstance(bare, sge.In) or not isinstance(bare.this, sge.Column):
            continue
        key = reader.column(bare.this)
        if key in keys and key not in lists:
            kind = schema[key].kind
            values = (value_as_declared(key, kind, value) for value in reader.values_of(bare))
            lists[key] = list(dict.fromkeys(values)), place
    return lists
