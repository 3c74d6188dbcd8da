"""Mechanisms next to OpenDP, in one run: exact draws and selections from large domains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import opendp.prelude as dp

from benchmarks.findings import Beside, Findings, Goal, Table
from benchmarks.timing import best_of
from farthing.guarantees.kinds import DiscreteGaussian, PureDP
from farthing.lab.example_data import macbeth_word_counts
from farthing.mechanisms import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Histogram,
    KnownCounts,
    KnownGumbel,
    UnknownGumbel,
    ordered_counts,
)
from farthing.mechanisms.noise.exact_sampling import BitSource


@dataclass(frozen=True)
class Row:
    """One question: what farthing needs, what OpenDP needs, and what was asked of it."""

    question: str
    farthing: float
    opendp: float | None = None
    most: float | None = None


def seconds(action: Callable[[], object], runs: int = 1) -> float:
    """The shortest of `runs` measurements."""
    return best_of(runs, action)[0]


def shapes(size: int) -> dict[str, np.ndarray]:
    """Counts that are far apart, equal, all different, and as real data has them."""
    rng = np.random.default_rng(0)
    return {
        "well separated": rng.permutation(size).astype(np.int64) * 1000,
        "flat": np.full(size, 1000, dtype=np.int64),
        "all different": rng.permutation(size).astype(np.int64),
        "Zipf": np.minimum(rng.zipf(1.5, size), 10**9).astype(np.int64),
    }


def large_top_k() -> list[Row]:
    """Top-100 of 10⁷ categories, from checked input to labels."""
    rows, size = [], 10**7
    labels = np.arange(size)
    known = KnownGumbel(epsilon=0.1, k=100, per_key_limit=1)
    unknown = UnknownGumbel(
        epsilon=0.1, delta=1e-9, k=100, candidates=10**5, contribution_limit=10, per_key_limit=1
    )
    for name, counts in shapes(size).items():
        histogram = Histogram(labels, counts)
        rows.append(
            Row(
                f"top-100 of 10⁷, {name}, known domain",
                seconds(lambda: known.run(histogram)),  # noqa: B023 # runs at once
                most=5,
            )
        )
        rows.append(
            Row(
                f"top-100 of 10⁷, {name}, unknown domain, 10⁵ candidates",
                seconds(lambda: unknown.run(histogram)),  # noqa: B023 # runs at once
                most=5,
            )
        )
    return rows


def top_k_next_to_opendp() -> list[Row]:
    """Top-10 of 10⁵ by Gumbel noise of scale 10, the same question to both."""
    rows, size = [], 10**5
    mechanism = KnownGumbel(epsilon=0.1, k=10, per_key_limit=1)
    peer = _opendp_top_k()
    for name in ("well separated", "flat"):
        counts = shapes(size)[name]
        histogram, plain = Histogram(np.arange(size), counts), counts.tolist()
        rows.append(
            Row(
                f"top-10 of 10⁵, {name}",
                seconds(lambda: mechanism.run(histogram), 3),  # noqa: B023 # runs at once
                seconds(lambda: peer(plain)),  # noqa: B023 # runs at once
            )
        )
    return rows


def samplers() -> list[Row]:
    """10⁶ exact draws; OpenDP is asked for 10⁵ and multiplied by ten."""
    count = 10**6
    laplace, gauss = DiscreteLaplaceNoise(Fraction(10)), DiscreteGaussianNoise(Fraction(13.1) ** 2)
    peers = _opendp_noise()
    few = [0] * (count // 10)
    rows = []
    for name, draw, peer, target in (
        ("discrete Laplace", laplace.draw, peers[0], 2),
        ("discrete Gaussian", gauss.draw, peers[1], 5),
    ):
        ours = seconds(lambda: draw(count, BitSource()), 3)  # noqa: B023 # runs at once
        theirs = 10 * seconds(partial(peer, few))
        rows.append(Row(f"10⁶ draws, {name}", ours, theirs, target))
    return rows


def count_mle(trials: int = 100) -> dict[str, float]:
    """Mean squared error on the top-25 words of Macbeth at equal (2.08, 1e-6) [CR22, Figure 6].

    Laplace with ε = 0.1 per count; Gaussian with σ = 13.1, raw and after CountMLE.
    """
    words, counts = macbeth_word_counts()
    histogram = Histogram(words[:25], counts[:25])
    truth = np.array(counts[:25], dtype=np.float64)
    limits = {"contribution_limit": 25, "per_key_limit": 1}
    laplace = KnownCounts(coordinate=PureDP(0.1), **limits)
    gauss = KnownCounts(coordinate=DiscreteGaussian(13.1, 1), **limits)
    errors: dict[str, list[float]] = {"Laplace": [], "Gaussian": [], "CountMLE": []}
    for _ in range(trials):
        noisy = np.array(gauss.run(histogram).counts, dtype=np.float64)
        released = {
            "Laplace": np.array(laplace.run(histogram).counts, dtype=np.float64),
            "Gaussian": noisy,
            "CountMLE": ordered_counts(noisy),
        }
        for name, values in released.items():
            errors[name].append(float(((values - truth) ** 2).mean()))
    return {name: float(np.mean(values)) for name, values in errors.items()}


def measure() -> Findings:
    """Times beside OpenDP's, and what Gaussian noise and CountMLE gain over Laplace noise."""
    rows = [*samplers(), *top_k_next_to_opendp(), *large_top_k()]
    peer = f"OpenDP {version('opendp')}"
    besides = [
        Beside(row.question, "s", row.farthing, peer, row.opendp)
        for row in rows
        if row.opendp is not None
    ]
    goals = [Goal(row.question, row.farthing, row.most, "s") for row in rows if row.most]
    mean = count_mle()
    errors = [[n, f"{e:.1f}", f"{e / mean['Laplace']:.3f}"] for n, e in mean.items()]
    times = [
        [row.question, f"{row.farthing:.4f}", "" if row.opendp is None else f"{row.opendp:.3f}"]
        for row in rows
    ]
    tables = (
        Table("Seconds, exact sampling on both sides.", ["question", "farthing", "OpenDP"], times),
        Table(
            "Counts of the 25 commonest words of Macbeth at equal (2.08, 1e-6), 100 trials.",
            ["noise", "mean squared error", "relative to Laplace"],
            errors,
        ),
    )
    return Findings("Mechanisms", tables, tuple(goals), tuple(besides))


def _opendp_top_k() -> Any:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int, monotonic=True)
    measure = dp.zero_concentrated_divergence()  # the measure under which OpenDP draws Gumbel noise
    return space >> dp.m.then_noisy_top_k(output_measure=measure, k=10, scale=10.0)


def _opendp_noise() -> tuple[Any, Any]:
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    return (
        (domain, dp.l1_distance(T=int)) >> dp.m.then_laplace(scale=10.0),
        (domain, dp.l2_distance(T=float)) >> dp.m.then_gaussian(scale=13.1),
    )
