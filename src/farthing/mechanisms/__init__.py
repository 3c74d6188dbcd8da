"""Private mechanisms: exact sampling, selection, counts, sums, and what each of them costs.

A `Mechanism` is a frozen object. `assumes` is what must hold of the data, `guarantees` its price
before running, `guarantees_for` the price that its release shows, `run` the release, `expect`
what to expect of it. `ExponentialMechanism` and the randomized responses are what others are
made of: they run on scores or on a bit, and their price is `guarantees`.
"""

from farthing.mechanisms.accuracy import Accuracy, Expectation
from farthing.mechanisms.clipped_sum import ClippedSum
from farthing.mechanisms.count_mle import ordered_counts
from farthing.mechanisms.discrete_gaussian import DiscreteGaussianNoise
from farthing.mechanisms.discrete_laplace import DiscreteLaplaceNoise
from farthing.mechanisms.exponential import ExponentialMechanism
from farthing.mechanisms.gumbel import KnownGumbel, UnknownGumbel
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.known_counts import KnownCounts
from farthing.mechanisms.largest import Largest
from farthing.mechanisms.least_total import LeastTotal
from farthing.mechanisms.noise import Noise, coordinate_noise
from farthing.mechanisms.noisy_totals import NoisyTotals
from farthing.mechanisms.per_label import Groups, PerLabel
from farthing.mechanisms.permute_and_flip import PermuteAndFlipMechanism
from farthing.mechanisms.protocol import Contribution, Mechanism, Uses
from farthing.mechanisms.quantile import Quantile
from farthing.mechanisms.randomized_response import (
    GeneralizedRandomizedResponse,
    LeakyAnswer,
    LeakyRandomizedResponse,
)
from farthing.mechanisms.release import Release
from farthing.mechanisms.repeated import Repeated
from farthing.mechanisms.rounded_gaussian import RoundedGaussianNoise
from farthing.mechanisms.top_k_with_counts import TopKWithCounts
from farthing.mechanisms.truncated_gaussian import TruncatedGaussianNoise
from farthing.mechanisms.unknown_counts import ThresholdedCounts, UnknownCounts

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
