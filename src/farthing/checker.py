"""Check a certificate without the engine that made it: one file, whole numbers, no other code.

    python checker.py CERTIFICATE.json          or: farthing tariff check CERTIFICATE.json

It reads what is stated, and proves it from the tariff by a computation of its own. Write z = e^x,
and V_b(x) for the largest δ at ε = x that anybody reaches with b farthings. The theorem
(docs/theory/tariffs.md) is V_0 = (1 − z)₊ and V_b = max(V_{b−1}, T_i V_{b−c_i} over the items i of
price c_i), T_i being what one use of an item does. Facts about V_b that are used here: it is convex
and decreasing in z, 1 at z = 0, and V_b(−x) = 1 − e^−x + e^−x V_b(x). Rows of whole numbers W_b are
computed with W_b ≥ V_b at the points x = 0, h, 2h, … of a grid; by convexity the chords between
them lie above V_b everywhere, and so T_i of the chords lies above T_i V_b. All rounding is upward,
so every row is proved, whichever grid the certificate proposes. Proofs: docs/theory/checking.md.

If samples are sold there are two rows, one for each direction of the neighbouring datasets: V_b
with the unit against without it, and U_b the reverse, V_b(−x) = 1 − e^−x + e^−x U_b(x). What is
stated must be above both.

All numbers are whole numbers of 2^−bits; `lo` and `hi` are a lower and an upper bound.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import isqrt
from typing import Any, TypeAlias

Row: TypeAlias = list[int]
Bounds: TypeAlias = tuple[int, int]
Document: TypeAlias = dict[str, Any]
Pairs: TypeAlias = list[tuple[Fraction, Fraction]]
Progress: TypeAlias = Callable[[str, int, int], None]
Profile: TypeAlias = Callable[[Fraction], int]

FORMAT = "farthing certificate 1"
THEOREM = "tariff filter: supremum over all ways to spend (docs/theory/tariffs.md)"
ASSUMPTIONS = [
    "Neighbouring datasets differ by adding or removing one unit.",
    "Every mechanism sold as an item has the guarantee the tariff names for it.",
    "Bounded-range items are mechanisms that answer once; interactive mechanisms are sold as "
    "(epsilon, delta)-DP items and charged in full when they are opened.",
    "Fresh randomness for every mechanism; nothing but their outputs is revealed.",
    "The prices of everything that ran, refused requests excepted, add up to at most the "
    "farthings and delta units stated here.",
]
COMPUTED_BY = {"farthing", "numpy", "numba", "python-flint"}
#: A price in units times the unit may fall short of an item's δ by so much, relative.
UNIT_SLACK = Fraction(501, 10**12)
#: Bits beyond the smallest number that is to be proved.
GUARD = 96
#: A smaller bounded range counts as this one.
NEGLIGIBLE = Fraction(1, 10**7)
#: Larger grids, tariffs and losses are nobody's.
MOST_CELLS, MOST_ITEMS, LARGEST_LOSS = 200_000, 1000, 2000
#: More products of a cell of a row with one number, times bits, take many hours. More outcomes of
#: noise, or cells of all the cuts of a bounded range, do not fit into memory.
MOST_WORK, MOST_OUTCOMES, MOST_CUT_CELLS = 4 * 10**12, 4 * 10**6, 2 * 10**7


class Refused(ValueError):
    """The certificate is not what it says, or does not follow."""


# ---------------------------------------------------------------- numbers between two bounds


def up(numerator: int, denominator: int) -> int:
    """The quotient, rounded up."""
    return -(-numerator // denominator)


@lru_cache(maxsize=4096)
def exp(x: Fraction, bits: int) -> Bounds:
    """e^x. Taylor's series of e^(|x|/2^k) ≤ e^(1/256), squared k times; 1/e^|x| if x < 0."""
    if x < -bits:
        return 0, 1
    size = abs(x)
    halvings = max(0, math.ceil(size).bit_length() + 8)
    work = bits + 2 * halvings + 2 * math.ceil(size) + 24
    one, part = 1 << work, size / (1 << halvings)
    part_lo = (part.numerator << work) // part.denominator
    part_hi = part_lo + 1
    lo = hi = term_lo = term_hi = one
    for k in range(1, work):
        term_lo = (term_lo * part_lo >> work) // k
        term_hi = up((term_hi * part_hi >> work) + 1, k)
        lo, hi = lo + term_lo, hi + term_hi
        if term_hi <= 2:
            break
    hi += term_hi  # the rest of the series is less than its last term
    for _ in range(halvings):
        lo, hi = lo * lo >> work, (hi * hi >> work) + 1
    if x < 0:
        lo, hi = (1 << 2 * work) // hi, up(1 << 2 * work, lo)
    return lo >> (work - bits), (hi >> (work - bits)) + 1


