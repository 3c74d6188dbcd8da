"""Interactive mechanisms: conversations, their concurrent composition, and finite systems.

Live: `SparseVector` and `GuessAndCheck` are opened with `Conversation`, composed with `Concurrent`.
Finite: `FiniteSystem` holds exact probabilities; divergences against the best adaptive adversary,
the decomposition of an (ε, δ) conversation, and the one draw that dominates it are computed.
"""

from farthing.interactive.accuracy import WatchAccuracy
from farthing.interactive.charge import cheapest_items, require_chargeable, require_paid
from farthing.interactive.composer import Concurrent
from farthing.interactive.decomposition import (
    Decomposition,
    Distinguishable,
    LogOf,
    converse,
    decompose,
    simulate,
)
from farthing.interactive.divergences import (
    Attack,
    best_attack,
    hockey_stick,
    largest_ratio,
    renyi_divergence,
    renyi_moment,
)
from farthing.interactive.dominating_pair import ExactProfile, dominating_pair, profile
from farthing.interactive.finite import FiniteSystem, concurrent, strategies, transcript_law
from farthing.interactive.growing import covers_growing_rows
from farthing.interactive.guess_and_check import Guess, GuessAndCheck
from farthing.interactive.one_draw import OneDraw, one_draw
from farthing.interactive.protocol import (
    Conversation,
    ConversationOver,
    InteractiveMechanism,
    Verdict,
)
from farthing.interactive.sealed import SealedState, seal, unseal
from farthing.interactive.sparse_vector import Exceeds, SparseVector
from farthing.interactive.stored import mechanism_from_json, mechanism_to_json
from farthing.interactive.tabulated import geometric_noise, randomized_response, tabulate_mechanism

__all__ = [
    "Attack",
    "Concurrent",
    "Conversation",
    "ConversationOver",
    "Decomposition",
    "Distinguishable",
    "ExactProfile",
    "Exceeds",
    "FiniteSystem",
    "Guess",
    "GuessAndCheck",
    "InteractiveMechanism",
    "LogOf",
    "OneDraw",
    "SealedState",
    "SparseVector",
    "Verdict",
    "WatchAccuracy",
    "best_attack",
    "cheapest_items",
    "concurrent",
    "converse",
    "covers_growing_rows",
    "decompose",
    "dominating_pair",
    "geometric_noise",
    "hockey_stick",
    "largest_ratio",
    "mechanism_from_json",
    "mechanism_to_json",
    "one_draw",
    "profile",
    "randomized_response",
    "renyi_divergence",
    "renyi_moment",
    "require_chargeable",
    "require_paid",
    "seal",
    "simulate",
    "strategies",
    "tabulate_mechanism",
    "transcript_law",
    "unseal",
]
