"""Samples against 50 digits, in both directions; the lattice and the transform under them."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_poly

import farthing as fa
from farthing.composition.adaptive.lattice import Factors, Lattice, lattice_above, lattice_below
from farthing.guarantees.losses import loss_of
from farthing.guarantees.losses.base import Atoms
from farthing.guarantees.losses.sampled import replaced_below
from farthing.numerics.ball import down, in_balls, up
from farthing.numerics.convolution import cyclic_product
from oracle.reference import atoms_profile, mp
from oracle.sampled import (
    SampledGaussian,
    discrete_gaussian,
    enumerated,
    leaky_response,
    mixed,
    randomized_response,
    reverse,
)

GAUSSIANS = [(1.0, 0.01), (0.7, 0.3), (2.0, 0.9)]
DISCRETE = [
    (fa.PureDP(0.5), 0.3, randomized_response(0.5)),
    (fa.PureDP(2.0), 0.01, randomized_response(2.0)),
    (fa.ApproximateDP(0.4, 1e-3), 0.25, leaky_response(0.4, 1e-3)),
    (fa.DiscreteGaussian(1.5), 0.1, discrete_gaussian(1.5, 1, far=24)),
    (fa.DiscreteGaussian(1.0, 2), 0.6, discrete_gaussian(1.0, 2, far=30)),
]


def one_way(guarantee, rate, with_unit):
    return loss_of(fa.Subsampled(guarantee, rate), with_unit=with_unit)


@pytest.mark.parametrize("with_unit", [True, False])
@pytest.mark.parametrize(("sigma", "rate"), GAUSSIANS)
@in_balls
def test_atoms_of_a_sampled_gaussian(sigma, rate, with_unit):
    loss = one_way(fa.Gaussian(sigma), rate, with_unit)
    exact = SampledGaussian(sigma, rate, with_unit)
    reach = loss.reach(1e-14)
    above, below = loss.atoms_above(0.2 * rate, reach), loss.atoms_below(0.2 * rate, reach)
    places = [*np.linspace(-0.9 * rate, 1.1 * reach, 40), 0.0, math.log1p(-rate), -0.001]
    for x in map(float, places):
        assert atoms_profile(below, x) <= exact.profile(x) <= atoms_profile(above, x)
        assert atoms_profile(above, x) - atoms_profile(below, x) <= 0.02 * rate


@pytest.mark.parametrize(("sigma", "rate"), GAUSSIANS)
@pytest.mark.parametrize("with_unit", [True, False])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 2.0])
def test_one_and_two_sampled_gaussians(sigma, rate, with_unit, epsilon):
    """Each direction by itself, and the larger of both as what is charged."""
    exact = SampledGaussian(sigma, rate, with_unit)
    for count, value in ((1, exact.profile(epsilon)), (2, exact.twice(epsilon))):
        whole = fa.compose([(fa.Subsampled(fa.Gaussian(sigma), rate), count)])
        bracket = whole.directions[0 if with_unit else 1].delta_at(epsilon)
        assert bracket.lower <= value <= bracket.upper
        both = whole.delta_at(epsilon)
        assert both.upper >= value
        assert both.lower <= bracket.upper or both.lower > value
    if value > 1e-12:
        assert bracket.width <= 0.02


@pytest.mark.parametrize(("guarantee", "rate", "pairs"), DISCRETE, ids=range(len(DISCRETE)))
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("epsilon", [0.0, 0.03, 0.2, 0.7])
def test_discrete_samples_outcome_by_outcome(guarantee, rate, pairs, count, epsilon):
    outcomes = mixed(pairs, rate)
    values = {
        True: enumerated([outcomes] * count, epsilon),
        False: enumerated([reverse(outcomes)] * count, epsilon),
    }
    both = fa.compose([(fa.Subsampled(guarantee, rate), count)])
    for with_unit, value in values.items():
        alone = both.directions[0 if with_unit else 1].delta_at(epsilon)
        assert alone.lower <= value <= alone.upper
    answer = both.delta_at(epsilon)
    assert answer.lower <= max(values.values()) <= answer.upper
    assert answer.width <= 0.02 or answer.upper <= 1e-9 or guarantee == fa.ApproximateDP(0.4, 1e-3)


@pytest.mark.parametrize("with_unit", [True, False])
@pytest.mark.parametrize("alpha", [1.5, 2.0, 3.7, 40.0, 90.0])
@in_balls
def test_moments_of_samples_are_bounds(with_unit, alpha):
    pairs = mixed(randomized_response(0.8), 0.2)
    pairs = pairs if with_unit else reverse(pairs)
    exact = mp.log(sum(p * (p / q) ** (mp.mpf(alpha) - 1) for p, q in pairs))
    bound = one_way(fa.PureDP(0.8), 0.2, with_unit).log_moment(alpha)
    assert up(bound) >= exact
    if with_unit and alpha in (2.0, 40.0):
        assert down(bound) <= exact * (1 + mp.mpf("1e-20"))


def some_atoms(source, count):
    losses = np.sort(source.normal(0.0, 0.4, count))
    masses = source.random(count) ** 3
    return Atoms(losses, masses / masses.sum())


def used(lattice):
    here = lattice.masses > 0
    return Atoms(lattice.losses[here], lattice.masses[here])


@pytest.mark.parametrize("step", [0.5, 0.07, 0.001])
@pytest.mark.parametrize("count", [1, 2, 30, 200])
def test_lattices_lie_on_their_side(step, count):
    source = np.random.default_rng(count)
    for atoms in (some_atoms(source, count), some_atoms(source, count)):
        above, below = lattice_above(atoms, step), lattice_below(atoms, step, 7)
        assert round(7 * below.phase) == pytest.approx(7 * below.phase)
        for x in (*source.uniform(-1.5, 1.5, 20), *atoms.losses[:5]):
            exact = atoms_profile(atoms, float(x))
            assert atoms_profile(used(above), float(x)) >= exact
            assert atoms_profile(used(below), float(x)) <= exact


def exact_power(vector, count, size):
    """The cyclic power in exact rationals."""
    base = fmpq_poly([fmpq(*float(v).as_integer_ratio()) for v in vector])
    power = base**count
    wrapped = [fmpq(0)] * size
    for i in range(power.degree() + 1):
        wrapped[i % size] += power[i]
    return wrapped


@pytest.mark.parametrize(("length", "count", "size"), [(3, 200, 64), (40, 9, 128), (100, 3, 64)])
def test_the_error_of_the_transform_is_a_bound(length, count, size):
    source = np.random.default_rng(length)
    vector = source.random(length) ** 4
    vector /= vector.sum()
    found, error = cyclic_product([(vector, count)], size)
    exact = exact_power(vector, count, size)
    worst = max(
        abs(fmpq(*float(f).as_integer_ratio()) - e) for f, e in zip(found, exact, strict=True)
    )
    assert 0 < worst <= fmpq(*error.as_integer_ratio())
    assert error <= 1e-9


def test_two_factors_of_a_product():
    one, other = np.array([0.25, 0.75]), np.array([0.5, 0.0, 0.5])
    found, error = cyclic_product([(one, 2), (other, 1)], 16)
    expected = np.convolve(np.convolve(one, one), other)
    assert np.abs(found[: len(expected)] - expected).max() <= error
    assert np.abs(found[len(expected) :]).max() <= error <= 1e-13


@pytest.mark.parametrize("theta", [0.0, 0.4, 3.0])
def test_sums_on_a_lattice_enclose_exact_ones(theta):
    """Every mass from both sides, also those far out in the tail."""
    masses = np.array([0.5, 0.25, 0.125, 0.125])
    factors = Factors(((Lattice(0.25, -1, masses), 12),))
    exact = exact_power(masses, 12, 64)
    upper, lower = factors.sums(theta, upward=True), factors.sums(theta, upward=False)
    assert upper is not None
    assert lower is not None
    for place in range(-12, 25):
        value = exact[place + 12]
        for lattice, sign in ((upper, 1), (lower, -1)):
            if 0 <= place - lattice.first < len(lattice.masses):
                mass = fmpq(*float(lattice.masses[place - lattice.first]).as_integer_ratio())
                assert sign * (mass - value) >= 0
    top = exact[36]  # only with a tilt does the largest loss keep its digits
    found = lower.masses[24 - lower.first] if 24 - lower.first < len(lower.masses) else 0.0
    assert (found > 0.999 * float(top.p) / float(top.q)) == (theta == 3.0)


def test_tails_down_to_1e_30():
    """Two tilted sums against quadrature where δ is far below the floats' resolution of 1."""
    exact = SampledGaussian(1.0, 0.01, True)
    bracket = fa.compose([(fa.Subsampled(fa.Gaussian(1.0), 0.01), 2)]).delta_at(5.5)
    value = exact.twice(5.5)
    assert 1e-40 < value < 1e-20
    assert bracket.lower <= value <= bracket.upper
    assert bracket.width <= 0.02


