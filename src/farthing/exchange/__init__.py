"""To and from the accounting of other libraries: dp-accounting, OpenDP, autodp, Opacus.

Each of them is an optional dependency, and numbers that come from it are as reliable as its own.
Every function says which neighbours it is about. docs/coming-from.md compares calls and numbers.
"""

from farthing.exchange.dp_accounting import (
    from_dp_accounting,
    from_event,
    to_dp_accounting,
    to_event,
)
from farthing.exchange.other_libraries import from_autodp, from_opacus, from_opendp

__all__ = [
    "from_autodp",
    "from_dp_accounting",
    "from_event",
    "from_opacus",
    "from_opendp",
    "to_dp_accounting",
    "to_event",
]
