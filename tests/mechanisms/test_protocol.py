"""Every mechanism keeps the promises of the protocol."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

from farthing.guarantees.kinds import DiscreteGaussian, Gaussian, PureDP
from farthing.lab.audit import audit
from farthing.mechanisms import (
    ClippedSum,
    Contribution,
    Expectation,
    Histogram,
    KnownCounts,
    KnownGumbel,
    Largest,
    Mechanism,
    Quantile,
    Release,
    Repeated,
    ThresholdedCounts,
    TopKWithCounts,
    UnknownCounts,
    UnknownGumbel,
)
from farthing.mechanisms.noise import exact_sampling

from .claims import claimed

LIMITS = {"contribution_limit": 2, "per_key_limit": 3}
PURE, GAUSS = PureDP(0.4), DiscreteGaussian(2.0, 3)
DELTA = 0.01

LAPLACE = KnownCounts(coordinate=PURE, **LIMITS)
GAUSSIAN = KnownCounts(coordinate=GAUSS, **LIMITS)
KNOWN = KnownGumbel(epsilon=0.4, k=2, per_key_limit=3)
UNKNOWN = UnknownGumbel(epsilon=0.4, delta=DELTA, k=2, candidates=3, **LIMITS)
LIMITED = UnknownCounts(coordinate=PURE, delta=DELTA, candidates=3, **LIMITS)
TOP = TopKWithCounts(selection=UNKNOWN, counting=LAPLACE)
SUM = ClippedSum(coordinate=PureDP(0.8), lower=-3, upper=2)

ALL: dict[str, Mechanism[Any]] = {
    "known, Laplace": LAPLACE,
    "known, Gaussian": GAUSSIAN,
    "known, rounded": KnownCounts(coordinate=Gaussian(2.0), **LIMITS),
    "thresholded, rounded": ThresholdedCounts(coordinate=Gaussian(2.0), delta=DELTA, **LIMITS),
    "unknown, rounded": UnknownCounts(
        coordinate=Gaussian(2.0), delta=DELTA, candidates=3, **LIMITS
    ),
    "sum, rounded": ClippedSum(coordinate=Gaussian(2.0), lower=-3, upper=2),
    "thresholded, Laplace": ThresholdedCounts(coordinate=PURE, delta=DELTA, **LIMITS),
    "thresholded, Gaussian": ThresholdedCounts(coordinate=GAUSS, delta=DELTA, **LIMITS),
    "thresholded, truncated": ThresholdedCounts(
        coordinate=GAUSS, delta=DELTA, truncated=True, **LIMITS
    ),
    "unknown, Laplace": LIMITED,
    "unknown, truncated": UnknownCounts(coordinate=GAUSS, delta=DELTA, candidates=3, **LIMITS),
    "known Gumbel": KNOWN,
    "unknown Gumbel": UNKNOWN,
    "known Gumbel, counts": TopKWithCounts(selection=KNOWN, counting=GAUSSIAN, use_order=True),
    "unknown Gumbel, counts": TOP,
    "quantile": Quantile(probability=0.5, epsilon=0.8, lower=0, upper=7, **LIMITS),
    "sum": SUM,
    "repeated, known": Repeated(LAPLACE, 3),
    "repeated, top-k": Repeated(TOP, 2),
    "repeated, sum": Repeated(SUM, 2),
    "largest, known": Largest(GAUSSIAN, 2),
    "largest, unknown": Largest(LIMITED, 1),
}
LABELS = tuple(range(6))
COUNTS = (
    (0, 0, 0, 0, 0, 0),
    (0, 1, 40, 37, 36, 3),
    (60, 40, 39, 38, 5, 5),
    (900, 700, 650, 3, 2, 0),
)
every = pytest.mark.parametrize("name", ALL)


def data_for(mechanism: Mechanism[Any], counts: tuple[int, ...]) -> Any:
    summed = isinstance(mechanism, ClippedSum) or (
        isinstance(mechanism, Repeated) and isinstance(mechanism.mechanism, ClippedSum)
    )
    return sum(counts) if summed else Histogram(LABELS, counts)


def raised(counts: tuple[int, ...], keys: int, by: int) -> tuple[int, ...]:
    """One unit more, which raises the last `keys` counts."""
    kept = len(counts) - keys
    return counts[:kept] + tuple(count + by for count in counts[kept:])


@every
def test_it_is_a_mechanism(name: str) -> None:
    mechanism = ALL[name]
    assert isinstance(mechanism, Mechanism)
    assert len(repr(mechanism)) < 300
    assert len({mechanism, replace(mechanism)}) == 1
    for field in fields(mechanism):
        with pytest.raises(AttributeError):
            setattr(mechanism, field.name, 3)


@every
@pytest.mark.parametrize("counts", COUNTS)
def test_a_release_never_costs_more_than_was_reserved(name: str, counts: tuple[int, ...]) -> None:
    mechanism = ALL[name]
    reserved = dict(mechanism.guarantees)
    assert len(reserved) == len(mechanism.guarantees)
    for _ in range(20):
        release = mechanism.run(data_for(mechanism, counts))
        assert isinstance(release, Release)
        for guarantee, times in mechanism.guarantees_for(release):
            assert 0 < times <= reserved[guarantee]


@every
def test_expectations_are_finite_and_free_of_the_data(name: str) -> None:
    for confidence in (0.5, 0.95, 0.999):
        stated = ALL[name].expect(confidence, domain_size=6)
        assert isinstance(stated, Expectation)
        accuracies = [a for a in (stated.counts, stated.selection) if a is not None]
        assert accuracies
        for accuracy in accuracies:
            assert accuracy.confidence == confidence
            assert 0 < accuracy.expected_error < math.inf
            assert 0 <= accuracy.half_width < math.inf
        for number in (stated.found_from, stated.threshold, stated.above_cutoff):
            assert number is None or 0 < number < math.inf
    assert ALL[name].expect(0.9, domain_size=6) == ALL[name].expect(0.9, domain_size=6)


@every
def test_wider_intervals_are_surer(name: str) -> None:
    def widths(confidence: float) -> list[float]:
        stated = ALL[name].expect(confidence, domain_size=6)
        return [a.half_width for a in (stated.counts, stated.selection) if a is not None]

    assert all(low < high for low, high in zip(widths(0.6), widths(0.99), strict=True))


@every
@pytest.mark.parametrize("counts", [COUNTS[1], COUNTS[2]])
def test_neighbours_as_far_apart_as_assumed_are_within_the_price(
    name: str, counts: tuple[int, ...]
) -> None:
    mechanism = ALL[name]
    assumed = mechanism.assumes
    keys = len(LABELS) if assumed.contribution_limit is None else assumed.contribution_limit
    pair = [data_for(mechanism, c) for c in (counts, raised(counts, keys, assumed.per_key_limit))]
    epsilon, delta = claimed(mechanism.guarantees)
    found = audit(
        mechanism, *pair, trials=600, delta=delta, confidence=0.9999, view=lambda r: str(r)
    )
    assert found.epsilon <= epsilon


def test_neighbours_further_apart_are_not() -> None:
    """So `assumes` is needed: a unit that changes two counts by 30 is told from none."""
    pair = [Histogram(LABELS, COUNTS[1]), Histogram(LABELS, raised(COUNTS[1], 2, 30))]
    epsilon, _ = claimed(LAPLACE.guarantees)
    view = lambda release: sum(release.counts)
    assert audit(LAPLACE, *pair, trials=600, confidence=0.9999, view=view).epsilon > epsilon


@every
def test_only_the_candidates_and_the_next_count_are_looked_at(name: str) -> None:
    mechanism = ALL[name]
    if mechanism.candidates is None:
        return
    counts = np.array(COUNTS[2])
    seen = np.sort(np.argsort(-counts, kind="stable")[: mechanism.candidates + 1])
    for seed in range(20):
        with exact_sampling._seeded(seed):
            whole = mechanism.run(Histogram(LABELS, counts))
        with exact_sampling._seeded(seed):
            part = mechanism.run(Histogram(np.array(LABELS)[seen], counts[seen]))
        assert asdict(whole) == asdict(part)


def test_which_mechanisms_look_at_candidates() -> None:
    looking = {name for name, mechanism in ALL.items() if mechanism.candidates is not None}
    assert looking == {
        "unknown, Laplace",
        "unknown, truncated",
        "unknown, rounded",
        "unknown Gumbel",
        "unknown Gumbel, counts",
        "repeated, top-k",
        "largest, unknown",
    }


@pytest.mark.parametrize(
    ("mine", "theirs", "holds"),
    [
        ((1, 1), (1, 1), True),
        ((1, 1), (2, 3), True),
        ((2, 1), (1, 1), False),
        ((1, 2), (1, 1), False),
        ((5, 1), (None, 1), True),
        ((None, 1), (None, 1), True),
        ((None, 1), (10**9, 1), False),
        ((None, 2), (None, 1), False),
    ],
)
def test_within(mine: Any, theirs: Any, holds: bool) -> None:
    assert Contribution(*mine).within(Contribution(*theirs)) is holds


@pytest.mark.parametrize(
    ("selection", "counting", "assumed"),
    [(None, 5, None), (None, 3, None), (None, 2, 2), (4, 3, 4), (4, 2, 2), (1, 2, 1), (2, 9, 2)],
)
def test_a_top_k_assumes_what_both_parts_need(
    selection: int | None, counting: int, assumed: int | None
) -> None:
    """k = 3: a unit changes at most three of the counts that are drawn, whatever it has."""
    mechanism = TopKWithCounts(
        selection=replace(UNKNOWN, k=3, contribution_limit=selection),
        counting=replace(LAPLACE, contribution_limit=counting),
    )
    assert mechanism.assumes == Contribution(assumed, 3)


def test_a_mechanism_must_say_what_it_assumes() -> None:
    class Silent(Mechanism[int]):
        """Runs, and says nothing of its neighbours."""

        def run(self, data: int, /) -> Release:
            return Release((data,))

    with pytest.raises(TypeError, match="abstract"):
        Silent()  # that is the test


def test_a_mechanism_of_your_own() -> None:
    """The protocol is structural: nothing needs to be inherited."""

    @dataclass(frozen=True)
    class Constant:
        """Tells nothing."""

        assumes = Contribution(None, 10**9)
        candidates = None
        added = None
        guarantees = ()

        def guarantees_for(self, release: Release) -> tuple[()]:
            return ()

        def run(self, data: object) -> Release:
            return Release(("a", "b", "c"), (1, 3, 2))

        def expect(self, confidence: float = 0.95, *, domain_size: int | None = None) -> Any:
            return Expectation()

        def errors(self, release: Release, confidence: float, *, together: bool = False) -> float:
            return 0.0

        def total(self, release: Release, confidence: float) -> None:
            return None

    assert isinstance(Constant(), Mechanism)
    assert Largest(Constant(), 2).run(None) == Release(("b", "c"), (3, 2), among=3)
