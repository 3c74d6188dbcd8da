"""Chi-square goodness of fit, without tables: the statistic is compared with a certified tail.

A fixed seed makes each test deterministic; the stated error rate is the chance that a
correct sampler would have failed it under a random seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from flint import arb

ERROR_RATE = 1e-4


def p_value(observed: Iterable[Hashable], expected: Mapping[Any, float]) -> float:
    """Chance of a chi-square statistic at least this large; rare outcomes are pooled."""
    counts = Counter(observed)
    trials = sum(counts.values())
    statistic, cells = 0.0, 0
    pooled_seen, pooled_wanted = trials, float(trials)
    for outcome, probability in sorted(expected.items(), key=lambda item: -item[1]):
        wanted = probability * trials
        if wanted < 10:
            break
        statistic += (counts[outcome] - wanted) ** 2 / wanted
        cells += 1
        pooled_seen -= counts[outcome]
        pooled_wanted -= wanted
    if pooled_wanted >= 10:
        statistic += (pooled_seen - pooled_wanted) ** 2 / pooled_wanted
        cells += 1
    assert cells >= 2, "a fit needs at least two cells"
    return float(arb(statistic / 2).gamma_upper(arb(cells - 1) / 2, regularized=1).mid())


def fits(observed: Iterable[Hashable], expected: Mapping[Any, float]) -> bool:
    """False for a correct sampler with probability about ERROR_RATE."""
    return p_value(observed, expected) > ERROR_RATE
