"""Private mechanisms: exact sampling, selection, counts, and what each of them costs.

A mechanism is a frozen object. `guarantees` is its price before running, `guarantees_for` the
price that its release shows, `run` the release, `accuracy` what to expect of it.
"""

from farthing.mechanisms.accuracy import Accuracy
from farthing.mechanisms.counts import ordered_counts
from farthing.mechanisms.discrete_gaussian import DiscreteGaussian
from farthing.mechanisms.discrete_laplace import DiscreteLaplace
from farthing.mechanisms.exponential import Argmax, ExponentialMechanism
from farthing.mechanisms.gumbel import KnownGumbel, UnknownGumbel
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.known import KnownGaussian, KnownLaplace
from farthing.mechanisms.quantile import Quantile
from farthing.mechanisms.randomized_response import (
    GeneralizedRandomizedResponse,
    LeakyAnswer,
    LeakyRandomizedResponse,
)
from farthing.mechanisms.release import Items, Release
from farthing.mechanisms.thresholded import ThresholdedGaussian, ThresholdedLaplace
from farthing.mechanisms.top_k_with_counts import TopKWithCounts
from farthing.mechanisms.truncated_gaussian import TruncatedGaussian, TruncatedGaussianLimited
from farthing.mechanisms.unknown_laplace import UnknownLaplace

__all__ = [
    "Accuracy",
    "Argmax",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "GeneralizedRandomizedResponse",
    "Histogram",
    "Items",
    "KnownGaussian",
    "KnownGumbel",
    "KnownLaplace",
    "LeakyAnswer",
    "LeakyRandomizedResponse",
    "Quantile",
    "Release",
    "ThresholdedGaussian",
    "ThresholdedLaplace",
    "TopKWithCounts",
    "TruncatedGaussian",
    "TruncatedGaussianLimited",
    "UnknownGumbel",
    "UnknownLaplace",
    "ordered_counts",
]
