"""Sub-selects that group by the unit: what each unit has, as computed columns.

    SELECT AVG(visits) FROM (SELECT member, COUNT(*) AS visits FROM log GROUP BY member) AS m
    WITH f AS (SELECT member, MIN(day) AS first FROM log GROUP BY member)
        SELECT … FROM log JOIN f USING (member)
    … WHERE member IN (SELECT member FROM log WHERE event = 'buy')
    … WHERE NOT EXISTS (SELECT 1 FROM log AS b WHERE b.member = log.member AND b.event = 'buy')

The names of the sub-select stand for expressions per unit, `per_unit(count(*))`, and its WHERE and
HAVING for a condition on the unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sqlglot import expressions as sge

from farthing.engine.filters import AllOf, Between, Filter
from farthing.engine.where_text.conditions import ConditionReader, operands
from farthing.engine.where_text.expressions import Expression, Name, PerUnit
from farthing.engine.where_text.parsing import SqlText
from farthing.engine.where_text.writing import Spelled
from farthing.ledger.declared_data import Dataset

_CLAUSES = ("expressions", "from_", "where", "group", "having")
_ONE_TABLE = "a question is about one table; a sub-select of it groups by its unit"


@dataclass(frozen=True, slots=True)
class UnitTable:
    """What a sub-select says of each unit, by name, and which units it has."""

    named: Mapping[str, Expression]
    condition: Filter | None


class SelectReader(ConditionReader):
    """Reads conditions of a SELECT, in which sub-selects may say which units are meant.

    `units` are the sub-selects of its FROM by their names. Without `tables` of rows beside them,
    there are no other columns than theirs.
    """

    def __init__(
        self,
        sql: SqlText,
        about: Dataset,
        tables: frozenset[str],
        named: Mapping[str, Expression] = MappingProxyType({}),
        units: Mapping[str, Mapping[str, Expression]] = MappingProxyType({}),
    ) -> None:
        super().__init__(sql, tables | frozenset(units), named)
        self._about, self._rows_of, self._units = about, tables, units

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
    def joined(self) -> frozenset[str]:
        """The columns per unit that are joined to rows, as they are spelled."""
        tables = self._units.values() if self._rows_of else ()
        return frozenset(str(value) for table in tables for value in table.values())

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
        table = unit_table(self._sql, self._about, inner, correlated_with=outside, listed=True)
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
        super().__init__(sql, about, frozenset())
        self._rows, self._where = rows, where

    def expression(self, node: sge.Expr) -> Expression:
        if isinstance(node, sge.AggFunc | sge.Filter):
            return self._rows.per_unit(node, self._where)
        if isinstance(node, sge.Column):
            raise self._sql.refused(node, f"GROUP BY {self._about.unit}: this needs an aggregate")
        return super().expression(node)


def table_name(sql: SqlText, about: Dataset, node: sge.Expr) -> frozenset[str]:
    """The names of the table in a FROM."""
    wanted = f"the table is {about.name}, and there is no other"
    if not isinstance(node, sge.Table) or not isinstance(node.this, sge.Identifier):
        raise sql.refused(node, wanted)
    name, alias = sql.arguments(node, "this", "alias")
    if name.name != about.name:
        raise sql.refused(name, wanted)
    if alias is None:
        return frozenset((name.name,))
    (other,) = sql.arguments(alias, "this")
    return frozenset((other.name,))


def unit_table(
    sql: SqlText,
    about: Dataset,
    select: sge.Expr,
    *,
    correlated_with: SelectReader | None = None,
    listed: bool = False,
) -> UnitTable:
    """What a sub-select over the same table says of each unit. One that is `listed` after IN or
    EXISTS need not group by the unit."""
    if not isinstance(select, sge.Select):
        raise sql.refused(select, _ONE_TABLE)
    items, source, where, group, having = sql.arguments(select, *_CLAUSES)
    if source is None:
        raise sql.refused(select, _ONE_TABLE)
    tables = table_name(sql, about, source.this)
    rows = SelectReader(sql, about, tables)
    conditions = [] if where is None else [*_every(where.this)]
    if correlated_with is not None:
        same = [c for c in conditions if correlated_with.is_same_unit(c, tables)]
        if len(same) != 1:
            raise sql.refused(select, f"EXISTS must compare {about.unit} with {about.unit} outside")
        conditions.remove(same[0])
        if group or having or any(item.find(sge.AggFunc) for item in items):
            raise sql.refused(select, "EXISTS takes rows: no GROUP BY, HAVING or aggregate")
    else:
        _require_unit(sql, about, select, items, group, listed=listed and having is None)
    passing = rows.every(conditions) if conditions else None
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
    return UnitTable(named, held[0] if len(held) == 1 else AllOf(tuple(held)) if held else None)


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
    keys = [] if group is None else [key.name for key in sql.arguments(group, "expressions")[0]]
    alone = listed and group is None and len(items) == 1
    if columns not in ([about.unit], []) or not (alone or keys == [about.unit]):
        raise sql.refused(select, f"a sub-select groups by {about.unit}")
    if alone and columns != [about.unit]:
        raise sql.refused(select, f"a sub-select after IN lists {about.unit}")


def _every(node: sge.Expr) -> tuple[sge.Expr, ...]:
    return operands(node) if isinstance(node, sge.And) else (node,)
