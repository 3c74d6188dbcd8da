"""Private mechanisms: exact sampling, selection, counts, sums, and what each of them costs.

A `Mechanism` is a frozen object. `assumes` is what must hold of the data, `guarantees` its price
before running, `guarantees_for` the price that its release shows, `run` the release, `expect`
what to expect of it. `ExponentialMechanism` and the randomized responses are what others are
made of: they run on scores or on a bit, and their price is `guarantees`.
"""

from farthing.mechanisms.accuracy import Accuracy, Expectation
from farthing.mechanisms.combined import Groups, Largest, PerLabel, Repeated
from farthing.mechanisms.counts.known_counts import KnownCounts, TopKWithCounts, ordered_counts
from farthing.mechanisms.counts.totals import ClippedSum, NoisyTotals
from farthing.mechanisms.counts.unknown_counts import ThresholdedCounts, UnknownCounts
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.noise.calibrated import Noise, TruncatedGaussianNoise, coordinate_noise
from farthing.mechanisms.noise.discrete import DiscreteGaussianNoise, DiscreteLaplaceNoise
from farthing.mechanisms.noise.rounded_gaussian import RoundedGaussianNoise
from farthing.mechanisms.protocol import Contribution, Mechanism, Release, Uses
from farthing.mechanisms.randomized_response import (
    GeneralizedRandomizedResponse,
    LeakyAnswer,
    LeakyRandomizedResponse,
)
from farthing.mechanisms.selection.exponential import ExponentialMechanism, LeastTotal
from farthing.mechanisms.selection.gumbel import KnownGumbel, UnknownGumbel
from farthing.mechanisms.selection.permute_and_flip import PermuteAndFlipMechanism
from farthing.mechanisms.selection.quantile import Quantile

__all__ = [
    "Accuracy",
    "ClippedSum",
    "Contribution",
    "DiscreteGaussianNoise",
    "DiscreteLaplaceNoise",
    "Expectation",
    "ExponentialMechanism",
    "GeneralizedRandomizedResponse",
    "Groups",
    "Histogram",
    "KnownCounts",
    "KnownGumbel",
    "Largest",
    "LeakyAnswer",
    "LeakyRandomizedResponse",
    "LeastTotal",
    "Mechanism",
    "Noise",
    "NoisyTotals",
    "PerLabel",
    "PermuteAndFlipMechanism",
    "Quantile",
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
