"""What can never be right raises before anything is drawn, and never repeats private values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import BoundedRange, DiscreteGaussian, Gaussian, PureDP
from farthing.mechanisms import (
    ClippedSum,
    ExponentialMechanism,
    Histogram,
    KnownCounts,
    KnownGumbel,
    PermuteAndFlipMechanism,
    Quantile,
    ThresholdedCounts,
    TopKWithCounts,
    UnknownCounts,
    UnknownGumbel,
    ordered_counts,
)
from tests.mechanisms.randomized_response import (
    GeneralizedRandomizedResponse,
    LeakyRandomizedResponse,
)

LIMITS = {"contribution_limit": 2, "per_key_limit": 1}

GOOD: list[Any] = [
    ExponentialMechanism(epsilon=1.0, score_range=1.0),
    ClippedSum(coordinate=PureDP(1.0), lower=-3, upper=10),
    Quantile(probability=0.5, epsilon=1.0, lower=0, upper=9, **LIMITS),
    KnownCounts(coordinate=PureDP(1.0), **LIMITS),
    KnownCounts(coordinate=DiscreteGaussian(2.0, 1), **LIMITS),
    KnownGumbel(epsilon=1.0, k=2, per_key_limit=1),
    UnknownGumbel(epsilon=1.0, delta=1e-3, k=2, candidates=5, **LIMITS),
    UnknownCounts(coordinate=PureDP(1.0), delta=1e-3, candidates=5, **LIMITS),
    ThresholdedCounts(coordinate=PureDP(1.0), delta=1e-3, **LIMITS),
    ThresholdedCounts(coordinate=DiscreteGaussian(2.0, 1), delta=1e-3, **LIMITS),
    ThresholdedCounts(coordinate=DiscreteGaussian(2.0, 1), truncated=True, delta=1e-3, **LIMITS),
    UnknownCounts(coordinate=DiscreteGaussian(2.0, 1), delta=1e-3, candidates=5, **LIMITS),
    GeneralizedRandomizedResponse(epsilon=1.0, largest_loss=0.5),
    LeakyRandomizedResponse(epsilon=1.0, delta=0.1),
    KnownCounts(coordinate=Gaussian(2.0), **LIMITS),
    PermuteAndFlipMechanism(epsilon=1.0, score_range=1.0),
]

NAN = float("nan")
WRONG: dict[str, list[Any]] = {
    "epsilon": [0, -1, NAN, float("inf"), None, "1"],
    "coordinate": [PureDP(0), DiscreteGaussian(1.0, 7), BoundedRange(1.0), 1.0],
    "score_range": [0, -1, NAN],
    "delta": [0, 1, -1e-9, 1.5, NAN],
    "probability": [-0.1, 1.1, NAN, 1e-9],
    "k": [0, -1, 1.5, True],
    "candidates": [0, 2.5],
    "contribution_limit": [0, -3, 1.5],
    "per_key_limit": [0, -3, 1.5],
    "largest_loss": [-0.1, 1.1, NAN],
}


@pytest.mark.parametrize("mechanism", GOOD, ids=lambda m: type(m).__name__)
def test_parameters_out_of_range(mechanism: Any) -> None:
    checked = 0
    for name, values in WRONG.items():
        if not hasattr(mechanism, name) or name not in type(mechanism).__dataclass_fields__:
            continue
        for value in values:
            if value is None and name == "contribution_limit":
                continue
            with pytest.raises(InvalidInput, match=name):
                replace(mechanism, **{name: value})
            checked += 1
    assert checked >= 4, "every mechanism has parameters that can be wrong"


@pytest.mark.parametrize("mechanism", GOOD, ids=lambda m: type(m).__name__)
def test_mechanisms_are_frozen_and_hashable(mechanism: Any) -> None:
    for name in type(mechanism).__dataclass_fields__:
        with pytest.raises(AttributeError):
            setattr(mechanism, name, 3.0)
    assert mechanism == replace(mechanism)
    assert len({mechanism, replace(mechanism)}) == 1


def test_relations_between_parameters() -> None:
    with pytest.raises(InvalidInput, match="k must be at most candidates"):
        UnknownGumbel(epsilon=1, delta=1e-3, k=6, candidates=5, per_key_limit=1)
    with pytest.raises(InvalidInput, match="epsilon must be greater than"):
        UnknownGumbel(epsilon=0.1, delta=0.5, k=1, candidates=5, per_key_limit=1)
    with pytest.raises(InvalidInput, match="upper must be"):
        Quantile(probability=0.5, epsilon=1, lower=3, upper=2, **LIMITS)
    with pytest.raises(InvalidInput, match="2\\^61"):
        Quantile(probability=0.5, epsilon=1, lower=3, upper=2**62, **LIMITS)
    with pytest.raises(InvalidInput, match="scale"):
        KnownCounts(coordinate=PureDP(1e-13), **LIMITS)
    with pytest.raises(InvalidInput, match="truncated needs a Gaussian"):
        ThresholdedCounts(coordinate=PureDP(1.0), delta=1e-3, truncated=True, **LIMITS)
    with pytest.raises(InvalidInput, match="Gaussian"):
        TopKWithCounts(selection=GOOD[5], counting=GOOD[3], use_order=True)
    with pytest.raises(InvalidInput, match="same per_key_limit"):
        TopKWithCounts(selection=KnownGumbel(epsilon=1, k=2, per_key_limit=3), counting=GOOD[3])
    with pytest.raises(InvalidInput, match="sensitivity"):
        ExponentialMechanism.from_sensitivity(epsilon=1, sensitivity=0)


SECRET = "somebody's diagnosis"

HISTOGRAMS: list[tuple[Any, Any, str]] = [
    ([SECRET, "b"], [1, -987], "at least 0.*1 of 2 are not, the first at position 1"),
    ([SECRET, "b"], [1, 9.875], "whole numbers; 1 of 2"),
    ([SECRET, "b"], [NAN, 2.0], "whole numbers; 1 of 2 are not, the first at position 0"),
    ([SECRET, "b"], [float("inf"), 2.0], "whole numbers"),
    ([SECRET, "b"], ["987", "2"], "whole numbers"),
    ([SECRET, "b"], [True, False], "whole numbers"),
    ([SECRET, "b"], [2**62, 1], "below 2\\^62"),
    ([SECRET, "b"], [2**80, 1], "below 2\\^62"),
    ([SECRET, "b"], np.array([1, None], dtype=object), "whole numbers; 1 of 2"),
    ([SECRET, SECRET], [1, 2], "distinct, got 2 labels of which 1"),
    ([3, 1, 3], [1, 2, 3], "distinct, got 3 labels of which 2"),
    ([("a", 1), ("a", 1)], [1, 2], "distinct"),
    ([[1], {}], [1, 2], "hashable"),
    ([SECRET], [1, 2], "same length, got 1 and 2"),
    ([], [], "at least one label"),
    ([[1, 2], [3, 4]], [1, 2], "one-dimensional"),
    ([1, 2], [[1], [2]], "one-dimensional"),
    ([1.5, 2.5], [1, 2], "labels must be whole numbers, text or tuples"),
    ("ab", [1, 2], "sequence of labels"),
]


@pytest.mark.parametrize(("labels", "counts", "message"), HISTOGRAMS)
def test_bad_histograms(labels: Any, counts: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        Histogram(labels, counts)
    for private in ("diagnosis", "987", "9.875"):
        assert private not in str(caught.value)


def test_good_histograms() -> None:
    class ArrowLike:
        """What pyarrow offers NumPy."""

        def __init__(self, values: list[Any]) -> None:
            self.values = values

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
            return np.array(self.values, dtype=object if isinstance(self.values[0], str) else None)

    for labels, counts in (
        (["b", "a"], [1, 2]),
        (np.array(["b", "a"]), np.array([1, 2], dtype=np.uint8)),
        (ArrowLike(["b", "a"]), ArrowLike([1, 2])),
        ([("b", 1), ("a", None)], [1.0, 2.0]),
        (["b", 7], [1, 2]),
        ([7, 3], np.array([1, 2], dtype=object)),
    ):
        histogram = Histogram(labels, counts)
        assert histogram.counts.tolist() == [1, 2]
        assert len(histogram) == 2
    assert repr(histogram) == "Histogram(2 labels)"


def test_histograms_are_read_only_copies() -> None:
    counts = np.array([1, 2])
    histogram = Histogram(["a", "b"], counts)
    counts[0] = 99
    assert histogram.counts.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        histogram.counts[0] = 5


def test_a_public_domain_fills_in_zeros_and_drops_the_rest() -> None:
    histogram = Histogram.over(["x", "y", "z"], ["z", "other", "x"], [5, 7, 1])
    assert histogram.labels.tolist() == ["x", "y", "z"]
    assert histogram.counts.tolist() == [1, 0, 5]


@pytest.mark.parametrize("mechanism", GOOD[6:12], ids=lambda m: type(m).__name__)
def test_unknown_domains_without_rows_release_nothing_and_do_not_fail(mechanism: Any) -> None:
    for _ in range(50):
        release = mechanism.run(Histogram.without_rows())
        assert release.labels == ()


def test_runs_that_cannot_be_right(source: Any) -> None:
    two = Histogram(["a", "b"], [3, 4])
    before = source._next
    with pytest.raises(InvalidInput, match="k must be at most the size of the domain"):
        KnownGumbel(epsilon=1, k=3, per_key_limit=1).run(two)
    with pytest.raises(InvalidInput, match="values must be whole numbers"):
        GOOD[2].run(two)
    for scores in ([], [[1]], [NAN], ["a"], [2**63]):
        with pytest.raises(InvalidInput, match="scores"):
            GOOD[0].run(scores)
    for bit in (2, "0", None, True, 0.5):
        with pytest.raises(InvalidInput, match="bit must be 0 or 1"):
            GOOD[12].run(bit)
        with pytest.raises(InvalidInput, match="bit must be 0 or 1"):
            GOOD[13].run(bit)
    for noisy in ([], [NAN], [[1.0]]):
        with pytest.raises(InvalidInput, match="noisy counts"):
            ordered_counts(noisy)
    assert source._next == before, "nothing was drawn"


def test_accuracy_questions_out_of_range() -> None:
    for confidence in (0, 1, NAN):
        with pytest.raises(InvalidInput, match="confidence"):
            GOOD[3].expect(confidence)
    with pytest.raises(InvalidInput, match="domain_size"):
        GOOD[5].expect(domain_size=1)
    with pytest.raises(InvalidInput, match="domain_size"):
        TopKWithCounts(selection=GOOD[5], counting=GOOD[3]).expect()