@lru_cache(maxsize=8)
def pi(bits: int) -> Bounds:
    """Machin: π = 16 arctan 1/5 − 4 arctan 1/239; each of the terms errs by less than 1."""
    work = bits + 32

    def arctan_of_one_over(n: int) -> tuple[int, int]:
        power, total, k = (1 << work) // n, 0, 0
        while power > 0:
            total += (-1) ** k * (power // (2 * k + 1))
            power, k = power // (n * n), k + 1
        return total, 2 * k + 2

    (five, error), (other, small) = arctan_of_one_over(5), arctan_of_one_over(239)
    middle, wide = 16 * five - 4 * other, 16 * error + 4 * small
    return (middle - wide) >> 32, ((middle + wide) >> 32) + 1


@lru_cache(maxsize=4096)
def normal_above(x: Fraction, bits: int) -> Bounds:
    """P[N(0, 1) > x] = 1/2 − φ(x)·(x + x³/3 + x⁵/(3·5) + …) for x ≥ 0; at most e^(−x²/2)/2."""
    if x < 0:
        lo, hi = normal_above(-x, bits)
        return (1 << bits) - hi, (1 << bits) - lo
    square = x * x
    if square * 18 / 25 > bits:  # 18/25 < log2(e)/2
        return 0, 1
    work = bits + math.ceil(square) + 40
    square_lo = (square.numerator << work) // square.denominator
    lo, hi, k, turning = 0, 0, 1, math.ceil(2 * square)
    term_lo = (x.numerator << work) // x.denominator
    term_hi = term_lo + 1
    while k <= turning or term_hi > 4:
        lo, hi, k = lo + term_lo, hi + term_hi, k + 2
        term_lo = (term_lo * square_lo >> work) // k
        term_hi = up((term_hi * (square_lo + 1) >> work) + 1, k)
    hi += 2 * term_hi  # each further term is less than half of the one before
    exp_lo, exp_hi = exp(-square / 2, work)
    root_lo, root_hi = isqrt(2 * pi(work)[0] << work), isqrt(2 * pi(work)[1] << work) + 1
    half = 1 << (work - 1)
    above_lo, above_hi = half - up(exp_hi * hi, root_lo), half - exp_lo * lo // root_hi
    return max(0, above_lo >> (work - bits)), (above_hi >> (work - bits)) + 1


@lru_cache(maxsize=4096)
def log(y: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds of ln y for y ≥ 1 that e^x confirms, about 2^−bits apart; found by Halley's method."""
    one = 1 << bits + 8
    x = Fraction(7 * (y.numerator.bit_length() - y.denominator.bit_length()), 10)
    for _ in range(2 * bits):
        power = Fraction(exp(x, bits + 16)[0], 1 << bits + 16)
        change = 2 * (y - power) / (y + power)
        x = Fraction(math.floor((x + change) * one), one)
        if abs(change) * one < 16:
            break
    wide = Fraction(1, one)
    goal, fine = y * (1 << bits + 24), bits + 24
    while exp(x - wide, fine)[1] > goal or exp(x + wide, fine)[0] < goal:
        wide *= 2
    return max(Fraction(0), x - wide), x + wide


# ---------------------------------------------------------------- what an item does


@dataclass(frozen=True)
class Item:
    """One item of the tariff, its δ taken out and counted in units; a sample has `rate` < 1."""

    kind: str
    parameters: tuple[Fraction, ...]
    price: int
    units: int
    rate: Fraction = Fraction(1)

    @property
    def epsilon(self) -> Fraction | float:
        """The largest privacy loss, infinite for Gaussian noise.

        Of a sample ln(1 − q + qe^ε), in both directions at most, up to the next number that has 53
        bits, as certificates count.
        """
        if self.kind in ("gauss", "dgauss"):
            return math.inf
        epsilon = self.parameters[0]
        if self.rate == 1 or epsilon == 0:
            return epsilon
        power = Fraction(exp(epsilon, 256)[1], 1 << 256)
        above = log(1 + self.rate * (power - 1), 200)[1]
        near = above.numerator / above.denominator
        return Fraction(near if Fraction(near) >= above else math.nextafter(near, math.inf))


class Grid:
    """Points 0, h, …, Mh, with the mirror image and constants beyond, and powers of e^−h."""

    def __init__(self, step: Fraction, cells: int, pad: int, bits: int) -> None:
        self.step, self.cells, self.ends, self.bits = step, cells, cells + pad, bits
        self.one, work = 1 << bits, bits + 64
        lo, hi = exp(-step, work)
        powers = [(1 << work, 1 << work)]
        for _ in range(2 * self.ends):
            powers.append((powers[-1][0] * lo >> work, (powers[-1][1] * hi >> work) + 1))
        self.falling = [(a >> 64, (b >> 64) + 1) for a, b in powers]  # bounds of e^−jh
        self.falling[0] = (self.one, self.one)
        top, full = 1 << (bits + work), 1 << work
        self.steepness = top // (full - lo), up(top, full - hi)  # bounds of 1/(1 − e^−h)

    def whole(self, row: Row, other: Row) -> Row:
        """W from −ends to ends: constant beyond the grid, on the left the mirror image of `other`,
        the row of the other direction."""
        bits, one = self.bits, self.one
        right = row + row[-1:] * (self.ends - self.cells)
        there = other + other[-1:] * (self.ends - self.cells)
        left = [
            min(one, one - lo + (hi * value >> bits) + 1)
            for (lo, hi), value in zip(self.falling[self.ends : 0 : -1], there[:0:-1], strict=False)
        ]
        return _decreasing(left + right)

    def at(self, row: Row, x: Fraction) -> int:
        """The chord at x ≥ 0."""
        cell = math.floor(x / self.step)
        if cell >= self.cells:
            return row[-1]
        share = chord_share(x - cell * self.step, self.step, self.bits)
        return row[cell] - (share * (row[cell] - row[cell + 1]) >> self.bits)


def _decreasing(row: Row) -> Row:
    """No value below one further right: raising a bound keeps it a bound."""
    made, least = [], 0
    for value in reversed(row):
        least = max(least, value)
        made.append(least)
    return made[::-1]


def chord_share(rest: Fraction, step: Fraction, bits: int) -> int:
    """(e^rest − 1)/(e^step − 1), rounded down: how far the chord has fallen after `rest`."""
    if rest == 0:
        return 0
    top, bottom = exp(rest, 2 * bits)[0] - (1 << 2 * bits), exp(step, 2 * bits)[1] - (1 << 2 * bits)
    return max(0, (top << bits) // bottom)


class FixedLoss:
    """T W(x) = E[W(x − L)] for a loss L of known profile v, with v(−x) = 1 − e^−x + e^−x v′(x), v′
    being the profile in the other direction, which is v except for samples.

    The chords are W = w + Σ_j m_j (1 − z/z_j)₊ with the change of slope m_j at x_j. A loss turns
    (1 − z)₊ into its profile. So T W(x_i) = W(x_i) + Σ_j m_j u(x_i − x_j), where u = v − (1 − z)₊
    is v(x) for x ≥ 0 and e^−|x| v′(|x|) for x < 0. It falls on both sides; where it is below one
    unit, that unit counts.
    """

    def __init__(self, profile: Profile, other: Profile, grid: Grid) -> None:
        here: list[int] = []
        there: list[int] = []
        while len(here) <= grid.cells + grid.ends and (not here or max(here[-1], there[-1]) > 1):
            here.append(profile(len(here) * grid.step))
            there.append(here[-1] if other is profile else other(len(there) * grid.step))
        self.grid, self.reach, self.beyond = grid, len(here) - 1, max(here[-1], there[-1])
        powers = zip(there[1:], grid.falling[1:], strict=False)
        mirrored = [up(value * hi, grid.one) for value, (_, hi) in powers]
        self.kernel = mirrored[::-1] + here

    def apply(self, whole: Row) -> Row:
        """At 0, h, …, Mh; all sums of products m_j·u at once, as the product of two numbers."""
        grid, reach, ends, cells = self.grid, self.reach, self.grid.ends, self.grid.cells
        masses = _masses(whole, grid)
        first, last = max(0, ends - reach), min(2 * ends, ends + cells + reach)
        used = masses[first : last + 1]
        largest = max(used).bit_length() + max(self.kernel).bit_length() + len(used).bit_length()
        width = largest // 8 + 1
        product = _packed(used, width) * _packed(self.kernel, width)
        raw = product.to_bytes((len(used) + len(self.kernel) + 1) * width, "little")
        start = ends + reach - first
        far = up((sum(masses) - sum(used)) * self.beyond, grid.one)
        lanes = (raw[k * width : (k + 1) * width] for k in range(start, start + cells + 1))
        return [
            value + up(int.from_bytes(lane, "little"), grid.one) + far
            for value, lane in zip(whole[ends:], lanes, strict=False)
        ]


def _masses(whole: Row, grid: Grid) -> Row:
    """m_j = (W_{j−1} − W_j)·a − (W_j − W_{j+1})(a − 1), a = 1/(1 − e^−h), rounded up; not below 0.

    Left of the first point the chord comes from (z = 0, W = 1), right of the last W is constant.
    """
    (a_lo, a_hi), one = grid.steepness, grid.one
    first = one - whole[0] - (a_lo - one) * (whole[0] - whole[1]) // one
    inner = [
        up((left - here) * a_hi - (here - right) * (a_lo - one), one)
        for left, here, right in zip(whole[:-1], whole[1:], [*whole[2:], whole[-1]], strict=True)
    ]
    return [max(0, mass) for mass in (first, *inner)]


def _packed(values: Row, width: int) -> int:
    return int.from_bytes(b"".join(value.to_bytes(width, "little") for value in values), "little")


def profiles_of(item: Item, grid: Grid) -> list[Profile]:
    """δ of one use at ε = x ≥ 0, rounded up: with the unit, and for samples without it too.

    Let v be the profile of what is sampled with the rate q, z = e^x. With the unit the sample has
    q·v(ln(1 + (z − 1)/q)), without it (1 − z(1 − q))·v(ln(zq/(1 − z(1 − q)))), 0 from
    z = 1/(1 − q) on. The logarithm is rounded down, since v falls.
    """
    furthest = furthest_of(item, grid.step * (grid.cells + grid.ends))
    if item.rate == 1:
        return [profile_of(item, grid, furthest)]
    q, bits = item.rate, grid.bits
    v, scale = profile_of(item, grid, furthest), 1 << bits + 64

    def inner(y: Fraction) -> int:
        return v(min(log(y, bits + 32)[0], furthest))

    def with_unit(x: Fraction) -> int:
        z = Fraction(exp(x, bits + 64)[0], scale)
        return math.ceil(q * inner(max(Fraction(1), 1 + (z - 1) / q)))

    def without_unit(x: Fraction) -> int:
        z = max(Fraction(1), Fraction(exp(x, bits + 64)[0], scale))
        left = 1 - z * (1 - q)
        return 0 if left <= 0 else math.ceil(left * inner(z * q / left))

    return [with_unit, without_unit]


def furthest_of(item: Item, x: Fraction) -> Fraction:
    """Where the profile of what is sampled is read at most, if that of the sample is up to x."""
    return x if item.rate == 1 else x + math.ceil(1 / item.rate).bit_length() + 40


def profile_of(item: Item, grid: Grid, furthest: Fraction) -> Profile:
    """The same of what is not sampled, or before sampling; x is at most `furthest`."""
    bits, one = grid.bits, grid.one
    if item.kind == "dp":
        epsilon = item.parameters[0]
        both = one + exp(-epsilon, bits)[0]  # randomized response: (1 − e^(x−ε))/(1 + e^−ε)
        return lambda x: 0 if x >= epsilon else up((one - exp(x - epsilon, bits)[0]) * one, both)
    if item.kind == "lap":
        epsilon = item.parameters[0]
        return lambda x: 0 if x >= epsilon else one - exp((x - epsilon) / 2, bits)[0]
    if item.kind == "gauss":
        return lambda x: _gaussian(item.parameters[0], x, bits)
    return _discrete_gaussian(item.parameters[0], item.parameters[1], grid.bits, furthest)


def _gaussian(sigma: Fraction, x: Fraction, bits: int) -> int:
    """P[N > xσ − 1/2σ] − e^x P[N > xσ + 1/2σ]."""
    extra = bits + 2 * math.ceil(x) + 8
    first = normal_above(x * sigma - 1 / (2 * sigma), extra)[1]
    second = normal_above(x * sigma + 1 / (2 * sigma), extra)[0]
    value = first - (exp(x, bits)[0] * second >> bits)
    return max(0, value >> (extra - bits)) + 1


def _discrete_gaussian(
    sigma: Fraction, shift: Fraction, wanted: int, furthest: Fraction
) -> Profile:
    """P[Z ≤ a] − e^x P[Z ≤ a − Δ] with P[Z = z] ∝ e^(−z²/2s²), s = σΔ.

    The loss of Z = z is (Δ − 2z)/2σ²Δ, and a is the largest z with a loss above x.
    """
    bits = wanted + 2 * math.ceil(furthest) + 64
    one, variance = 1 << bits, (sigma * shift) ** 2
    ratio_lo, ratio_hi = exp(-1 / (2 * variance), bits)  # of the next weight to this one
    square_lo, square_hi = exp(-1 / variance, bits)
    weights = [(one, one)]
    while weights[-1][1] > 1 << 32:
        lo, hi = weights[-1]
        weights.append((lo * ratio_lo >> bits, (hi * ratio_hi >> bits) + 1))
        ratio_lo, ratio_hi = ratio_lo * square_lo >> bits, (ratio_hi * square_hi >> bits) + 1
    tails = [(0, up(weights[-1][1] * one, one - ratio_hi))]  # a geometric series and more
    for lo, hi in reversed(weights):
        tails.append((tails[-1][0] + lo, tails[-1][1] + hi))
    tails.reverse()  # tails[n] = Σ_{z ≥ n}, one more than there are weights
    total_lo, total_hi = (2 * side - one for side in (tails[0][0], tails[0][1]))

    def below(a: int) -> Bounds:
        """P[Z ≤ a] for a < 0, P[Z > a] otherwise."""
        lo, hi = tails[min(len(tails) - 1, max(-a, a + 1))]
        return (lo << bits) // total_hi, up(hi << bits, total_lo)

    def profile(x: Fraction) -> int:
        a = math.ceil(shift / 2 - x * sigma * sigma * shift) - 1
        first = below(a)[1] if a < 0 else one - below(a)[0]
        second = below(a - int(shift))[0]
        value = first - (exp(x, bits)[0] * second >> bits)
        return (max(0, value) >> (bits - wanted)) + 1

    return profile


@dataclass(frozen=True)
class Cut:
    """One t: q_t, and where x − t and x + ε − t lie: cells from x, and the share of a chord."""

    chance: int
    before: tuple[int, int]
    after: tuple[int, int]


@dataclass(frozen=True)
class Piece:
    """The t between two cuts: the cells of both places, and what their chords bend f by."""

    before: int
    after: int
    bend_hi: int
    bend_lo: int
    growth: int


class BoundedRange:
    """T W(x) = sup f(t) over 0 ≤ t ≤ ε, f(t) = q_t W(x − t) + (1 − q_t) W(x + ε − t).

    q_t = (1 − e^(t−ε))/(1 − e^−ε). Between two cuts both places stay in one cell each, and with
    y = e^(t − first cut) = 1 + cθ, 0 ≤ θ ≤ 1, f = f₀ + (f₁ − f₀)θ + Hθ(1 − θ)/(1 + cθ), where f₀
    and f₁ are its values at the cuts and H = κ₁(fall of W over one cell) − κ₂(over the other).
    """

    def __init__(self, item: Item, grid: Grid) -> None:
        self.grid, step = grid, grid.step
        stated = max(item.parameters[0], NEGLIGIBLE)
        near = math.ceil(stated / step) * step
        # a range that is larger by next to nothing is a bound too, and saves half of the cuts
        self.epsilon = epsilon = near if near - stated < step / 10**9 else stated
        count = math.ceil(epsilon / step)
        places = {k * step for k in range(count)} | {epsilon - k * step for k in range(count)}
        cuts = sorted({t for t in places | {Fraction(0), epsilon} if 0 <= t <= epsilon})
        self.cuts = [self._cut(t) for t in cuts]
        self.pieces = [self._piece(*pair) for pair in pairwise(cuts)]

    def _cut(self, t: Fraction) -> Cut:
        bits, epsilon = 2 * self.grid.bits, self.epsilon
        one = 1 << bits
        top, bottom = one - exp(t - epsilon, bits)[0], one - exp(-epsilon, bits)[1]
        chance = min(self.grid.one, up(top * self.grid.one, bottom)) if t < epsilon else 0
        return Cut(chance, self._place(-t), self._place(epsilon - t))

    def _place(self, distance: Fraction) -> tuple[int, int]:
        cell = math.floor(distance / self.grid.step)
        rest = distance - cell * self.grid.step
        return cell, chord_share(rest, self.grid.step, self.grid.bits)

    def _piece(self, start: Fraction, end: Fraction) -> Piece:
        """κ₁ = e^o₁·k, κ₂ = e^(o₂−ε)·k, k = c²/((1 + c)(1 − e^−ε)(e^h − 1)), o: place in a cell."""
        grid, epsilon, step = self.grid, self.epsilon, self.grid.step
        bits = 2 * grid.bits
        one, middle = 1 << bits, (start + end) / 2
        before, after = math.floor(-middle / step), math.floor((epsilon - middle) / step)
        growth, ends = exp(end - start, bits), (exp(-epsilon, bits), exp(step, bits))
        c = Fraction(growth[0] - one, one), Fraction(growth[1] - one, one)
        common = [
            c[side] ** 2
            / (1 + c[1 - side])
            / Fraction(one - ends[0][side], one)
            / Fraction(ends[1][1 - side] - one, one)
            for side in (0, 1)
        ]
        hi = Fraction(exp(-start - before * step, bits)[1], one) * common[1]
        lo = Fraction(exp(-start - after * step, bits)[0], one) * common[0]
        return Piece(
            before,
            after,
            math.ceil(hi * grid.one),
            math.floor(lo * grid.one),
            max(0, growth[0] - one) >> grid.bits,
        )

    def apply(self, whole: Row) -> Row:
        """At 0, h, …, Mh."""
        grid, bits = self.grid, self.grid.bits
        falls = [here - after for here, after in pairwise(whole)]
        start, size = grid.ends, grid.cells + 1

        def read(place: tuple[int, int]) -> Row:
            cell, share = place
            left = whole[start + cell : start + cell + size]
            if share == 0:
                return left
            drops = falls[start + cell : start + cell + size]
            return [value - (share * drop >> bits) for value, drop in zip(left, drops, strict=True)]

        values = []
        for cut in self.cuts:
            pairs = zip(read(cut.before), read(cut.after), strict=True)
            q = cut.chance
            values.append([low - (q * (low - high) >> bits) for high, low in pairs])
        best = list(map(max, *values))
        for (left, right), piece in zip(pairwise(values), self.pieces, strict=True):
            hi, lo, growth = piece.bend_hi, piece.bend_lo, piece.growth
            first = falls[start + piece.before : start + piece.before + size]
            second = falls[start + piece.after : start + piece.after + size]
            for i, (f0, f1, d1, d2) in enumerate(zip(left, right, first, second, strict=True)):
                bend = -((lo * d2 - hi * d1) >> bits)
                if bend > 0 and -bend < f1 - f0 < bend and max(f0, f1) + (bend >> 2) >= best[i]:
                    best[i] = max(best[i], summit(f0, f1, bend, growth, grid.one))
        return best


def summit(f0: int, f1: int, bend: int, growth: int, one: int) -> int:
    """The maximum of f₀ + (f₁ − f₀)θ + Hθ(1 − θ)/(1 + cθ) over 0 ≤ θ ≤ 1, above; c = growth/one.

    For y = 1 + cθ it is a constant − y(H − cD)/c² − (H/c²)(1 + c)/y with D = f₁ − f₀: at most the
    constant less twice the root of the product. If c is next to nothing, at most H/4 is added.
    """
    rise = f1 - f0
    if rise * (one + growth) >= bend * one:
        return f1
    if rise <= -bend:
        return f0
    if growth * growth <= one << 8:
        return max(f0, f1) + (bend >> 2) + 1
    root = isqrt((bend * one - growth * rise) * bend * (growth + one))
    return f0 + up(one * (bend * (growth + 2 * one) - growth * rise - 2 * root), growth * growth)


# ---------------------------------------------------------------- all ways to spend


@dataclass
class State:
    """W ≥ V with so many farthings and units, in one direction or both, and the largest Σε."""

    rows: list[Row]
    epsilon: Fraction | float


@dataclass(frozen=True)
class Budget:
    """The tariff as the recursion counts it: in farthings // coin and units // `unit_step`."""

    items: tuple[Item, ...]
    farthings: int
    levels: int

    def top(self, spent: int) -> int:
        """More levels than this cannot be used up with so many farthings."""
        rates = (Fraction(item.units, item.price) for item in self.items)
        return min(self.levels, math.floor(spent * max(rates, default=Fraction(0))))


def spend(budget: Budget, grid: Grid, tell: Progress) -> State:
    """W_{b,d} for every b and d, each pushed to what one more purchase leads to; the last one."""
    nothing = [0] * (grid.cells + 1)  # V_0 = (1 − z)₊ is 0 from x = 0 on
    ways = 2 if any(item.rate < 1 for item in budget.items) else 1
    moves = []
    for place, item in enumerate(budget.items):
        tell("items", place, len(budget.items))
        moves.append((item, item.epsilon, operators_of(item, grid, ways)))
    states = [State([nothing] * ways, Fraction(0))]
    reached: dict[tuple[int, int], State] = {}
    for spent in range(budget.farthings + 1):
        tell("farthings", spent, budget.farthings)
        for level in range(budget.top(spent) + 1):
            before = states[min(level, len(states) - 1)]
            state = _larger(before, reached.pop((spent, level), before))
            ended = [_ended(row, state.epsilon, grid) for row in state.rows]
            states[level : level + 1] = [State(ended, state.epsilon)]
        for level, state in enumerate(states):
            mirrors = state.rows[::-1]
            pairs = zip(state.rows, mirrors, strict=True)
            wholes = [grid.whole(*pair) for pair in pairs] if moves else []
            for item, epsilon, operators in moves:
                later = spent + item.price
                if later > budget.farthings:
                    continue
                rows = [one.apply(whole) for one, whole in zip(operators, wholes, strict=True)]
                made = State(rows, state.epsilon + epsilon)
                # the last state stands for all higher levels too
                highest = budget.top(later) if state is states[-1] else level + item.units
                for target in range(level + item.units, min(highest, budget.top(later)) + 1):
                    other = reached.get((later, target))
                    reached[later, target] = made if other is None else _larger(made, other)
    return states[-1]


def work_of(budget: Budget, step: Fraction, cells: int, pad: int, bits: int) -> int:
    """At most so many products of one cell of a row with one number, times their bits.

    Of a bounded range every cut is a product for each cell and a dozen exponentials, once. A fixed
    loss is one long product for each row, about √cells for each cell, and once its profile: at
    every point a few series of as many terms as there are bits.
    """
    points = 2 * (cells + pad) + 1
    each, once = 8, points
    for item in budget.items:
        if item.kind == "br":
            cuts = 2 * math.ceil(max(item.parameters[0], NEGLIGIBLE) / step) + 2
            each, once = each + cuts, once + 40 * cuts * bits
            continue
        ways, series = (1, 4) if item.rate == 1 else (2, 40)
        wide = bits + 2 * math.ceil(furthest_of(item, step * points)) + 64
        once += ways * series * points * wide * wide // bits
        each += 2 * isqrt(points)
        if item.kind == "dgauss":
            outcomes = math.ceil(item.parameters[0] * item.parameters[1]) * (isqrt(2 * wide) + 1)
            require(outcomes <= MOST_OUTCOMES, "some noise has too many outcomes to sum up")
            once += 8 * outcomes * wide // bits
    return (budget.farthings * (1 + budget.levels) * cells * each + once) * bits


def operators_of(item: Item, grid: Grid, ways: int) -> list[FixedLoss | BoundedRange]:
    """What an item does in each direction."""
    if item.kind == "br":
        return [BoundedRange(item, grid)] * ways
    profiles = profiles_of(item, grid)
    if len(profiles) == 1:
        return [FixedLoss(profiles[0], profiles[0], grid)] * ways
    return [FixedLoss(profiles[way], profiles[1 - way], grid) for way in (0, 1)]


def _larger(one: State, other: State) -> State:
    pairs = zip(one.rows, other.rows, strict=True)
    return State([list(map(max, *pair)) for pair in pairs], max(one.epsilon, other.epsilon))


def _ended(row: Row, epsilon: Fraction | float, grid: Grid) -> Row:
    """0 from Σε on, where nobody's loss is; before it the chord to there, where that is lower."""
    end = math.ceil(epsilon / grid.step) if epsilon < math.inf else len(row)
    if end >= len(row) or not any(row[end:]):
        return _decreasing(row)
    one = grid.one
    gaps = [(one - hi, one - lo) for lo, hi in grid.falling[end:0:-1]]  # bounds of 1 − z_j/z_end
    steep = [Fraction(row[j], gaps[j][0]) for j in range(end)]
    touch = min(range(end), key=steep.__getitem__)
    chord = [up(row[touch] * gaps[j][1], gaps[touch][0]) for j in range(touch + 1, end)]
    lower = list(map(min, row[touch + 1 : end], chord))
    return _decreasing(row[: touch + 1] + lower + [0] * (len(row) - end))


# ---------------------------------------------------------------- what a certificate states


def require(holds: object, what: str) -> None:
    """Refuse unless it holds."""
    if not holds:
        raise Refused(what)


def number(value: Any, what: str) -> Fraction:
    """A finite number of at least 0, exactly."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    require(plain and 0 <= value < math.inf, f"{what} must be a number, at least 0")
    return Fraction(value)


def whole_number(value: Any, what: str, least: int) -> int:
    """A whole number in the range that a tariff counts in."""
    plain = isinstance(value, int) and not isinstance(value, bool)
    require(plain and least <= value <= 10**18, f"{what} must be a whole number from {least} on")
    return int(value)


def names(value: Any, what: str, needed: set[str]) -> Document:
    """An object with exactly these names."""
    exact = isinstance(value, dict) and set(value) == needed
    require(exact, f"{what} must have exactly {', '.join(sorted(needed))}")
    return dict(value)


def read(text: str) -> Any:
    """What is written, if no name stands twice and every number is one, of at most 4300 digits."""

    def once(pairs: list[tuple[str, Any]]) -> Document:
        require(len({name for name, _ in pairs}) == len(pairs), "a name is used twice")
        return dict(pairs)

    def constant(name: str) -> float:
        raise Refused(f"{name} is not a number")

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=constant)
    except Refused:
        raise
    except (ValueError, RecursionError) as error:
        raise Refused(f"this is not JSON: {error}") from None


def unchanged(given: Any) -> Document:
    """A certificate that is complete, says nothing else, and has the digest of what it says."""
    stated = {"tariff", "tolerance", "epsilon_at", "delta_at", "profile"}
    words = {"format", "theorem", "assumptions", "versions", "digest"}
    grid = {"grid"} if isinstance(given, dict) and "grid" in given else set()
    data = names(given, "a certificate", stated | words | grid)
    require(data["format"] == FORMAT, f"the format must be {FORMAT!r}")
    require(data["theorem"] == THEOREM, "the theorem is not one that is known")
    require(data["assumptions"] == ASSUMPTIONS, "the assumptions are not those of the theorem")
    versions = names(data["versions"], "the versions", COMPUTED_BY)
    for version in versions.values():
        shaped = isinstance(version, str) and re.fullmatch(r"[0-9A-Za-z.+!_-]{1,40}", version)
        require(shaped, "a version must be a short text")
    body = {name: value for name, value in data.items() if name != "digest"}
    try:
        options: Document = {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False}
        signed = json.dumps(body, allow_nan=False, **options).encode()
    except (ValueError, TypeError) as error:
        raise Refused(f"this is not plain data: {error}") from None
    digest = hashlib.sha256(signed).hexdigest()
    require(data["digest"] == digest, "the digest does not match: the certificate was changed")
    return data


def items_of(tariff: Document, unit: Fraction) -> list[Item]:
    """Every item. What costs d units has a δ of at most d·unit."""
    some = isinstance(tariff["items"], dict) and 0 < len(tariff["items"]) <= MOST_ITEMS
    require(some, f"a tariff must have items, at most {MOST_ITEMS}")
    made = []
    for name, entry in tariff["items"].items():
        entry = names(entry, f"the item {name!r}", {"guarantee", "price"})
        kind, _, text = str(entry["guarantee"]).partition(":")
        rate = Fraction(1)
        if kind == "poisson":
            share, _, text = text.partition("/")
            rate = _parameter(share, name)
            kind, _, text = text.partition(":")
            sampled = kind in ("dp", "adp", "lap", "gauss", "dgauss") and 0 < rate <= 1
            require(sampled, f"the item {name!r} is no sample that this program knows")
        values, delta = [_parameter(part, name) for part in text.split(",")], Fraction(0)
        if kind == "adp" and len(values) == 2:
            kind, delta = "dp", values.pop()
        if kind == "dgauss" and len(values) == 1:
            values.append(Fraction(1))
        known = len(values) == {"dp": 1, "br": 1, "lap": 1, "gauss": 1, "dgauss": 2}.get(kind)
        require(known, f"the item {name!r} is of a kind that this program does not know")
        noisy = kind in ("gauss", "dgauss")
        require(not noisy or values[0] > 0, f"the noise of {name!r} must be more than 0")
        whole = kind != "dgauss" or (values[1] >= 1 and values[1].denominator == 1)
        small = noisy or values[0] <= LARGEST_LOSS
        require(small, f"the loss of {name!r} must be at most {LARGEST_LOSS}")
        require(whole and delta < 1, f"the item {name!r} means nothing")
        price = whole_number(entry["price"], f"the price of {name!r}", 1)
        made.append(Item(kind, tuple(values), price, math.ceil(rate * delta / unit), rate))
    return made


def _parameter(text: str, name: str) -> Fraction:
    try:
        value = float(text) if "." in text or "e" in text else int(text)
    except ValueError:
        raise Refused(f"the item {name!r} must have numbers for parameters") from None
    require(repr(value) == text, f"the item {name!r} must be written as certificates write it")
    return number(value, f"a parameter of {name!r}")


def claims_of(data: Document, key: str, at: str) -> Pairs:
    """(place, upper) of claims in order: δ falling, ε rising."""
    require(isinstance(data[key], list), f"{key} must be a list")
    claims = []
    for entry in data[key]:
        entry = names(entry, f"a claim in {key}", {at, "lower", "upper"})
        lower, upper = number(entry["lower"], "lower"), number(entry["upper"], "upper")
        require(lower <= upper, f"{key}: lower must be at most upper")
        claims.append((number(entry[at], at), upper))
    sign = -1 if at == "delta" else 1
    require(all(sign * (y - x) > 0 for (x, _), (y, _) in pairwise(claims)), f"{key}: the order")
    return claims


def profile_in(data: Document) -> Pairs:
    """Points of a function that falls, from 0 or before on."""
    points = data["profile"]
    shaped = isinstance(points, list) and all(isinstance(p, list) and len(p) == 2 for p in points)
    require(shaped and len(points) > 1, "the profile must be a list of points")
    plain = all(isinstance(x, float) for x, _ in points)
    require(plain and points[0][0] <= 0, "the profile must start at 0 or before")
    profile = [(Fraction(x), number(value, "a value of the profile")) for x, value in points]
    falls = all(x < y and v >= w for (x, v), (y, w) in pairwise(profile))
    require(falls and profile[0][1] <= 1, "the profile must fall, from at most 1")
    return profile


@dataclass(frozen=True)
class Proved:
    """What the last row says."""

    leak: Fraction
    end: State
    grid: Grid

    def inner(self, x: Fraction) -> Fraction:
        """At most so much is V(x) in both directions, units not counted; left of 0 by mirroring."""
        if x < 0:
            return 1 - Fraction(exp(x, self.grid.bits)[0], self.grid.one) * (1 - self.inner(-x))
        if x >= self.end.epsilon:
            return Fraction(0)
        return Fraction(max(self.grid.at(row, x) for row in self.end.rows), self.grid.one)

    def delta_at(self, epsilon: Fraction) -> Fraction:
        """With all units: leak + (1 − leak)·V."""
        return self.leak + (1 - self.leak) * self.inner(epsilon)


def prove(data: Document, smallest: Fraction, tell: Progress) -> Proved:
    """The rows of the tariff, exact far below `smallest`, on the grid that is proposed."""
    tariff = data["tariff"]
    tariff = names(tariff, "the tariff", {"farthings", "delta_units", "delta_unit", "items"})
    farthings = whole_number(tariff["farthings"], "farthings", 1)
    units = whole_number(tariff["delta_units"], "delta_units", 0)
    unit = number(tariff["delta_unit"], "delta_unit") * (1 + UNIT_SLACK)
    require(unit > 0 and units * unit < 1, "all units together must be less than 1")
    step, cells, unit_step = grid_in(data, units)
    budget = counted(items_of(tariff, unit), farthings, units, unit_step)
    ranges = [item.parameters[0] for item in budget.items if item.kind == "br"]
    pad = math.ceil(max([NEGLIGIBLE, *ranges]) / step) + 2
    room = pad <= MOST_CELLS and 2 * pad * cells <= MOST_CUT_CELLS
    require(room, "the grid is too fine for the largest bounded range")
    bits = math.ceil(1 / smallest).bit_length() + GUARD
    work = work_of(budget, step, cells, pad, bits)
    require(work <= MOST_WORK, "to check this would take many hours")
    grid = Grid(step, cells, pad, bits)
    return Proved(units * unit, spend(budget, grid, tell), grid)


def check(data: Any, tell: Progress | None = None) -> int:
    """Prove everything that a certificate states, or raise Refused; the number of claims."""
    try:
        return proved_claims(unchanged(data), tell or (lambda *_: None))
    except OverflowError:
        raise Refused("a number is too large to be computed with") from None


def proved_claims(data: Document, tell: Progress) -> int:
    """The same of a certificate that is unchanged."""
    tolerance = number(data["tolerance"], "tolerance")  # what was aimed at; nothing rests on it
    require(0 < tolerance < 1, "tolerance must lie between 0 and 1")
    epsilons = claims_of(data, "epsilon_at", "delta")
    deltas = claims_of(data, "delta_at", "epsilon")
    profile = profile_in(data)
    require(epsilons and all(delta < 1 for delta, _ in epsilons), "some epsilon must be stated")
    stated = [*(at for at, _ in epsilons), *(value for _, value in (*deltas, *profile))]
    smallest = min((value for value in stated if value > 0), default=Fraction(1))
    proved = prove(data, smallest, tell)
    for delta, epsilon in epsilons:
        follows = proved.delta_at(epsilon) <= delta
        require(follows, f"epsilon = {float(epsilon)!r} at delta = {float(delta)!r} is not proved")
    for epsilon, delta in deltas:
        follows = delta >= 1 or proved.delta_at(epsilon) <= delta
        require(follows, f"delta = {float(delta)!r} at epsilon = {float(epsilon)!r} is not proved")
    first = max(x for x, _ in profile if x <= 0)  # nobody reads it left of this
    for x, value in profile:
        follows = x < first or proved.inner(x) <= value
        require(follows, f"the profile at epsilon = {float(x)!r} is not proved")
    last = max(row[-1] for row in proved.end.rows)
    end = Fraction(1001 * last, 1000 * proved.grid.one)
    whole = profile[-1][1] <= max(end, min(delta for delta, _ in epsilons))
    require(whole, "the profile must not end before the smallest delta")
    return len(epsilons) + len(deltas) + len(profile)


def grid_in(data: Document, units: int) -> tuple[Fraction, int, int]:
    """Step and cells of the grid, and in steps of how many units they are counted.

    Whatever is proposed proves something. The first certificates propose nothing: then the points
    of the profile do.
    """
    if "grid" not in data:
        places = [x for x, _ in profile_in(data) if x >= 0]
        step = min((y - x for x, y in pairwise(places)), default=Fraction(1))
        grid = {"step": float(step), "cells": math.ceil(places[-1] / step) + 2}
        data = {"grid": {**grid, "unit_step": units + 1}}
    grid = names(data["grid"], "the grid", {"step", "cells", "unit_step"})
    step, cells = number(grid["step"], "step"), whole_number(grid["cells"], "cells", 1)
    fine = Fraction(1, 10**9) <= step and cells <= MOST_CELLS and step * cells <= 2000
    require(fine, "the grid must be one that can be computed on")
    return step, cells, whole_number(grid["unit_step"], "unit_step", 1)


def counted(items: list[Item], farthings: int, units: int, unit_step: int) -> Budget:
    """Without what nobody can buy and what does nothing; prices in what they share.

    Units are counted in steps, prices rounded down: that allows every purchase that fits.
    """
    useful = [
        item
        for item in items
        if item.price <= farthings and item.units <= units and item.epsilon != 0
    ]
    coin = math.gcd(*(item.price for item in useful)) or farthings
    counted = {
        replace(item, price=item.price // coin, units=item.units // unit_step) for item in useful
    }
    ordered = sorted(counted, key=lambda item: (item.kind, item.parameters, item.rate, item.price))
    return Budget(tuple(ordered), farthings // coin, units // unit_step)


def main(arguments: list[str]) -> int:
    """`python checker.py CERTIFICATE.json`: 0 if everything is proved, 1 if not."""
    if len(arguments) != 1:
        print("usage: python checker.py CERTIFICATE.json", file=sys.stderr)
        return 2
    shown, last = sys.stderr.isatty(), -math.inf

    def tell(what: str, done: int, total: int) -> None:
        nonlocal last
        if shown and (done == total or time.monotonic() - last > 0.2):
            last, end = time.monotonic(), "\n" if done == total else ""
            print(f"\r{done} of {total} {what} ", end=end, file=sys.stderr, flush=True)

    try:
        with open(arguments[0], encoding="utf-8") as file:
            claims = check(read(file.read()), tell)
    except (Refused, OSError, UnicodeDecodeError) as error:
        print(f"refused: {error}")
        return 1
    except KeyboardInterrupt:
        print("\nstopped: nothing is proved", file=sys.stderr)
        return 130
    print(f"checked: {claims} claims follow from the tariff")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
