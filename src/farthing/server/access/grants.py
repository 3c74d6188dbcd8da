"""Which datasets an analyst knows of: those of the token for which the ledger has a purse.

One statement finds all of them, whichever is asked for: that a dataset does not exist takes as
long to find out as that it is somebody else's.
"""

from __future__ import annotations

from sqlalchemy import Connection, select

from farthing.ledger import Ledger
from farthing.ledger.store.tables import datasets, purses
from farthing.server.access.who import AnalystCaller


def granted(ledger: Ledger, caller: AnalystCaller) -> list[str]:
    """Names of the datasets that this caller may know of, in order."""

    def look(connection: Connection) -> list[str]:
        named = select(datasets.c.name).join(purses, purses.c.dataset_id == datasets.c.id)
        own = named.where(purses.c.analyst == caller.name).distinct().order_by(datasets.c.name)
        return list(connection.scalars(own))

    return [name for name in ledger.book.store.ask(look) if caller.may_see(name)]
