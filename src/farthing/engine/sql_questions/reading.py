"""One SELECT, read into the questions that it asks.

    SELECT yearID, COUNT(DISTINCT playerID) FROM salaries WHERE lgID = 'AL'
    GROUP BY yearID ORDER BY 2 DESC LIMIT 10

is `top_k("yearID", 10, where={"lgID": "AL"})`. Several functions are several questions. A clause
that none of our questions has is refused, and named.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from sqlglot import TokenType
from sqlglot import expressions as sge

from farthing.engine.filters import Filter, as_declared, value_as_declared
from farthing.engine.keys import Key, key_to_json
from farthing.engine.kinds import KINDS
from farthing.engine.kinds.base import Query, check_query
from farthing.engine.sql.bounding import Label
from farthing.engine.sql_questions.clauses import (
    COUNT,
    Aggregate,
    aggregate_of,
    is_aggregate,
    is_key,
    key_of,
    split_options,
)
from farthing.engine.where_text.parsing import SqlText, shown, within_reason
from farthing.engine.where_text.reading import ConditionReader, operands
from farthing.errors import InvalidInput
from farthing.ledger.declared_data import Dataset
from farthing.schema import Schema

#: Entries after SELECT; and labels that follow from lists of values.
MOST_ENTRIES, MOST_LISTED = 100, 10_000
#: Fields that SQL says itself.
SAID = ("where", "by", "column", "probability", "k", "counts")
_CLAUSES = ("expressions", "from_", "where", "group", "order", "limit")
#: Clauses that people try, and why they are not read.
_WHY = {
    "distinct": "GROUP BY the columns and count; labels alone are a top k",
    "having": "which counts are told is decided by noise and a threshold, not by exact counts",
    "joins": "a question is about one table; what is joined to it is declared by its owner",
    "laterals": "a question is about one table",
    "offset": "a top k begins at the first",
    "qualify": "nothing is told about single rows",
    "windows": "nothing is told about single rows",
}


@within_reason
def queries_in(text: str, about: Dataset, options: Mapping[str, Any]) -> dict[str, Query]:
    """The questions of a statement about this data, by name."""
    schema = about.declared_schema
    statement, said = split_options(SqlText.of(text))
    twice = sorted(set(said) & set(options))
    if twice:
        raise InvalidInput(f"{shown(twice[0])} is given twice: in OPTIONS and beside the text")
    given = {**said, **options}
    mine = sorted(set(given) & set(SAID))
    if mine:
        raise InvalidInput(f"{mine[0]} is no option: the statement itself says it")
    asked = _Select(statement, about, schema).asked(given)
    for query in asked.values():
        check_query(query, schema, about.unit)
    return asked


class _Select:
    """Reads one statement, clause by clause."""

    def __init__(self, sql: SqlText, about: Dataset, schema: Schema) -> None:
        self._sql, self._about, self._schema = sql, about, schema
        if not sql.tokens or sql.tokens[0].token_type != TokenType.SELECT:
            raise InvalidInput(f"a question begins with SELECT, got {shown(sql.text)}")
        tree = sql.parsed(sge.Select)
        if not isinstance(tree, sge.Select):
            raise sql.refused(tree, "one SELECT is one statement; ask several apart")
        (
            self._expressions,
            self._from,
            self._where,
            self._group,
            self._order,
            self._limit,
        ) = sql.arguments(tree, *_CLAUSES, why=_WHY)
        self._reader = ConditionReader(sql, self._tables())
        if len(self._expressions) > MOST_ENTRIES:
            raise InvalidInput(f"SELECT lists at most {MOST_ENTRIES} entries, got more")
        self._items = [self._item(node) for node in self._expressions]

    def asked(self, options: Mapping[str, Any]) -> dict[str, Query]:
        """A query for each function, by its name."""
        keys = self._keys()
        aggregates: dict[str, Aggregate] = {}
        for name, node in self._items:
            if not is_aggregate(node):
                self._require_key(node, keys)
            elif name in aggregates:
                raise InvalidInput(f"{shown(name)} stands twice; name one of them with AS")
            else:
                aggregates[name] = self._aggregate(node)
        fields: dict[str, Any] = {"by": [key_to_json(key) for key in keys]} if keys else {}
        fields |= self._filtered([] if "categories" in options else keys)
        if self._order is not None or self._limit is not None:
            aggregates = {"top_k": self._ranked(list(aggregates.values()), keys, fields)}
        elif not aggregates:
            raise InvalidInput("SELECT must ask for something: COUNT(DISTINCT …), SUM(…), …")
        return self._queries(aggregates, fields, options)

    def _queries(
        self,
        aggregates: Mapping[str, Aggregate],
        shared: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> dict[str, Query]:
        queries, used = {}, set()
        for name, aggregate in aggregates.items():
            kind = aggregate.kind
            if kind == COUNT and "by" in shared:
                kind = "histogram"
            query = KINDS.get(kind)
            if query is None or ("by" in shared and "by" not in query.field_names()):
                raise InvalidInput(f"{shown(name)}: this has no answer for each group")
            fixed = {**shared, **aggregate.fields}
            free = {
                option: value
                for option, value in options.items()
                if option in query.field_names() and option not in aggregate.fields
            }
            used |= set(free)
            if aggregate.of_rows or (kind == "top_k" and "per_key_limit" not in aggregate.fields):
                fixed["per_key_limit"] = self._rows_of_a_unit(free)
            queries[name] = query.from_fields({**fixed, **free})
        unused = sorted(set(options) - used)
        if unused:
            raise InvalidInput(f"nothing here has the option {shown(unused[0])}")
        return queries

    def _rows_of_a_unit(self, options: Mapping[str, Any]) -> Any:
        """How many rows of a unit count: rows without a limit are not counted."""
        limit = options.get("per_key_limit", self._about.limits.per_key_limit)
        if limit is None:
            unit = self._about.unit
            raise InvalidInput(
                f"COUNT(*) counts rows and needs per_key_limit, the most that count of one {unit}; "
                f"COUNT(DISTINCT {unit}) needs none"
            )
        return limit

    def _tables(self) -> frozenset[str]:
        """The names of the table in this statement."""
        if self._from is None:
            raise InvalidInput(f"FROM must name the data: FROM {self._about.name}")
        (table,) = self._sql.arguments(self._from, "this")
        wanted = f"the table is {self._about.name}, and there is no other"
        if not isinstance(table, sge.Table) or not isinstance(table.this, sge.Identifier):
            raise self._sql.refused(table, wanted)
        name, alias = self._sql.arguments(table, "this", "alias")
        if name.name != self._about.name:
            raise self._sql.refused(name, wanted)
        if alias is None:
            return frozenset((name.name,))
        (other,) = self._sql.arguments(alias, "this")
        return frozenset((name.name, other.name))

    def _item(self, node: sge.Expr) -> tuple[str, sge.Expr]:
        """The name of an entry after SELECT, and the entry."""
        if isinstance(node, sge.Alias):
            this, alias = self._sql.arguments(node, "this", "alias")
            return alias.name, this
        return self._sql.quoted(node), node

    def _keys(self) -> list[Key]:
        """What the rows are grouped by: columns, or entries after SELECT by place or name."""
        if self._group is None:
            return []
        (nodes,) = self._sql.arguments(self._group, "expressions")
        if not nodes:
            raise self._sql.refused(self._group, "name the columns of the groups")
        return [self._key(self._entry(node, self._schema)) for node in nodes]

    def _key(self, node: sge.Expr) -> Key:
        return key_of(node, self._sql, self._reader)

    def _require_key(self, node: sge.Expr, keys: Sequence[Key]) -> None:
        if not is_key(node):
            self._aggregate(node)
        if self._key(node) not in keys:
            raise self._sql.refused(node, "a column by itself is not told; GROUP BY it and count")

    def _aggregate(self, node: sge.Expr) -> Aggregate:
        return aggregate_of(node, self._sql, self._reader, self._about.unit)

    def _entry(self, node: sge.Expr, columns: Container[str]) -> sge.Expr:
        """An entry after SELECT, if this is its place, or its name and not one of `columns`."""
        if isinstance(node, sge.Literal):
            place = node.this if not node.is_string and len(node.this) < 4 else ""
            if not place.isdecimal() or not 1 <= int(place) <= len(self._items):
                raise self._sql.refused(node, f"there are {len(self._items)} entries after SELECT")
            return self._items[int(place) - 1][1]
        if isinstance(node, sge.Column) and node.name not in columns:
            return next((entry for name, entry in self._items if name == node.name), node)
        return node

    def _filtered(self, keys: Sequence[Key]) -> dict[str, Any]:
        if self._where is None:
            return {}
        (condition,) = self._sql.arguments(self._where, "this")
        where, labels = _filter_and_labels(condition, keys, self._reader, self._schema)
        return {"where": where} if labels is None else {"where": where, "categories": labels}

    def _ranked(
        self, aggregates: Sequence[Aggregate], keys: Sequence[Key], fields: dict[str, Any]
    ) -> Aggregate:
        """ORDER BY a count DESC LIMIT k: the k labels with the largest counts."""
        if self._order is None:
            raise self._sql.refused(self._limit, "which ones? ORDER BY the count DESC")
        (ordered,) = self._sql.arguments(self._order, "expressions")
        if self._limit is None or not keys:
            raise self._sql.refused(
                self._order, "an answer has its own order; with GROUP BY and LIMIT it is a top k"
            )
        node, descending, _ = self._sql.arguments(ordered[0], "this", "desc", "nulls_first")
        target = self._entry(node, ())
        if len(ordered) != 1 or not descending or not is_aggregate(target):
            raise self._sql.refused(self._order, "a top k is ordered by its count alone, DESC")
        by = self._aggregate(target)
        if by.kind != COUNT or (aggregates and list(aggregates) != [by]):
            raise self._sql.refused(self._order, "a top k has one count, and is ordered by it")
        k = self._count_of_labels()
        if fields.get("categories") is not None:
            k = min(k, len(fields["categories"]))
        return Aggregate("top_k", {**by.fields, "k": k, "counts": bool(aggregates)})

    def _count_of_labels(self) -> int:
        number = self._limit.expression if type(self._limit) is sge.Limit else None
        if isinstance(number, sge.Literal):
            self._sql.arguments(self._limit, "expression")
            k = self._reader.value(number)
            if isinstance(k, int):
                return k
        raise self._sql.refused(self._limit, "LIMIT must be followed by a whole number")


def _filter_and_labels(
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
