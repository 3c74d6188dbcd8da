"""One SELECT, read into the questions that it asks.

    SELECT yearID, COUNT(DISTINCT playerID) FROM salaries WHERE lgID = 'AL'
    GROUP BY yearID ORDER BY 2 DESC LIMIT 10

is `top_k("yearID", 10, where={"lgID": "AL"})`. Several functions are several questions. A clause
that none of our questions has is refused, and named. Written as SQL, a question is read back.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Any

from sqlglot import TokenType
from sqlglot import expressions as sge

from farthing.engine.computed.columns import with_computed
from farthing.engine.filters import AllOf, Filter, as_declared, columns_of, value_as_declared
from farthing.engine.keys import Key, key_to_json
from farthing.engine.kinds import KINDS
from farthing.engine.kinds.base import Query
from farthing.engine.kinds.completed import check_query, one_row_per_unit
from farthing.engine.sql.bounding import Label
from farthing.engine.sql_questions.clauses import (
    COUNT,
    Aggregate,
    aggregate_of,
    is_aggregate,
    key_of,
    split_options,
)
from farthing.engine.sql_questions.units import (
    SelectReader,
    read_tables,
    read_with,
    tables_of,
)
from farthing.engine.sql_questions.views import ViewReader
from farthing.engine.view import View
from farthing.engine.where_text.conditions import ConditionReader, operands
from farthing.engine.where_text.expressions import Expression, Name
from farthing.engine.where_text.parsing import SqlText, shown
from farthing.errors import InvalidInput, within_reason
from farthing.ledger.declared_data import Dataset
from farthing.schema import Schema

#: Entries after SELECT; and labels that follow from lists of values.
MOST_ENTRIES, MOST_LISTED = 100, 10_000
#: Fields that SQL says itself.
SAID = ("where", "by", "column", "per", "on", "probability", "k", "counts")
_CLAUSES = (
    *("expressions", "from_", "where", "group", "order", "limit", "joins", "with_", "having"),
)
#: The words after SELECT in another dialect: TOP 10.
_TOP = [TokenType.VAR, TokenType.NUMBER]
#: Clauses that people try, and why they are not read.
_WHY = {
    "distinct": "GROUP BY the columns and count; labels alone are a top k",
    "laterals": "a question is about one table",
    "offset": "a top k begins at the first",
    "qualify": "nothing is told about single rows",
    "windows": "nothing is told about single rows",
}


def queries_in(text: str, about: Dataset, options: Mapping[str, Any]) -> dict[str, Query]:
    """The questions of a statement about this data, by name, whatever it computes from them."""
    return select_in(text, about, options)[0]


@within_reason
def select_in(
    text: str,
    about: Dataset,
    options: Mapping[str, Any],
    named: Mapping[str, Expression] = MappingProxyType({}),
) -> tuple[dict[str, Query], View | None]:
    """The questions of a statement about this data, by name, and what it computes from their
    answers; `named` are computed columns that have a name of their own."""
    schema = about.declared_schema
    statement, said = split_options(SqlText.of(text))
    twice = sorted(set(said) & set(options))
    if twice:
        raise InvalidInput(f"{shown(twice[0])} is given twice: in OPTIONS and beside the text")
    given = {**said, **options}
    mine = sorted(set(given) & set(SAID))
    if mine:
        raise InvalidInput(f"{mine[0]} is no option: the statement itself says it")
    asked, view = _Select(statement, about, schema, named).asked(given)
    for query in asked.values():
        check_query(query, schema, about.unit)
    return asked, view


@dataclass(frozen=True, slots=True)
class SelectEntry:
    """What stands after SELECT: the place of a key and the key itself, or a number (None)."""

    name: str
    place: int | None = None
    key: Key | None = None


def select_entries(text: str, about: Dataset) -> list[SelectEntry]:
    """What a statement lists after SELECT, in its order. The statement must be one that can be
    asked (`select_in`)."""
    statement, _ = split_options(SqlText.of(text))
    return _Select(statement, about, about.declared_schema, {}).entries()


class _Select:
    """Reads one statement, clause by clause."""

    def __init__(
        self, sql: SqlText, about: Dataset, schema: Schema, named: Mapping[str, Expression]
    ) -> None:
        self._sql, self._about, self._schema = sql, about, schema
        first = (TokenType.SELECT, TokenType.WITH)
        if not sql.tokens or sql.tokens[0].token_type not in first:
            raise InvalidInput(f"a question begins with SELECT, got {shown(sql.text)}")
        if [token.token_type for token in sql.tokens[1:3]] == _TOP and "TOP" in sql.text.upper():
            raise InvalidInput("TOP: a top k is written ORDER BY the count DESC LIMIT k")
        tree = sql.parsed(sge.Select)
        if not isinstance(tree, sge.Select):
            raise sql.refused(tree, "one SELECT is one statement; ask several apart")
        _in_declared_case(tree, about)
        clauses = sql.arguments(tree, *_CLAUSES, why=_WHY)
        expressions, self._from, self._where, self._group, *more = clauses
        self._order, self._limit, joins, ctes, self._having = more
        if self._from is None:
            raise InvalidInput(f"FROM must name the data: FROM {about.name}")
        selects = read_with(sql, about, ctes)
        tables = read_tables(sql, about, self._from, joins or (), selects)
        self._rolled = False
        self._units, self._conditions = not tables.rows, tables.conditions
        self._reader = SelectReader(sql, about, tables, named, selects)
        if len(expressions) > MOST_ENTRIES:
            raise InvalidInput(f"SELECT lists at most {MOST_ENTRIES} entries, got more")
        self._items = [self._item(node) for node in expressions]

    def asked(self, options: Mapping[str, Any]) -> tuple[dict[str, Query], View | None]:
        """A query for each function, by its name; and what is computed from them, if anything."""
        keys = self._keys()
        members = {name: self._aggregate(node) for name, node in self._items if is_aggregate(node)}
        view = self._view(members, keys)
        fields: dict[str, Any] = {"by": [key_to_json(key) for key in keys]} if keys else {}
        fields |= self._filtered([] if "categories" in options else keys)
        ranked = self._ranked(members, view, fields)
        if ranked is not None:
            return self._queries({"top_k": ranked}, fields, options), None
        if not members:
            raise InvalidInput("SELECT must ask for something: COUNT(DISTINCT …), SUM(…), …")
        return self._queries(members, fields, options), None if view.is_plain else view

    def entries(self) -> list[SelectEntry]:
        """What stands after SELECT."""
        keys = self._keys()
        entries = []
        for name, node in self._items:
            if _is_number(node):
                entries.append(SelectEntry(name))
            else:
                key = self._key(node)
                written = name == self._sql.quoted(node)  # t.country is called country
                shown_as = node.name if written and isinstance(node, sge.Column) else name
                entries.append(SelectEntry(shown_as, keys.index(key), key))
        return entries

    def _view(self, members: dict[str, Aggregate], keys: Sequence[Key]) -> View:
        """What is computed from released numbers. A function that only stands inside of it becomes
        a member too."""

        def member(node: sge.Expr) -> str:
            wanted = self._aggregate(node)
            same = (name for name, one in members.items() if one == wanted)
            name = next(same, shown(node.sql()))
            while members.get(name, wanted) != wanted:
                name += "_"
            members[name] = wanted
            return name

        def place(node: sge.Expr) -> int | None:
            try:
                return keys.index(self._key(node))
            except (InvalidInput, ValueError):
                return None

        def entry(node: sge.Expr) -> sge.Expr:
            return self._entry(node, ()) if isinstance(node, sge.Column) else node

        reader = ViewReader(self._sql, self._reader, member, place, entry)
        columns: dict[str, Expression] = {}
        for name, node in self._items:
            if not _is_number(node):
                self._require_key(node, keys)
            elif name in columns:
                raise InvalidInput(f"{shown(name)} stands twice; name one of them with AS")
            else:
                columns[name] = Name(name) if is_aggregate(node) else reader.expression(node)
        if not keys and (self._having or self._order or self._limit):
            clause = self._having or self._order or self._limit
            raise self._sql.refused(clause, "without GROUP BY there is one row; leave this out")
        having = None if self._having is None else reader.condition(self._having.this)
        order = []
        for ordered in () if self._order is None else self._order.expressions:
            node, descends, _ = self._sql.arguments(ordered, "this", "desc", "nulls_first")
            order.append((reader.expression(self._entry(node, ())), bool(descends)))
        if self._limit is not None and not order:
            raise self._sql.refused(self._limit, "which ones? ORDER BY the count DESC")
        limit = None if self._limit is None else self._count_of_labels()
        view = View(columns, having, tuple(order), limit)
        if any(one.kind == "regression" for one in members.values()) and not view.is_plain:
            raise InvalidInput("a regression has several numbers; ask it in a SELECT of its own")
        return view

    def _queries(
        self,
        aggregates: Mapping[str, Aggregate],
        shared: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> dict[str, Query]:
        queries, used = {}, set()
        for name, aggregate in aggregates.items():
            kind = aggregate.kind
            if self._rolled and kind != COUNT:
                raise InvalidInput(f"{shown(name)}: ROLLUP is for COUNT, without LIMIT")
            if kind == COUNT and "by" in shared:
                kind = "rollup" if self._rolled else "histogram"
            query = KINDS.get(kind)
            if query is None or ("by" in shared and "by" not in query.field_names()):
                raise InvalidInput(f"{shown(name)}: this has no answer for each group")
            fixed = {**shared, **aggregate.fields}
            if aggregate.where is not None:
                own = _declared(aggregate.where, self._schema)
                fixed["where"] = AllOf((shared["where"], own)) if "where" in shared else own
            free = {
                option: value
                for option, value in options.items()
                if option in query.field_names() and option not in aggregate.fields
            }
            used |= set(free)
            if aggregate.of_rows or (kind == "top_k" and "per_key_limit" not in aggregate.fields):
                fixed["per_key_limit"] = self._rows_of_a_unit(free)
            queries[name] = query.from_fields({**fixed, **free})
            self._require_rows(name, queries[name])
        unused = sorted(set(options) - used)
        if unused:
            raise InvalidInput(f"nothing here has the option {shown(unused[0])}")
        return queries

    def _require_rows(self, name: str, query: Query) -> None:
        """In a join with rows, SQL counts what a unit has as often as the unit has rows."""
        measures = "column" in query.field_names() and self._reader.joins_units
        if measures and one_row_per_unit(query, self._schema):
            raise InvalidInput(
                f"{shown(name)}: this has one value for each {self._about.unit}; ask it FROM the "
                "sub-select"
            )

    def _rows_of_a_unit(self, options: Mapping[str, Any]) -> Any:
        """How many rows of a unit count: rows without a limit are not counted."""
        limit = options.get("per_key_limit", self._about.limits.per_key_limit)
        if limit is None and not self._about.rows_are_units:
            unit = self._about.unit
            raise InvalidInput(
                f"COUNT(*) counts rows and needs per_key_limit, the most that count of one {unit}; "
                f"COUNT(DISTINCT {unit}) needs none"
            )
        return 1 if limit is None else limit

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
        if nodes and len(nodes) == 1 and isinstance(nodes[0], sge.Rollup):
            self._rolled = True
            (nodes,) = self._sql.arguments(nodes[0], "expressions")
        if not nodes:
            raise self._sql.refused(self._group, "name the columns of the groups")
        return [self._key(self._entry(node, self._schema)) for node in nodes]

    def _key(self, node: sge.Expr) -> Key:
        return key_of(node, self._sql, self._reader)

    def _require_key(self, node: sge.Expr, keys: Sequence[Key]) -> None:
        if isinstance(node, sge.Star):
            raise self._sql.refused(node, "rows are not told; ask COUNT(*), AVG(column), …")
        if self._key(node) not in keys:
            raise self._sql.refused(node, "a column by itself is not told; GROUP BY it and count")

    def _aggregate(self, node: sge.Expr) -> Aggregate:
        aggregate = aggregate_of(node, self._sql, self._reader, self._about.unit)
        if (self._units or self._about.rows_are_units) and aggregate.of_rows:  # a row is a unit
            return replace(aggregate, fields={"per_key_limit": 1})
        return aggregate

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
        where, labels = None, None
        if self._where is not None:
            (condition,) = self._sql.arguments(self._where, "this")
            where, labels = _filter_and_labels(condition, keys, self._reader, self._schema)
        parts = [*self._conditions, *([] if where is None else [where])]
        if not parts:
            return {} if labels is None else {"categories": labels}
        where = parts[0] if len(parts) == 1 else AllOf(tuple(parts))
        return {"where": where} if labels is None else {"where": where, "categories": labels}

    def _ranked(
        self, members: Mapping[str, Aggregate], view: View, fields: Mapping[str, Any]
    ) -> Aggregate | None:
        """ORDER BY a count DESC LIMIT k, and nothing else: the k labels with the largest counts."""
        match view:
            case View(columns, None, ((Name(name), True),), int(k)) if (
                len(members) == 1 and members[name].kind == COUNT
            ):
                if set(columns.values()) <= {Name(name)}:
                    most = k if fields.get("categories") is None else len(fields["categories"])
                    given = {"k": min(k, most), "counts": bool(columns)}
                    fields_of = {**members[name].fields, **given}
                    return replace(members[name], kind="top_k", fields=fields_of)
        return None

    def _count_of_labels(self) -> int:
        number = self._limit.expression if type(self._limit) is sge.Limit else None
        if isinstance(number, sge.Literal):
            self._sql.arguments(self._limit, "expression")
            k = self._reader.value(number)
            if isinstance(k, int):
                return k
        raise self._sql.refused(self._limit, "LIMIT must be followed by a whole number")


def _is_number(node: sge.Expr) -> bool:
    """Whether an entry is computed from functions of rows; otherwise it is a key."""
    return node.find(sge.AggFunc) is not None or isinstance(node, sge.Window)


def _in_declared_case(tree: sge.Expr, about: Dataset) -> None:
    """Names without quotes in the capitals that were declared: to SQL they are the same name."""
    own = {node.alias for node in tree.find_all(sge.Alias, sge.TableAlias)}
    declared: dict[str, set[str]] = {}
    for name in (*about.declared_schema.kinds, about.name, *map(str, tables_of(about))):
        declared.setdefault(name.lower(), set()).add(name)
    for node in tree.find_all(sge.Identifier):
        names = declared.get(node.name.lower(), set())
        if len(names) == 1 and not node.quoted and node.name not in own:
            node.set("this", min(names))


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
        return _declared(reader.every(nodes), schema), None
    values = [lists[key][0] for key in keys]
    labels: list[Label] = list(product(*values)) if len(keys) > 1 else list(values[0])
    places = {place for _, place in lists.values()}
    rest = [node for place, node in enumerate(nodes) if place not in places]
    return _declared(reader.every(rest), schema) if rest else None, labels


def _declared(where: Filter, schema: Schema) -> Filter:
    """The filter with every value in the form of its column, stored or computed."""
    return as_declared(where, with_computed(schema, columns_of(where)).kinds)


def _lists(
    nodes: Sequence[sge.Expr], keys: Sequence[Key], reader: ConditionReader, schema: Schema
) -> dict[Key, tuple[list[Any], int]]:
    """For each key the values that a condition lists, and where it does so first."""
    lists: dict[Key, tuple[list[Any], int]] = {}
    for place, node in enumerate(nodes):
        bare = node.unnest()
        if not isinstance(bare, sge.In) or bare.args.get("query") is not None:
            continue
        key = reader.column(bare.this)
        if key in keys and key not in lists:
            kind = with_computed(schema, [key])[key].kind
            values = (value_as_declared(key, kind, value) for value in reader.values_of(bare))
            lists[key] = list(dict.fromkeys(values)), place
    return lists
