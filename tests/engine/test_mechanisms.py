"""Every mechanism that makes a top-k can be asked for, is charged twice alike, and is accurate."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import farthing as fa
from farthing.engine.kinds.top_k import TopKQuery
from farthing.engine.purchase import buy
from farthing.errors import InvalidInput
from farthing.guarantees.kinds import DiscreteGaussian
from farthing.mechanisms import (
    Histogram,
    KnownCounts,
    Largest,
    Repeated,
    ThresholdedCounts,
    TopKWithCounts,
    TruncatedGaussianNoise,
    UnknownCounts,
    UnknownGumbel,
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
#: What was asked, what runs, and the item that pays for counts.
WAYS = {
    "Gumbel, no counts": ({"counts": False}, UnknownGumbel, None),
    "Gumbel, Laplace counts": ({}, TopKWithCounts, "count"),
    "Gumbel, Gaussian counts": ({"count": "gaussian"}, TopKWithCounts, "gaussian"),
    "Gumbel, CountMLE": ({"use_order": True}, TopKWithCounts, "gaussian"),
    "known, Laplace": ({"mechanism": "noise", **KNOWN, **LIMITED}, KnownCounts, "count"),
    "known, Gaussian": (
        {"mechanism": "noise", "count": "gaussian", **KNOWN, **LIMITED},
        KnownCounts,
        "gaussian",
    ),
    "unknown, Laplace": ({"mechanism": "noise", **LIMITED}, UnknownCounts, "count"),
    "unknown, Gaussian": (
        {"mechanism": "noise", "count": "gaussian", **LIMITED},
        ThresholdedCounts,
        "gaussian",
    ),
    "truncated, everything": (
        {"mechanism": "truncated", **LIMITED},
        ThresholdedCounts,
        "gaussian",
    ),
    "truncated, limited": (
        {"mechanism": "truncated", "candidates": 5, **LIMITED},
        UnknownCounts,
        "gaussian",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_was_asked_is_what_runs_and_what_is_charged(way) -> None:
    options, expected, item = WAYS[way]
    purchase = buy(TopKQuery(by=("a",), k=3, **options), TARIFF)
    mechanism = purchase.query.mechanism_for(purchase.paid)
    inner = mechanism.mechanism if isinstance(mechanism, Largest | Repeated) else mechanism
    assert type(inner) is expected
    assert purchase.query.count == item
    assert purchase.charge(mechanism.guarantees) == dict(purchase.items)
    labels = np.array([f"s{c}" for c in "abcdef"], dtype=object)
    release = mechanism.run(Histogram(labels, np.array([9000, 7000, 5000, 40, 30, 0])))
    assert release.labels == ("sa", "sb", "sc")
    charged = purchase.charge(mechanism.guarantees_for(release))
    assert all(charged[name] <= times for name, times in purchase.items.items())


@pytest.mark.parametrize("way", [way for way in WAYS if "truncated" in way])
def test_truncated_noise_is_truncated(way) -> None:
    options, _, _ = WAYS[way]
    purchase = buy(TopKQuery(by=("a",), k=3, **options), TARIFF)
    kept = purchase.query.mechanism_for(purchase.paid)
    assert isinstance(kept, Largest)
    assert isinstance(kept.mechanism.noise, TruncatedGaussianNoise)


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
        ({"mechanism": "truncated", **LIMITED, **KNOWN}, "unknown domain"),
        ({"mechanism": "truncated", "use_order": True, **LIMITED}, "no order"),
        ({"use_order": True, "counts": False}, "drawn once"),
        ({"use_order": True, "repeats": 2}, "drawn once"),
        ({"use_order": 1}, "True or False"),
        ({"use_order": True, "count": "count"}, "Gaussian item"),
        ({"mechanism": "truncated", "count": "count", **LIMITED}, "Gaussian item"),
    ],
)
def test_ways_that_do_not_go_together(options, message) -> None:
    with pytest.raises(InvalidInput, match=message):
        buy(TopKQuery(by=("a",), k=3, **options), TARIFF)


def test_a_tariff_without_gaussian_counts() -> None:
    poor = fa.Tariff({"select": (fa.BoundedRange(0.1), 1)}, farthings=10)
    with pytest.raises(InvalidInput, match=r"dgauss:σ,1.*sells none"):
        buy(TopKQuery(by=("a",), k=3, categories=("x", "y", "z"), use_order=True), poor)
