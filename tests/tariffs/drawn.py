"""Random small tariffs for Hypothesis: every kind on sale, prices, units that bind or do not."""

from __future__ import annotations

from hypothesis import strategies as st

import farthing as fa

EPSILONS = st.floats(0.02, 1.5)
GUARANTEES = st.one_of(
    st.builds(fa.PureDP, EPSILONS),
    st.builds(fa.BoundedRange, EPSILONS),
    st.builds(fa.Laplace, EPSILONS),
    st.builds(fa.ApproximateDP, EPSILONS | st.just(0.0), st.sampled_from([0.0, 1e-9, 3e-8])),
    st.builds(fa.Gaussian, st.floats(1.0, 30.0)),
    st.builds(fa.DiscreteGaussian, st.floats(1.0, 20.0), st.integers(1, 3)),
)
RATES = st.sampled_from([0.01, 0.2, 0.9, 1.0])
GUARANTEES |= st.builds(
    fa.Subsampled, GUARANTEES.filter(lambda g: not isinstance(g, fa.BoundedRange)), RATES
)


@st.composite
def tariffs(draw: st.DrawFn) -> fa.Tariff:
    """One to four items; the loss stays in a range where a coarse grid is small."""
    items = {
        f"item{i}": (draw(GUARANTEES), draw(st.integers(1, 8)))
        for i in range(draw(st.integers(1, 4)))
    }
    strongest = max(_strength(guarantee) / price for guarantee, price in items.values())
    most = 60 if strongest < 0.3 else 12
    return fa.Tariff(
        items,
        farthings=draw(st.integers(1, most)),
        delta_units=draw(st.sampled_from([0, 1, 7, 100])),
        delta_unit=1e-9,
    )


def _strength(guarantee: fa.Guarantee) -> float:
    if isinstance(guarantee, fa.Subsampled):
        return _strength(guarantee.guarantee)
    if isinstance(guarantee, fa.Gaussian | fa.DiscreteGaussian):
        return 1 / guarantee.noise_multiplier
    assert isinstance(guarantee, fa.PureDP | fa.BoundedRange | fa.Laplace | fa.ApproximateDP)
    return guarantee.epsilon
