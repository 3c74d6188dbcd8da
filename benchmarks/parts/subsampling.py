"""Samples: how wide and how fast, beside dp-accounting and the PRV accountant in the same run."""

from __future__ import annotations

from importlib.metadata import version

from dp_accounting.pld import privacy_loss_distribution as pld
from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

import farthing as fa
from benchmarks.findings import Beside, Findings, Goal, Table
from benchmarks.timing import best_of, forget

#: noise multiplier, rate, steps, δ, widest bracket in per cent, seconds
CASES = (
    (1.0, 0.01, 1000, 1e-5, 0.05, 0.6),
    (1.1, 256 / 60000, 14062, 1e-5, 0.05, 1.0),
    (0.8, 0.001, 100_000, 1e-6, 0.1, 2.0),
    (0.6, 0.02, 2000, 1e-6, 0.05, 2.0),
)
INTERVAL = 1e-4
#: Seconds, a lower side if there is one, and the upper side.
Theirs = tuple[float, float | None, float]


def measure() -> Findings:
    """Ours with its width, theirs, and how much longer they take."""
    fa.compose([fa.Subsampled(fa.Gaussian(1.0), 0.5)]).epsilon_at(1e-3)  # imports are not timed
    rows, goals, besides = [], [], []
    for sigma, rate, steps, delta, widest, most in CASES:
        items = [(fa.Subsampled(fa.Gaussian(sigma), rate), steps)]
        seconds, bracket = _ours(items, delta, widest)
        name = f"σ = {sigma:g}, rate {rate:.4g}, {steps} steps, δ = {delta:g}"
        goals.append(Goal(f"{name}, width", 100 * bracket.width, widest, "%"))
        goals.append(Goal(f"{name}, time", seconds, most, "s"))
        theirs = {
            f"dp-accounting {version('dp-accounting')}": _dp_accounting(sigma, rate, steps, delta),
            f"PRV accountant {version('prv-accountant')}": _prv(sigma, rate, steps, delta),
        }
        for peer, (took, low, high) in theirs.items():
            besides.append(Beside(f"{name}, time", "s", seconds, peer, took))
            if low is not None:
                ours = bracket.upper - bracket.lower
                besides.append(Beside(f"{name}, width", "ε", ours, peer, high - low))
        rows.append([name, *_shown(seconds, bracket), *(_told(*one) for one in theirs.values())])
    rows += [_tail(), _beside_selections()]
    header = ["list", "ε", "width", "s", *("dp-accounting", "PRV accountant")]
    caption = (
        "Poisson samples of the Gaussian mechanism, both directions. Best of three runs, nothing "
        f"kept from earlier ones. dp-accounting with interval {INTERVAL:g}, which has no lower "
        "side; the PRV accountant with an error of 0.01 in ε."
    )
    table = Table(caption, header, rows)
    return Findings("Samples", (table,), tuple(goals), tuple(besides))


def _shown(seconds: float, bracket: fa.Bracket) -> list[str]:
    both = f"[{bracket.lower:.5f}, {bracket.upper:.5f}]"
    return [both, f"{100 * bracket.width:.3f} %", f"{seconds:.2f}"]


def _told(seconds: float, low: float | None, high: float) -> str:
    return (f"{high:.5f}" if low is None else f"[{low:.5f}, {high:.5f}]") + f", {seconds:.2f} s"


def _tail() -> list[str]:
    items = [(fa.Subsampled(fa.Gaussian(1.0), 0.01), 1000)]
    return ["the first at δ = 1e-30", *_shown(*_ours(items, 1e-30, 0.05)), "", ""]


def _beside_selections() -> list[str]:
    items = [(fa.BoundedRange(0.1), 100), (fa.Subsampled(fa.Gaussian(1.0), 0.01), 1000)]
    name = "100 × br:0.1 beside the first, adaptive, δ = 1e-6"
    return [name, *_shown(*_ours(items, 1e-6, 0.1)), "cannot", "cannot"]


def _ours(
    items: list[tuple[fa.Guarantee, int]], delta: float, widest: float
) -> tuple[float, fa.Bracket]:
    def run() -> fa.Bracket:
        forget()
        return fa.compose(items, tolerance=widest / 100).epsilon_at(delta)

    return best_of(3, run)


def _dp_accounting(sigma: float, rate: float, steps: int, delta: float) -> Theirs:
    def run() -> float:
        one = pld.from_gaussian_mechanism(
            sigma, sampling_prob=rate, value_discretization_interval=INTERVAL
        )
        return float(one.self_compose(steps).get_epsilon_for_delta(delta))

    seconds, value = best_of(3, run)
    return seconds, None, value


def _prv(sigma: float, rate: float, steps: int, delta: float) -> Theirs:
    def run() -> tuple[float, float, float]:
        accountant = PRVAccountant(
            PoissonSubsampledGaussianMechanism(rate, sigma),
            max_self_compositions=steps,
            eps_error=0.01,
            delta_error=delta / 1000,
        )
        return accountant.compute_epsilon(delta, steps)

    seconds, (low, _, high) = best_of(3, run)
    return seconds, low, high
