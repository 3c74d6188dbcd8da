"""One run for each label: the law, the price of Δ labels, labels that are found, and mistakes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import ApproximateDP, BoundedRange, PureDP
from farthing.lab.audit import audit
from farthing.mechanisms import (
    ClippedSum,
    Contribution,
    Groups,
    Histogram,
    NoisyTotals,
    PerLabel,
    Quantile,
    Release,
    Repeated,
    ThresholdedCounts,
)

from .fit import fits

TOTALS = NoisyTotals(coordinate=PureDP(0.5), limits=(1, 2))
SUM = ClippedSum(coordinate=PureDP(0.5), lower=0, upper=1)
MEDIAN = Quantile(
    probability=0.5, epsilon=0.6, lower=0, upper=3, contribution_limit=1, per_key_limit=4
)
KNOWN = PerLabel(measure=SUM, contribution_limit=2, domain=("a", "b", "c"))
FINDING = ThresholdedCounts(
    coordinate=PureDP(0.4), delta=0.01, contribution_limit=2, per_key_limit=1
)
FOUND = PerLabel(measure=TOTALS, contribution_limit=2, finding=FINDING)

OPTIONS: dict[str, Any] = {"trials": 3000, "confidence": 0.999}


def sums(release: Release) -> tuple[Any, ...]:
    return tuple(part.counts[0] for part in release.parts if part.counts is not None)


def test_each_label_is_measured_by_itself() -> None:
    """The law of each is that of the measure alone, and no two share their noise."""
    a = math.exp(-0.5)
    runs = [sums(KNOWN.run(Groups({"a": 5, "c": 1}, 0))) for _ in range(4000)]
    for place, total in enumerate((5, 0, 1)):
        law = {total + z: (1 - a) / (1 + a) * a ** abs(z) for z in range(-40, 41)}
        assert fits([run[place] for run in runs], law)
    table = np.array(runs)
    assert abs(np.corrcoef(table.T)[np.triu_indices(3, 1)]).max() < 0.06
    assert KNOWN.run(Groups({}, 0)).labels == ("a", "b", "c")


def test_labels_outside_the_domain_are_nothing() -> None:
    assert KNOWN.run(Groups({"z": 10**6}, 0)).labels == ("a", "b", "c")
    assert max(map(abs, sums(KNOWN.run(Groups({"z": 10**6}, 0))))) < 100


class TestPrices:
    """The measure for each label of a unit, and the finding on top."""

    def test_before_running(self) -> None:
        assert KNOWN.guarantees == ((PureDP(0.5), 2),)
        assert dict(FOUND.guarantees) == {
            PureDP(0.4): 2,
            ApproximateDP(0.0, 0.01): 1,
            PureDP(0.5): 4,
        }
        repeated = PerLabel(measure=Repeated(SUM, 3), contribution_limit=2, domain=("a", "b"))
        assert repeated.guarantees == ((PureDP(0.5), 6),)
        median = PerLabel(measure=MEDIAN, contribution_limit=3, domain=tuple("abcd"))
        assert median.guarantees == ((BoundedRange(0.6), 3),)

    def test_one_item_that_pays_for_both_is_counted_once(self) -> None:
        finding = ThresholdedCounts(
            coordinate=PureDP(0.5), delta=0.01, contribution_limit=2, per_key_limit=1
        )
        both = PerLabel(measure=TOTALS, contribution_limit=2, finding=finding)
        assert dict(both.guarantees)[PureDP(0.5)] == 6

    @pytest.mark.parametrize(("labels", "times"), [(0, 0), (1, 2), (2, 4), (9, 4)])
    def test_after_running(self, labels: int, times: int) -> None:
        """What was found is known, so a list of one label costs one measurement."""
        release = Release(tuple(range(labels)), parts=(Release((0, 1), (0, 0)),) * labels)
        used = dict(FOUND.guarantees_for(release))
        assert used.get(PureDP(0.5), 0) == times
        assert used[PureDP(0.4)] == 2
        assert used[ApproximateDP(0.0, 0.01)] == 1

    def test_fewer_labels_than_a_unit_may_have(self) -> None:
        few = PerLabel(measure=SUM, contribution_limit=5, domain=("a", "b"))
        assert few.guarantees_for(few.run(Groups({}, 0))) == ((PureDP(0.5), 2),)


def test_what_is_assumed_of_a_unit() -> None:
    assert KNOWN.assumes == Contribution(2, 1)
    assert FOUND.assumes == Contribution(2, 1, (2, 1))
    grouped = PerLabel(measure=MEDIAN, contribution_limit=3, domain=("a",))
    assert grouped.assumes == Contribution(3, 4)
    assert not Contribution(4, 4).within(grouped.assumes)
    assert not Contribution(3, 5).within(grouped.assumes)
    assert not Contribution(2, 1, (2,)).within(FOUND.assumes), "the units are missing"
    assert not Contribution(2, 1, (3, 1)).within(FOUND.assumes)
    assert Contribution(1, 1, (1, 1)).within(FOUND.assumes)


def found(**units: int) -> Groups[tuple[int, ...]]:
    """Each unit adds (1, 2) to both of its labels."""
    of = {label: (count, 2 * count) for label, count in units.items()}
    present = Histogram(list(units), list(units.values())) if units else Histogram.without_rows()
    return Groups(of, (0, 0), present)


def test_labels_that_reach_the_threshold_are_measured() -> None:
    release = FOUND.run(found(a=900, b=700, c=1))
    assert release.labels == ("a", "b")
    assert np.allclose(sums(release), (900, 700), atol=40)
    assert FOUND.run(found()) == Release((), ())


class TestAudits:
    """Neighbours that differ in Δ labels are within the price; forgetting Δ, or a limit, is not."""

    def test_known_labels(self) -> None:
        pair = Groups({"a": 3}, 0), Groups({"a": 4, "b": 1}, 0)
        view = lambda r: (sums(r)[0] > 3, sums(r)[1] > 0)
        told = audit(KNOWN, *pair, view=view, **OPTIONS).epsilon
        assert 0.5 < told <= 1.0, "more than one label tells, as much as two at most"

    def test_labels_forgotten(self) -> None:
        """Whoever charges one measurement for a unit with six labels is caught."""
        domain = tuple("abcdef")
        mechanism = PerLabel(measure=SUM, contribution_limit=6, domain=domain)
        pair = Groups({}, 0), Groups(dict.fromkeys(domain, 1), 0)
        view = lambda r: sum(total > 0 for total in sums(r))
        told = audit(mechanism, *pair, view=view, **OPTIONS).epsilon
        assert 1.0 < told <= 6 * 0.5

    @pytest.mark.parametrize(
        ("less", "more"),
        [
            ({"a": 12, "b": 12}, {"a": 13, "b": 13}),
            ({}, {"a": 1, "b": 1}),
            ({"a": 40}, {"a": 41, "b": 1}),
        ],
    )
    def test_found_labels(self, less: dict[str, int], more: dict[str, int]) -> None:
        view = lambda r: (r.labels, sum(sums(r)) // 4)
        pair = found(**less), found(**more)
        told = audit(FOUND, *pair, view=view, delta=0.01, **OPTIONS).epsilon
        assert told <= 2 * 0.4 + 4 * 0.5

    def test_the_threshold_forgotten(self) -> None:
        """Measuring every label that somebody has tells who is there."""

        @dataclass(frozen=True)
        class Present:
            measure: NoisyTotals

            def run(self, groups: Groups[tuple[int, ...]]) -> Release:
                parts = tuple(map(self.measure.run, groups.of.values()))
                return Release(tuple(groups.of), parts=parts)

        view = lambda r: r.labels
        pair = found(a=40), found(a=41, b=1)
        told = audit(Present(TOTALS), *pair, view=view, delta=0.01, **OPTIONS).epsilon
        assert told > 2 * 0.4 + 4 * 0.5

    def test_medians(self) -> None:
        """Weights of a unit add up to what the measure was told, in each of its labels."""
        grouped = PerLabel(measure=MEDIAN, contribution_limit=2, domain=("a", "b"))
        few, low, high = (
            Histogram([0, 3], [4, 4]),
            Histogram([0, 3], [8, 4]),
            Histogram([0, 1, 3], [4, 2, 6]),
        )
        pair = Groups({"a": few, "b": few}, few), Groups({"a": low, "b": high}, few)
        view = lambda r: tuple(part.labels[0] for part in r.parts)
        assert audit(grouped, *pair, view=view, **OPTIONS).epsilon <= 1.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of domain and finding"),
        ({"domain": ("a",), "finding": FINDING}, "exactly one of domain and finding"),
        ({"domain": ("a",), "contribution_limit": 0}, "contribution_limit"),
        ({"finding": FINDING, "contribution_limit": 3}, "allow a unit at least"),
    ],
)
def test_bad_input(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        PerLabel(**{"measure": SUM, "contribution_limit": 1, **options})


def test_expectations() -> None:
    assert KNOWN.expect(0.9) == SUM.expect(0.9)
    stated = FOUND.expect(0.9)
    assert stated.totals == TOTALS.expect(0.9).totals
    assert stated.threshold == FINDING.threshold
