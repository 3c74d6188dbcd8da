"""The dialect of SQLAlchemy: `create_engine("farthing://TOKEN@data.example/salaries")`.

A statement is compiled as plain SQL and read into questions. Tables and columns are those that the
owner declared.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.exc import NoSuchTableError

from farthing import dbapi
from farthing.engine.session import Session
from farthing.ledger.declared_data import Dataset
from farthing.schema import BOOLEAN, DATE, DECIMAL, INTEGER, REAL, TEXT, TIMESTAMP

_TYPES = {
    INTEGER: sa.BigInteger,
    REAL: sa.Double,
    DECIMAL: sa.Numeric,
    TEXT: sa.Text,
    BOOLEAN: sa.Boolean,
    DATE: sa.Date,
    TIMESTAMP: sa.DateTime,
}


class FarthingDialect(DefaultDialect):
    """Statements are passed on as they are; the schema is the declared one."""

    name = driver = "farthing"
    supports_statement_cache = True
    supports_native_boolean = True
    default_paramstyle = "named"
    postfetch_lastrowid = False

    @classmethod
    def import_dbapi(cls) -> Any:
        return dbapi

    def create_connect_args(self, url: URL) -> tuple[list[str], dict[str, Any]]:
        return [url.render_as_string(hide_password=False)], {}

    def do_ping(self, dbapi_connection: Any) -> bool:
        return not dbapi_connection.closed

    def _about(self, connection: Any) -> Dataset:
        raw = connection.connection.driver_connection
        session: Session = raw.session
        return session.backend.about

    def get_table_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        return [self._about(connection).name] if schema is None else []

    def has_table(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> bool:
        return table_name in self.get_table_names(connection, schema)

    def get_columns(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> list[Any]:
        about = self._about(connection)
        if table_name != about.name or schema is not None:
            raise NoSuchTableError(table_name)
        kinds = dict(about.declared_schema.kinds)
        return [
            {"name": name, "type": _TYPES[kind](), "nullable": True, "default": None}
            for name, kind in kinds.items()
        ]

    def get_pk_constraint(self, *_: Any, **__: Any) -> Any:
        return {"constrained_columns": [], "name": None}

    def _nothing(self, *_: Any, **__: Any) -> list[Any]:
        return []

    get_foreign_keys = get_indexes = get_unique_constraints = get_check_constraints = _nothing
    get_view_names = get_sequence_names = get_temp_table_names = get_schema_names = _nothing
