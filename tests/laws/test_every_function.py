"""Every public function of composition for every guarantee: it answers, or says that it cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import farthing as fa
from farthing.composition.planning import largest_repeats
from tests.laws.kinds import GUARANTEES, REPLACED

TOLERANCE = 0.1
LOSS = fa.LossDistribution((-0.3, 0.3), (0.4255574831883411, 0.5744425168116589))
EVERY: dict[str, fa.Guarantee] = {
    **GUARANTEES,
    **REPLACED,
    "loss": LOSS,
    "two losses": fa.TwoWayLoss(LOSS, LOSS),
    "sampled permute and flip": fa.Subsampled(fa.PermuteAndFlip(0.3), 0.3),
    "subset of approximate": fa.SubsampledWithoutReplacement(fa.ApproximateDP(0.3, 1e-9), 0.3),
    "subset of laplace": fa.SubsampledWithoutReplacement(fa.Laplace(0.3), 0.3),
}
#: Kinds by what is known of them.
REPLACES = {name for name in EVERY if isinstance(EVERY[name], fa.SubsampledWithoutReplacement)}
SAMPLES = {name for name in EVERY if isinstance(EVERY[name], fa.Subsampled)} - {"everybody sampled"}
LISTED = {"loss", "two losses"}
MOMENTS = {
    *("concentrated", "zero-concentrated", "offset zero-concentrated", "truncated", "renyi"),
    "approximate zero-concentrated",
}
LEAKS = {
    *("approximate", "approximate zero-concentrated", "sampled approximate"),
    "subset of approximate",
}


def composed(guarantee: fa.Guarantee) -> fa.Composition:
    return fa.compose([(guarantee, 2)], tolerance=TOLERANCE)


def spent(guarantee: fa.Guarantee) -> object:
    accountant = fa.Accountant(8.0, 1e-6, leaks=1e-8)
    accountant.spend(guarantee)
    return accountant


def sold(guarantee: fa.Guarantee) -> object:
    tariff = fa.Tariff({"item": (guarantee, 1)}, farthings=2, delta_units=4, delta_unit=1e-9)
    return tariff.certify(tolerance=0.2, deltas=(1e-6,)).tradeoff()


FUNCTIONS: dict[str, Callable[[fa.Guarantee], Any]] = {
    "epsilon_at": lambda g: composed(g).epsilon_at(1e-6),
    "delta_at": lambda g: composed(g).delta_at(0.5),
    "bounds_at": lambda g: composed(g).bounds_at(1e-6),
    "rho": lambda g: composed(g).rho(),
    "mu": lambda g: composed(g).mu(),
    "tradeoff": lambda g: composed(g).tradeoff().mu(1e-2),
    "largest_count": lambda g: fa.largest_count(g, epsilon=1.2, delta=1e-6, tolerance=TOLERANCE),
    **{
        f"largest_count {adaptivity}": lambda g, how=adaptivity: fa.largest_count(
            g, epsilon=1.2, delta=1e-6, adaptivity=how, tolerance=TOLERANCE
        )
        for adaptivity in ("none", "setwise", "concurrent")
    },
    "largest_repeats": lambda g: largest_repeats([(g, 1)], epsilon=1.2, delta=1e-6),
    "propose_prices": lambda g: fa.propose_prices({"one": g, "two": g}),
    "Tariff.certify": sold,
    "Accountant.spend": spent,
    "group_privacy": lambda g: fa.group_privacy(g, 2),
}
PURE_SAMPLES = {"sampled laplace", "sampled pure", "sampled permute and flip"}
UNKNOWN_RHO = {"truncated", "renyi", "subset", "two losses", *LEAKS, *(SAMPLES - PURE_SAMPLES)}
#: What no theorem gives: the function raises Unsupported, and says so.
REFUSED: dict[str, set[str]] = {
    "largest_count concurrent": {"concentrated", "approximate zero-concentrated"},
    "rho": UNKNOWN_RHO,
    "mu": {*UNKNOWN_RHO, *MOMENTS, "discrete gaussian", "discrete gaussian of steps"},
    "propose_prices": {"truncated", "renyi", "loss", *REPLACES},
    "Tariff.certify": {"permute and flip", *MOMENTS, *LISTED, *REPLACES},
    "Accountant.spend": REPLACES,
    "group_privacy": {
        *("concentrated", "approximate zero-concentrated", "truncated", "renyi"),
        *(SAMPLES | LISTED | REPLACES | {"everybody sampled"}),
    },
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_answers_or_says_that_it_cannot(function: str) -> None:
    refused = set()
    for name, guarantee in EVERY.items():
        try:
            answer = FUNCTIONS[function](guarantee)
        except fa.Unsupported:
            refused.add(name)
        else:
            assert answer is not None
    assert refused == REFUSED.get(function, set())


def test_every_kind_is_here() -> None:
    kinds = {type(guarantee) for guarantee in EVERY.values()}
    assert kinds == set(fa.Guarantee.__args__)
