"""OpenDP's measurements, autodp's mechanisms, Opacus' history."""

from __future__ import annotations

import sys

import opendp.prelude as dp
import pytest
from autodp import mechanism_zoo, transformer_zoo

import farthing as fa
from farthing.exchange import (
    from_autodp,
    from_event,
    from_opacus,
    from_opendp,
    to_dp_accounting,
    to_event,
)


@pytest.fixture(scope="module", autouse=True)
def _features():
    dp.enable_features("contrib", "honest-but-curious")


SPACE = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)


def test_opendp_measures() -> None:
    laplace = dp.m.make_laplace(*SPACE, scale=4.0)
    gaussian = dp.m.make_gaussian(*SPACE, scale=2.0)
    assert from_opendp(laplace, 1.0) == fa.PureDP(0.25)
    assert from_opendp(gaussian, 1.0) == fa.ZeroConcentratedDP(0.125)
    assert from_opendp(dp.c.make_approximate(laplace), 2.0) == fa.ApproximateDP(0.5, 0.0)
    rough = from_opendp(dp.c.make_approximate(gaussian), 1.0)
    assert rough == fa.ZeroConcentratedDP(0.125, 0.0, 0.0)
    fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), 1e-6)
    point = from_opendp(fixed, 1.0)
    assert (point.epsilon, point.delta) == (pytest.approx(2.419, rel=1e-3), 1e-6)
    several = dp.c.make_composition([gaussian] * 8)
    assert from_opendp(several, 1.0).rho == pytest.approx(1.0)


def test_opendp_profiles_are_read_from_above() -> None:
    gaussian = dp.m.make_gaussian(*SPACE, scale=2.0)
    profile = dp.c.make_zCDP_to_approxDP(gaussian)
    guarantee = from_opendp(profile, 1.0)
    assert isinstance(guarantee, fa.LossDistribution)
    for epsilon in (0.1, 0.7, 1.5):
        ours = fa.compose([guarantee]).delta_at(epsilon).upper
        theirs = profile.map(1.0).delta(epsilon)
        assert theirs * (1 - 1e-9) <= ours <= theirs * 1.01 + 1e-9
    together = fa.compose([(guarantee, 4)], tolerance=1e-2).epsilon_at(1e-6)
    assert together.upper >= fa.gaussian_epsilon(1e-6, noise_multiplier=1.0).lower
    with pytest.raises(fa.Unsupported, match="larger delta"):
        from_opendp(dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*SPACE, scale=0.01)), 1.0)


def stated(metric, measure, privacy_map):
    """A measurement of which only the map matters."""
    rows = dp.vector_domain(dp.atom_domain(T=int))
    return dp.m.make_user_measurement(rows, metric, measure, lambda _: 0, privacy_map)


def test_opendp_metrics_say_who_neighbours_are() -> None:
    added = stated(dp.symmetric_distance(), dp.max_divergence(), lambda d: 0.25 * d)
    assert from_opendp(added, 1) == fa.PureDP(0.25)
    assert from_opendp(added, 3) == fa.PureDP(0.75)
    replaced = stated(dp.change_one_distance(), dp.max_divergence(), lambda d: 0.25 * d)
    assert from_opendp(replaced, 1) == fa.SubsampledWithoutReplacement(fa.PureDP(0.25), 1.0)
    concentrated = stated(
        dp.change_one_distance(), dp.zero_concentrated_divergence(), lambda d: 0.1 * d
    )
    with pytest.raises(fa.Unsupported, match="replace-one"):
        from_opendp(concentrated, 1)


def test_opendp_curves() -> None:
    curve = stated(dp.symmetric_distance(), dp.renyi_divergence(), lambda d: lambda a: 0.1 * a * d)
    guarantee = from_opendp(curve, 1)
    assert isinstance(guarantee, fa.RenyiDP)
    ours = fa.compose([guarantee]).epsilon_at(1e-6).upper
    assert ours == pytest.approx(fa.compose([fa.ZeroConcentratedDP(0.1)]).epsilon_at(1e-6).upper)


def test_opendp_refusals() -> None:
    with pytest.raises(fa.InvalidInput, match="measurement"):
        from_opendp("laplace", 1.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # autodp divides inf by inf in its searches
def test_autodp_mechanisms() -> None:
    assert from_autodp(mechanism_zoo.ExactGaussianMechanism(3.0)) == fa.Gaussian(3.0)
    assert from_autodp(mechanism_zoo.GaussianMechanism(3.0)) == fa.Gaussian(3.0)
    assert from_autodp(mechanism_zoo.LaplaceMechanism(4.0)) == fa.Laplace(0.25)
    assert from_autodp(mechanism_zoo.PureDP_Mechanism(0.3)) == fa.PureDP(0.3)
    assert from_autodp(mechanism_zoo.zCDP_Mechanism(0.1)) == fa.ZeroConcentratedDP(0.1)
    assert from_autodp(mechanism_zoo.ExponentialMechanism(0.5)) == fa.BoundedRange(0.5)
    sampled = mechanism_zoo.SubsampleGaussianMechanism(
        {"sigma": 1.0, "prob": 0.1, "coeff": 1}, RDP_off=True, phi_off=False
    )
    with pytest.raises(fa.Unsupported, match="remove_only"):
        from_autodp(sampled)
    with pytest.raises(fa.InvalidInput, match="mechanism"):
        from_autodp(fa.Gaussian(1.0))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_autodp_curves() -> None:
    laplace, gaussian = mechanism_zoo.LaplaceMechanism(4.0), mechanism_zoo.GaussianMechanism(5.0)
    both = transformer_zoo.Composition()([laplace, gaussian], [10, 2])
    curve = from_autodp(both)
    assert isinstance(curve, fa.RenyiDP)
    ours = fa.compose([curve]).epsilon_at(1e-6).upper
    assert ours <= both.get_approxDP(1e-6) * (1 + 1e-6)
    assert (
        ours >= fa.compose([(fa.Laplace(0.25), 10), (fa.Gaussian(5.0), 2)]).epsilon_at(1e-6).lower
    )
    point = from_autodp(both, delta=1e-6)
    assert point == fa.ApproximateDP(float(both.get_approxDP(1e-6)), 1e-6)


def test_opacus_history() -> None:
    history = [(1.0, 0.01, 500), (1.1, 0.01, 500), (0.9, 0.02, 0)]
    assert from_opacus(history) == [
        (fa.Subsampled(fa.Gaussian(1.0), 0.01), 500),
        (fa.Subsampled(fa.Gaussian(1.1), 0.01), 500),
    ]
    for wrong in ([(1.0, 0.01)], [(0.0, 0.01, 5)], [(1.0, 1.5, 5)], [(1.0, 0.1, 2.5)], [7]):
        with pytest.raises(fa.InvalidInput):
            from_opacus(wrong)


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("dp_accounting", "dp_accounting.pld", "opendp.mod", "autodp.autodp_core"):
        monkeypatch.setitem(sys.modules, name, None)
    for call, extra in (
        (lambda: to_event([fa.Gaussian(1.0)]), "dp-accounting"),
        (lambda: from_event(None), "dp-accounting"),
        (lambda: to_dp_accounting([fa.Gaussian(1.0)]), "dp-accounting"),
        (lambda: from_opendp(None, 1.0), "opendp"),
        (lambda: from_autodp(None), "autodp"),
    ):
        with pytest.raises(fa.Unsupported, match=rf"pip install '\.\[{extra}\]'"):
            call()
