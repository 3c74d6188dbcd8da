"""farthing: the tightest privacy loss that can be proved, and a budget that is never overspent.

import farthing as fa

c = fa.compose([(fa.BoundedRange(0.1), 100), (fa.PureDP(0.1), 20)], adaptivity="none")
c.epsilon_at(1e-6)
"""

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from farthing.composition.accounts.accountant import Accountant, Allowance, BudgetExceeded
from farthing.composition.accounts.individual import IndividualAccountant
from farthing.composition.accounts.odometer import Odometer
from farthing.composition.bounds import Bracket
from farthing.composition.bounds.closed_forms import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_noise_multiplier,
    laplace_histogram_epsilon,
    zcdp_epsilon,
    zcdp_noise_multiplier,
)
from farthing.composition.bounds.correlated_noise import (
    MatrixMechanism,
    Participation,
    Strategy,
    matrix_mechanism,
)
from farthing.composition.bounds.tradeoff import Tradeoff
from farthing.composition.compose import ADAPTIVITIES, Composition, compose
from farthing.composition.planning import largest_count, largest_epsilon, noise_for, sgd_noise
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.prices import ladder, largest_farthings, propose_prices
from farthing.composition.tariffs.tariff import Price, Tariff
from farthing.errors import (
    FarthingError,
    InvalidInput,
    NotCertified,
    Unattainable,
    Unsupported,
)
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    ConcentratedDP,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    LossDistribution,
    PermuteAndFlip,
    PureDP,
    RenyiDP,
    Subsampled,
    SubsampledWithoutReplacement,
    TruncatedConcentratedDP,
    TwoWayLoss,
    ZeroConcentratedDP,
)
from farthing.guarantees.neighbours import for_replace_one, from_replace_one, group_privacy
from farthing.guarantees.notation import format_guarantee, parse_guarantee
from farthing.guarantees.scores import ScoreBounds, score_bounds, score_bounds_of
from farthing.optional import required
from farthing.progress import News, listening

if TYPE_CHECKING:  # what needs the extras [ledger], [engine], [client]; loaded when it is used
    from farthing.client import connect
    from farthing.engine import (
        Declaration,
        Desk,
        Session,
        bins,
        day,
        difference,
        hour,
        month,
        open,  # noqa: A004 # `fa.open` is meant
        quarter,
        ratio,
        week,
        year,
    )
    from farthing.ledger import Limits
    from farthing.schema import Column, Lookup, Schema

__version__ = "1.0.0"

_PER_UNIT = ("any", "distinct", "max", "mean", "min", "rows", "sum")
_KEYS = ("bins", "year", "quarter", "month", "week", "day", "hour")
_LATER = {
    **dict.fromkeys(("Declaration", "Desk", "Session", "open", *_KEYS), "farthing.engine"),
    **dict.fromkeys(("Column", "Lookup", "Schema"), "farthing.schema"),
    "Limits": "farthing.ledger",
    "connect": "farthing.client",
    **dict.fromkeys(_PER_UNIT, "farthing.engine.computed.functions"),
    **dict.fromkeys(("difference", "ratio"), "farthing.engine"),
}


def __getattr__(name: str) -> Any:
    """What needs the optional parts is imported when it is asked for."""
    if name not in _LATER:
        raise AttributeError(f"module 'farthing' has no attribute {name!r}")
    return getattr(required(_LATER[name]), name)


# what engines say may quote data: it goes to a handler that the owner puts there on purpose, never
# to one that happens to be further up
logging.getLogger("farthing.engine").addHandler(logging.NullHandler())
logging.getLogger("farthing.engine").propagate = False

__all__ = [
    "ADAPTIVITIES", "Accountant", "Allowance", "ApproximateDP", "BoundedRange", "Bracket",
    "BudgetExceeded", "Certificate", "Column", "Composition", "ConcentratedDP", "Declaration",
    "Desk", "DiscreteGaussian", "FarthingError", "Gaussian", "Guarantee", "IndividualAccountant",
    "InvalidInput", "Laplace", "Limits", "Lookup", "LossDistribution", "MatrixMechanism", "News",
    "NotCertified", "Odometer", "Participation", "PermuteAndFlip", "Price", "PureDP", "RenyiDP",
    "Schema", "ScoreBounds", "Session", "Strategy", "Subsampled", "SubsampledWithoutReplacement",
    "Tariff", "Tradeoff", "TruncatedConcentratedDP", "TwoWayLoss", "Unattainable", "Unsupported",
    "ZeroConcentratedDP", "bins", "compose", "connect", "day", "difference", "for_replace_one",
    "format_guarantee", "from_replace_one", "gaussian_delta", "gaussian_epsilon",
    "gaussian_noise_multiplier", "group_privacy", "hour", "ladder", "laplace_histogram_epsilon",
    "largest_count", "largest_epsilon", "largest_farthings", "listening", "matrix_mechanism",
    "month", "noise_for", "open", "parse_guarantee", "propose_prices", "quarter", "ratio",
    "score_bounds", "score_bounds_of", "sgd_noise", "week", "year", "zcdp_epsilon",
    "zcdp_noise_multiplier",
]  # fmt: skip # one list of names
if find_spec("sqlglot") is None or find_spec("sqlalchemy") is None:  # `import *` of the core alone
    __all__ = [name for name in __all__ if name not in _LATER]
