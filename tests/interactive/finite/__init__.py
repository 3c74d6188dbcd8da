"""Small interactive systems with exact probabilities, and every adversary against them.

`systems` are trees of answers, `one_draw` their profiles and the draw that can replace a
conversation, `decomposition` divergences, attacks and the theorem for (ε, δ).
"""

from tests.interactive.finite.decomposition import (
    Attack,
    Decomposition,
    Distinguishable,
    LogOf,
    best_attack,
    converse,
    decompose,
    hockey_stick,
    largest_ratio,
    renyi_divergence,
    renyi_moment,
    simulate,
)
from tests.interactive.finite.one_draw import (
    ExactProfile,
    OneDraw,
    dominating_pair,
    one_draw,
    profile,
)
from tests.interactive.finite.systems import (
    FiniteSystem,
    concurrent,
    geometric_noise,
    randomized_response,
    strategies,
    tabulate_mechanism,
    transcript_law,
)

__all__ = [
    "Attack",
    "Decomposition",
    "Distinguishable",
    "ExactProfile",
    "FiniteSystem",
    "LogOf",
    "OneDraw",
    "best_attack",
    "concurrent",
    "converse",
    "decompose",
    "dominating_pair",
    "geometric_noise",
    "hockey_stick",
    "largest_ratio",
    "one_draw",
    "profile",
    "randomized_response",
    "renyi_divergence",
    "renyi_moment",
    "simulate",
    "strategies",
    "tabulate_mechanism",
    "transcript_law",
]
