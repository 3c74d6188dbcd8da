"""Laws that hold for every kind of guarantee, whatever the theorem behind it."""

import itertools
import math

import pytest

import farthing as fa
from laws.kinds import GROWING, GUARANTEES, PAIRS, REPLACED

DELTA = 1e-6


def overlap(one, other):
    """Two brackets of the same number."""
    return one.lower <= other.upper and other.lower <= one.upper


@pytest.mark.parametrize(("name", "adaptivity"), PAIRS)
class TestEveryKind:
    def test_count_equals_repetition(self, name, adaptivity):
        guarantee = GUARANTEES[name]
        counted = fa.compose([(guarantee, 7)], adaptivity=adaptivity)
        repeated = fa.compose([guarantee] * 7, adaptivity=adaptivity)
        split = fa.compose([(guarantee, 3), guarantee, (guarantee, 3)], adaptivity=adaptivity)
        assert counted.epsilon_at(DELTA) == repeated.epsilon_at(DELTA) == split.epsilon_at(DELTA)
        assert counted.delta_at(1.0) == repeated.delta_at(1.0)

    def test_more_mechanisms_never_cost_less(self, name, adaptivity):
        uppers = [
            fa.compose([(GUARANTEES[name], n)], adaptivity=adaptivity).epsilon_at(DELTA)
            for n in (1, 2, 5, 6)
        ]
        for fewer, more in itertools.pairwise(uppers):
            assert fewer.lower <= more.upper
            assert fewer.upper <= more.upper * (1 + 2e-3)

    def test_more_delta_never_costs_epsilon(self, name, adaptivity):
        composition = fa.compose([(GUARANTEES[name], 5)], adaptivity=adaptivity)
        answers = [composition.epsilon_at(d) for d in (1e-8, 1e-6, 1e-3, 0.2, 0.9)]
        for small, large in itertools.pairwise(answers):
            assert large.lower <= small.upper
            assert large.upper <= small.upper * (1 + 2e-3)

    def test_more_epsilon_never_costs_delta(self, name, adaptivity):
        composition = fa.compose([(GUARANTEES[name], 5)], adaptivity=adaptivity)
        answers = [composition.delta_at(e) for e in (0.0, 0.1, 0.7, 1.4, 2.0)]
        for small, large in itertools.pairwise(answers):
            assert large.lower <= small.upper
            assert large.upper <= small.upper * (1 + 2e-3)

    def test_delta_and_epsilon_are_consistent(self, name, adaptivity):
        """At the certified ε the δ is certified too, up to the widths of the two brackets."""
        composition = fa.compose([(GUARANTEES[name], 5)], adaptivity=adaptivity, tolerance=1e-2)
        epsilon = composition.epsilon_at(DELTA)
        assert composition.delta_at(epsilon.upper * (1 + 1e-2)).upper <= DELTA * 1.1
        if epsilon.lower > 0:
            assert composition.delta_at(epsilon.upper).lower <= DELTA
            assert composition.delta_at(epsilon.lower).upper >= DELTA * (1 - 1e-9)

    def test_every_bound_is_at_least_the_optimum(self, name, adaptivity):
        composition = fa.compose([(GUARANTEES[name], 5)], adaptivity=adaptivity)
        best = composition.epsilon_at(DELTA)
        bounds = composition.bounds_at(DELTA)
        assert bounds
        assert min(b.upper for b in bounds.values()) == pytest.approx(best.upper, rel=1e-9)
        for bracket in bounds.values():
            assert best.lower <= bracket.upper * (1 + 1e-12)

    def test_answers_are_finite_ordered_and_explained(self, name, adaptivity):
        composition = fa.compose([(GUARANTEES[name], 2)], adaptivity=adaptivity)
        for delta in (1e-8, 0.3, 1 - 1e-12):
            bracket = composition.epsilon_at(delta)
            assert 0 <= bracket.lower <= bracket.upper < math.inf
            assert bracket.theorem
        for epsilon in (0.0, 1e-12, 1.0):
            bracket = composition.delta_at(epsilon)
            assert 0 <= bracket.lower <= bracket.upper <= 1
            assert isinstance(bracket.upper, float)

    def test_the_order_of_an_unordered_list_does_not_matter(self, name, adaptivity):
        other = fa.ApproximateDP(0.2, 1e-9) if adaptivity == "concurrent" else fa.PureDP(0.2)
        guarantee = GUARANTEES[name]
        forward = fa.compose([(guarantee, 2), other], adaptivity=adaptivity)
        backward = fa.compose([other, (guarantee, 2)], adaptivity=adaptivity)
        if adaptivity == "adaptive" and name == "range":
            assert forward.epsilon_at(DELTA).lower <= backward.epsilon_at(DELTA).upper
        else:
            assert overlap(forward.epsilon_at(DELTA), backward.epsilon_at(DELTA))


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize("adaptivity", ["none", "adaptive", "setwise"])
def test_a_weaker_promise_never_costs_less(name, adaptivity):
    answers = [
        fa.compose([(GROWING[name](e), 4)], adaptivity=adaptivity).epsilon_at(DELTA)
        for e in (0.05, 0.1, 0.3, 0.31, 1.0)
    ]
    for strong, weak in itertools.pairwise(answers):
        assert strong.lower <= weak.upper
        assert strong.upper <= weak.upper * (1 + 2e-3)


