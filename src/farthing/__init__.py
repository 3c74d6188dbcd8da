"""farthing: the tightest privacy loss that can be proved, and a budget that is never overspent.

import farthing as fa

c = fa.compose([(fa.BoundedRange(0.1), 100), (fa.PureDP(0.1), 20)], adaptivity="none")
c.epsilon_at(1e-6)
"""

import logging

from farthing.composition.certificate import Certificate
from farthing.composition.compose import ADAPTIVITIES, Composition, compose
from farthing.composition.gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_noise_multiplier,
    zcdp_epsilon,
    zcdp_noise_multiplier,
)
from farthing.composition.laplace import laplace_histogram_epsilon
from farthing.composition.planning import largest_count, largest_epsilon
from farthing.composition.tariff import Price, Tariff, largest_farthings, propose_prices
from farthing.engine.data import open  # noqa: A004 # `fa.open(table, …)` is meant
from farthing.errors import (
    FarthingError,
    InvalidInput,
    NotCertified,
    Unattainable,
    Unsupported,
)
from farthing.guarantees.bracket import Bracket
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    ConcentratedDP,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    LossDistribution,
    PureDP,
    RenyiDP,
    TruncatedConcentratedDP,
    ZeroConcentratedDP,
)
from farthing.guarantees.notation import format_guarantee, parse_guarantee
from farthing.guarantees.scores import ScoreBounds, score_bounds, score_bounds_of

__version__ = "0.1.0"

# what engines say may quote data: it goes where the owner sends it, never to a terminal by default
logging.getLogger("farthing").addHandler(logging.NullHandler())

__all__ = [
    "ADAPTIVITIES",
    "ApproximateDP",
    "BoundedRange",
    "Bracket",
    "Certificate",
    "Composition",
    "ConcentratedDP",
    "DiscreteGaussian",
    "FarthingError",
    "Gaussian",
    "Guarantee",
    "InvalidInput",
    "Laplace",
    "LossDistribution",
    "NotCertified",
    "Price",
    "PureDP",
    "RenyiDP",
    "ScoreBounds",
    "Tariff",
    "TruncatedConcentratedDP",
    "Unattainable",
    "Unsupported",
    "ZeroConcentratedDP",
    "compose",
    "format_guarantee",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_noise_multiplier",
    "laplace_histogram_epsilon",
    "largest_count",
    "largest_epsilon",
    "largest_farthings",
    "open",
    "parse_guarantee",
    "propose_prices",
    "score_bounds",
    "score_bounds_of",
    "zcdp_epsilon",
    "zcdp_noise_multiplier",
]
