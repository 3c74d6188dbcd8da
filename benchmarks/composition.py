"""The closed forms: how narrow, how fast, and how they compare with dp-accounting."""

from __future__ import annotations

import math
import random
import sys

from dp_accounting.pld import privacy_loss_distribution as pld

import farthing as fa
from benchmarks.timing import best_of, peak_megabytes, seconds_of_process, table
from farthing.composition import bounded_range, equal_pure_dp
from farthing.composition.profiles import curves
from farthing.composition.pure_dp_and_bounded_range import Mix

DELTA = 1e-6


def report() -> str:
    """Markdown of every number that the closed forms must reach."""
    rows = []

    def row(what: str, goal: str, seconds: float, bracket: fa.Bracket, note: str = "") -> None:
        width = f"{bracket.width:.1e}"
        rows.append([what, goal, f"{1000 * seconds:.1f} ms", width, f"{bracket.upper:.6g}", note])

    for count, epsilon, goal in ((1000, 0.1, "≤ 50 ms"), (10**8, 1e-4, "≤ 1 s")):
        seconds, bracket = best_of(
            3,
            lambda e=epsilon, k=count: bounded_range.epsilon_nonadaptive(DELTA, epsilon=e, count=k),
        )
        row(f"bounded range, none, k = {count:.0e}", goal, seconds, bracket)
    seconds, bracket = best_of(
        3, lambda: bounded_range.epsilon_nonadaptive(1e-300, epsilon=0.1, count=1000)
    )
    row("the same, k = 1000, δ = 1e-300", "works", seconds, bracket)
    seconds, bracket = best_of(
        3, lambda: equal_pure_dp.epsilon_equal(DELTA, epsilon=0.001, count=10**6)
    )
    response = pld.from_randomized_response(_flip(0.001), 2, value_discretization_interval=1e-4)
    theirs, their_epsilon = best_of(
        1, lambda: response.self_compose(10**6).get_epsilon_for_delta(DELTA)
    )
    row(
        "KOV, k = 10⁶",
        "≤ 50 ms",
        seconds,
        bracket,
        f"dp-accounting PLD, interval 1e-4: {theirs:.2f} s, {theirs / seconds:.0f} × as long, "
        f"ε = {their_epsilon:.4f}",
    )
    seconds, bracket = best_of(3, lambda: Mix(0.05, pure=1000, ranged=1000).epsilon_at(DELTA))
    row("mixed, k = 2000, m = 1000", "≤ 1 s", seconds, bracket)
    source = random.Random(1)
    unequal = [fa.PureDP(source.uniform(0.005, 0.1)) for _ in range(1000)]

    def unequal_epsilon() -> fa.Bracket:
        curves.cache_clear()
        return fa.compose(unequal).epsilon_at(DELTA)

    seconds, bracket = best_of(3, unequal_epsilon)
    row("1000 unequal ε-DP", "≤ 2 s, ≤ 0.1 %", seconds, bracket)
    memory = peak_megabytes(
        "from farthing.composition.bounded_range import epsilon_nonadaptive\n"
        "epsilon_nonadaptive(1e-6, epsilon=1e-4, count=10**8)"
    )
    start = seconds_of_process(sys.executable, "-c", "import farthing")
    empty = seconds_of_process(sys.executable, "-c", "pass")
    command = seconds_of_process(
        sys.executable, "-m", "farthing", "epsilon", "100xbr:0.1", "20xdp:0.1",
        "--delta", "1e-6", "--adaptivity", "none", "--json",
    )  # fmt: skip
    lines = [
        "## Closed forms\n",
        table(["question at δ = 1e-6", "goal", "time", "width", "ε", "beside"], rows),
        f"- peak memory of k = 10⁸: {memory:.0f} MB (goal 300)",
        f"- `import farthing`: {start - empty:.2f} s beyond an empty interpreter (goal 0.5)",
        f"- `farthing epsilon …` from a cold start: {command:.2f} s (goal 2)",
    ]
    return "\n".join(lines) + "\n"


def _flip(epsilon: float) -> float:
    """dp-accounting's noise parameter of binary randomized response."""
    return 2 / (1 + math.exp(epsilon))


if __name__ == "__main__":
    print(report())
