"""Trade-offs between false alarms and misses, against every guess about small mechanisms."""

from __future__ import annotations

import math
import random
from itertools import pairwise, product
from statistics import NormalDist

import pytest

import farthing as fa
from farthing.composition.bounds.tradeoff import Profile, Tradeoff
from farthing.errors import InvalidInput, Unattainable

NORMAL = NormalDist()
ALARMS = (0.0, 1e-6, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.8, 0.99, 1.0)
Law = list[float]


def drawn_law(seed: random.Random, outcomes: int) -> Law:
    weights = [seed.random() ** 3 for _ in range(outcomes)]
    return [weight / sum(weights) for weight in weights]


def drawn_pair(seed: random.Random, outcomes: int) -> tuple[Law, Law]:
    """Laws with and without the unit; some outcomes happen on one side only."""
    laws = drawn_law(seed, outcomes), drawn_law(seed, outcomes)
    if seed.random() < 0.5:
        law = laws[seed.randrange(2)]
        law[seed.randrange(outcomes - 1)] = 0.0
        law[-1] = 1 - math.fsum(law[:-1])
    return laws


def guesses(outcomes: int) -> list[tuple[int, ...]]:
    """Every set of outcomes after which somebody says: it is there."""
    return list(product((0, 1), repeat=outcomes))


def errors(said: tuple[int, ...], p: Law, q: Law) -> tuple[float, float]:
    alarms = math.fsum(b for yes, b in zip(said, q, strict=True) if yes)
    return alarms, math.fsum(a for yes, a in zip(said, p, strict=True) if not yes)


def least_beta(p: Law, q: Law, alpha: float) -> float:
    """By all pairs of guesses and coins between them."""
    points = sorted([*(errors(said, p, q) for said in guesses(len(p))), (1.0, 0.0)])
    best = 1.0
    for a, b in points:
        for c, d in points:
            if a <= alpha <= c:
                share = 0.0 if c == a else (alpha - a) / (c - a)
                best = min(best, b + (d - b) * share)
    return best


def profile_of(p: Law, q: Law, places: list[float]) -> Profile:
    """The exact profile, the last lower side being that of everything beyond."""
    values = [
        math.fsum(max(0.0, a - math.exp(x) * b) for a, b in zip(p, q, strict=True)) for x in places
    ]
    leak = math.fsum(a for a, b in zip(p, q, strict=True) if b == 0)
    return [
        (x, max(0.0, (leak if x == places[-1] else v) - 1e-15), min(1.0, v + 1e-15))
        for x, v in zip(places, values, strict=True)
    ]


def tradeoff_of(p: Law, q: Law, places: list[float]) -> Tradeoff:
    return Tradeoff.of(profile_of(p, q, places), profile_of(q, p, places))


@pytest.mark.parametrize("number", range(30))
@pytest.mark.parametrize("cells", [1, 3, 40])
def test_every_guess_about_a_finite_mechanism(number: int, cells: int) -> None:
    seed = random.Random(number)
    p, q = drawn_pair(seed, 4)
    far = 1 + 5 * seed.random()
    found = tradeoff_of(p, q, [far * i / cells for i in range(cells + 1)])
    for alpha in (*ALARMS, *(seed.random() for _ in range(10))):
        assert least_beta(p, q, alpha) in widened(found.beta_at(alpha))
    for prior in (1e-3, 0.1, 0.5, 0.7, 0.999):
        best = max(
            prior * (1 - misses) + (1 - prior) * (1 - alarms)
            for alarms, misses in (errors(said, p, q) for said in guesses(4))
        )
        assert best in widened(found.guess_membership(prior))
    assert 1 - min(sum(errors(said, p, q)) for said in guesses(4)) in widened(found.advantage)


def widened(bracket: fa.Bracket) -> fa.Bracket:
    """The truth of the tests is rounded too."""
    return fa.Bracket(max(0.0, bracket.lower - 1e-12), bracket.upper + 1e-12, "")


