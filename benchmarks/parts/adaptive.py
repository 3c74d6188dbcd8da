"""The adaptive optimum: width and time of each row, beside the other bounds and dp-accounting."""

from __future__ import annotations

import math

from dp_accounting.pld import privacy_loss_distribution as pld

import farthing as fa
from benchmarks.findings import Beside, Findings, Goal, Table
from benchmarks.timing import best_of, forget, own_megabytes
from farthing.composition.bounds.moments import moment_bounds, subgaussian_bounds
from farthing.composition.items import losses_of

DELTA = 1e-6
BR, DP = fa.BoundedRange, fa.PureDP
ROWS: list[tuple[str, list[tuple[fa.Guarantee, int]], str, float, float]] = [
    ("100 × br:0.1", [(BR(0.1), 100)], "adaptive", 2e-4, 1),
    ("1000 × br:0.1", [(BR(0.1), 1000)], "adaptive", 5e-4, 5),
    ("10⁴ × br:0.01", [(BR(0.01), 10**4)], "adaptive", 2e-3, 20),
    ("10⁶ × br:0.001", [(BR(0.001), 10**6)], "adaptive", 1e-2, 60),
    (
        "50 br:0.1 + 50 br:0.2 + 100 dp:0.05",
        [(BR(0.1), 50), (BR(0.2), 50), (DP(0.05), 100)],
        "setwise",
        5e-3,
        20,
    ),
    (
        "100 br:0.1 + 100 lap:0.05 + 50 gauss:20, worst order",
        [(fa.Gaussian(20.0), 50), (fa.Laplace(0.05), 100), (BR(0.1), 100)],
        "adaptive",
        5e-3,
        20,
    ),
]


def measure() -> Findings:
    """Every row, and the peers on the same lists."""
    fa.compose([(BR(0.1), 3)]).epsilon_at(0.1)  # warm: the kernels are compiled and loaded
    rows, goals, beside = [], [], []
    for name, items, adaptivity, width, seconds in ROWS:

        def ask(items=items, adaptivity=adaptivity, width=width) -> fa.Bracket:
            forget()
            composition = fa.compose(items, adaptivity=adaptivity, tolerance=width)
            return composition.epsilon_at(DELTA)

        took, bracket = best_of(2, ask)
        rows.append(_row(name, bracket, took))
        goals += _goals(name, bracket, width, took, seconds)
        beside.append([name, f"{bracket.upper:.4f}", *_others(items, adaptivity)])
    name = "tariff of three items, 400 farthings"
    took, bracket = best_of(1, _tariff)
    rows.append(_row(name, bracket, took))
    goals += _goals(name, bracket, 1e-2, took, 10)
    goals.append(Goal("peak memory of all of these", own_megabytes(), 2000, "MB"))
    cases = ((fa.Laplace(0.1), 100), (fa.Gaussian(20.0), 50))
    peers, besides = zip(*(_peer(kind, count) for kind, count in cases), strict=True)
    shown = ["case", "certified", "MGF", "optimal-KL", "ε²/8-zCDP tight", "dp-accounting"]
    read = "The other bounds. dp-accounting has no bounded range: each item is read as ε-DP there."
    lists = ["list", "ours", "theirs (optimistic, pessimistic)", "relation"]
    tables = (
        Table("At δ = 1e-6, best of two.", ["case", "bracket", "width", "time"], rows),
        Table(read, shown, beside),
        Table("Pure lists beside dp-accounting's PLD, both sides.", lists, list(peers)),
    )
    return Findings("The adaptive optimum", tables, tuple(goals), besides)


def _row(name: str, bracket: fa.Bracket, took: float) -> list[str]:
    both = f"[{bracket.lower:.5f}, {bracket.upper:.5f}]"
    return [name, both, f"{100 * bracket.width:.4f} %", f"{took:.2f} s"]


