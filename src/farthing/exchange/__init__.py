"""To and from other libraries' accounting: dp-accounting, OpenDP, autodp, Opacus.

Each of them is an optional dependency; what comes from it is as certain as its own numbers. Every
function says which neighbours it speaks of; docs/coming-from.md has calls side by
side, with the numbers of both.
"""

from farthing.exchange.autodp_mechanisms import from_autodp
from farthing.exchange.distributions import from_dp_accounting, to_dp_accounting
from farthing.exchange.opacus_history import from_opacus
from farthing.exchange.opendp_measurements import from_opendp
from farthing.exchange.reading_events import from_event
from farthing.exchange.writing_events import to_event

__all__ = [
    "from_autodp",
    "from_dp_accounting",
    "from_event",
    "from_opacus",
    "from_opendp",
    "to_dp_accounting",
    "to_event",
]