@pytest.mark.parametrize("number", range(30))
def test_guessing_one_of_several_records(number: int) -> None:
    """No guess beats the bound, whatever the prior; the trade-off is that of the worst records."""
    seed = random.Random(number)
    records = seed.choice((2, 3, 5))
    without = drawn_law(seed, 4)
    laws = [drawn_law(seed, 4) for _ in range(records)]
    places = [8 * i / 60 for i in range(61)]
    found = Tradeoff.of(
        worst([profile_of(law, without, places) for law in laws]),
        worst([profile_of(without, law, places) for law in laws]),
    )
    for prior in (drawn_law(seed, records), [1 / records] * records):
        right = math.fsum(
            max(weight * law[y] for weight, law in zip(prior, laws, strict=True)) for y in range(4)
        )
        assert right <= found.guess_record(max(prior)).upper + 1e-12


def worst(profiles: list[Profile]) -> Profile:
    return [
        (some[0][0], max(low for _, low, _ in some), max(high for *_, high in some))
        for some in zip(*profiles, strict=True)
    ]


def test_a_record_of_pure_dp_is_attained() -> None:
    """Randomized response among n records: right with min(e^ε/n, 1 − (n − 1)e^−ε/n)."""
    for epsilon, records in product((0.3, 1.0, 3.0), (2, 5, 100)):
        found = fa.compose([fa.PureDP(epsilon)]).tradeoff()
        best = min(math.exp(epsilon) / records, 1 - (records - 1) * math.exp(-epsilon) / records)
        assert found.guess_record(1 / records).upper == pytest.approx(best, abs=1e-12)
        reached = (1 + math.tanh(epsilon / 2)) / records
        assert found.guess_record(1 / records).lower == pytest.approx(reached, abs=1e-12)
        assert found.guess_record(1.0).lower == pytest.approx(1.0)


def test_the_worst_record_is_not_the_average_one() -> None:
    """The bound is per trade-off: of several laws the weakest one counts."""
    clear, vague = [1.0, 0.0], [0.5, 0.5]
    found = tradeoff_of(clear, vague, [0.0, 0.5, 1.0])
    assert found.guess_record(0.5).upper >= 1 - 1e-12


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 3.0])
def test_gaussian_noise_has_its_own_mu(mu: float) -> None:
    found = fa.compose([fa.Gaussian(2 / mu)] * 4).tradeoff()
    for alpha in ALARMS[1:-1]:
        bracket = found.beta_at(alpha)
        assert NORMAL.cdf(NORMAL.inv_cdf(1 - alpha) - mu) in widened(bracket)
        assert bracket.upper - bracket.lower < 4e-3
    for least in (1e-4, 1e-2):
        bracket = found.mu(least)
        assert mu in bracket
        assert bracket.width < 0.02
    assert found.advantage.upper == pytest.approx(2 * NORMAL.cdf(mu / 2) - 1, abs=1e-12)
    # two records on either side of the middle: the bound for two is attained
    assert found.guess_record(0.5).upper == pytest.approx(NORMAL.cdf(mu), abs=1e-3)


def test_a_sample_in_its_direction() -> None:
    """With the unit a mixture, without it none: false alarms and misses do not exchange places."""
    rate, noise = 0.3, 0.5
    found = fa.compose([fa.Subsampled(fa.Gaussian(noise), rate)]).tradeoff()
    for cut in (-1.0, -0.5, 0.0, 0.3, 0.8, 1.5):
        alpha = 1 - NORMAL.cdf(cut / noise)
        beta = (1 - rate) * NORMAL.cdf(cut / noise) + rate * NORMAL.cdf((cut - 1) / noise)
        bracket = found.beta_at(alpha)
        assert beta in widened(bracket)
        assert bracket.upper - bracket.lower < 5e-3
        assert alpha not in found.beta_at(beta)


LISTS = {
    "pure": [(fa.PureDP(0.4), 3)],
    "leaky": [fa.ApproximateDP(1.0, 0.1)],
    "range": [(fa.BoundedRange(0.5), 4)],
    "laplace": [(fa.Laplace(0.5), 3)],
    "mixed": [(fa.BoundedRange(0.2), 3), (fa.PureDP(0.3), 2), fa.Gaussian(3.0)],
    "moments": [fa.ZeroConcentratedDP(0.05)],
    "nothing": [fa.PureDP(0.0)],
    "strong": [fa.PureDP(40.0)],
    "samples": [(fa.Subsampled(fa.Laplace(0.5), 0.2), 5)],
}


