"""Private mechanisms: exact sampling, selection, counts, sums, and what each of them costs.

A `Mechanism` is a frozen object: `assumes` says what must hold for the data, `guarantees` is its
price before running, `guarantees_for` the price of one release, `run` makes a release, `expect`
states its accuracy. `ExponentialMechanism` and permute-and-flip are building blocks: they run on
scores.
"""

from farthing.mechanisms.combined import Groups, Largest, PerLabel
from farthing.mechanisms.counts.known_counts import (
    ClippedSum,
    KnownCounts,
    Repeated,
    TopKWithCounts,
    ordered_counts,
)
from farthing.mechanisms.counts.noisy_totals import NoisyTotals
from farthing.mechanisms.counts.unknown_counts import ThresholdedCounts, UnknownCounts
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.noise.discrete import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Noise,
    TruncatedGaussianNoise,
    coordinate_noise,
)
from farthing.mechanisms.noise.rounded_gaussian import RoundedGaussianNoise
from farthing.mechanisms.protocol import (
    Accuracy,
    Contribution,
    Expectation,
    Mechanism,
    Release,
    Uses,
)
from farthing.mechanisms.selection.exponential import ExponentialMechanism, LeastTotal
from farthing.mechanisms.selection.gumbel import KnownGumbel, UnknownGumbel
from farthing.mechanisms.selection.permute_and_flip import PermuteAndFlipMechanism
from farthing.mechanisms.selection.quantiles import Quantile, Quantiles

__all__ = [
    "Accuracy",
    "ClippedSum",
    "Contribution",
    "DiscreteGaussianNoise",
    "DiscreteLaplaceNoise",
    "Expectation",
    "ExponentialMechanism",
    "Groups",
    "Histogram",
    "KnownCounts",
    "KnownGumbel",
    "Largest",
    "LeastTotal",
    "Mechanism",
    "Noise",
    "NoisyTotals",
    "PerLabel",
    "PermuteAndFlipMechanism",
    "Quantile",
    "Quantiles",
    "Release",
    "Repeated",
    "RoundedGaussianNoise",
    "ThresholdedCounts",
    "TopKWithCounts",
    "TruncatedGaussianNoise",
    "UnknownCounts",
    "UnknownGumbel",
    "Uses",
    "coordinate_noise",
    "ordered_counts",
]
