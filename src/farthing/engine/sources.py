"""Where rows live. A source knows its columns, compiles an expression and runs it.

Expressions are Ibis expressions over an unbound table; Ibis writes the SQL of each engine, and
the engine's own client runs it. What an engine says when it fails goes to the owner's log only.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from farthing.engine.bounding import COUNT, LABEL
from farthing.engine.columns import kind_of
from farthing.engine.errors import EngineFailure
from farthing.errors import InvalidInput

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

log = logging.getLogger("farthing.engine")


class Source(ABC):
    """One table on one engine."""

    #: The name Ibis has for the SQL of this engine.
    dialect: ClassVar[str]

    def __init__(self, table: ir.Table, *, name: str, version: str | None) -> None:
        self.table = table
        self.name = name
        #: What changes when the rows do; None where nobody can tell.
        self.version = version
        self.kinds: Mapping[str, str] = {
            column: kind_of(dtype) for column, dtype in table.schema().items()
        }

    @abstractmethod
    def fetch(self, sql: str) -> pa.Table:
        """The rows of a statement. May raise whatever the engine raises."""

    def real(self, column: Any) -> Any:
        """A column of whole or decimal numbers as floats; no value may make it fail."""
        return column.cast("float64")

    def order(self, label: Any) -> Any:
        """What to sort by so that text is in code-point order."""
        return label

    def require_unchanged(self) -> None:  # noqa: B027 # most sources cannot tell
        """The rows are those that were opened, as far as can be seen; else InvalidInput."""

    @abstractmethod
    def shut(self) -> None:
        """Give back what the engine holds."""

    def sql(self, expression: ir.Table) -> str:
        """The statement for this engine."""
        import ibis

        return str(ibis.to_sql(expression, dialect=self.dialect, pretty=False))

    def run(self, sql: str) -> pa.Table:
        """The rows of a statement, or EngineFailure without a word of what the engine said."""
        try:
            return self.fetch(sql)
        except Exception:
            log.exception("a query failed on %s (%s)", self.name, self.dialect)
        raise EngineFailure  # out here, so that the error carries no trace of the engine's own

    def require_columns(self, names: frozenset[str]) -> None:
        """Every one of these columns exists."""
        unknown = sorted(names - set(self.kinds))
        if unknown:
            raise InvalidInput(
                f"{self.name} has no column {unknown[0]}; it has {', '.join(self.kinds)}"
            )


def labels_and_counts(rows: pa.Table) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """The two columns of a bounded histogram as arrays; labels are objects, never fixed-width."""
    labels = np.empty(rows.num_rows, dtype=object)
    labels[:] = rows.column(LABEL).to_pylist()
    return labels, counts_of(rows)


def counts_of(rows: pa.Table) -> npt.NDArray[np.int64]:
    """The column of counts."""
    numbers: npt.NDArray[np.int64] = rows.column(COUNT).cast("int64").to_numpy()
    return numbers