@pytest.mark.parametrize("name", LISTS)
def test_it_says_what_the_profile_says(name: str) -> None:
    """δ(ε) read off the curve is δ(ε), and the curve is convex and falls from 1 to 0."""
    composed = fa.compose(LISTS[name])
    found = composed.tradeoff()
    alphas = [i / 50 for i in range(51)]
    for side in ("lower", "upper"):
        betas = [getattr(found.beta_at(alpha), side) for alpha in alphas]
        assert all(a >= b for a, b in pairwise(betas))
        slopes = [b - a for a, b in pairwise(betas)]
        assert all(a <= b + 1e-12 for a, b in pairwise(slopes))
        assert betas[-1] <= 1e-12
    assert all(found.beta_at(a).lower <= 1 - a + 1e-12 for a in alphas)
    for epsilon in (0.0, 0.3, 1.0):
        delta, z = composed.delta_at(epsilon), math.exp(epsilon)
        reached = max(1 - found.beta_at(a).upper - z * a for a in alphas)
        assert reached <= delta.upper + 1e-9
        right = 1 / (1 + z)
        assert found.guess_membership(right).upper >= 1 - right + right * delta.lower - 1e-9
    assert found.advantage.lower <= composed.delta_at(0.0).upper + 1e-12
    assert found.advantage.upper >= composed.delta_at(0.0).lower - 1e-12


def test_randomized_response_several_times() -> None:
    """Against every guess about the product of three randomized responses."""
    truth = 1 / (1 + math.exp(-0.4))
    sides = list(product((truth, 1 - truth), repeat=3))
    p = [math.prod(side) for side in sides]
    q = list(reversed(p))
    found = fa.compose([(fa.PureDP(0.4), 3)]).tradeoff()
    for alpha in (0.01, 0.1, 0.27, 0.5, 0.9):
        bracket = found.beta_at(alpha)
        assert least_beta(p, q, alpha) in widened(bracket)
        assert bracket.upper - bracket.lower < 1e-9  # every corner is one of the points


def test_where_it_is_not_gaussian() -> None:
    """Pure DP is no Gaussian noise: the two ends of μ are apart, and a leak has no μ at all."""
    found = fa.compose([fa.PureDP(1.0)]).tradeoff().mu()
    corner = 2 * NORMAL.inv_cdf(1 / (1 + math.exp(-1.0)))
    assert found.upper == pytest.approx(corner, rel=1e-9)
    low = NORMAL.inv_cdf(1 - 1e-4) - NORMAL.inv_cdf(1 - math.e * 1e-4)
    assert found.lower == pytest.approx(low, rel=1e-6)
    leaky = fa.compose([fa.ApproximateDP(1.0, 1e-3)]).tradeoff()
    assert leaky.mu(1e-12).upper > leaky.mu(1e-8).upper > leaky.mu(1e-2).upper > corner
    for bad in (0, 0.5, -1, math.nan):
        with pytest.raises(InvalidInput):
            leaky.mu(bad)
    with pytest.raises(Unattainable):
        fa.compose([fa.PureDP(40.0)]).tradeoff().mu()


def test_numbers_that_mean_nothing() -> None:
    found = fa.compose([fa.PureDP(1.0)]).tradeoff()
    for bad in (-0.1, 1.1, math.nan, math.inf, "half"):
        with pytest.raises(InvalidInput):
            found.beta_at(bad)
        with pytest.raises(InvalidInput):
            found.guess_record(bad)
        with pytest.raises(InvalidInput):
            found.guess_membership(bad)
    assert "0.731059" in repr(found)


def test_what_a_certificate_says() -> None:
    """Every way to spend is within it, and one of them is its lower side."""
    items = {"select": (fa.BoundedRange(0.1), 1), "count": (fa.PureDP(0.1), 4)}
    certificate = fa.Tariff(items, farthings=40).certify(tolerance=0.02)
    found = certificate.tradeoff()
    assert found.advantage.upper == pytest.approx(2 * certificate.guess - 1, abs=1e-9)
    for played in ([(fa.BoundedRange(0.1), 40)], [(fa.PureDP(0.1), 10)]):
        one = fa.compose(played).tradeoff()
        for alpha in ALARMS:
            assert found.beta_at(alpha).lower <= one.beta_at(alpha).upper
            assert found.beta_at(alpha).upper <= one.beta_at(alpha).upper + 1e-12 or (
                played[0][1] == 10
            )
    wide = [found.beta_at(a) for a in ALARMS]
    assert all(b.upper - b.lower < 0.05 for b in wide)
