"""Random lists of guarantees, small enough to be composed in a moment."""

from hypothesis import strategies as st

import farthing as fa

epsilons = st.floats(min_value=0.02, max_value=2.0)
deltas = st.floats(min_value=-9, max_value=-0.5).map(lambda e: 10.0**e)

worst_cases = st.one_of(
    st.builds(fa.PureDP, epsilons),
    st.builds(fa.BoundedRange, epsilons),
    st.builds(fa.BoundedRange, epsilons),
    st.builds(fa.Laplace, epsilons),
    st.builds(fa.Gaussian, st.floats(min_value=0.7, max_value=30.0)),
)
counted = st.tuples(worst_cases, st.integers(min_value=1, max_value=3))
lists = st.lists(counted, min_size=1, max_size=3)
