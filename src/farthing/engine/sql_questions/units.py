"""What stands after FROM: the rows, and sub-selects that group by the unit.

    SELECT AVG(visits) FROM (SELECT member, COUNT(*) AS visits FROM log GROUP BY member) AS m
    WITH f AS (SELECT member, MIN(day) AS first FROM log GROUP BY member)
        SELECT … FROM log JOIN f USING (member)
    … WHERE member IN (SELECT member FROM log WHERE event = 'buy')
    … WHERE NOT EXISTS (SELECT 1 FROM log AS b WHERE b.member = log.member AND b.event = 'buy')

The names of a sub-select stand for expressions per unit, `per_unit(count(*))`, and its WHERE and
HAVING for a condition on the unit. After LEFT JOIN the names are missing where it does not hold. Of
tables that are read as one, each can be named too: FROM orders means the rows with "table" =
'orders'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from sqlglot import expressions as sge

from farthing.engine.filters import AllOf, Between, Equals, Filter
from farthing.engine.sources.tables import TABLE_COLUMN
from farthing.engine.where_text.conditions import ConditionReader, operands
from farthing.engine.where_text.expressions import Case, Expression, Name, PerUnit
from farthing.engine.where_text.parsing import SqlText
from farthing.engine.where_text.writing import Spelled
from farthing.ledger.declared_data import Dataset

_CLAUSES = ("expressions", "from_", "where", "group", "having", "joins")
_ONE_TABLE = "a question is about one table; a sub-select of it groups by its unit"
#: Which joins are read: their side and their kind.
_JOINS = (("", ""), ("", "INNER"), ("LEFT", ""), ("LEFT", "OUTER"))


@dataclass(frozen=True, slots=True)
class UnitTable:
    """What a sub-select says of each unit, by name, and which units it has."""

    named: Mapping[str, Expression]
    condition: Filter | None

    @property
    def where_it_holds(self) -> Mapping[str, Expression]:
        """The same names, missing for units that it does not have."""
        if self.condition is None:
            return self.named
        return {name: Case(((self.condition, given),)) for name, given in self.named.items()}


#: The sub-selects of a WITH by their names, each with those before it.
Selects: TypeAlias = Mapping[str, tuple[sge.Expr, "Selects"]]
NO_SELECTS: Selects = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Tables:
    """What a FROM says: the names of the rows, tables with a row for each unit by their names, and
    which rows and units there are."""

    rows: frozenset[str]
    units: Mapping[str, Mapping[str, Expression]]
    conditions: tuple[Filter, ...]


class SelectReader(ConditionReader):
    """Reads conditions of a SELECT, in which sub-selects may say which units are meant.

    Where a FROM has tables with a row for each unit alone, there are no other columns than theirs.
    """

    def __init__(
        self,
        sql: SqlText,
        about: Dataset,
        tables: Tables,
        named: Mapping[str, Expression] = MappingProxyType({}),
        selects: Selects = NO_SELECTS,
    ) -> None:
        super().__init__(sql, tables.rows | frozenset(tables.units), named)
        self._about, self._rows_of, self._units = about, tables.rows, tables.units
        self._selects = selects

    def named(self, node: sge.Column) -> Expression:
        name = self._stored(node)
        if node.table in self._rows_of or not self._units:
            return Name(name) if node.table else super().named(node)
        tables = [node.table] if node.table else list(self._units)
        found = [self._units[table][name] for table in tables if name in self._units[table]]
        stored = bool(self._rows_of) and name in self._about.declared_schema and not node.table
        if len(found) + stored > 1:
            raise self._sql.refused(node, "several tables have this column; name one of them")
        if found:
            return found[0]
        if node.table or not self._rows_of:
            raise self._sql.refused(node, "the sub-select has no column of this name")
        return super().named(node)

    @property
    def joins_units(self) -> bool:
        """Whether columns per unit are joined to rows."""
        return bool(self._rows_of and self._units)

    def filter(self, node: sge.Expr) -> Filter:
        match node:
            case sge.In(this=this, args={"query": sge.Subquery(this=sge.Select() as inner)}):
                if not isinstance(this, sge.Column) or this.name != self._about.unit:
                    raise self._sql.refused(node, f"only {self._about.unit} can be IN a sub-select")
                return self._members(inner)
            case sge.Exists(this=sge.Select() as inner):
                return self._members(inner, correlated=True)
        return super().filter(node)

    def _members(self, inner: sge.Select, *, correlated: bool = False) -> Filter:
        """The units that a sub-select lists: those with a row that passes."""
        outside = self if correlated else None
        table = unit_table(
            self._sql, self._about, inner, self._selects, correlated_with=outside, listed=True
        )
        return table.condition or Between(Spelled(PerUnit("count")), above=0)

    def is_same_unit(self, node: sge.Expr, inner: frozenset[str]) -> bool:
        """Whether this says that the unit of the sub-select is the one outside."""
        if not isinstance(node, sge.EQ):
            return False
        sides = [node.this, node.expression]
        if not all(isinstance(s, sge.Column) and s.name == self._about.unit for s in sides):
            return False
        tables = [side.table for side in sides]
        return any(
            a in inner and b in self._tables and b not in inner for a, b in (tables, tables[::-1])
        )


class _UnitReader(SelectReader):
    """Reads what stands beside GROUP BY unit: aggregates, which are per unit, and what is computed
    from them."""

    def __init__(
        self, rows: SelectReader, sql: SqlText, about: Dataset, where: Filter | None
    ) -> None:
        super().__init__(sql, about, Tables(frozenset(), {}, ()))
        self._rows, self._where = rows, where

    def expression(self, node: sge.Expr) -> Expression:
        if isinstance(node, sge.AggFunc | sge.Filter):
            return self._rows.per_unit(node, self._where)
        if isinstance(node, sge.Column):
            raise self._sql.refused(node, f"GROUP BY {self._about.unit}: this needs an aggregate")
        return super().expression(node)


def read_tables(
    sql: SqlText, about: Dataset, source: sge.From, joins: Iterable[sge.Join], selects: Selects
) -> Tables:
    """What FROM says: the rows, tables with a row for each unit, or both joined by the unit."""
    (first,) = sql.arguments(source, "this")
    rows, conditions = frozenset[str](), list[Filter]()
    units: dict[str, Mapping[str, Expression]] = {}
    outer = {id(join.this) for join in joins if join.args.get("side")}
    for table in (first, *(join.this for join in joins)):
        select, name, before = _sub_select(sql, table, selects)
        if name in units or name in rows:
            raise sql.refused(table, "two tables of one name; name one of them with AS")
        if select is not None:
            found = unit_table(sql, about, select, before)
            optional = id(table) in outer
            units[name] = found.where_it_holds if optional else found.named
            conditions += [] if optional or found.condition is None else [found.condition]
        elif rows or id(table) in outer:
            raise sql.refused(table, _instead_of(about, name))
        else:
            rows, of_table = _rows_of(sql, about, table)
            conditions += [] if of_table is None else [of_table]
    for join in joins:
        _require_by_unit(sql, about, join, {*rows, *units})
    return Tables(rows, units, tuple(conditions))


def read_with(sql: SqlText, about: Dataset, ctes: sge.With | None) -> Selects:
    """The sub-selects of a WITH by their names."""
    selects: dict[str, tuple[sge.Expr, Selects]] = {}
    for cte in () if ctes is None else sql.arguments(ctes, "expressions")[0]:
        this, alias = sql.arguments(cte, "this", "alias")
        (name,) = sql.arguments(alias, "this")
        if name.name in selects or name.name in (about.name, *tables_of(about)):
            raise sql.refused(cte, "this name is taken")
        selects[name.name] = this, MappingProxyType(dict(selects))
    return selects


def _sub_select(
    sql: SqlText, table: sge.Expr, selects: Selects
) -> tuple[sge.Expr | None, str, Selects]:
    """The sub-select that stands here, if it is one; its name, and what it can name itself."""
    written = isinstance(table, sge.Table) and table.name in selects
    if not isinstance(table, sge.Subquery) and not written:
        return None, table.alias_or_name, selects
    this, alias = sql.arguments(table, "this", "alias")
    if alias is not None:
        sql.arguments(alias, "this")
    select, before = selects[table.name] if written else (this, selects)
    return select, table.alias_or_name, before


def tables_of(about: Dataset) -> tuple[str | int, ...]:
    """The tables that are read as one, if they are declared."""
    schema = about.schema
    if schema is None or TABLE_COLUMN not in schema or not schema[TABLE_COLUMN].is_stored:
        return ()
    return schema[TABLE_COLUMN].categories or ()


def _rows_of(sql: SqlText, about: Dataset, node: sge.Expr) -> tuple[frozenset[str], Filter | None]:
    """The names of the rows in a FROM, and which of several tables they are from."""
    tables = tables_of(about)
    wanted = f"the table is {about.name}, and there is no other"
    if tables:
        wanted = f"the tables are {', '.join(map(str, tables)):.90}; all of them are {about.name}"
    if not isinstance(node, sge.Table) or not isinstance(node.this, sge.Identifier):
        raise sql.refused(node, wanted)
    name, alias = sql.arguments(node, "this", "alias")
    if name.name != about.name and name.name not in tables:
        raise sql.refused(name, wanted)
    where = None if name.name == about.name else Equals(TABLE_COLUMN, name.name)
    if alias is None:
        return frozenset((name.name,)), where
    (other,) = sql.arguments(alias, "this")
    return frozenset((other.name,)), where


def _instead_of(about: Dataset, name: str) -> str:
    """Why there are not the rows of two tables, and what can be joined."""
    if name not in tables_of(about):
        return f"{_ONE_TABLE}; only such a table can be joined, and what an owner declared"
    return (
        f"rows are joined with what each {about.unit} has: JOIN (SELECT {about.unit}, MAX(…) AS … "
        f"FROM {name} GROUP BY {about.unit}) AS {name[:1]} USING ({about.unit})"
    )


def _require_by_unit(sql: SqlText, about: Dataset, join: sge.Join, tables: set[str]) -> None:
    """A join is by the unit: USING (unit), or ON one.unit = other.unit."""
    _, using, on, side, kind = sql.arguments(join, "this", "using", "on", "side", "kind")
    sides = [on.this, on.expression] if isinstance(on, sge.EQ) else []
    same = [getattr(one, "name", None) for one in sides] == [about.unit, about.unit]
    apart = {one.table for one in sides if isinstance(one, sge.Column)}
    same = same and len(apart) == 2 and apart <= tables
    by_name = on is None and [name.name for name in using or ()] == [about.unit]
    if (side or "", kind or "") not in _JOINS or not (same or by_name):
        raise sql.refused(
            join, f"a join is an inner or a left one, by the unit: JOIN … USING ({about.unit})"
        )


def unit_table(
    sql: SqlText,
    about: Dataset,
    select: sge.Expr,
    selects: Selects = NO_SELECTS,
    *,
    correlated_with: SelectReader | None = None,
    listed: bool = False,
) -> UnitTable:
    """What a sub-select over the same table says of each unit. One that is `listed` after IN or
    EXISTS need not group by the unit."""
    if not isinstance(select, sge.Select):
        raise sql.refused(select, _ONE_TABLE)
    items, source, where, group, having, joins = sql.arguments(select, *_CLAUSES)
    if source is None:
        raise sql.refused(select, _ONE_TABLE)
    tables = read_tables(sql, about, source, joins or (), selects)
    rows = SelectReader(sql, about, tables, selects=selects)
    conditions = [] if where is None else [*_every(where.this)]
    if correlated_with is not None:
        inner = tables.rows | frozenset(tables.units)
        same = [c for c in conditions if correlated_with.is_same_unit(c, inner)]
        if len(same) != 1:
            raise sql.refused(select, f"EXISTS must compare {about.unit} with {about.unit} outside")
        conditions.remove(same[0])
        if group or having or any(item.find(sge.AggFunc) for item in items):
            raise sql.refused(select, "EXISTS takes rows: no GROUP BY, HAVING or aggregate")
    else:
        _require_unit(sql, about, select, items, group, listed=listed and having is None)
    passing = _all((*tables.conditions, *([rows.every(conditions)] if conditions else [])))
    if not tables.rows:  # where a row is a unit
        if not listed or group is not None or having is not None:
            raise sql.refused(select, f"a sub-select is about the rows of {about.name}")
        return UnitTable({}, passing)
    units = _UnitReader(rows, sql, about, passing)
    named = {}
    for item in items if group is not None else ():
        if isinstance(item, sge.Column):
            continue
        if not isinstance(item, sge.Alias) or item.alias in named:
            raise sql.refused(item, "name it with AS, by a name of its own")
        named[item.alias] = units.expression(item.this)
    held: list[Filter] = []
    if passing is not None:
        held.append(Between(Spelled(PerUnit("count", None, passing)), above=0))
    held += [] if having is None else [units.filter(having.this)]
    return UnitTable(named, _all(held))


def _all(parts: Sequence[Filter]) -> Filter | None:
    """What all of them say together."""
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts)) if parts else None


def _require_unit(
    sql: SqlText,
    about: Dataset,
    select: sge.Select,
    items: list[sge.Expr],
    group: sge.Expr | None,
    *,
    listed: bool,
) -> None:
    """It groups by the unit; or it lists units, where that is enough."""
    columns = [item.name for item in items if isinstance(item, sge.Column)]
    keys = (
        []
        if group is None
        else [_key(key, items) for key in sql.arguments(group, "expressions")[0]]
    )
    alone = listed and group is None and len(items) == 1
    if columns not in ([about.unit], []) or not (alone or keys == [about.unit]):
        raise sql.refused(select, f"a sub-select groups by {about.unit}")
    if alone and columns != [about.unit]:
        raise sql.refused(select, f"a sub-select after IN lists {about.unit}")


def _key(key: sge.Expr, items: list[sge.Expr]) -> str:
    """What a sub-select groups by: a column by its name or its place."""
    place = int(key.this) if isinstance(key, sge.Literal) and key.this in ("1", "2") else 0
    return items[place - 1].name if 0 < place <= len(items) else key.name


def _every(node: sge.Expr) -> tuple[sge.Expr, ...]:
    return operands(node) if isinstance(node, sge.And) else (node,)