@pytest.mark.parametrize("seed", range(3))
def test_samples_beside_others(seed):
    """Samples, pure and bounded-range items of one list, t fixed: never under-reported."""
    source = random.Random(seed)
    rate, epsilon, ranged = 0.2, source.uniform(0.2, 0.8), source.uniform(0.2, 0.8)
    outcomes = mixed(randomized_response(epsilon), rate)
    items = [
        (fa.Subsampled(fa.PureDP(epsilon), rate), 3),
        fa.PureDP(0.3),
        (fa.BoundedRange(ranged), 2),
    ]
    for x in (0.0, 0.1, 0.5):
        best = mp.mpf(0)
        for share in (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9):
            t = share * ranged
            stay = (1 - mp.exp(mp.mpf(t) - ranged)) / (1 - mp.exp(-mp.mpf(ranged)))
            moved = [(stay, stay * mp.exp(-mp.mpf(t))), (1 - stay, (1 - stay) * mp.exp(ranged - t))]
            for law in (outcomes, reverse(outcomes)):
                laws = [law, law, law, randomized_response(0.3), moved, moved]
                best = max(best, enumerated(laws, x))
        for adaptivity in ("none", "adaptive", "setwise"):
            assert fa.compose(items, adaptivity=adaptivity).delta_at(x).upper >= best
        assert fa.compose(items, adaptivity="none").delta_at(x).lower <= 1.02 * best