def _goals(name: str, bracket: fa.Bracket, width: float, took: float, seconds: float) -> list[Goal]:
    return [
        Goal(f"{name}, width", 100 * bracket.width, 100 * width, "%"),
        Goal(f"{name}, time", took, seconds, "s"),
    ]


def _tariff() -> fa.Bracket:
    items = {"select": (BR(0.1), 1), "count": (DP(0.1), 4), "wide": (BR(0.2), 4)}
    return dict(fa.Tariff(items, farthings=400).certify().epsilons)[DELTA]


def _others(items: list[tuple[fa.Guarantee, int]], adaptivity: str) -> list[str]:
    """MGF, optimal-KL (set-wise), ε²/8-zCDP with the tight conversion, dp-accounting."""
    listed = losses_of(items)
    bounds = {b.name: b for b in (*moment_bounds(listed), *subgaussian_bounds(listed))}
    rho = [(_rho(guarantee), count) for guarantee, count in items]
    plain = fa.compose(rho, adaptivity=adaptivity).bounds_at(DELTA)["zcdp-tight"].upper
    shown = [bounds["mgf"].epsilon_at(DELTA)[1], bounds["cdp"].epsilon_at(DELTA)[1], plain]
    return [*(f"{value:.4f}" for value in shown), _pld(items)]


def _rho(guarantee: fa.Guarantee) -> fa.Guarantee:
    match guarantee:
        case fa.BoundedRange(epsilon=epsilon):
            return fa.ZeroConcentratedDP(epsilon**2 / 8)
        case fa.PureDP(epsilon=epsilon) | fa.Laplace(epsilon=epsilon):
            return fa.ZeroConcentratedDP(epsilon**2 / 2)
        case fa.Gaussian(noise_multiplier=sigma):
            return fa.ZeroConcentratedDP(0.5 / sigma**2)
    raise TypeError(guarantee)


def _pld(items: list[tuple[fa.Guarantee, int]]) -> str:
    if sum(count for _, count in items) > 2000:
        return "-"
    total = None
    for guarantee, count in items:
        one = _their(guarantee, 1e-3).self_compose(count)
        total = one if total is None else total.compose(one)
    return f"{total.get_epsilon_for_delta(DELTA):.4f}"


def _their(guarantee: fa.Guarantee, interval: float, pessimistic: bool = True):
    options = {
        "value_discretization_interval": interval,
        "pessimistic_estimate": pessimistic,
        "use_connect_dots": pessimistic,
    }
    match guarantee:
        case fa.Laplace(epsilon=epsilon):
            return pld.from_laplace_mechanism(1 / epsilon, **options)
        case fa.Gaussian(noise_multiplier=sigma):
            return pld.from_gaussian_mechanism(sigma, **options)
        case fa.BoundedRange(epsilon=epsilon) | fa.PureDP(epsilon=epsilon):
            return pld.from_randomized_response(
                2 / (1 + math.exp(epsilon)), 2, value_discretization_interval=interval
            )
    raise TypeError(guarantee)


def _peer(kind: fa.Guarantee, count: int) -> tuple[list[str], Beside]:
    ours = fa.compose([(kind, count)], tolerance=2e-5).epsilon_at(DELTA)
    low, high = (
        _their(kind, 1e-4, pessimistic).self_compose(count).get_epsilon_for_delta(DELTA)
        for pessimistic in (False, True)
    )
    inside = low <= ours.lower and ours.upper <= high
    contains = ours.lower <= low and high <= ours.upper
    meet = low <= ours.upper and ours.lower <= high
    relation = "ours lies inside" if inside else "ours contains theirs" if contains else "overlap"
    relation = relation if meet else "DISJOINT: somebody is wrong"
    name = f"{count} × {fa.format_guarantee(kind)}"
    both = f"[{ours.lower:.6f}, {ours.upper:.6f}]", f"[{low:.6f}, {high:.6f}]"
    width, theirs = ours.upper - ours.lower, high - low
    beside = Beside(f"{name}, width of the bracket", "ε", width, "dp-accounting, 1e-4", theirs)
    return [name, *both, relation], beside
