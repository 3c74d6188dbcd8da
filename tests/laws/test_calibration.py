"""The least noise for a target: always enough, and hardly more than that."""

import pytest

import farthing as fa
from farthing.composition import planning

TARGET = {"epsilon": 1.0, "delta": 1e-6}


def within(items, slack=1.0):
    bracket = fa.compose(items).epsilon_at(TARGET["delta"])
    return bracket.upper <= TARGET["epsilon"] * slack


@pytest.mark.parametrize(
    "items",
    [
        lambda noise: [(fa.Gaussian(noise), 10)],
        lambda noise: [(fa.Laplace(1 / noise), 10), (fa.PureDP(0.05), 3)],
        lambda noise: [(fa.Subsampled(fa.Gaussian(noise), 0.05), 50)],
        lambda noise: [(fa.BoundedRange(0.05), 5), (fa.Subsampled(fa.Gaussian(noise), 0.05), 50)],
        lambda noise: [(fa.SubsampledWithoutReplacement(fa.Gaussian(noise), 0.05), 20)],
    ],
)
def test_enough_and_hardly_more(items):
    noise = fa.noise_for(items, **TARGET)
    assert within(items(noise))
    assert not within(items(noise / 1.01), slack=0.999)


def test_gaussian_noise_is_the_analytic_one():
    exact = fa.gaussian_noise_multiplier(1.0, 1e-6, count=10)
    found = fa.noise_for(lambda noise: [(fa.Gaussian(noise), 10)], **TARGET)
    assert exact * (1 - 1e-12) <= found <= 1.001 * exact


def test_sgd():
    """What dp-accounting's calibration gives for the same training, to its own accuracy."""
    found = fa.sgd_noise(
        epsilon=2.38169, delta=1e-5, epochs=60, batch_size=256, dataset_size=60_000
    )
    assert found == pytest.approx(1.1, rel=1e-3)
    steps = -(-60 * 60_000 // 256)
    items = [(fa.Subsampled(fa.Gaussian(found), 256 / 60_000), steps)]
    assert fa.compose(items).epsilon_at(1e-5).upper <= 2.38169


def test_what_cannot_be_met():
    with pytest.raises(fa.Unattainable, match="by themselves"):
        fa.noise_for(lambda noise: [fa.Gaussian(noise), (fa.PureDP(0.5), 5)], **TARGET)
    with pytest.raises(fa.Unattainable):
        fa.noise_for(lambda noise: [fa.Gaussian(noise), fa.ApproximateDP(0.0, 1e-3)], **TARGET)
    with pytest.raises(fa.InvalidInput):
        fa.sgd_noise(epsilon=1.0, delta=1e-5, epochs=1, batch_size=10, dataset_size=5)


def test_so_wide_a_target_needs_next_to_none():
    assert fa.noise_for(lambda noise: [fa.Laplace(1 / noise)], epsilon=60.0, delta=1e-6) == 0.02


def test_narrow_brackets_are_asked_for_at_the_end_only(monkeypatch):
    widths = []

    def counted(items, **how):
        widths.append(how["tolerance"])
        return fa.compose(items, **how)

    monkeypatch.setattr(planning, "compose", counted)
    fa.noise_for(lambda s: [(fa.Gaussian(s), 10), (fa.BoundedRange(0.05), 10)], **TARGET)
    assert widths.count(1e-3) <= 4
    assert widths[: -widths.count(1e-3)] == [0.05] * widths.count(0.05)
