"""The closed forms: how narrow, how fast, and how they compare with dp-accounting."""

from __future__ import annotations

import math
import random
import sys
from importlib.metadata import version

from dp_accounting.pld import privacy_loss_distribution as pld

import farthing as fa
from benchmarks.findings import Beside, Findings, Goal, Table
from benchmarks.timing import best_of, forget, peak_megabytes, seconds_of_process
from farthing.composition.bounds import closed_forms, nonadaptive
from farthing.composition.bounds.nonadaptive import Mix

DELTA = 1e-6


def measure() -> Findings:
    """Every number that the closed forms must reach."""
    rows, goals = [], []

    def row(what: str, goal: float | None, seconds: float, bracket: fa.Bracket) -> None:
        rows.append(
            [what, f"{1000 * seconds:.1f} ms", f"{bracket.width:.1e}", f"{bracket.upper:.6g}"]
        )
        if goal is not None:
            goals.append(Goal(what, 1000 * seconds, goal, "ms"))

    for count, epsilon, goal in ((1000, 0.1, 50), (10**8, 1e-4, 1000)):
        seconds, bracket = best_of(
            3,
            lambda e=epsilon, k=count: nonadaptive.epsilon_nonadaptive(DELTA, epsilon=e, count=k),
        )
        row(f"bounded range, none, k = {count:.0e}", goal, seconds, bracket)
    seconds, bracket = best_of(
        3, lambda: nonadaptive.epsilon_nonadaptive(1e-300, epsilon=0.1, count=1000)
    )
    row("the same, k = 1000, δ = 1e-300", None, seconds, bracket)
    seconds, bracket = best_of(
        3, lambda: closed_forms.epsilon_equal(DELTA, epsilon=0.001, count=10**6)
    )
    response = pld.from_randomized_response(_flip(0.001), 2, value_discretization_interval=1e-4)
    theirs, their_epsilon = best_of(
        1, lambda: response.self_compose(10**6).get_epsilon_for_delta(DELTA)
    )
    row("10⁶ × dp:0.001", 50, seconds, bracket)
    peer = f"dp-accounting {version('dp-accounting')} (PLD, interval 1e-4)"
    besides = (
        Beside("10⁶ × dp:0.001", "s", seconds, peer, theirs),
        Beside("10⁶ × dp:0.001", "ε", bracket.upper, peer, their_epsilon, same=1e-3),
    )
    seconds, bracket = best_of(3, lambda: Mix(0.05, pure=1000, ranged=1000).epsilon_at(DELTA))
    row("1000 × dp:0.05 + 1000 × br:0.05, none", 1000, seconds, bracket)
    source = random.Random(1)
    unequal = [fa.PureDP(source.uniform(0.005, 0.1)) for _ in range(1000)]

    def unequal_epsilon() -> fa.Bracket:
        forget()
        return fa.compose(unequal).epsilon_at(DELTA)

    seconds, bracket = best_of(3, unequal_epsilon)
    row("1000 unequal ε-DP", 2000, seconds, bracket)
    goals.append(Goal("1000 unequal ε-DP, width", 100 * bracket.width, 0.1, "%"))
    memory = peak_megabytes(
        "from farthing.composition.bounds.nonadaptive import epsilon_nonadaptive\n"
        "epsilon_nonadaptive(1e-6, epsilon=1e-4, count=10**8)"
    )
    start = seconds_of_process(sys.executable, "-c", "import farthing")
    empty = seconds_of_process(sys.executable, "-c", "pass")
    command = seconds_of_process(
        sys.executable, "-m", "farthing", "epsilon", "100xbr:0.1", "20xdp:0.1",
        "--delta", "1e-6", "--adaptivity", "none", "--json",
    )  # fmt: skip
    goals += [
        Goal("peak memory of k = 10⁸", memory, 300, "MB"),
        Goal("`import farthing` beyond an empty interpreter", start - empty, 0.5, "s"),
        Goal("`farthing epsilon …` from a cold start", command, 2, "s"),
    ]
    table = Table("At δ = 1e-6, best of three.", ["list", "time", "width", "ε"], rows)
    return Findings("Closed forms", (table,), tuple(goals), besides)


def _flip(epsilon: float) -> float:
    """dp-accounting's noise parameter of binary randomized response."""
    return 2 / (1 + math.exp(epsilon))
