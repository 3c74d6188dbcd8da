"""Arithmetic with released numbers: shares, ratios, differences, each with an interval.

It is post-processing and costs nothing. A `Number` is a weighted sum. What it is a sum of is noise
whose law is known (`Draw`), or numbers of which only an interval is known (`Ranged`, `Quotient`).
With noise alone its interval is exact, whatever two numbers have in common. A quotient
holds every m for which top − m·bottom may be 0 [Fieller 1954]. Intervals of independent parts are
combined by the root of the sum of squares on each side [Zou and Donner 2008]. Where parts share a
draw, their intervals hold all together, which is wider (Theorem 17 of docs/theory/mechanisms.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from farthing.mechanisms.noise.discrete import CoordinateNoise
from farthing.mechanisms.noise.weighted_sums import Term, half_width, outside
from farthing.mechanisms.protocol import Interval

#: An end is looked for so often at twice the distance, and then so often halfway between.
_DOUBLED, _HALVED = 64, 16
#: A number of more parts than this is looked at in fewer.
_FEW = 8
NOTHING_KNOWN: Interval = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Draw:
    """The noise of one released number: the mean of `times` draws, multiplied by `scale`."""

    identity: Hashable
    noise: CoordinateNoise = field(compare=False)
    times: int = field(default=1, compare=False)
    scale: float = field(default=1.0, compare=False)

    @property
    def draws(self) -> frozenset[Hashable]:
        """What it depends on: itself."""
        return frozenset((self.identity,))


@dataclass(frozen=True, slots=True, eq=False)
class Ranged:
    """A number of which an interval is known, at each confidence: with draws of its own, or made
    from other numbers."""

    value: float
    at: Callable[[float], Interval] = field(repr=False)
    own: frozenset[Hashable]
    made_from: tuple[Number, ...] = ()

    @property
    def draws(self) -> frozenset[Hashable]:
        """What it depends on."""
        return self.own.union(*(number.draws for number in self.made_from))

    def interval(self, confidence: float) -> Interval:
        """Where the true number lies with this probability."""
        return self.at(confidence)


@dataclass(frozen=True, slots=True)
class Number:
    """A number computed from released ones: a constant, if it has no weights."""

    value: float
    weights: Mapping[Draw | Ranged | Quotient, float] = field(default_factory=dict)
    #: What was computed before.
    _known: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def ranged(
        cls,
        value: float,
        at: Callable[[float], Interval],
        draws: Iterable[Hashable] = (),
        *made_from: Number,
    ) -> Number:
        """A number of which only intervals are known."""
        return cls(value, {Ranged(value, at, frozenset(draws), made_from): 1.0})

    @property
    def draws(self) -> frozenset[Hashable]:
        """What it depends on. Numbers without a draw in common are independent."""
        if len(self.weights) <= _FEW:
            return frozenset[Hashable]().union(*(part.draws for part in self.weights))
        if "draws" not in self._known:
            parts = (part.draws for part in self.weights)
            self._known["draws"] = frozenset[Hashable]().union(*parts)
        return frozenset(self._known["draws"])

    @property
    def _terms(self) -> list[Term]:
        """The noise whose law is known."""
        draws = ((d, w) for d, w in self.weights.items() if isinstance(d, Draw))
        return [(w * d.scale / d.times, d.noise, d.times) for d, w in draws]

    @property
    def _others(self) -> list[tuple[Ranged | Quotient, float]]:
        return [(part, w) for part, w in self.weights.items() if not isinstance(part, Draw)]

    @property
    def _independent(self) -> bool:
        """Whether no two parts share a draw."""
        if len(self.weights) < 2:
            return True
        if "independent" not in self._known:
            apart = sum(len(part.draws) for part in self.weights)
            self._known["independent"] = len(self.draws) == apart
        return bool(self._known["independent"])

    @property
    def _alike(self) -> Counter[tuple[float, CoordinateNoise, int, float]]:
        """How many draws are alike: by weight, noise, times and scale."""
        if "alike" not in self._known:
            draws = ((d, w) for d, w in self.weights.items() if isinstance(d, Draw))
            self._known["alike"] = Counter((w, d.noise, d.times, d.scale) for d, w in draws)
        return Counter(self._known["alike"])

    def interval(self, confidence: float) -> Interval:
        """Where the true number lies with this probability."""
        if confidence not in self._known:
            terms, others, independent = self._terms, self._others, self._independent
            parts = len(others) + bool(terms)
            level = confidence if independent else 1 - (1 - confidence) / max(parts, 1)
            wide = half_width(terms, level)
            below, above = [wide], [wide]
            for part, weight in others:
                low, high = sorted(weight * (end - part.value) for end in part.interval(level))
                below.append(-low)
                above.append(high)
            added = math.hypot if independent else lambda *ends: sum(ends)
            self._known[confidence] = self.value - added(*below), self.value + added(*above)
        low, high = self._known[confidence]
        return low, high

    def in_few_parts(self, apart: Number, confidence: float) -> Number:
        """The same at this confidence, but for what it shares with `apart` in few parts: draws that
        are alike as one, and other parts as one. A sum over many labels is divided by often."""
        others = (part.draws for part in apart.weights if part not in self.weights)
        if len(self.weights) <= _FEW or not self._independent or not apart._independent:
            return self
        if not all(self.draws.isdisjoint(draws) for draws in others):
            return self
        alike = self._alike
        parts = {part: self.weights[part] for part in apart.weights if part in self.weights}
        for part, weight in parts.items():
            if isinstance(part, Draw):
                alike[weight, part.noise, part.times, part.scale] -= 1
        for place, ((weight, noise, times, scale), many) in enumerate(alike.items()):
            if many > 0:  # `many` means of `times` draws are one mean of all, so many times larger
                parts[Draw((id(self), place), noise, many * times, many * scale)] = weight
        rest = [(part, weight) for part, weight in self._others if part not in parts]
        if rest:
            left = Number(sum(weight * part.value for part, weight in rest), dict(rest))
            ends = left.interval(confidence)
            parts[Ranged(left.value, lambda _: ends, frozenset(((id(self), "rest"),)))] = 1.0
        return Number(self.value, parts)

    def possible(self, value: float, confidence: float) -> bool:
        """Whether this value belongs to the interval."""
        if not self._others and self.weights:
            return outside(self._terms, abs(self.value - value)) > 1 - confidence
        low, high = self.interval(confidence)
        return low <= value <= high

    def times(self, factor: float) -> Number:
        """A multiple of it."""
        weights = {part: factor * weight for part, weight in self.weights.items()}
        return Number(factor * self.value, weights if factor else {})

    def mapped(self, rule: Callable[[float], float]) -> Number:
        """An increasing function of it."""

        def at(confidence: float) -> Interval:
            low, high = self.interval(confidence)
            return rule(low), rule(high)

        return Number.ranged(rule(self.value), at, (), self)

    def __add__(self, other: Number) -> Number:
        weights = dict(self.weights)
        for part, weight in other.weights.items():
            weights[part] = weights.get(part, 0.0) + weight
        kept = {part: weight for part, weight in weights.items() if weight}
        whole = [part.bottom for part in kept if isinstance(part, Quotient)]
        if len(whole) < len(kept) or any(bottom != whole[0] for bottom in whole):
            return Number(self.value + other.value, kept)
        return _of_one_whole(self.value + other.value, kept)

    def __sub__(self, other: Number) -> Number:
        return self + other.times(-1)

    def __mul__(self, other: Number) -> Number:
        for one, factor in ((self, other), (other, self)):
            if not factor.weights:
                return one.times(factor.value)

        def at(confidence: float) -> Interval:
            ends = [one.interval(1 - (1 - confidence) / 2) for one in (self, other)]
            corners = [a * b if a and b else 0.0 for a in ends[0] for b in ends[1]]
            return min(corners), max(corners)

        return Number.ranged(self.value * other.value, at, (), self, other)

    def __truediv__(self, other: Number) -> Number | None:
        """None where the divisor is 0."""
        if other.value == 0:
            return None
        if not other.weights:
            return self.times(1 / other.value)
        quotient = Quotient(self, other)
        return Number(quotient.value, {quotient: 1.0})


@dataclass(frozen=True, slots=True, eq=False)
class Quotient:
    """One number over another: every m for which top − m·bottom may be 0.

    If the other may be 0, nothing is known.
    """

    top: Number
    bottom: Number
    _known: dict[float, Interval] = field(default_factory=dict, repr=False)

    @property
    def value(self) -> float:
        """The number."""
        return self.top.value / self.bottom.value

    @property
    def draws(self) -> frozenset[Hashable]:
        """What it depends on."""
        return self.top.draws | self.bottom.draws

    def interval(self, confidence: float) -> Interval:
        """Where the true quotient lies with this probability."""
        if confidence not in self._known:
            self._known[confidence] = self._searched(confidence)
        return self._known[confidence]

    def _searched(self, confidence: float) -> Interval:
        top, bottom, middle = self.top, self.bottom, self.value
        (low, high), (least, most) = top.interval(confidence), bottom.interval(confidence)
        if least <= 0 <= most:
            return NOTHING_KNOWN
        first = (high - low + abs(middle) * (most - least)) / abs(bottom.value) / 4
        divisor = bottom.in_few_parts(top, confidence)

        def end(side: int) -> float:
            def possible(step: float) -> bool:
                return (top - divisor.times(middle + side * step)).possible(0.0, confidence)

            near, far = 0.0, first or 1e-12 * (1 + abs(middle))
            for _ in range(_DOUBLED):
                if not possible(far):
                    break
                near, far = far, 2 * far
            else:
                return side * math.inf
            for _ in range(_HALVED):
                between = (near + far) / 2
                near, far = (between, far) if possible(between) else (near, between)
            return middle + side * far

        return (end(-1), end(1)) if math.isfinite(first) else NOTHING_KNOWN


def total(numbers: Iterable[Number]) -> Number:
    """Their sum."""
    value, weights = 0.0, dict[Draw | Ranged | Quotient, float]()
    for number in numbers:
        value += number.value
        for part, weight in number.weights.items():
            weights[part] = weights.get(part, 0.0) + weight
    return Number(value, weights)


def _of_one_whole(value: float, parts: Mapping[Draw | Ranged | Quotient, float]) -> Number:
    """Quotients of one divisor, and a constant, as one quotient."""
    listed = [(part, weight) for part, weight in parts.items() if isinstance(part, Quotient)]
    if not listed:
        return Number(value)
    bottom = listed[0][0].bottom
    constant = value - sum(weight * part.value for part, weight in listed)
    top = total(part.top.times(weight) for part, weight in listed)
    quotient = Quotient(top + bottom.times(constant), bottom)
    return Number(value, {quotient: 1.0})