@pytest.mark.parametrize(
    "guarantee",
    [fa.Gaussian(0.5), fa.Gaussian(1.0), fa.Gaussian(20.0), fa.Laplace(1.0), fa.PureDP(3.0)],
    ids=str,
)
@in_balls
def test_the_mechanism_that_leans_to_both_sides_has_the_guarantee(guarantee):
    rate = 0.1
    sample = loss_of(fa.SubsampledWithoutReplacement(guarantee, rate))
    atoms = replaced_below(sample.before(0.01, sample.reach(1e-12), upward=False)[0], rate)
    right = atoms.losses > 0
    assert np.allclose(atoms.losses, -atoms.losses[::-1], atol=1e-12)
    small = atoms.masses[::-1][right]  # of Q where P is large
    large = small * (np.exp(atoms.losses[right]) - 1 + rate) / rate
    assert math.fsum(large) + 2 * math.fsum(small) <= 1
    alone = fa.compose([guarantee])
    for x in np.linspace(0.0, 3.0, 13):
        attained = math.fsum(np.maximum(large - math.exp(x) * small, 0.0))
        assert attained <= alone.delta_at(float(x)).upper + 1e-12


def test_three_distributions_attain_a_sample_without_replacement():
    # on samples of two out of four units; ε = ln 3, each outcome is for one of the three
    three = [[Fraction(3 if i == j else 1, 5) for i in range(3)] for j in range(3)]
    with_u, with_v, neither = three

    def outcome(sample):
        return with_u if "u" in sample else with_v if "v" in sample else neither

    def mechanism(data):
        samples = list(itertools.combinations(data, 2))
        return [sum(outcome(one)[i] for one in samples) / len(samples) for i in range(3)]

    for one, other in itertools.permutations(three, 2):
        assert max(p / q for p, q in zip(one, other, strict=True)) == 3
    ours, theirs = mechanism(["u", *"abc"]), mechanism(["v", *"abc"])
    guarantee = fa.SubsampledWithoutReplacement(fa.PureDP(math.log(3)), 0.5)
    before, _ = loss_of(guarantee).before(0.01, 1.0, upward=False)
    for count, epsilon in itertools.product((1, 2, 6), (0.0, 0.3, 1.0, 2.0)):
        reached = Fraction(0)
        for view in itertools.product(range(3), repeat=count):
            p, q = (math.prod(one[i] for i in view) for one in (ours, theirs))
            reached += max(Fraction(0), p - Fraction(math.exp(epsilon)) * q)
        upper = fa.compose([(guarantee, count)]).delta_at(epsilon).upper
        assert upper >= reached * (1 - Fraction(1, 10**12))
        if count == 1:
            lower = atoms_profile(replaced_below(before, 0.5), epsilon)
            assert -1e-15 <= float(reached) - lower <= 1e-8


@pytest.mark.parametrize("noise", [0.5, 1.0, 2.0, 5.0])
def test_samples_without_replacement_have_both_sides(noise):
    many = fa.compose([(fa.SubsampledWithoutReplacement(fa.Gaussian(noise), 0.01), 1000)])
    bracket = many.epsilon_at(1e-5)
    assert bracket.upper - bracket.lower <= 0.01 * bracket.upper
