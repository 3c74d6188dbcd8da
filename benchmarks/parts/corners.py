"""Corners: lists that once took minutes or had no lower side. Width and CPU time of each."""

from __future__ import annotations

import time
from collections.abc import Callable

import farthing as fa
from benchmarks.findings import Findings, Goal, Table
from benchmarks.timing import forget

DELTA = 1e-6
#: Kinds that only bound moments: how wide they must be, docs/known-limits.md says.
MOMENTS = ("zcdp", "tcdp")
BR = fa.BoundedRange
FIVE = (0.05, 0.1, 0.15, 0.2, 0.3)
Pairs = list[tuple[fa.Guarantee, int]]


def _at_delta(items: Pairs, adaptivity: str = "adaptive", tolerance: float = 1e-3):
    composition = fa.compose(items, adaptivity=adaptivity, tolerance=tolerance)
    return lambda: composition.epsilon_at(DELTA)


def _at_epsilon(items: Pairs, epsilon: float, adaptivity: str = "adaptive"):
    return lambda: fa.compose(items, adaptivity=adaptivity).delta_at(epsilon)


def _certified():
    tariff = fa.Tariff(
        {
            "select": (BR(0.1), 1),
            "count": (fa.DiscreteGaussian(20.0, 1), 1),
            "sum": (fa.Laplace(0.1), 4),
        },
        farthings=1000,
    )
    return dict(tariff.certify().epsilons)[DELTA]


CORNERS: dict[str, Callable[[], object]] = {
    "set-wise 5 × 40": _at_delta([(BR(e), 40) for e in FIVE], "setwise", 1e-2),
    "set-wise 5 × 10": _at_delta([(BR(e), 10) for e in FIVE], "setwise", 1e-2),
    "set-wise 4 × 30": _at_delta([(BR(e), 30) for e in FIVE[:4]], "setwise", 1e-2),
    "set-wise 500 br:.1 + 500 br:.2": _at_delta([(BR(0.1), 500), (BR(0.2), 500)], "setwise", 1e-2),
    "set-wise 3 × 20": _at_delta([(BR(e), 20) for e in FIVE[1:4]], "setwise"),
    "in advance br .1 .2 .3 × 10": _at_delta([(BR(e), 10) for e in (0.1, 0.2, 0.3)], "none", 2e-4),
    "in advance br .05 .1 .15 .2 × 5": _at_delta([(BR(e), 5) for e in FIVE[:4]], "none", 2e-4),
    "in advance br .1 × 30 + .2 × 20": _at_delta([(BR(0.1), 30), (BR(0.2), 20)], "none", 2e-4),
    "in advance br .1 × 50 + dp .05 × 50": _at_delta(
        [(BR(0.1), 50), (fa.PureDP(0.05), 50)], "none", 2e-4
    ),
    "in advance br .1 .3 .3 at ε = 0.595": _at_epsilon([(BR(0.1), 1), (BR(0.3), 2)], 0.595, "none"),
    "br .1 .3 .3 at ε = 0.595": _at_epsilon([(BR(0.1), 1), (BR(0.3), 2)], 0.595),
    "5 br:.1 + 5 dp:.2 at ε = 1.45": _at_epsilon([(BR(0.1), 5), (fa.PureDP(0.2), 5)], 1.45),
    "5 br:.1 + 5 lap:.2 at ε = 1.45": _at_epsilon([(BR(0.1), 5), (fa.Laplace(0.2), 5)], 1.45),
    "10⁴ × lap:.01": _at_delta([(fa.Laplace(0.01), 10**4)]),
    "10⁵ × lap:.01": _at_delta([(fa.Laplace(0.01), 10**5)]),
    "30 × lap:.1 concurrent": _at_delta([(fa.Laplace(0.1), 30)], "concurrent"),
    "zcdp:.05 + 20 br:.1": _at_delta([(fa.ZeroConcentratedDP(0.05), 1), (BR(0.1), 20)]),
    "tcdp:.05,20": _at_delta([(fa.TruncatedConcentratedDP(0.05, 20.0), 1)]),
    "10⁶ × br:.1": _at_delta([(BR(0.1), 10**6)]),
    "10⁶ × br:.001": _at_delta([(BR(0.001), 10**6)]),
    "10⁵ × br:.01": _at_delta([(BR(0.01), 10**5)]),
    "10⁴ × br:.01": _at_delta([(BR(0.01), 10**4)]),
    "largest_epsilon br × 1000, ε = 1": lambda: fa.largest_epsilon(
        BR, count=1000, epsilon=1, delta=DELTA
    ),
    "largest_count br:.1, ε = 10, δ = 1e-9": lambda: fa.largest_count(
        BR(0.1), epsilon=10, delta=1e-9
    ),
    "largest_count br:.01, ε = 1": lambda: fa.largest_count(BR(0.01), epsilon=1, delta=DELTA),
    "certify br + dgauss + lap, 1000 farthings": _certified,
}


def measure() -> Findings:
    """Every corner, each within the ε or δ that is asked for."""
    fa.compose([(BR(0.1), 3)]).epsilon_at(0.1)  # the kernels are compiled and loaded
    rows, goals = [], []
    for name, ask in CORNERS.items():
        forget()
        start = time.process_time()
        answer = ask()
        took = time.process_time() - start
        shown, width = f"{answer:.6g}" if isinstance(answer, float) else str(answer), "-"
        if isinstance(answer, fa.Bracket):
            shown, width = (
                f"[{answer.lower:.6g}, {answer.upper:.6g}]",
                f"{100 * answer.width:.3g} %",
            )
            if not name.startswith(MOMENTS):
                goals.append(Goal(f"{name}, width", 100 * answer.width, 1, "%"))
        rows.append([name, shown, width, f"{took:.1f} s"])
        goals.append(Goal(f"{name}, CPU time", took, 10, "s"))
    table = Table("At δ = 1e-6.", ["case", "answer", "width", "CPU time"], rows)
    return Findings("Corners", (table,), tuple(goals))
