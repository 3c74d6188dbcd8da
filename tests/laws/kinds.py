"""One or more examples of every guarantee kind, and which adaptivities each allows."""

from __future__ import annotations

from collections.abc import Callable

import farthing as fa


def renyi_curve(alpha: float) -> float:
    return 0.02 * alpha


GUARANTEES: dict[str, fa.Guarantee] = {
    "pure": fa.PureDP(0.3),
    "range": fa.BoundedRange(0.3),
    "approximate": fa.ApproximateDP(0.3, 1e-9),
    "laplace": fa.Laplace(0.3),
    "gaussian": fa.Gaussian(3.0),
    "discrete gaussian": fa.DiscreteGaussian(3.0),
    "discrete gaussian of steps": fa.DiscreteGaussian(3.0, 2),
    "permute and flip": fa.PermuteAndFlip(0.3),
    "concentrated": fa.ConcentratedDP(0.03, 0.3),
    "zero-concentrated": fa.ZeroConcentratedDP(0.02),
    "offset zero-concentrated": fa.ZeroConcentratedDP(0.02, 0.01),
    "approximate zero-concentrated": fa.ZeroConcentratedDP(0.02, -0.005, 1e-9),
    "truncated": fa.TruncatedConcentratedDP(0.02, 12.0),
    "renyi": fa.RenyiDP(renyi_curve, 200.0),
    "sampled gaussian": fa.Subsampled(fa.Gaussian(1.0), 0.1),
    "sampled laplace": fa.Subsampled(fa.Laplace(0.5), 0.4),
    "sampled pure": fa.Subsampled(fa.PureDP(0.5), 0.3),
    "sampled approximate": fa.Subsampled(fa.ApproximateDP(0.5, 1e-9), 0.3),
    "sampled discrete gaussian": fa.Subsampled(fa.DiscreteGaussian(2.0), 0.3),
    "everybody sampled": fa.Subsampled(fa.Gaussian(3.0), 1.0),
}

#: with replace-one neighbours, which are composed with their like only
REPLACED: dict[str, fa.Guarantee] = {
    "subset": fa.SubsampledWithoutReplacement(fa.Gaussian(1.0), 0.1),
    "subset of pure": fa.SubsampledWithoutReplacement(fa.PureDP(0.5), 0.3),
}

#: kinds with one ε or scale; larger (or smaller, for noise) means less private
GROWING: dict[str, Callable[[float], fa.Guarantee]] = {
    "pure": fa.PureDP,
    "range": fa.BoundedRange,
    "approximate": lambda e: fa.ApproximateDP(e, 1e-9),
    "approximate in delta": lambda e: fa.ApproximateDP(0.3, e * 1e-8),
    "laplace": fa.Laplace,
    "gaussian": lambda e: fa.Gaussian(1 / e),
    "discrete gaussian": lambda e: fa.DiscreteGaussian(1 / e),
    "permute and flip": fa.PermuteAndFlip,
    "concentrated in the mean": lambda e: fa.ConcentratedDP(e / 10, 0.3),
    "concentrated in the spread": lambda e: fa.ConcentratedDP(0.03, e),
    "zero-concentrated": lambda e: fa.ZeroConcentratedDP(e / 10),
    "offset": lambda e: fa.ZeroConcentratedDP(0.02, e / 10),
    "truncated": lambda e: fa.TruncatedConcentratedDP(e / 10, 12.0),
    "sampled in noise": lambda e: fa.Subsampled(fa.Gaussian(1 / e), 0.2),
    "sampled in rate": lambda e: fa.Subsampled(fa.Gaussian(2.0), e),
    "sampled laplace": lambda e: fa.Subsampled(fa.Laplace(e), 0.3),
    "subset in rate": lambda e: fa.SubsampledWithoutReplacement(fa.Laplace(0.5), e),
    "truncated in omega": lambda e: fa.TruncatedConcentratedDP(0.02, 5 / e),
}

#: the kinds that the concurrent theorems do not cover
NOT_CONCURRENT = {"concentrated", "approximate zero-concentrated"}


def adaptivities(name: str) -> list[str]:
    kept = ["none", "adaptive", "setwise"]
    return kept if name in NOT_CONCURRENT else [*kept, "concurrent"]


PAIRS = [(name, adaptivity) for name in GUARANTEES for adaptivity in adaptivities(name)]
