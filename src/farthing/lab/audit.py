"""Attack a mechanism: statistically valid lower bounds on its ε.

An audit runs a mechanism many times on two neighbouring inputs and looks for an event whose two
probabilities are further apart than (ε, δ)-DP allows. The event is chosen on one half of the
trials and measured on the other half, so any way of choosing it keeps the confidence valid. The
measured probabilities are bounded by Clopper and Pearson, evaluated in ball arithmetic. The result
is a lower bound: an audit can prove that a mechanism is broken, never that it is private.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any, Protocol, TypeAlias

from flint import arb

from farthing.errors import require_count, require_real
from farthing.numerics.ball import in_balls
from farthing.numerics.search import turning_point

#: How many candidate events of each shape are tried on the first half of the trials.
_CANDIDATES = 48

Event: TypeAlias = Callable[[Hashable], bool]
Bounds: TypeAlias = tuple[float, float]


class Runnable(Protocol):
    """Anything with a `run` method: a mechanism of farthing or your own."""

    def run(self, data: Any, /) -> Any:
        """One release."""


@dataclass(frozen=True, slots=True)
class Audit:
    """With probability at least `confidence`, the true parameter is at least `epsilon`.

    `first_bounds` and `second_bounds` enclose the probability of the event in question on the
    two inputs, in the order in which they were compared.
    """

    epsilon: float
    delta: float
    confidence: float
    trials: int
    event: str
    first_bounds: Bounds
    second_bounds: Bounds


def audit(
    mechanism: Runnable,
    first: Any,
    second: Any,
    *,
    trials: int,
    delta: float = 0.0,
    confidence: float = 0.95,
    view: Callable[[Any], Hashable] | None = None,
) -> Audit:
    """A lower bound on the ε for which `mechanism` can be (ε, δ)-DP on these two inputs.

    `trials` runs on each input. `view` turns a release into what the attacker looks at: a
    number (events are then thresholds) or anything hashable (events are sets of outcomes). The
    default is the release itself, which suits releases with few different outcomes.
    """
    samples = _Samples.of(mechanism, first, second, trials, view)
    allowed = require_real("delta", delta, at_least=0, below=1)
    level = require_real("confidence", confidence, above=0, below=1)
    risk = (1 - level) / 2
    event, name, swapped = _best_event(samples, allowed, risk)
    p, q = samples.measured(event, swapped, risk)
    epsilon = math.log((p[0] - allowed) / q[1]) if p[0] > allowed else 0.0
    return Audit(max(epsilon, 0.0), allowed, level, samples.trials, name, p, q)


def audit_bounded_range(
    mechanism: Runnable,
    first: Any,
    second: Any,
    *,
    trials: int,
    confidence: float = 0.95,
    view: Callable[[Any], Hashable] | None = None,
) -> Audit:
    """A lower bound on the ε for which `mechanism` can be ε-bounded range on these two inputs.

    By Definition 2.2 of [DDR20], ln(P(S)/Q(S)) − ln(P(S')/Q(S')) ≤ ε for all events S, S'. The
    bounds reported are those of S. A mechanism can be ε-DP and still fail this.
    """
    samples = _Samples.of(mechanism, first, second, trials, view)
    level = require_real("confidence", confidence, above=0, below=1)
    risk = (1 - level) / 4
    rising, name, swapped = _best_event(samples, 0.0, risk)
    falling = _best_event(samples, 0.0, risk, only_swapped=not swapped)[0]
    p, q = samples.measured(rising, swapped, risk)
    other_p, other_q = samples.measured(falling, swapped, risk)
    if p[0] == 0 or other_q[0] == 0:
        return Audit(0.0, 0.0, level, samples.trials, name, p, q)
    epsilon = math.log(p[0] / q[1]) + math.log(other_q[0] / other_p[1])
    return Audit(max(epsilon, 0.0), 0.0, level, samples.trials, name, p, q)


@dataclass(frozen=True, slots=True)
class _Samples:
    """Outcomes on the two inputs: those that events are chosen on, and those held out."""

    trials: int
    training: tuple[list[Hashable], list[Hashable]]
    held_out: tuple[list[Hashable], list[Hashable]]

    @classmethod
    def of(
        cls,
        mechanism: Runnable,
        first: Any,
        second: Any,
        trials: int,
        view: Callable[[Any], Hashable] | None,
    ) -> _Samples:
        count = require_count("trials", trials, at_least=20)

        def run(data: Any) -> list[Hashable]:
            releases = [mechanism.run(data) for _ in range(count)]
            return releases if view is None else [view(release) for release in releases]

        one, other, half = run(first), run(second), count // 2
        return cls(count, (one[:half], other[:half]), (one[half:], other[half:]))

    def measured(self, event: Event, swapped: bool, risk: float) -> tuple[Bounds, Bounds]:
        """Bounds on the probability of an event on both inputs, `swapped` or not."""
        first, second = (
            _bounds(_count(event, outcomes), len(outcomes), risk) for outcomes in self.held_out
        )
        return (second, first) if swapped else (first, second)


def _best_event(
    samples: _Samples, delta: float, risk: float, *, only_swapped: bool | None = None
) -> tuple[Event, str, bool]:
    """The event that looks best on the first half, and whether the inputs change places for it."""
    directions = (False, True) if only_swapped is None else (only_swapped,)
    spread = NormalDist().inv_cdf(1 - risk)
    choices: list[tuple[float, Event, str, bool]] = []
    for swapped in directions:
        high, low = reversed(samples.training) if swapped else samples.training
        for event, name in _events(high, low):
            score = _promise(_count(event, high), _count(event, low), delta * len(high), spread)
            choices.append((score, event, name, swapped))
    best = max(choices, key=lambda choice: choice[0])
    return best[1:]


def _promise(p_hits: int, q_hits: int, allowed: float, spread: float) -> float:
    """About the lower bound this event would give: `spread` standard deviations on each side."""
    p = p_hits - spread * math.sqrt(p_hits) - allowed
    return math.log(p / (q_hits + spread * math.sqrt(q_hits) + spread**2)) if p > 0 else -math.inf


def _events(high: Sequence[Hashable], low: Sequence[Hashable]) -> list[tuple[Event, str]]:
    pooled = [*high, *low]
    if all(isinstance(outcome, (int, float)) for outcome in pooled):
        return _threshold_events(pooled)
    return _set_events(high, low)


def _threshold_events(pooled: Sequence[Any]) -> list[tuple[Event, str]]:
    values = sorted(set(pooled))
    picked = values[:: max(1, len(values) // _CANDIDATES)]
    above = [(partial(operator.le, t), f"the view is at least {t}") for t in picked]
    below = [(partial(operator.ge, t), f"the view is at most {t}") for t in picked]
    return [*above, *below]


def _set_events(high: Sequence[Hashable], low: Sequence[Hashable]) -> list[tuple[Event, str]]:
    """Sets of the outcomes with the largest ratio of frequencies, of growing size."""
    frequent, rare = Counter(high), Counter(low)
    ordered = sorted(
        set(frequent) | set(rare),
        key=lambda outcome: (frequent[outcome] + 0.5) / (rare[outcome] + 0.5),
        reverse=True,
    )
    step = max(1, len(ordered) // _CANDIDATES)
    return [
        (frozenset(ordered[:size]).__contains__, f"one of {size} outcomes")
        for size in range(1, len(ordered) + 1, step)
    ]


def _count(event: Event, outcomes: Sequence[Hashable]) -> int:
    return sum(1 for outcome in outcomes if event(outcome))


def _bounds(hits: int, trials: int, risk: float) -> Bounds:
    """Clopper and Pearson: each side fails with probability at most `risk`."""
    missed = _clopper_pearson_lower(trials - hits, trials, risk)
    return _clopper_pearson_lower(hits, trials, risk), 1 - missed


@in_balls
def _clopper_pearson_lower(hits: int, trials: int, risk: float) -> float:
    """A p at which `hits` or more have probability at most `risk`, and hardly a larger one.

    The probability is the regularized incomplete beta function I_p(hits, trials − hits + 1). Only a
    p at which the ball certainly lies at or below `risk` is returned.
    """
    if hits == 0:
        return 0.0

    def rare(p: float) -> bool:
        return bool(arb(p).beta_lower(hits, trials - hits + 1, regularized=True) <= risk)

    return turning_point(rare, 0.0, 1.0, width=1e-10)[0]
