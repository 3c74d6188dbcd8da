"""The rows that a question is about, before any unit is limited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from farthing.engine.filters import Filter
from farthing.engine.keys import Key
from farthing.engine.sql.conditions import condition, key_column, moved_into
from farthing.engine.sql.statement import Texts
from farthing.schema import Bounds

if TYPE_CHECKING:
    import ibis.expr.types as ir

#: What the column that says whose row it is is called once keys are columns.
WHO = "who"


@dataclass(frozen=True, slots=True)
class Rows:
    """The declared columns of a table, which of them is the unit, and the texts of a question.

    `bounds` are those of the schema. They move numbers, never a unit: two units that were moved to
    one bound would be limited as one.
    """

    table: ir.Table
    unit: str
    kinds: Mapping[str, str]
    secret: str
    texts: Texts = field(compare=False)
    bounds: Mapping[str, Bounds] = field(default_factory=dict)

    def where(self, wanted: Filter | None) -> Rows:
        """Only the rows that pass a filter, which compares what is stored; then numbers are moved
        into their declared bounds."""
        table = self.table
        if wanted is not None:
            table = table.filter(condition(table, wanted, self.kinds, self.texts))
        moved = {
            name: moved_into(table[name], self.kinds[name], pair)
            for name, pair in self.bounds.items()
            if name != self.unit
        }
        return replace(self, table=table.mutate(**moved) if moved else table)

    @property
    def owner(self) -> tuple[Any, str]:
        """The column that says whose row it is, and its kind."""
        return self.table[self.unit], self.kinds[self.unit]

    def keyed(self, keys: Sequence[Key], **more: Any) -> Rows:
        """Whose row it is, the keys as `key0`, `key1`, …, and more columns; nothing else."""
        owner, kind = self.owner
        made = [key_column(self.table, key, self.kinds, self.texts, self.bounds) for key in keys]
        columns = {f"key{i}": column for i, (column, _) in enumerate(made)}
        kinds = {WHO: kind, **{f"key{i}": kind for i, (_, kind) in enumerate(made)}}
        table = self.table.select(**{WHO: owner}, **columns, **more)
        return replace(self, table=table, unit=WHO, kinds=kinds)
