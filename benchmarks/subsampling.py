"""Samples: how wide and how fast, beside dp-accounting and the PRV accountant in the same run.

The PRV accountant is measured where it is installed (`farthing[peers]`).
"""

from __future__ import annotations

from importlib.util import find_spec

from dp_accounting.pld import privacy_loss_distribution as pld

import farthing as fa
from benchmarks.timing import best_of, table
from farthing.composition.fixed_sums import _factor, sum_of
from farthing.composition.profiles import curves
from farthing.guarantees.losses import _cut_atoms

#: noise multiplier, rate, steps, δ, widest bracket in per cent
CASES = (
    (1.0, 0.01, 1000, 1e-5, 0.05),
    (1.1, 256 / 60000, 14062, 1e-5, 0.05),
    (0.8, 0.001, 100_000, 1e-6, 0.1),
    (0.6, 0.02, 2000, 1e-6, 0.05),
)
INTERVAL = 1e-4


def report() -> str:
    """One table: ours with its width, theirs, and how much longer they take."""
    fa.compose([fa.Subsampled(fa.Gaussian(1.0), 0.5)]).epsilon_at(1e-3)  # imports are not timed
    rows = [_row(*case) for case in CASES]
    rows.append(_tail())
    rows.append(_beside_selections())
    header = ["σ, rate, steps, δ", "ε", "width", "s", "dp-accounting", "PRV accountant"]
    title = (
        "Poisson samples of the Gaussian mechanism, both directions. Best of three runs, nothing "
        f"kept from earlier ones. dp-accounting with interval {INTERVAL:g}; the PRV accountant "
        "with an error of 0.01 in ε. Their seconds also as a multiple of ours.\n"
    )
    return "\n".join(["## Samples\n", title, table(header, rows)])


def _row(sigma: float, rate: float, steps: int, delta: float, widest: float) -> list[str]:
    seconds, bracket = _ours([(fa.Subsampled(fa.Gaussian(sigma), rate), steps)], delta, widest)
    return [
        f"{sigma:g}, {rate:.4g}, {steps}, {delta:g}",
        f"[{bracket.lower:.5f}, {bracket.upper:.5f}]",
        f"{100 * bracket.width:.3f} % (≤ {widest:g} %)",
        f"{seconds:.2f}",
        _dp_accounting(sigma, rate, steps, delta, seconds),
        _prv(sigma, rate, steps, delta, seconds),
    ]


def _tail() -> list[str]:
    items = [(fa.Subsampled(fa.Gaussian(1.0), 0.01), 1000)]
    seconds, bracket = _ours(items, 1e-30, 0.05)
    shown = f"[{bracket.lower:.5f}, {bracket.upper:.5f}]"
    return ["1, 0.01, 1000, 1e-30", shown, f"{100 * bracket.width:.3f} %", f"{seconds:.2f}", "", ""]


def _beside_selections() -> list[str]:
    items = [(fa.BoundedRange(0.1), 100), (fa.Subsampled(fa.Gaussian(1.0), 0.01), 1000)]
    seconds, bracket = _ours(items, 1e-6, 0.1)
    shown = f"[{bracket.lower:.5f}, {bracket.upper:.5f}]"
    width = f"{100 * bracket.width:.3f} %"
    return ["100 × br:0.1, then 1, 0.01, 1000, 1e-6", shown, width, f"{seconds:.2f}", "", ""]


def _ours(
    items: list[tuple[fa.Guarantee, int]], delta: float, widest: float
) -> tuple[float, fa.Bracket]:
    def run() -> fa.Bracket:
        for kept in (curves, sum_of, _factor, _cut_atoms):
            kept.cache_clear()
        return fa.compose(items, tolerance=widest / 100).epsilon_at(delta)

    return best_of(3, run)


def _dp_accounting(sigma: float, rate: float, steps: int, delta: float, ours: float) -> str:
    def run() -> float:
        one = pld.from_gaussian_mechanism(
            sigma, sampling_prob=rate, value_discretization_interval=INTERVAL
        )
        return one.self_compose(steps).get_epsilon_for_delta(delta)

    seconds, value = best_of(3, run)
    return f"{value:.5f}, {seconds:.2f} s, {seconds / ours:.1f} ×"


def _prv(sigma: float, rate: float, steps: int, delta: float, ours: float) -> str:
    if find_spec("prv_accountant") is None:
        return "not installed"
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

    def run() -> tuple[float, float, float]:
        accountant = PRVAccountant(
            PoissonSubsampledGaussianMechanism(rate, sigma),
            max_self_compositions=steps,
            eps_error=0.01,
            delta_error=delta / 1000,
        )
        return accountant.compute_epsilon(delta, steps)

    seconds, (low, _, high) = best_of(3, run)
    return f"[{low:.5f}, {high:.5f}], {seconds:.2f} s, {seconds / ours:.1f} ×"


if __name__ == "__main__":
    print(report())
