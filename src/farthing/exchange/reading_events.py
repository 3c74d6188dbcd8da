"""Trees of dp-accounting's `DpEvent`, read.

A tree becomes the list of its leaves with their multiplicities, which `compose` then composes with
certified bounds. What a leaf promises depends on the neighbours: noise there is relative to the
norm of one unit's values, so replacing a unit changes a sum by up to twice as much.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb

from farthing.composition.items import losses_of
from farthing.errors import InvalidInput, Unsupported, require_choice, require_count, require_real
from farthing.exchange.distributions import from_dp_accounting
from farthing.guarantees.kinds import (
    Gaussian,
    Guarantee,
    Laplace,
    LossDistribution,
    PureDP,
    Subsampled,
    SubsampledWithoutReplacement,
    ZeroConcentratedDP,
)
from farthing.guarantees.losses.registry import loss_of
from farthing.guarantees.neighbours import for_replace_one, group_privacy
from farthing.numerics.ball import down, in_balls, up
from farthing.numerics.rounding import float_up
from farthing.optional import required

if TYPE_CHECKING:
    from dp_accounting import DpEvent

NEIGHBOURS = ("add-remove", "replace-one")
#: Discrete Laplace noise with a larger sensitivity is read as pure DP.
MOST_STEPS = 10_000
#: Where a loss is known to dp-accounting only, its distribution is computed with this interval.
INTERVAL = 1e-3
#: Why some events have no counterpart here.
REASONS = {
    "NonPrivateDpEvent": "it promises nothing",
    "UnsupportedDpEvent": "it stands for what nobody can account for",
    "SampledWithReplacementDpEvent": "no dominating pair is known for samples with replacement",
    "SampledWithoutReplacementDpEvent": "it needs neighbours='replace-one'",
    "PoissonSampledDpEvent": "it needs neighbours='add-remove'",
    "MixtureOfGaussiansDpEvent": "it needs neighbours='add-remove'",
    "TruncatedSubsampledGaussianDpEvent": "it needs neighbours='add-remove'",
    "RandomizedResponseDpEvent": "it needs neighbours='replace-one'",
    "SingleEpochTreeAggregationDpEvent": "it holds for zero-out neighbours; with t steps state it "
    "as Gaussian(noise_multiplier / sqrt(ceil(log2(t + 1))))",
    "RepeatAndSelectDpEvent": "its moments are known to dp-accounting only",
}


def from_event(event: DpEvent, *, neighbours: str = "add-remove") -> list[tuple[Guarantee, int]]:
    """The leaves of a tree as (guarantee, count), for `compose` or an accountant.

    `neighbours` says what the answer is about: add-remove (also right for replace-special where a
    special record counts as absent) or replace-one. Unsupported, with the reason, for events that
    promise nothing here. A tree of nothing but no-ops gives an empty list.
    """
    events = required("dp_accounting").dp_event
    relation = require_choice("neighbours", neighbours, NEIGHBOURS)
    if not isinstance(event, events.DpEvent):
        raise InvalidInput(f"a DpEvent is needed, got {event!r:.60}")
    return list(_Reading(events, relation == "replace-one").leaves(event, 1))


@dataclass(frozen=True, slots=True)
class _Reading:
    """How leaves are read: the module of events, and which neighbours are meant."""

    events: Any
    replaced: bool

    def leaves(self, event: DpEvent, count: int) -> Iterator[tuple[Guarantee, int]]:
        """Guarantees under an event that happens `count` times."""
        match event:
            case self.events.NoOpDpEvent():
                return
            case self.events.SelfComposedDpEvent(event=inner, count=times):
                more = require_count("count of a SelfComposedDpEvent", times)
                if more > 0:
                    yield from self.leaves(inner, count * more)
            case self.events.ComposedDpEvent(events=children):
                for child in children:
                    yield from self.leaves(child, count)
            case self.events.PoissonSampledDpEvent(sampling_probability=rate, event=inner):
                if self.replaced:
                    raise _refusal(event)
                sampled = self._one(inner)
                if rate > 0 and sampled is not None:
                    yield Subsampled(sampled, rate), count  # type: ignore[arg-type] # checked there
            case self.events.SampledWithoutReplacementDpEvent(
                source_dataset_size=size, sample_size=drawn, event=inner
            ):
                if not self.replaced:
                    raise _refusal(event)
                sampled = self._one(inner)
                if drawn > 0 and sampled is not None:
                    rate = float_up(Fraction(drawn) / Fraction(size))
                    doubled: Any = group_privacy(sampled, 2)
                    yield SubsampledWithoutReplacement(doubled, rate), count
            case self.events.RandomizedResponseDpEvent(noise_parameter=noise, num_buckets=buckets):
                if not self.replaced:
                    raise _refusal(event)
                response = PureDP(_response_epsilon(noise, buckets))
                yield SubsampledWithoutReplacement(response, 1.0), count
            case _:
                guarantee = self._leaf(event)
                yield (for_replace_one(guarantee) if self.replaced else guarantee), count

    def _one(self, event: DpEvent) -> Guarantee | None:
        """What several mechanisms on one sample are together, before sampling; None if nothing.

        Gaussian mechanisms are one Gaussian mechanism; what is pure is pure together.
        """
        items = list(_Reading(self.events, replaced=False).leaves(event, 1))
        if len(items) == 0:
            return None
        guarantee, count = items[0]
        if len(items) == 1 and count == 1 and not isinstance(guarantee, LossDistribution):
            return guarantee
        if all(isinstance(guarantee, Gaussian) for guarantee, _ in items):
            return _one_gaussian(items)
        total = losses_of(items).epsilon_sum()
        if total is None:
            raise Unsupported(
                "several mechanisms on one sample are understood if all of them are Gaussian or "
                f"all of them are pure, got {event!r:.80}"
            )
        return PureDP(up(total))

    def _leaf(self, event: DpEvent) -> Guarantee:
        match event:
            case self.events.GaussianDpEvent(noise_multiplier=noise):
                return Gaussian(require_real("noise_multiplier", noise, above=0))
            case self.events.LaplaceDpEvent(noise_multiplier=noise):
                return Laplace.from_scale(noise)
            case self.events.DiscreteLaplaceDpEvent(noise_parameter=noise, sensitivity=steps):
                loss = discrete_laplace(noise, steps)
                if self.replaced:
                    return PureDP(_known(loss_of(loss).pure_epsilon))
                return loss
            case self.events.ZCDpEvent(rho=rho, xi=xi):
                return ZeroConcentratedDP(rho, xi)
            case self.events.MixtureOfGaussiansDpEvent() if not self.replaced:
                pld = required("dp_accounting.pld.privacy_loss_distribution")
                return from_dp_accounting(
                    pld.from_mixture_gaussian_mechanism(
                        event.standard_deviation,
                        event.sensitivities,
                        event.sampling_probs,
                        value_discretization_interval=INTERVAL,
                    )
                )
            case self.events.TruncatedSubsampledGaussianDpEvent() if not self.replaced:
                pld = required("dp_accounting.pld.privacy_loss_distribution")
                return from_dp_accounting(
                    pld.from_truncated_subsampled_gaussian_mechanism(
                        event.dataset_size,
                        event.sampling_probability,
                        event.truncated_batch_size,
                        event.noise_multiplier,
                        value_discretization_interval=INTERVAL,
                    )
                )
            case _:
                raise _refusal(event)


def _refusal(event: DpEvent) -> Unsupported:
    name = type(event).__name__
    reason = REASONS.get(name, "it is not known here")
    return Unsupported(f"{name} has no counterpart: {reason}")


@in_balls
def _one_gaussian(items: list[tuple[Guarantee, int]]) -> Gaussian:
    """1/σ² adds up."""
    precision = arb(0)
    for guarantee, count in items:
        assert isinstance(guarantee, Gaussian)
        precision += count / arb(guarantee.noise_multiplier) ** 2
    return Gaussian(down(1 / precision.sqrt()))


def discrete_laplace(noise_parameter: float, sensitivity: int) -> PureDP | LossDistribution:
    """The exact loss of discrete Laplace noise, Pr[Z = z] ∝ e^{−a|z|}, for a shift by Δ.

    Of the outcome z it is a(|z − Δ| − |z|): aΔ up to 0, −aΔ from Δ on, a(Δ − 2z) between. For Δ = 1
    that is randomized response. Rounded up by far more than floats err.
    """
    noise = require_real("noise_parameter", noise_parameter, above=0)
    steps = require_count("sensitivity", sensitivity, at_least=1)
    if steps == 1 or steps > MOST_STEPS:
        return PureDP(float_up(Fraction(noise) * steps))
    places = np.arange(steps, -1, -1)
    masses = np.tanh(noise / 2) * np.exp(-noise * places)
    masses[-1] = 1 / (1 + np.exp(-noise))
    masses[0] = np.exp(-noise * steps) / (1 + np.exp(-noise))
    losses = noise * (steps - 2 * places)
    return LossDistribution(
        tuple((losses + 1e-14 * np.abs(losses).max()).tolist()),
        tuple((masses * (1 + 1e-12)).tolist()),
    )


@in_balls
def _response_epsilon(noise: float, buckets: int) -> float:
    """ln of (1 − p + p/k) over p/k: of two answers of randomized response with k buckets."""
    noise = require_real("noise_parameter", noise, above=0)
    count = require_count("num_buckets", buckets, at_least=1)
    return max(0.0, up(((1 - arb(noise)) * count / noise).log1p()))


def _known(epsilon: float | None) -> float:
    assert epsilon is not None
    return epsilon
