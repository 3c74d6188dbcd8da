"""Interactive mechanisms: conversations that are charged once, when they are opened.

`SparseVector`, `GuessAndCheck` and `RunningTotal` are opened with `Conversation` and composed with
`Concurrent`; `protocol` says what one may be sold as, `stored` keeps one as plain data.
"""

from farthing.interactive.protocol import (
    Concurrent,
    Conversation,
    ConversationOver,
    InteractiveMechanism,
    Verdict,
    cheapest_items,
    require_chargeable,
    require_paid,
)
from farthing.interactive.running_total import RunningTotal, Update
from farthing.interactive.sparse_vector import (
    Exceeds,
    Guess,
    GuessAndCheck,
    SparseVector,
    WatchAccuracy,
)
from farthing.interactive.stored import (
    SealedState,
    covers_growing_rows,
    mechanism_from_json,
    mechanism_to_json,
    seal,
    unseal,
)

__all__ = [
    "Concurrent",
    "Conversation",
    "ConversationOver",
    "Exceeds",
    "Guess",
    "GuessAndCheck",
    "InteractiveMechanism",
    "RunningTotal",
    "SealedState",
    "SparseVector",
    "Update",
    "Verdict",
    "WatchAccuracy",
    "cheapest_items",
    "covers_growing_rows",
    "mechanism_from_json",
    "mechanism_to_json",
    "require_chargeable",
    "require_paid",
    "seal",
    "unseal",
]
