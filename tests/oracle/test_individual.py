"""A budget for each record by itself, against adversaries who see every answer."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

import farthing as fa
from tests.oracle.test_gaussian_filter import profile

EPSILON, DELTA = 1.0, 0.05


def reached(first: float, second: float, threshold: float, *, honest: bool) -> float:
    """δ at ε for a record that adds `first` to a sum with noise of deviation 1, and then `second`
    if the first answer was above a threshold: by integration over the first answer."""
    accountant = fa.IndividualAccountant(EPSILON, DELTA, 1)
    took = accountant.spend_noise(np.array([first]), 1.0)[0]
    if not honest:
        accountant = fa.IndividualAccountant(EPSILON, DELTA, 1)
    after = accountant.spend_noise(np.array([second]), 1.0)[0]
    here, there = first if took else 0.0, second if after else 0.0
    normal, total, width = NormalDist(here, 1.0), 0.0, 0.05
    for i in range(-140, 141):
        answer = here + i * width
        loss = here * answer - here**2 / 2
        left = profile(there**2 if answer > threshold else 0.0, EPSILON - loss)
        total += normal.pdf(answer) * width * left
    return total


@pytest.mark.parametrize("first", [0.2, 0.4, 0.6])
@pytest.mark.parametrize("threshold", [-9.0, 0.0, 0.7, 1.5])
def test_no_record_loses_more_than_its_budget(first: float, threshold: float) -> None:
    for second in (0.3, 0.5, 0.6, 0.7):
        assert reached(first, second, threshold, honest=True) <= DELTA * (1 + 1e-3)


def test_a_record_that_pays_once_and_takes_part_twice_is_found_out() -> None:
    assert reached(0.6, 0.6, -9.0, honest=False) > 1.5 * DELTA


def test_a_record_sits_out_what_it_cannot_pay_and_may_come_back() -> None:
    accountant = fa.IndividualAccountant(3.0, 1e-6, 4)
    norms = np.array([0.0, 1.0, 5.0, 1.0])
    for step in range(200):
        takes_part = accountant.spend_noise(norms, 20.0)
        assert takes_part.tolist() == [True, step < 167, step < 6, step < 167]
    assert accountant.spend_noise(np.array([0, 0, 0.1, 0.0]), 20.0).all()


def test_guarantees_of_their_own() -> None:
    accountant, kinds = (
        fa.IndividualAccountant(3.0, 1e-6, 3),
        [fa.BoundedRange(0.1), fa.PureDP(0.1)],
    )
    for step in range(200):
        takes_part = accountant.spend(kinds, np.array([0, 1, -1]))
        assert takes_part.tolist() == [step < 166, step < 40, False]
    with pytest.raises(fa.Unsupported):
        accountant.spend([fa.ApproximateDP(0.1, 1e-9)], np.zeros(3, dtype=int))
    for wrong in (np.zeros(2, dtype=int), np.zeros(3), np.array([0, 1, 2])):
        with pytest.raises(fa.InvalidInput):
            accountant.spend(kinds, wrong)
    for norms in (np.ones(2), np.array([1.0, math.nan, 0]), np.array([1.0, -1.0, 0])):
        with pytest.raises(fa.InvalidInput):
            accountant.spend_noise(norms, 1.0)
    assert not accountant.spend_noise(np.array([math.inf, 1e200, 1e300]), 1e-200).any()
