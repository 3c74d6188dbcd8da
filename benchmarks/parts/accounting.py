"""What a hundred uses cost: the ε that each library proves at δ = 1e-6 for the same list.

Bounded range is ours alone: the others are asked for the best that they know of one draw of the
exponential mechanism, which is ε²/8-zCDP where they have zCDP and ε-DP where they do not. We take
every list as chosen adaptively; the others' numbers do not depend on that.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import opendp.prelude as dp
from autodp.mechanism_zoo import ExactGaussianMechanism, LaplaceMechanism, PureDP_Mechanism
from autodp.mechanism_zoo import zCDP_Mechanism as ZCDPMechanism
from autodp.transformer_zoo import Composition
from dp_accounting import dp_event, rdp
from dp_accounting.pld import privacy_loss_distribution as pld
from prv_accountant import GaussianMechanism, PRVAccountant, PureDPMechanism
from prv_accountant import LaplaceMechanism as PRVLaplace

import farthing as fa
from benchmarks.findings import Beside, Findings, Table
from benchmarks.peers import Ask, ask
from benchmarks.timing import best_of, forget

COUNT, DELTA = 100, 1e-6
#: What the interval of a dp-accounting distribution is, and PRV's error in ε.
INTERVAL, ERROR = 1e-4, 1e-2
#: Bounds are no draws: a thousandth is a difference.
SAME = 1e-3
KINDS: dict[str, tuple[fa.Guarantee, float]] = {
    "br:0.1": (fa.BoundedRange(0.1), 0.1),
    "dp:0.1": (fa.PureDP(0.1), 0.1),
    "lap:0.1": (fa.Laplace(0.1), 0.1),
    "gauss:20": (fa.Gaussian(20.0), 20.0),
}


def measure() -> Findings:
    """Every list, every library: ε and seconds."""
    besides, rows = [], []
    for kind, (guarantee, number) in KINDS.items():
        took, bracket = _timed(lambda guarantee=guarantee: _ours(guarantee))
        rows.append([f"{COUNT} × {kind}", "farthing", f"{bracket.upper:.5f}", f"{took:.3f}"])
        for peer, epsilon in _peers(kind, number).items():
            seconds, theirs = _timed(epsilon)
            rows.append([f"{COUNT} × {kind}", peer, f"{theirs:.5f}", f"{seconds:.3f}"])
            besides.append(Beside(f"{COUNT} × {kind}", "ε", bracket.upper, peer, theirs, same=SAME))
        if kind == "dp:0.1":
            asked = Ask("uses of ε-DP", "", 0, 1, number, DELTA, 0.0, 0, k=COUNT)
            (told,) = ask("diffprivlib", [asked], 120)
            peer, theirs = f"diffprivlib {told.version}", None
            if told.releases:
                theirs = told.releases[0][""]
                rows.append([f"{COUNT} × {kind}", peer, f"{theirs:.5f}", f"{told.seconds:.3f}"])
            one = Beside(f"{COUNT} × {kind}", "ε", bracket.upper, peer, theirs, told.failure, SAME)
            besides.append(one)
    caption = (
        f"{COUNT} uses at δ = {DELTA:g}: upper bounds on ε, one call each, what it imports and "
        f"compiles not counted. dp-accounting's distributions with interval {INTERVAL:g}; the PRV "
        f"accountant with an error of {ERROR:g} in ε."
    )
    table = Table(caption, ["list", "library", "ε", "s"], rows)
    return Findings("What a list costs", (table,), besides=tuple(besides))


def _ours(guarantee: fa.Guarantee) -> fa.Bracket:
    forget()
    return fa.compose([(guarantee, COUNT)], tolerance=1e-4).epsilon_at(DELTA)


def _peers(kind: str, number: float) -> dict[str, Callable[[], float]]:
    """Everybody who can be asked in this environment, with what they know of this kind."""
    accounting = f"dp-accounting {version('dp-accounting')}"
    autodp, prv = f"autodp {version('autodp')}", f"PRV accountant {version('prv-accountant')}"
    opendp = f"OpenDP {version('opendp')}"
    zcdp = 0.5 / number**2 if kind.startswith("gauss") else number**2 / 2
    if kind.startswith("br"):
        rho = number**2 / 8
        return {
            f"{accounting} (zCDP)": lambda: _rdp(dp_event.ZCDpEvent(rho)),
            f"{autodp} (zCDP)": lambda: _autodp(ZCDPMechanism(rho, 0.0)),
            f"{opendp} (zCDP)": lambda: _opendp(rho),
            f"{prv} (ε-DP)": lambda: _prv(PureDPMechanism(number)),
        }
    if kind.startswith("dp"):
        return {
            f"{accounting} (PLD)": lambda: _pld(_pure(number)),
            autodp: lambda: _autodp(PureDP_Mechanism(number)),
            f"{opendp} (zCDP)": lambda: _opendp(zcdp),
            prv: lambda: _prv(PureDPMechanism(number)),
        }
    if kind.startswith("lap"):
        laplace = lambda: pld.from_laplace_mechanism(  # noqa: E731 # short
            1 / number, value_discretization_interval=INTERVAL
        )
        return {
            f"{accounting} (PLD)": lambda: _pld(laplace()),
            autodp: lambda: _autodp(LaplaceMechanism(b=1 / number)),
            f"{opendp} (zCDP)": lambda: _opendp(zcdp),
            prv: lambda: _prv(PRVLaplace(number)),
        }
    gauss = lambda: pld.from_gaussian_mechanism(  # noqa: E731 # short
        number, value_discretization_interval=INTERVAL
    )
    return {
        f"{accounting} (PLD)": lambda: _pld(gauss()),
        autodp: lambda: _autodp(ExactGaussianMechanism(sigma=number)),
        f"{opendp} (zCDP)": lambda: _opendp(zcdp),
        prv: lambda: _prv(GaussianMechanism(number)),
    }


def _pure(epsilon: float) -> pld.PrivacyLossDistribution:
    return pld.from_privacy_parameters(
        pld.common.DifferentialPrivacyParameters(epsilon, 0.0),
        value_discretization_interval=INTERVAL,
    )


def _pld(one: pld.PrivacyLossDistribution) -> float:
    return float(one.self_compose(COUNT).get_epsilon_for_delta(DELTA))


def _rdp(event: dp_event.DpEvent) -> float:
    return float(rdp.RdpAccountant().compose(event, COUNT).get_epsilon(DELTA))


def _autodp(mechanism: object) -> float:
    return float(Composition()([mechanism], [COUNT]).get_approxDP(DELTA))


def _opendp(rho: float) -> float:
    """The curve of its Gaussian mechanism with all of ρ: its conversion of a total in zCDP."""
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    noise = dp.m.make_gaussian(*space, (0.5 / (COUNT * rho)) ** 0.5)
    return float(dp.c.make_zCDP_to_approxDP(noise).map(1.0).epsilon(DELTA))


def _prv(mechanism: object) -> float:
    options = {"max_self_compositions": COUNT, "eps_error": ERROR, "delta_error": DELTA / 1000}
    return float(PRVAccountant(mechanism, **options).compute_epsilon(DELTA, COUNT)[2])


def _timed(run: Callable[[], fa.Bracket | float]):
    """The second of two calls, so that no compiling and no import is timed."""
    run()
    return best_of(1, run)
