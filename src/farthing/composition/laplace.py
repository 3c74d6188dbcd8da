"""Laplace noise on a histogram under ℓ0 and ℓ∞ sensitivity.

A unit that changes at most Δ counts by at most τ each, with Lap(τ/ε) on every count, meets Δ
mechanisms of ε-DP each and nothing else: the other counts are the same on both datasets.
"""

from __future__ import annotations

from dataclasses import replace

from farthing.composition.equal_pure_dp import epsilon_equal
from farthing.errors import require_count, require_real
from farthing.guarantees.bracket import Bracket

THEOREM = "Laplace histogram as Δ mechanisms of ε-DP [CR22, Lemma 6.2]"


def laplace_histogram_epsilon(delta: float, *, epsilon: float, contribution_limit: int) -> Bracket:
    """ε_g at `delta` of a histogram with Lap(τ/ε) noise, by Lemma 6.2 of [CR22].

    The bracket is the optimum for any Δ mechanisms of ε-DP. For continuous Laplace noise
    `compose([(Laplace(epsilon), contribution_limit)])` is smaller still.
    """
    delta = require_real("delta", delta, at_least=0, below=1)
    epsilon = require_real("epsilon", epsilon, at_least=0)
    count = require_count("contribution_limit", contribution_limit, at_least=1)
    return replace(epsilon_equal(delta, epsilon=epsilon, count=count), theorem=THEOREM)
