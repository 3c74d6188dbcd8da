"""Running totals that are told again and again and paid for once: continual release.

The total grows by x_t with update t. Kept is y_t = Σ_j m_{t−j}·x_j + z_t in whole numbers, where m
is the square root of the matrix of running sums in steps of 2^−16 and z_t a rounded normal number.
Told is the total that y_1 … y_t estimate. So y is one Gaussian mechanism, rounded, with the
sensitivity of the matrix of m, and what is told is a function of y (Theorem 3 of
docs/theory/correlated-noise.md). The error grows with the logarithm of the number of updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from operator import mul
from statistics import NormalDist
from typing import Any

import numpy as np
from flint import arb

from farthing.composition.bounds.correlated_noise import Participation, Strategy, matrix_mechanism
from farthing.errors import InvalidInput, require_count, require_real
from farthing.guarantees.kinds import Gaussian
from farthing.interactive.protocol import (
    ConversationOver,
    Drawing,
    Json,
    Verdict,
    require_keys,
    require_whole,
)
from farthing.mechanisms.noise.rounded_gaussian import RoundedGaussianNoise
from farthing.mechanisms.protocol import DEFAULT_CONFIDENCE, Uses, require_confidence
from farthing.numerics.ball import in_balls, up
from farthing.numerics.rounding import FloatArray, inflated

#: The matrix is in steps of 2^−BITS; the estimate weighs what is kept in steps of 2^−_FINE.
BITS, _FINE = 16, 128
#: Updates of one total, and of all together: every one is kept in the state.
MOST_UPDATES, MOST_KEPT = 4096, 1 << 16


@dataclass(frozen=True, slots=True)
class Update:
    """The running total of a series now: the true number, which is never shown."""

    value: int = field(repr=False)
    series: int = 0

    def __post_init__(self) -> None:
        require_whole(self.value)
        require_whole(self.series, at_least=0)


@dataclass(frozen=True, slots=True)
class TotalState:
    """The true totals of each series so far, and what was kept of them with noise."""

    totals: tuple[tuple[int, ...], ...] = field(repr=False)
    kept: tuple[tuple[int, ...], ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTotal:
    """Tells each of `series` running totals up to `horizon` times, such as the counts of labels.

    All of it costs `items` times Gaussian(noise_multiplier). One unit changes what is added by at
    most `sensitivity`, over all series and all updates together; with `times`, at each of at most
    so many updates (the first of every series, the second, …). A unit that only adds rows
    to a table, of which at most Δ count, changes counts of rows by Δ in all. That must hold for
    every course of the data: a unit whose rows go and come again may exceed it.
    """

    horizon: int
    noise_multiplier: float
    items: int = 1
    sensitivity: int = 1
    times: int | None = None
    series: int = 1
    noise: RoundedGaussianNoise = field(init=False, repr=False, compare=False)

    @in_balls
    def __post_init__(self) -> None:
        horizon = require_count("horizon", self.horizon, at_least=1)
        if horizon > MOST_UPDATES:
            raise InvalidInput(f"horizon must be at most {MOST_UPDATES}, got {horizon}")
        series = require_count("series", self.series, at_least=1)
        if series * horizon > MOST_KEPT:
            raise InvalidInput(
                f"series times horizon must be at most {MOST_KEPT}, got {series * horizon}"
            )
        items = require_count("items", self.items, at_least=1)
        size = require_count("sensitivity", self.sensitivity, at_least=1)
        times = self.times
        if times is not None:
            times = min(horizon, require_count("times", times, at_least=1))
        sigma = require_real("noise_multiplier", self.noise_multiplier, above=0)
        whole = arb(_sensitivity(horizon, times)) * (size << BITS)
        # n × gauss:σ is exactly gauss:σ/√n
        deviation = Fraction(up(arb(sigma) * whole / arb(items).sqrt()))
        checked = {
            "horizon": horizon,
            "noise_multiplier": sigma,
            "items": items,
            "sensitivity": size,
            "times": times,
            "series": series,
            "noise": RoundedGaussianNoise(deviation),
        }
        for name, setting in checked.items():
            object.__setattr__(self, name, setting)

    @property
    def guarantees(self) -> Uses:
        """The items that pay for all updates together."""
        return ((Gaussian(self.noise_multiplier), self.items),)

    def half_widths(
        self,
        *,
        window: int | None = None,
        confidence: float = DEFAULT_CONFIDENCE,
        together: int = 1,
    ) -> FloatArray:
        """For each update a w: the total that is told is within w of the truth.

        With `window`, of the difference to what was told so many updates before. So many intervals
        hold `together` with this confidence, whichever they are. Theorem 17 of
        docs/theory/mechanisms.md: noise and a uniform number of [−½, ½] are no wider than a normal
        number; what is told is rounded.
        """
        missed = (1 - require_confidence(confidence)) / require_count(
            "together", together, at_least=1
        )
        weights = np.array([weight / (1 << _FINE) for weight in _weights(self.horizon)])
        rounded = np.full(self.horizon, 0.5)
        if window is not None:
            last = min(require_count("window", window, at_least=1), self.horizon)
            weights[last:] -= weights[: self.horizon - last].copy()
            rounded[last:] = 1.0
        deviations = np.sqrt(np.cumsum(weights**2) * (self.noise.variance + 1 / 12))
        reach = -NormalDist().inv_cdf(missed / 2) * deviations + np.cumsum(np.abs(weights)) / 2
        return np.asarray(inflated(reach, 1 << 12) + rounded)

    def begin(self) -> Drawing[TotalState]:
        """Nothing is drawn yet."""
        yield from ()
        return TotalState(((),) * self.series, ((),) * self.series)

    def reply(self, state: TotalState, question: Update, /) -> Drawing[tuple[Verdict, TotalState]]:
        """Keep one more number with noise, and tell the total that all of them estimate."""
        which = question.series
        if which >= self.series:
            raise InvalidInput(f"there are {self.series} series, counted from 0; got {which}")
        update = len(state.totals[which])
        if update == self.horizon:
            raise ConversationOver(f"series {which} was told {update} times, which is all of it")
        noise = yield self.noise
        totals = (*state.totals[which], question.value)
        added = [now - before for before, now in pairwise((0, *totals))]
        column, weights = _column(self.horizon), _weights(self.horizon)
        kept = (*state.kept[which], sum(map(mul, column[update::-1], added)) + noise)
        told = (sum(map(mul, weights[update::-1], kept)) + (1 << _FINE - 1)) >> _FINE
        after = TotalState(_with(state.totals, which, totals), _with(state.kept, which, kept))
        return Verdict(positive=True, value=told), after

    def halted(self, state: TotalState, /) -> bool:
        """After the last update of every series."""
        return all(len(totals) == self.horizon for totals in state.totals)

    def state_to_json(self, state: TotalState, /) -> Json:
        """For each series two lists of whole numbers."""
        return {"totals": list(map(list, state.totals)), "kept": list(map(list, state.kept))}

    def state_from_json(self, data: Json, /) -> TotalState:
        """The state, checked against the number of updates that were bought."""
        require_keys(data, "totals", "kept")
        totals, kept = (tuple(map(_numbers, _listed(data[name]))) for name in ("totals", "kept"))
        lengths = list(map(len, totals))
        if lengths != list(map(len, kept)) or len(lengths) != self.series:
            raise InvalidInput("a stored running total has two equal lists for each series")
        if max(lengths) > self.horizon:
            raise InvalidInput("a stored running total has at most as many updates as were bought")
        return TotalState(totals, kept)


def _with(lists: tuple[tuple[int, ...], ...], which: int, new: tuple[int, ...]) -> Any:
    return (*lists[:which], new, *lists[which + 1 :])


def _listed(stored: object) -> list[Any]:
    if not isinstance(stored, list):
        raise InvalidInput("the numbers of a stored running total must be in lists")
    return stored


def _numbers(stored: object) -> tuple[int, ...]:
    return tuple(map(require_whole, _listed(stored)))


@lru_cache(maxsize=64)
def _column(horizon: int) -> Sequence[int]:
    """The first column of the matrix, in steps of 2^−BITS."""
    return Strategy.square_root(horizon, bits=BITS).column


@lru_cache(maxsize=64)
def _sensitivity(horizon: int, times: int | None) -> float:
    part = Participation(total=1) if times is None else Participation(times=times)
    return matrix_mechanism(Strategy.square_root(horizon, bits=BITS), part).sensitivity.upper


@lru_cache(maxsize=64)
def _weights(horizon: int) -> Sequence[int]:
    """What is kept is weighed with 1/((1 − X)·m(X)) to estimate the total, in steps of 2^−_FINE."""
    column = _column(horizon)
    steps = [now - before for before, now in pairwise((0, *column))]  # (1 − X)·m(X)
    weights = [(1 << _FINE) // steps[0]]
    for k in range(1, horizon):
        weights.append(-sum(map(mul, steps[1 : k + 1], weights[::-1])) // steps[0])
    return tuple(weights)
