"""From a purchase to a mechanism: what runs on the bounded histogram, and what it promises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from farthing.engine.averages import mean_accuracy
from farthing.engine.buying import Purchase
from farthing.engine.queries import (
    AT_ONCE,
    CountQuery,
    HistogramQuery,
    QuantileQuery,
    SumQuery,
    TopKQuery,
    scaled,
)
from farthing.engine.sums import ClippedSum
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    DiscreteGaussian,
    Guarantee,
    PureDP,
)
from farthing.mechanisms import (
    Accuracy,
    Histogram,
    Items,
    KnownGaussian,
    KnownGumbel,
    KnownLaplace,
    Quantile,
    Release,
    ThresholdedGaussian,
    ThresholdedLaplace,
    TopKWithCounts,
    TruncatedGaussian,
    TruncatedGaussianLimited,
    UnknownGumbel,
    UnknownLaplace,
)

Counting: TypeAlias = KnownLaplace | KnownGaussian
Limited: TypeAlias = UnknownLaplace | TruncatedGaussianLimited
Whole: TypeAlias = ThresholdedLaplace | ThresholdedGaussian | TruncatedGaussian
Noisy: TypeAlias = Counting | Limited | Whole
Mechanism: TypeAlias = Noisy | KnownGumbel | UnknownGumbel | TopKWithCounts | Quantile | ClippedSum

#: How many of the largest counts an unknown domain is looked at through, unless the query says.
CANDIDATES = 1000


@dataclass(frozen=True, slots=True)
class Expectation:
    """What to expect before running.

    `counts`: the error of each released number. `selection`: how far, in counts, a selected
    label may lie below the best one that was left. `found_from`: a label whose count exceeds the
    largest count that is not looked at by this much is found with probability `confidence`.
    `threshold`: noisy counts below it are withheld. `above_cutoff`: so are those that are not
    this much above the noisy largest count that is not looked at.
    """

    counts: Accuracy | None = None
    selection: Accuracy | None = None
    found_from: float | None = None
    threshold: int | None = None
    above_cutoff: int | None = None


@dataclass(frozen=True, slots=True)
class Procedure:
    """A mechanism, how often its counts are drawn, how many labels are kept, and of how many."""

    mechanism: Mechanism
    repeats: int = 1
    keep: int | None = None
    domain: int | None = None

    @property
    def guarantees(self) -> Items:
        """The price before running."""
        first = self.mechanism.guarantees
        if self.repeats == 1:
            return first
        if isinstance(self.mechanism, ClippedSum):
            return tuple((guarantee, times * self.repeats) for guarantee, times in first)
        counting, found = self._counting()
        again = (self.repeats - 1) * min(found, counting.contribution_limit)
        return (*first, (counting.coordinate, again))

    @property
    def candidates(self) -> int | None:
        """How many of the largest counts the mechanism looks at; None for all of them."""
        looking = getattr(self.mechanism, "selection", self.mechanism)
        return getattr(looking, "candidates", None)

    def run(self, data: Histogram | int) -> tuple[Release, Items]:
        """The release, and the guarantees that it shows were used."""
        mechanism = self.mechanism
        if isinstance(mechanism, ClippedSum):
            assert isinstance(data, int)
            drawn = [mechanism.run(data) for _ in range(self.repeats)]
            return Release(("sum",), (_mean(drawn),)), self.guarantees
        assert isinstance(data, Histogram)
        if isinstance(mechanism, Quantile):
            return Release((mechanism.run(data),)), mechanism.guarantees
        release = mechanism.run(data)
        used = mechanism.guarantees_for(release)
        if self.repeats > 1 and release.labels:
            release, more = self._again(data, release)
            used = (*used, *more)
        return self._kept(release), used

    def expect(self, confidence: float) -> Expectation:
        """Accuracy, from the parameters alone."""
        mechanism = self.mechanism
        match mechanism:
            case ClippedSum():
                return Expectation(mean_accuracy(mechanism.noise, self.repeats, confidence))
            case Quantile():
                return Expectation(selection=mechanism.accuracy(confidence=confidence))
            case TopKWithCounts():
                found = self._selection(mechanism.selection, confidence)
                counts = mean_accuracy(mechanism.counting.noise, self.repeats, confidence)
                return Expectation(counts, found.selection, found.found_from)
            case KnownGumbel() | UnknownGumbel():
                return self._selection(mechanism, confidence)
            case KnownLaplace() | KnownGaussian():
                return Expectation(mean_accuracy(mechanism.noise, self.repeats, confidence))
            case UnknownLaplace() | TruncatedGaussianLimited():
                counts = mechanism.accuracy(confidence=confidence)
                return Expectation(counts, above_cutoff=mechanism.threshold)
        return Expectation(mechanism.accuracy(confidence=confidence), threshold=mechanism.threshold)

    def _selection(self, selection: KnownGumbel | UnknownGumbel, confidence: float) -> Expectation:
        """`found_from` weighs ⊥ alone: ln(multiplicity) + ln(confidence odds), over the rate."""
        if isinstance(selection, KnownGumbel):
            assert self.domain is not None
            known = selection.accuracy(domain_size=self.domain, confidence=confidence)
            return Expectation(selection=known)
        odds = math.log(selection.stop_multiplicity) + math.log(confidence / (1 - confidence))
        lead = selection.per_key_limit + odds / float(selection.rate)
        accuracy = selection.accuracy(lead=0, confidence=confidence)
        return Expectation(selection=accuracy, found_from=lead)

    def _counting(self) -> tuple[Counting, int]:
        mechanism = self.mechanism
        if isinstance(mechanism, TopKWithCounts):
            return mechanism.counting, mechanism.selection.k
        assert isinstance(mechanism, KnownLaplace | KnownGaussian)
        return mechanism, mechanism.contribution_limit

    def _again(self, data: Histogram, release: Release) -> tuple[Release, Items]:
        """Draw the counts of the same labels again and average; each draw is fresh and paid for."""
        counting, _ = self._counting()
        place = {label: i for i, label in enumerate(data.labels.tolist())}
        chosen = [place[label] for label in release.labels]
        found = Histogram(data.labels[chosen], data.counts[chosen])
        draws = [release.counts or ()]
        draws += [counting.run(found).counts or () for _ in range(self.repeats - 1)]
        means = tuple(_mean(column) for column in zip(*draws, strict=True))
        times = (self.repeats - 1) * min(len(found), counting.contribution_limit)
        return Release(release.labels, means, release.stopped), ((counting.coordinate, times),)

    def _kept(self, release: Release) -> Release:
        if self.keep is None or release.counts is None:
            return release
        order = sorted(range(len(release.labels)), key=lambda i: -(release.counts or ())[i])
        first = order[: self.keep]
        return Release(
            tuple(release.labels[i] for i in first), tuple(release.counts[i] for i in first)
        )


def procedure_for(purchase: Purchase) -> Procedure:
    """The mechanism that this query runs when it is paid for by these items."""
    query = purchase.query
    match query:
        case CountQuery():
            return Procedure(_counts(purchase, 1, query.per_key_limit), query.repeats)
        case SumQuery():
            guarantee = purchase.guarantee("count")
            assert isinstance(guarantee, PureDP)
            lower, upper = (scaled(b, query.places) for b in (query.lower, query.upper))
            mechanism = ClippedSum(epsilon=guarantee.epsilon, lower=lower, upper=upper)
            return Procedure(mechanism, query.repeats)
        case QuantileQuery():
            return Procedure(_quantile(purchase, query))
        case HistogramQuery():
            return _histogram(purchase, query)
    return _top_k(purchase, query)


def _histogram(purchase: Purchase, query: HistogramQuery) -> Procedure:
    if query.categories is not None:
        limit = min(query.contribution_limit, len(query.categories))
        return Procedure(_counts(purchase, limit, query.per_key_limit), query.repeats)
    return Procedure(_thresholded(purchase, query.contribution_limit, query.per_key_limit))


def _top_k(purchase: Purchase, query: TopKQuery) -> Procedure:
    tau, limit = query.per_key_limit, query.contribution_limit
    if query.mechanism in AT_ONCE:
        return Procedure(_at_once(purchase, query), keep=query.k)
    epsilon = _bounded_range(purchase)
    selection: KnownGumbel | UnknownGumbel
    if query.categories is not None:
        selection = KnownGumbel(epsilon=epsilon, k=query.k, per_key_limit=tau)
    else:
        selection = UnknownGumbel(
            epsilon=epsilon,
            delta=_delta(purchase),
            k=query.k,
            candidates=_candidates(query),
            per_key_limit=tau,
            contribution_limit=limit,
        )
    domain = None if query.categories is None else len(query.categories)
    if not query.counts:
        return Procedure(selection, domain=domain)
    changed = query.k if limit is None else min(limit, query.k)
    counting = _counts(purchase, changed, tau)
    found = TopKWithCounts(selection=selection, counting=counting, use_order=query.use_order)
    return Procedure(found, query.repeats, domain=domain)


def _at_once(purchase: Purchase, query: TopKQuery) -> Noisy:
    """Noisy counts of everything, or of the largest counts; the k largest are kept."""
    limit, tau = query.contribution_limit, query.per_key_limit
    assert limit is not None
    if query.categories is not None:
        return _counts(purchase, min(limit, len(query.categories)), tau)
    guarantee = purchase.guarantee("count")
    limits = {"contribution_limit": limit, "per_key_limit": tau}
    if isinstance(guarantee, PureDP):
        return UnknownLaplace(
            epsilon=guarantee.epsilon,
            delta=_delta(purchase),
            candidates=_candidates(query),
            **limits,
        )
    if query.mechanism == "noise":
        return _thresholded(purchase, limit, tau)
    assert isinstance(guarantee, DiscreteGaussian)
    sigma, delta = guarantee.noise_multiplier, _delta(purchase)
    if query.candidates is None:
        return TruncatedGaussian(noise_multiplier=sigma, delta=delta, **limits)
    return TruncatedGaussianLimited(
        noise_multiplier=sigma, delta=delta, candidates=query.candidates, **limits
    )


def _candidates(query: TopKQuery) -> int:
    return query.candidates or max(CANDIDATES, 10 * query.k)


def _counts(purchase: Purchase, contribution_limit: int, per_key_limit: int) -> Counting:
    limits = {"contribution_limit": contribution_limit, "per_key_limit": per_key_limit}
    guarantee = purchase.guarantee("count")
    if isinstance(guarantee, PureDP):
        return KnownLaplace(epsilon=guarantee.epsilon, **limits)
    assert isinstance(guarantee, DiscreteGaussian)
    return KnownGaussian(noise_multiplier=guarantee.noise_multiplier, **limits)


def _thresholded(
    purchase: Purchase, contribution_limit: int, per_key_limit: int
) -> ThresholdedLaplace | ThresholdedGaussian:
    delta, guarantee = _delta(purchase), purchase.guarantee("count")
    limits = {"contribution_limit": contribution_limit, "per_key_limit": per_key_limit}
    if isinstance(guarantee, PureDP):
        return ThresholdedLaplace(epsilon=guarantee.epsilon, delta=delta, **limits)
    assert isinstance(guarantee, DiscreteGaussian)
    return ThresholdedGaussian(noise_multiplier=guarantee.noise_multiplier, delta=delta, **limits)


def _quantile(purchase: Purchase, query: QuantileQuery) -> Quantile:
    return Quantile(
        probability=query.probability,
        epsilon=_bounded_range(purchase),
        lower=scaled(query.lower, query.places),
        upper=scaled(query.upper, query.places),
        contribution_limit=query.contribution_limit,
        per_key_limit=query.per_key_limit,
    )


def _bounded_range(purchase: Purchase) -> float:
    guarantee: Guarantee = purchase.guarantee("select")
    assert isinstance(guarantee, BoundedRange)
    return guarantee.epsilon


def _delta(purchase: Purchase) -> float:
    guarantee: Guarantee = purchase.guarantee("leak")
    assert isinstance(guarantee, ApproximateDP)
    return guarantee.delta


def _mean(values: Sequence[int | float]) -> int | float:
    """The mean as the nearest float; a single value stays as it is."""
    return values[0] if len(values) == 1 else float(Fraction(sum(map(int, values)), len(values)))