@pytest.mark.parametrize("name", GUARANTEES)
def test_freedom_never_costs_less(name):
    uppers = [
        fa.compose([(GUARANTEES[name], 4), fa.BoundedRange(0.2), fa.PureDP(0.1)], adaptivity=a)
        for a in ("none", "adaptive", "setwise")
    ]
    none, adaptive, setwise = (c.epsilon_at(DELTA) for c in uppers)
    assert none.lower <= adaptive.upper
    assert adaptive.lower <= setwise.upper
    assert none.lower <= setwise.upper


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("count", [2, 10])
def test_what_is_known_of_a_mechanism_only_helps(epsilon, count):
    """Bounded range and Laplace are ε-DP, and ε-DP is 2ε-bounded range [DDR20, Lemma 2.1]."""
    pure = fa.compose([(fa.PureDP(epsilon), count)]).epsilon_at(DELTA)
    laplace = fa.compose([(fa.Laplace(epsilon), count)]).epsilon_at(DELTA)
    ranged = fa.compose([(fa.BoundedRange(epsilon), count)]).epsilon_at(DELTA)
    double = fa.compose([(fa.BoundedRange(2 * epsilon), count)]).epsilon_at(DELTA)
    assert laplace.lower <= pure.upper
    assert ranged.lower <= pure.upper
    assert pure.lower <= double.upper


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_perfect_privacy_adds_nothing(epsilon):
    silent = [
        fa.PureDP(0.0),
        fa.BoundedRange(0.0),
        (fa.Laplace(0.0), 9),
        fa.ApproximateDP(0.0, 0.0),
    ]
    alone = fa.compose([(fa.BoundedRange(epsilon), 3)])
    together = fa.compose([*silent, (fa.BoundedRange(epsilon), 3), fa.PureDP(0.0)])
    assert alone.epsilon_at(DELTA) == together.epsilon_at(DELTA)
    nothing = fa.compose(silent)
    assert nothing.epsilon_at(0.0).upper == 0
    assert nothing.delta_at(0.0).upper == 0


TIGHT = [
    ([(fa.BoundedRange(0.1), 50)], "adaptive"),
    ([(fa.BoundedRange(0.1), 50)], "none"),
    ([(fa.PureDP(0.1), 50)], "adaptive"),
    ([(fa.BoundedRange(0.1), 20), (fa.PureDP(0.1), 10)], "none"),
    ([(fa.PureDP(0.1), 10), (fa.BoundedRange(0.1), 20)], "setwise"),
    ([(fa.Gaussian(20.0), 30), (fa.Laplace(0.1), 5)], "adaptive"),
]


@pytest.mark.parametrize(("items", "adaptivity"), TIGHT, ids=str)
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_tight_is_below_loose(items, adaptivity, delta):
    composition = fa.compose(items, adaptivity=adaptivity)
    best = composition.epsilon_at(delta)
    assert best.width <= 1e-3
    for name, bracket in composition.bounds_at(delta).items():
        assert best.upper <= bracket.upper * (1 + 1e-9), name
        assert best.lower <= bracket.upper, name


def test_the_table_of_bounds_names_them_all():
    """`bounds_at` is for tables and plots: everything that applies, not only the best."""
    pure = set(fa.compose([(fa.PureDP(0.1), 25)]).bounds_at(DELTA))
    assert pure >= {"basic", "optimal-dp", "drv10", "improved-drv10", "strong", "cdp", "zcdp"}
    ranged = set(fa.compose([(fa.BoundedRange(0.1), 25)], adaptivity="none").bounds_at(DELTA))
    assert ranged >= {"basic", "optimal-br", "optimal-dp", "dr19", "optimal-kl", "mgf", "renyi"}
    adaptive = set(fa.compose([(fa.BoundedRange(0.1), 25)]).bounds_at(DELTA))
    assert adaptive >= {"operators", "optimal-kl", "mgf", "zcdp-tight"}


@pytest.mark.parametrize("name", REPLACED)
def test_replace_one_neighbours(name):
    """Count and repetition agree, more costs more, and other neighbours are kept out."""
    guarantee = REPLACED[name]
    counted = fa.compose([(guarantee, 6)]).epsilon_at(DELTA)
    assert counted == fa.compose([guarantee] * 6).epsilon_at(DELTA)
    assert 0 < counted.lower <= counted.upper
    assert counted.upper <= fa.compose([(guarantee, 8)]).epsilon_at(DELTA).upper
    whole = type(guarantee)(guarantee.guarantee, 1.0)
    unsampled = fa.compose([(guarantee.guarantee, 6)]).epsilon_at(DELTA)
    assert fa.compose([(whole, 6)]).epsilon_at(DELTA) == unsampled
    assert counted.upper <= unsampled.upper
    together = fa.compose([(guarantee, 6), whole]).epsilon_at(DELTA)
    assert together.lower >= counted.lower
    for other in (fa.PureDP(0.1), fa.Subsampled(fa.Gaussian(1.0), 0.1), fa.BoundedRange(0.1)):
        with pytest.raises(fa.Unsupported, match="replace-one"):
            fa.compose([guarantee, other])


@pytest.mark.parametrize(
    ("guarantee", "reason"),
    [
        (fa.BoundedRange(0.1), "no pair"),
        (fa.ZeroConcentratedDP(0.1), "moments"),
        (fa.RenyiDP(lambda alpha: alpha), "moments"),
        (fa.Subsampled(fa.Gaussian(1.0), 0.1), "multiply the rates"),
        (fa.LossDistribution((-0.2, 0.2), (0.45, 0.55)), "discretise then"),
    ],
)
@pytest.mark.parametrize("sample", [fa.Subsampled, fa.SubsampledWithoutReplacement])
def test_what_cannot_be_sampled_says_why(guarantee, reason, sample):
    with pytest.raises(fa.Unsupported, match=reason):
        sample(guarantee, 0.1)


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1, float("nan")])
def test_a_rate_is_a_share(rate):
    with pytest.raises(fa.InvalidInput, match="rate"):
        fa.Subsampled(fa.Gaussian(1.0), rate)
