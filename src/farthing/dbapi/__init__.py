"""DB-API 2.0 (PEP 249): questions in SQL for tools that speak it.

    import farthing.dbapi
    connection = farthing.dbapi.connect("farthing://TOKEN@data.example/salaries?farthings=20")
    cursor = connection.cursor()
    cursor.execute("SELECT yearID, COUNT(DISTINCT playerID) FROM salaries GROUP BY yearID")

With SQLAlchemy, `create_engine` takes the same address (`dialect`). A connection spends nothing
until it is allowed to (`statements`).
"""

from farthing.dbapi.connection import (
    Connection,
    Cursor,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004 # PEP 249 names it
    connect,
)
from farthing.dbapi.statements import Allowance, NotAllowed, Result, Statements

#: The version of PEP 249.
apilevel = "2.0"
#: Threads may share the module, but not its connections.
threadsafety = 1
#: Values stand for :name. Values for ? in order are read too.
paramstyle = "named"

__all__ = [
    "Allowance",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotAllowed",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Result",
    "Statements",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
