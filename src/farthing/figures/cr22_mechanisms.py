"""Figures 6 and 7 of Cesar and Rogers [CR22]: counts in a known order, and thresholds.

The text does not print how Figure 7 divides its δ; here it is half and half.
"""

from __future__ import annotations

import math

import numpy as np

from farthing.composition.bounds.closed_forms import laplace_histogram_epsilon
from farthing.composition.bounds.gaussian import zcdp_noise_multiplier
from farthing.data import macbeth_word_counts
from farthing.figures.points import Axis, Curve, Figure, Panel
from farthing.guarantees.kinds import Gaussian, PureDP
from farthing.mechanisms.count_mle import ordered_counts
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.known_counts import KnownCounts
from farthing.mechanisms.unknown_counts import UnknownCounts
from farthing.numerics.rounding import FloatArray
from farthing.numerics.search import turning_point

DELTA = 1e-6
WORDS, TRIALS = 25, 100
THRESHOLD_EPSILON, THRESHOLD_DELTA = 0.1, 1e-10
CHANGED = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 20, 25, 30)


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


def _macbeth() -> tuple[Panel, ...]:
    words, errors = macbeth_trials()
    places = tuple(range(1, WORDS + 1))
    curves = []
    for name, ink in (("Laplace", "red"), ("CountMLE", "blue")):
        mean, spread = errors[name].mean(axis=0), errors[name].std(axis=0)
        sides = tuple((mean - spread).tolist()), tuple((mean + spread).tolist())
        curves.append(Curve(name, ink, places, tuple(mean.tolist()), *sides))
    across = Axis("", words=words)
    up = Axis("released minus true count")
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


def _thresholds() -> tuple[Panel, ...]:
    found = [thresholds(limit) for limit in CHANGED]
    looks = {
        "UnkLap; Δ·ln(Δ/δ)/ε": ("red", "dots"),
        "UnkLap; as its δ needs": ("red", "line"),
        "TruncGauss; as printed": ("blue", "dots"),
        "TruncGauss; that is private": ("blue", "line"),
    }
    curves = tuple(
        Curve(name, ink, CHANGED, tuple(one[name] for one in found), shape=shape)
        for name, (ink, shape) in looks.items()
    )
    across, up = Axis("counts changed by one unit Δ"), Axis("threshold above the first left out")
    return (Panel("", across, up, curves),)


FIGURES = (
    Figure(
        "cr22-6",
        "Knowing the order makes small counts more exact",
        "Figure 6 of [CR22]: the 25 most frequent words of Macbeth, 100 trials of two ways that "
        "are both (2.08, 10⁻⁶)-DP: Laplace noise with ε = 0.1 per count, and Gaussian noise "
        "with σ = 13.1 followed by the likeliest counts in the known order. Look at the right "
        "half, where counts lie close together: there the band of CountMLE (one standard "
        "deviation around the mean) is the narrower one. The noise is drawn afresh each time "
        "the figure is.",
        _macbeth,
    ),
    Figure(
        "cr22-7",
        "The threshold that TruncGauss needs is twice the one that is printed",
        "Figure 7 of [CR22]: how far above the first count left out a count must lie to be "
        "released, for (0.1, 10⁻¹⁰)-DP, τ = 1. Dotted, as in the paper: TruncGauss overtakes "
        "UnkLap at Δ = 4. But as printed TruncGauss is not private, and with that threshold "
        "UnkLap exceeds its δ. Look at the solid curves, thresholds for which both are proved: "
        "TruncGauss overtakes at Δ = 11. (Half of δ pays for the truncation, half for the "
        "noise; the text does not say.)",
        _thresholds,
    ),
)
