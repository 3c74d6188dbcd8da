"""What other libraries say about the same lists, where they are installed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec

from farthing.optional import required

#: Grid step of dp-accounting, and the error in ε that the PRV accountant is asked for.
INTERVAL, PRV_ERROR = 1e-4, 0.02

#: count, ρ of each, δ ↦ overall ε
OfConcentrated = Callable[[int, float, float], float]
#: noise multiplier, rate, steps, δ ↦ (lower, estimate, upper)
OfSamples = Callable[[float, float, int, float], tuple[float, float, float]]


def of_concentrated() -> dict[str, OfConcentrated]:
    """Name and version → overall ε of zero-concentrated mechanisms."""
    known = {
        "dp_accounting": ("dp-accounting", _dp_accounting_zcdp),
        "autodp": ("autodp", _autodp_zcdp),
    }
    return {_named(*known[module]): known[module][1] for module in known if find_spec(module)}


def of_samples() -> dict[str, OfSamples]:
    """Name and version → what it says about Poisson samples of the Gaussian mechanism."""
    known = {
        "dp_accounting": ("dp-accounting", _dp_accounting_samples),
        "prv_accountant": ("prv-accountant", _prv_samples),
    }
    return {_named(*known[module]): known[module][1] for module in known if find_spec(module)}


def _named(package: str, _: object) -> str:
    return f"{package} {version(package)}"


def _dp_accounting_zcdp(count: int, rho: float, delta: float) -> float:
    accountant = required("dp_accounting.rdp").RdpAccountant()
    accountant.compose(required("dp_accounting").dp_event.ZCDpEvent(rho=rho, xi=0.0), count)
    return float(accountant.get_epsilon(delta))


def _autodp_zcdp(count: int, rho: float, delta: float) -> float:
    """Its exponential mechanism is ε²/8-zero-concentrated."""
    zoo, transformers = required("autodp.mechanism_zoo"), required("autodp.transformer_zoo")
    one = zoo.ExponentialMechanism(eps=math.sqrt(8 * rho))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # its search begins at the order 1
        return float(transformers.Composition()([one], [count]).get_approxDP(delta))


def _dp_accounting_samples(
    sigma: float, rate: float, steps: int, delta: float
) -> tuple[float, float, float]:
    distributions = required("dp_accounting.pld.privacy_loss_distribution")

    def epsilon(pessimistic: bool) -> float:
        one = distributions.from_gaussian_mechanism(
            sigma,
            sampling_prob=rate,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
            value_discretization_interval=INTERVAL,
        )
        return float(one.self_compose(steps).get_epsilon_for_delta(delta))

    upper = epsilon(pessimistic=True)
    return epsilon(pessimistic=False), upper, upper


def _prv_samples(sigma: float, rate: float, steps: int, delta: float) -> tuple[float, float, float]:
    prv = required("prv_accountant")
    accountant = prv.PRVAccountant(
        prv.PoissonSubsampledGaussianMechanism(rate, sigma),
        max_self_compositions=steps,
        eps_error=PRV_ERROR,
        delta_error=delta / 1000,
    )
    lower, estimate, upper = accountant.compute_epsilon(delta, steps)
    return float(lower), float(estimate), float(upper)
