"""Questions about a key: which columns it has, and which labels if they are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from farthing.engine.kinds.base import Query, Rows
from farthing.engine.kinds.fields import require_categories
from farthing.engine.sql.conditions import require_fits, require_kind, within
from farthing.engine.sql.keys import Label
from farthing.schema import KEYS, Schema


class KeyQuery(Query):
    """A question about the labels that a key gives to rows."""

    __slots__ = ()

    by: object
    categories: object

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the key."""
        return cast(tuple[str, ...], self.by)

    @property
    def domain(self) -> tuple[Label, ...] | None:
        """The labels, where they are known in advance."""
        return cast(tuple[Label, ...] | None, self.categories)

    @property
    def size(self) -> int | None:
        """How many labels there are, where they are known."""
        return None if self.domain is None else len(self.domain)

    def check_fields(self) -> None:
        require_categories(self.domain, len(self.key))

    def columns(self) -> frozenset[str]:
        return frozenset(self.key)

    def check_columns(self, schema: Schema) -> None:
        for name in self.key:
            require_kind(name, schema.kinds[name], KEYS, "a key")
        for label in self.domain or ():
            parts = label if isinstance(label, tuple) else (label,)
            for name, part in zip(self.key, parts, strict=True):
                require_fits(name, schema.kinds[name], part)

    def keyed(self, rows: Rows) -> tuple[Rows, list[tuple[Any, str]]]:
        """The rows, and the columns of the key with their kinds.

        Rows outside a known domain go first, so that no unit spends its limit on them.
        """
        if self.domain is not None:
            table = within(rows.table, self.key, self.domain, rows.kinds, rows.texts)
            rows = replace(rows, table=table)
        return rows, [(rows.table[name], rows.kinds[name]) for name in self.key]

    @property
    def headings(self) -> tuple[str, ...]:
        return self.key
