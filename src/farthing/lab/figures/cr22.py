"""The figures of Cesar and Rogers [CR22].

1–3: pure DP and bounded range in one list. 4 and 5: Laplace against Gaussian noise on histograms.
6 and 7: counts in a known order, and thresholds. The text does not print all parameters (those of
Figures 1 and 2, the noise of 4 and 5, how Figure 7 divides δ); the captions say what is drawn here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from farthing.composition.bounds import Bracket
from farthing.composition.bounds.closed_forms import (
    epsilon_equal,
    gaussian_epsilon,
    laplace_histogram_epsilon,
    zcdp_epsilon,
    zcdp_noise_multiplier,
)
from farthing.composition.bounds.moments import subgaussian_bounds
from farthing.composition.bounds.nonadaptive import Mix
from farthing.composition.compose import compose
from farthing.composition.items import losses_of
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    Gaussian,
    Guarantee,
    Laplace,
    PureDP,
)
from farthing.lab.example_data import macbeth_word_counts
from farthing.lab.figures.drawing import Axis, Curve, Panel, curves_of, figure
from farthing.mechanisms.counts.known_counts import KnownCounts, ordered_counts
from farthing.mechanisms.counts.unknown_counts import UnknownCounts
from farthing.mechanisms.histogram import Histogram
from farthing.numerics.rounding import FloatArray
from farthing.numerics.search import turning_point

EPSILON, DELTA = 0.1, 1e-6
COUNTS = (4, 8, 12, 16, *range(20, 201, 4))
#: parts of the mechanisms that are DP, with a colour each from none to all
PARTS = {0.0: "blue", 0.25: "teal", 0.5: "green", 0.75: "orange", 1.0: "red"}
MECHANISMS = 100
GLOBALS = tuple(i / 10 for i in range(35))
#: ε_g of Figure 3, where ε = 1
UP_TO_ONE = tuple(i / 25 for i in range(26))
#: Figures 4 and 5
EPSILONS = (0.01, 0.1, 1.0)
LIMITS = (*range(1, 31), *range(35, 101, 5))
LIMIT, REPEATS = 10, tuple(range(2, 11))
#: parts of δ that one mechanism of Figure 5 may use, of an equal share
SHARES = (0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97)
#: Figures 6 and 7
WORDS, TRIALS = 25, 100
THRESHOLD_EPSILON, THRESHOLD_DELTA = 0.1, 1e-10
CHANGED = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 20, 25, 30)

#: ε of one mechanism, how many of them ↦ ε of all
Value = Callable[[float, int], float | Bracket]

_OVERALL = Axis("overall ε at δ = 10⁻⁶")


def setwise(pure: int, ranged: int) -> float:
    """ε_g of equation (3), for `pure` ε-DP and `ranged` ε-bounded-range mechanisms."""
    pairs = ((PureDP(EPSILON), pure), (BoundedRange(EPSILON), ranged))
    items = losses_of([(guarantee, count) for guarantee, count in pairs if count > 0])
    return next(b.epsilon_at(DELTA)[1] for b in subgaussian_bounds(items) if b.name == "cdp")


@figure("Every DP mechanism that is bounded range instead lowers the bill")
def cr22_1() -> tuple[Panel, ...]:
    """Figure 1 of [CR22]: equation (3), which holds set-wise, for k mechanisms with ε = 0.1, of
    which m are ε-DP and the others ε-bounded range. Look at the dashed curve, the optimum for ε-DP:
    between k = 16 and k = 200 it stays within 11 % of the simple formula for m = k/2, so the
    formula wastes about as much as half of the mechanisms save by being bounded range. (The text
    prints no ε; δ = 10⁻⁶ as elsewhere.)"""

    def part_of(part: float, count: int) -> float:
        return setwise(round(part * count), count - round(part * count))

    def best(count: int) -> Bracket:
        return epsilon_equal(DELTA, epsilon=EPSILON, count=count)

    names = {0.0: "m = 0: all BR", 1.0: "m = k: all DP"}
    curves = tuple(
        Curve.of(names.get(part, f"m = {part:g}·k"), ink, COUNTS, partial(part_of, part))
        for part, ink in PARTS.items()
    )
    optimum = Curve.of("optimal DP", "grey", COUNTS, best, "dashes")
    return (Panel("", Axis("number of mechanisms k"), _OVERALL, (*curves, optimum)),)


def mixture(pure: int, epsilon_g: float) -> Bracket:
    """δ_OPT of Theorem 3 for 100 mechanisms with ε = 0.1, of which `pure` are DP."""
    return Mix(EPSILON, pure, MECHANISMS - pure).delta_at(epsilon_g)


@figure("The optimum moves smoothly from bounded range to DP")
def cr22_2() -> tuple[Panel, ...]:
    """Figure 2 of [CR22]: the optimal δ of 100 mechanisms with ε = 0.1, of which m are ε-DP and the
    others ε-bounded range, all fixed in advance (Theorem 3). Look at one δ from left to right:
    every quarter of the mechanisms that is DP instead of bounded range costs less than the quarter
    before. (The text prints neither k nor ε.)"""
    pure = {round(part * MECHANISMS): ink for part, ink in PARTS.items()}
    curves = tuple(
        Curve.of(f"m = {m}", ink, GLOBALS, partial(mixture, m)) for m, ink in pure.items()
    )
    return (Panel("", Axis("ε_g"), Axis("δ_OPT", log=True, limits=(1e-12, 1.5)), curves),)


def two_orders(epsilon_g: float) -> tuple[Bracket, Bracket]:
    """δ_OPT with the DP mechanism first, and with it between the two of bounded range; ε = 1."""
    pure, ranged = PureDP(1.0), BoundedRange(1.0)

    def delta(*order: Guarantee) -> Bracket:
        return compose(order, tolerance=1e-6).delta_at(epsilon_g)

    return delta(pure, ranged, ranged), delta(ranged, pure, ranged)


@figure("DP first is the worse order, by a little", columns=2)
def cr22_3() -> tuple[Panel, ...]:
    """Figure 3 of [CR22]: two mechanisms of bounded range and one of DP, ε = 1, chosen adaptively.
    Left, how much larger δ is with DP first than with DP in the middle; right, the ratio. Look at
    the end: at ε_g = ε the two orders agree, and from there on they always do (Lemma 5.3). Drawn
    from certified brackets of the recursion, whose width is below the width of the line."""
    pairs = [two_orders(at) for at in UP_TO_ONE]
    difference = Curve(
        "difference",
        "blue",
        UP_TO_ONE,
        tuple(first.upper - between.upper for first, between in pairs),
        tuple(first.lower - between.upper for first, between in pairs),
        tuple(first.upper - between.lower for first, between in pairs),
    )
    ratio = Curve(
        "ratio",
        "blue",
        UP_TO_ONE,
        tuple(between.upper / first.upper for first, between in pairs),
        tuple(between.lower / first.upper for first, between in pairs),
        tuple(between.upper / first.lower for first, between in pairs),
    )
    across = Axis("ε_g, with ε = 1", limits=(0, 1))
    return (
        Panel("DP · BR · BR minus BR · DP · BR", across, Axis("difference of δ"), (difference,)),
        Panel("BR · DP · BR over DP · BR · BR", across, Axis("ratio of δ"), (ratio,)),
    )


def equal_noise(epsilon: float) -> float:
    """The noise multiplier of a Gaussian with the standard deviation of Lap(1/ε): √2/ε."""
    return math.sqrt(2) / epsilon


def laplace(epsilon: float, counts: int) -> Bracket:
    """Lap(1/ε) on a histogram of which a unit changes `counts` counts by 1 (Lemma 6.2)."""
    return laplace_histogram_epsilon(DELTA, epsilon=epsilon, contribution_limit=counts)


def gaussian(epsilon: float, counts: int) -> Bracket:
    """The same with Gaussian noise of equal standard deviation, exactly (Lemma 6.1)."""
    return gaussian_epsilon(DELTA, noise_multiplier=equal_noise(epsilon), count=counts)


def gaussian_by_zcdp(epsilon: float, counts: int) -> float:
    """The same by Lemma 6.3."""
    sigma = equal_noise(epsilon)
    return zcdp_epsilon(DELTA, noise_multiplier=sigma, contribution_limit=counts)


def one_by_one(epsilon: float, repeats: int) -> float:
    """Lemma 6.1 for each of `repeats` histograms, then the optimal composition of (ε, δ)-DP.

    The smallest over how much of δ each of them uses.
    """
    epsilons = []
    for share in SHARES:
        each = share * DELTA / repeats
        sigma = equal_noise(epsilon)
        one = gaussian_epsilon(each, noise_multiplier=sigma, count=LIMIT).upper
        epsilons.append(compose([(ApproximateDP(one, each), repeats)]).epsilon_at(DELTA).upper)
    return min(epsilons)


def laplace_exactly(epsilon: float, counts: int) -> Bracket:
    """The loss of Laplace noise itself, instead of any ε-DP."""
    return compose([(Laplace(epsilon), counts)]).epsilon_at(DELTA)


@figure("Few counts: Laplace noise. Many: Gaussian noise")
def cr22_4() -> tuple[Panel, ...]:
    """Figure 4 of [CR22]: one histogram of which a unit changes Δ counts by 1 each, with Laplace
    noise, or with Gaussian noise of the same standard deviation. Look where red crosses blue: for
    ε = 0.1, Laplace noise is better up to Δ = 8, Gaussian noise from 9 on; by the bound of zCDP,
    the change seems to come at 15. (The text prints no ε, so three are drawn.)"""
    looks: dict[str, tuple[str, Value]] = {
        "Gaussian by zCDP; (Lemma 6.3)": ("orange", gaussian_by_zcdp),
        "Laplace (Lemma 6.2)": ("red", laplace),
        "Gaussian; exact (Lemma 6.1)": ("blue", gaussian),
    }
    across = Axis("counts changed by one unit Δ")
    return tuple(
        Panel(
            f"Laplace with ε = {epsilon:g}",
            across,
            _OVERALL,
            tuple(
                Curve.of(name, ink, LIMITS, partial(value, epsilon))
                for name, (ink, value) in looks.items()
            ),
        )
        for epsilon in EPSILONS
    )


@figure("Composed exactly, Gaussian noise does not lose what it won")
def cr22_5() -> tuple[Panel, ...]:
    """Figure 5 of [CR22]: k such histograms with Δ = 10. The figure in the paper has the solid
    curves, and concludes that the best mechanism for one histogram (violet) is bad for many, and
    that Laplace noise is better for a reasonable number of them. Look at the broken curves: both
    kinds of noise, composed exactly. The Gaussian mechanism is the best one throughout; what was
    lost is lost by composing (ε, δ) pairs instead of profiles."""
    looks: dict[str, tuple[str, Value, str]] = {
        "Gaussian by zCDP": ("orange", gaussian_by_zcdp, "line"),
        "Laplace as ε-DP": ("red", laplace, "line"),
        "Laplace exactly": ("red", laplace_exactly, "dots"),
        "Gaussian exactly": ("blue", gaussian, "dashes"),
    }
    panels, changed = [], [LIMIT * repeats for repeats in REPEATS]
    for epsilon in EPSILONS:
        name = "Gaussian one by one; (Lemma 6.1 and [MV16])"
        curves = [Curve.of(name, "violet", REPEATS, partial(one_by_one, epsilon))]
        for name, (ink, value, shape) in looks.items():
            curve = Curve.of(name, ink, changed, partial(value, epsilon), shape)
            curves.append(replace(curve, x=REPEATS))
        across = Axis("histograms k with Δ = 10 each")
        panels.append(Panel(f"Laplace with ε = {epsilon:g}", across, _OVERALL, tuple(curves)))
    return tuple(panels)


def macbeth_trials() -> tuple[tuple[str, ...], dict[str, FloatArray]]:
    """25 words, and for both mechanisms the error of each released count: trials × words.

    KnownLap with ε = 0.1, and CountMLE with the σ that Lemma 6.3 gives the same (ε, δ).
    """
    words, counts = macbeth_word_counts()
    histogram, truth = Histogram(words[:WORDS], counts[:WORDS]), np.array(counts[:WORDS])
    budget = laplace_histogram_epsilon(DELTA, epsilon=0.1, contribution_limit=WORDS).upper
    sigma = zcdp_noise_multiplier(budget, DELTA, contribution_limit=WORDS)
    laplace, gauss = (
        KnownCounts(coordinate=coordinate, contribution_limit=WORDS, per_key_limit=1)
        for coordinate in (PureDP(0.1), Gaussian(sigma))
    )
    plain, ordered = [], []
    for _ in range(TRIALS):
        plain.append(np.array(laplace.run(histogram).counts) - truth)
        ordered.append(ordered_counts(np.array(gauss.run(histogram).counts)) - truth)
    return tuple(words[:WORDS]), {
        "Laplace": np.array(plain, dtype=np.float64),
        "CountMLE": np.array(ordered),
    }


@figure("Knowing the order makes small counts more exact")
def cr22_6() -> tuple[Panel, ...]:
    """Figure 6 of [CR22]: the 25 most frequent words of Macbeth, 100 trials of two ways that are
    both (2.08, 10⁻⁶)-DP: Laplace noise with ε = 0.1 per count, and Gaussian noise with σ = 13.1
    followed by the likeliest counts in the known order. Look at the right half, where counts lie
    close together: there the band of CountMLE (one standard deviation around the mean) is the
    narrower one. The noise is drawn afresh each time the figure is."""
    words, errors = macbeth_trials()
    places = tuple(range(1, WORDS + 1))
    curves = []
    for name, ink in (("Laplace", "red"), ("CountMLE", "blue")):
        mean, spread = errors[name].mean(axis=0), errors[name].std(axis=0)
        sides = tuple((mean - spread).tolist()), tuple((mean + spread).tolist())
        curves.append(Curve(name, ink, places, tuple(mean.tolist()), *sides))
    across, up = Axis("", words=words), Axis("released minus true count")
    return (Panel("mean and one standard deviation of 100 trials", across, up, tuple(curves)),)


def truncation_level(sigma: float, limit: int, delta: float) -> float:
    """T of equation (10) with τ = 1: the ends of two supports hold δ/Δ each."""

    def outside(level: float) -> float:
        beyond = math.erfc(level / sigma / math.sqrt(2)) / 2
        return (math.erfc((level - 1) / sigma / math.sqrt(2)) / 2 - beyond) / (1 - 2 * beyond)

    return turning_point(lambda t: outside(t) > delta / limit, 1.0, 100 * sigma, width=1e-9)[1]


def thresholds(limit: int) -> dict[str, float]:
    """How far above the first count left out a count must lie; a unit changes `limit` counts."""
    epsilon, half = THRESHOLD_EPSILON, THRESHOLD_DELTA / 2
    sigma = zcdp_noise_multiplier(epsilon, half, contribution_limit=limit)
    limits = {"candidates": 1000, "contribution_limit": limit, "per_key_limit": 1}
    return {
        "UnkLap; Δ·ln(Δ/δ)/ε": limit * math.log(limit / THRESHOLD_DELTA) / epsilon,
        "UnkLap; as its δ needs": UnknownCounts(
            coordinate=PureDP(epsilon / limit), delta=THRESHOLD_DELTA, **limits
        ).threshold,
        "TruncGauss; as printed": truncation_level(sigma, limit, half),
        "TruncGauss; that is private": UnknownCounts(
            coordinate=Gaussian(sigma), delta=half, **limits
        ).threshold,
    }


@figure("The threshold that TruncGauss needs is twice the one that is printed")
def cr22_7() -> tuple[Panel, ...]:
    """Figure 7 of [CR22]: how far above the first count left out a count must lie to be released,
    for (0.1, 10⁻¹⁰)-DP, τ = 1. Dotted, as in the paper: TruncGauss overtakes UnkLap at Δ = 4. But
    as printed TruncGauss is not private, and with that threshold UnkLap exceeds its δ. Look at the
    solid curves, thresholds for which both are proved: TruncGauss overtakes at Δ = 11. (Half of δ
    pays for the truncation, half for the noise; the text does not say.)"""
    looks = {
        "UnkLap; Δ·ln(Δ/δ)/ε": ("red", "dots"),
        "UnkLap; as its δ needs": ("red", "line"),
        "TruncGauss; as printed": ("blue", "dots"),
        "TruncGauss; that is private": ("blue", "line"),
    }
    across, up = Axis("counts changed by one unit Δ"), Axis("threshold above the first left out")
    return (Panel("", across, up, curves_of(CHANGED, thresholds, looks)),)
