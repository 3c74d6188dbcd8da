"""Every mechanism that makes a top-k can be asked for, is charged twice alike, and is accurate."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import farthing as fa
from farthing.engine.buying import buy, charge_of
from farthing.engine.procedures import procedure_for
from farthing.engine.queries import TopKQuery
from farthing.errors import InvalidInput
from farthing.guarantees.kinds import DiscreteGaussian
from farthing.mechanisms import (
    Histogram,
    KnownGaussian,
    KnownLaplace,
    ThresholdedGaussian,
    TopKWithCounts,
    TruncatedGaussian,
    TruncatedGaussianLimited,
    UnknownGumbel,
    UnknownLaplace,
)

TARIFF = fa.Tariff(
    {
        "select": (fa.BoundedRange(0.1), 1),
        "count": (fa.PureDP(0.1), 4),
        "gaussian": (DiscreteGaussian(10, 1), 4),
        "leak": (fa.ApproximateDP(0.0, 1e-6), 1),
    },
    farthings=100,
    delta_units=10,
    delta_unit=1e-6,
)
LIMITED = {"contribution_limit": 2}
KNOWN = {"categories": ("a", "b", "c", "d", "e", "f")}
WAYS = {
    "Gumbel, no counts": ({"counts": False}, UnknownGumbel),
    "Gumbel, Laplace counts": ({}, TopKWithCounts),
    "Gumbel, Gaussian counts": ({"count": "gaussian"}, TopKWithCounts),
    "Gumbel, CountMLE": ({"use_order": True}, TopKWithCounts),
    "known, Laplace": ({"mechanism": "noise", **KNOWN, **LIMITED}, KnownLaplace),
    "known, Gaussian": (
        {"mechanism": "noise", "count": "gaussian", **KNOWN, **LIMITED},
        KnownGaussian,
    ),
    "unknown, Laplace": ({"mechanism": "noise", **LIMITED}, UnknownLaplace),
    "unknown, Gaussian": (
        {"mechanism": "noise", "count": "gaussian", **LIMITED},
        ThresholdedGaussian,
    ),
    "truncated, everything": ({"mechanism": "truncated", **LIMITED}, TruncatedGaussian),
    "truncated, limited": (
        {"mechanism": "truncated", "candidates": 5, **LIMITED},
        TruncatedGaussianLimited,
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_was_asked_is_what_runs_and_what_is_charged(way) -> None:
    options, expected = WAYS[way]
    purchase = buy(TopKQuery(by=("a",), k=3, **options), TARIFF)
    procedure = procedure_for(purchase)
    assert type(procedure.mechanism) is expected
    assert charge_of(procedure.guarantees, purchase) == dict(purchase.items)
    labels = np.array([f"s{c}" for c in "abcdef"], dtype=object)
    release, used = procedure.run(Histogram(labels, np.array([9000, 7000, 5000, 40, 30, 0])))
    assert release.labels == ("sa", "sb", "sc")
    charged = charge_of(used, purchase)
    assert all(charged[name] <= times for name, times in purchase.items.items())


@pytest.mark.parametrize(
    "way", ["Gumbel, CountMLE", "truncated, everything", "truncated, limited", "unknown, Gaussian"]
)
def test_intervals_hold_and_are_not_idle(way) -> None:
    options, _ = WAYS[way]
    procedure = procedure_for(buy(TopKQuery(by=("a",), k=3, **options), TARIFF))
    counts = {"a": 9000, "b": 8990, "c": 8985, "d": 40, "e": 30, "f": 20}
    histogram = Histogram(np.array(list(counts), dtype=object), np.array(list(counts.values())))
    accuracy = procedure.expect(0.9).counts
    assert accuracy is not None
    assert accuracy.confidence == 0.9
    errors = []
    for _ in range(400):
        release, _ = procedure.run(histogram)
        assert release.counts is not None
        errors += [
            abs(count - counts[label])
            for label, count in zip(release.labels, release.counts, strict=True)
        ]
    assert np.mean(np.array(errors) <= accuracy.half_width) >= 0.88
    assert np.mean(np.array(errors) <= 0.4 * accuracy.half_width) < 0.88


def test_using_the_order_makes_counts_decrease(opened) -> None:
    rows = pa.table(
        {
            "member": list(range(3000)),
            "article": [f"article {n % 100 % 7}" for n in range(3000)],
        }
    )
    certificate = TARIFF.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))
    data = opened(rows, dataset="ordered", tariff=certificate)
    release = data.top_k("article", k=5, use_order=True).run()
    assert release.counts == tuple(sorted(release.counts, reverse=True))
    assert release.query.count == "gaussian"
    assert data.top_k("article", k=5, use_order=True).run().cached
    truncated = data.top_k("article", k=5, mechanism="truncated", contribution_limit=1)
    assert "withheld" in str(truncated.plan())
    assert len(truncated.run()) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mechanism": "truncated"}, "contribution_limit"),
        ({"mechanism": "truncated", **LIMITED, **KNOWN}, "unknown domain"),
        ({"mechanism": "truncated", "use_order": True, **LIMITED}, "no order"),
        ({"use_order": True, "counts": False}, "drawn once"),
        ({"use_order": True, "repeats": 2}, "drawn once"),
        ({"use_order": 1}, "True or False"),
        ({"use_order": True, "count": "count"}, "discrete Gaussian"),
        ({"mechanism": "truncated", "count": "count", **LIMITED}, "discrete Gaussian"),
    ],
)
def test_ways_that_do_not_go_together(options, message) -> None:
    with pytest.raises(InvalidInput, match=message):
        buy(TopKQuery(by=("a",), k=3, **options), TARIFF)


def test_a_tariff_without_gaussian_counts() -> None:
    poor = fa.Tariff({"select": (fa.BoundedRange(0.1), 1)}, farthings=10)
    with pytest.raises(InvalidInput, match=r"dgauss:σ,1.*sells none"):
        buy(TopKQuery(by=("a",), k=3, categories=("x", "y", "z"), use_order=True), poor)
