"""Google's dp-accounting: its privacy loss distributions and its trees of `DpEvent`, both ways.

*Distributions.* A list that farthing composes optimally, such as a block of adaptively chosen
selections, can join an accountant there, and a distribution from there can join a list here.

*Events.* A tree becomes the list of its leaves with their multiplicities, which `compose` then
composes with certified bounds. What a leaf promises depends on the neighbours: noise there is
relative to the norm of one unit's values, so replacing a unit changes a sum by up to twice as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb

from farthing.composition.adaptive.operators import Kernel, atoms_of, loss_distribution_above
from farthing.composition.adaptive.profiles import curves
from farthing.composition.items import Losses, items_from, losses_of, take_out_leaks
from farthing.errors import InvalidInput, Unsupported, require_choice, require_count, require_real
from farthing.guarantees.kinds import (
    BoundedRange,
    ConcentratedDP,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    LossDistribution,
    PermuteAndFlip,
    PureDP,
    Subsampled,
    SubsampledWithoutReplacement,
    TwoWayLoss,
    ZeroConcentratedDP,
)
from farthing.guarantees.losses import loss_of
from farthing.guarantees.neighbours import for_replace_one, group_privacy
from farthing.numerics.ball import down, in_balls, up
from farthing.numerics.curves import Chords, Grid
from farthing.numerics.rounding import FloatArray, float_down, float_up
from farthing.optional import required

if TYPE_CHECKING:
    from dp_accounting import DpEvent
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

#: Beyond this epsilon floats end, and so does privacy.
FARTHEST = 500.0
#: More cells than this make no distribution that anybody could use.
MOST_CELLS = 10_000_000

NEIGHBOURS = ("add-remove", "replace-one")
#: Discrete Laplace noise with a larger sensitivity is read as pure DP.
MOST_STEPS = 10_000
#: Where a loss is known to dp-accounting only, its distribution is computed with this interval.
INTERVAL = 1e-3
#: Why some events have no counterpart here.
REASONS = {
    "NonPrivateDpEvent": "it promises nothing",
    "UnsupportedDpEvent": "it stands for a mechanism without accounting",
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


def to_dp_accounting(
    items: Iterable[Guarantee | tuple[Guarantee, int]],
    *,
    adaptivity: str = "adaptive",
    interval: float = 1e-4,
    delta: float = 1e-12,
    tolerance: float = 1e-3,
) -> PrivacyLossDistribution:
    """A pessimistic distribution of the whole list, on the given discretisation interval.

    It dominates every way the list can be used, so it may be composed with anything else.
    `delta` is the smallest δ for which it should be accurate. Its infinity mass is what the list
    leaks and what its profile has beyond where it was cut off: the δ that no ε goes below.
    """
    pld = required("dp_accounting.pld")
    require_choice("adaptivity", adaptivity, ("none", "adaptive", "setwise"))
    interval = require_real("interval", interval, above=0)
    delta = require_real("delta", delta, above=0, below=1)
    pmfs = [
        _pmf(pld, one, adaptivity, (interval, delta, tolerance))
        for one in items_from(items).directions()
    ]
    return pld.privacy_loss_distribution.PrivacyLossDistribution(*pmfs)


def _pmf(pld: Any, items: Losses, adaptivity: str, accuracy: tuple[float, float, float]) -> Any:
    """One direction of neighbours; with the unit comes first, which is `remove` there."""
    interval, delta, tolerance = accuracy
    leaky = take_out_leaks(items)
    if not leaky.items.known:
        raise Unsupported("only kinds with a known worst case have a privacy loss distribution")
    profile = curves(leaky.items, adaptivity, tolerance, delta, whole=True)
    if profile is None:
        raise Unsupported("this list is too long for one distribution; exchange it in blocks")
    atoms = atoms_of(profile.upper)
    cells = 2 * float(np.abs(atoms.losses).max()) / interval + 2
    if cells > MOST_CELLS:
        raise InvalidInput(
            f"interval must leave at most {MOST_CELLS} cells; {interval} makes {cells:.3g}"
        )
    kernel = Kernel.of(atoms, Grid(interval, int(cells), 0))
    leak = up(leaky.leak)
    return pld.pld_pmf.DensePLDPmf(
        discretization=interval,
        lower_loss=-(kernel.first + len(kernel.weights) - 1),
        probs=kernel.weights[::-1] * (1 - leak),
        infinity_mass=min(1.0, kernel.infinity + leak),
        pessimistic_estimate=True,
    )


def from_dp_accounting(
    distribution: PrivacyLossDistribution, *, step: float = 1e-3, delta: float = 1e-12
) -> LossDistribution | TwoWayLoss:
    """A guarantee from a pessimistic distribution: its profile, read at multiples of `step`.

    A distribution with different losses for adding and for removing gives both of them, each for
    its own direction of neighbours. Infinity mass, outcomes that only one neighbour gives or that a
    truncated tail may give, becomes a leak: it is charged as δ, whatever ε is. What is read is as
    certain as the distribution's own floats; nothing is added for their rounding.
    """
    step = require_real("step", step, above=0)
    delta = require_real("delta", delta, above=0, below=1)
    # the distribution shows no single direction; its fields do, and hold for one each
    with_unit, without_unit = distribution._pmf_remove, distribution._pmf_add
    if with_unit is without_unit:
        return _read(distribution, step, delta)
    return TwoWayLoss(_read(with_unit, step, delta), _read(without_unit, step, delta))


def _read(distribution: Any, step: float, delta: float) -> LossDistribution:
    grid = grid_to(distribution.get_epsilon_for_delta(delta), step, delta)
    values = np.asarray(distribution.get_delta_for_epsilon(grid.points()), dtype=np.float64)
    return loss_distribution_above(Chords(grid, np.clip(falling(values), 0.0, 1.0)))


def grid_to(epsilon: float, step: float, delta: float) -> Grid:
    """Multiples of `step` on both sides of 0 as far as a profile is read, which is δ there."""
    reach = max(float(epsilon), 10 * step)
    if not reach <= FARTHEST:
        raise Unsupported(
            f"the profile has no epsilon up to {FARTHEST:g} at delta = {delta}; "
            "read it at a larger delta"
        )
    cells = int(reach / step) + 2
    return Grid(step, cells, cells)


def falling(values: FloatArray) -> FloatArray:
    """A profile decreases; floats may not, and the running maximum from the right only adds."""
    return np.maximum.accumulate(values[::-1])[::-1]


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
    """How leaves are read: the module of events, and the neighbours."""

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
        """Several mechanisms on one sample as one guarantee, before sampling; None if none.

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
                "several mechanisms on one sample must all be Gaussian or all be pure, "
                f"got {event!r:.80}"
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
                if not self.replaced:
                    return loss
                epsilon = loss_of(loss).pure_epsilon
                assert epsilon is not None
                return PureDP(epsilon)
            case self.events.ZCDpEvent(rho=rho, xi=xi):
                return ZeroConcentratedDP(rho, xi)
            case self.events.MixtureOfGaussiansDpEvent() if not self.replaced:
                return _known_there(
                    "from_mixture_gaussian_mechanism",
                    event.standard_deviation,
                    event.sensitivities,
                    event.sampling_probs,
                )
            case self.events.TruncatedSubsampledGaussianDpEvent() if not self.replaced:
                return _known_there(
                    "from_truncated_subsampled_gaussian_mechanism",
                    event.dataset_size,
                    event.sampling_probability,
                    event.truncated_batch_size,
                    event.noise_multiplier,
                )
            case _:
                raise _refusal(event)


def _known_there(name: str, *parameters: Any) -> LossDistribution | TwoWayLoss:
    """A loss that only a function of dp-accounting computes."""
    computed = getattr(required("dp_accounting.pld.privacy_loss_distribution"), name)
    return from_dp_accounting(computed(*parameters, value_discretization_interval=INTERVAL))


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


def to_event(items: Iterable[Guarantee | tuple[Guarantee, int]]) -> DpEvent:
    """A tree of events that promises no more than the list does.

    Pure DP becomes discrete Laplace noise of sensitivity 1, which is its worst case, and so does
    permute-and-flip, for which there is no event. Bounded range,
    discrete Gaussian noise and concentrated DP become zCDP, which only the Rényi accountant there
    understands; a block of them keeps its optimum as a distribution, by `to_dp_accounting`.
    """
    events = required("dp_accounting").dp_event
    steps = [
        one if count == 1 else events.SelfComposedDpEvent(one, count)
        for one, count in ((_event(events, g), n) for g, n in items_from(items))
    ]
    return steps[0] if len(steps) == 1 else events.ComposedDpEvent(steps)


def _event(events: Any, guarantee: Guarantee) -> Any:
    match guarantee:
        case Gaussian(noise):
            return events.GaussianDpEvent(noise)
        case Laplace(epsilon) if epsilon > 0:
            return events.LaplaceDpEvent(float_down(1 / Fraction(epsilon)))
        case PureDP(epsilon) | PermuteAndFlip(epsilon) if epsilon > 0:
            return events.DiscreteLaplaceDpEvent(epsilon, 1)
        case PureDP() | PermuteAndFlip() | Laplace() | BoundedRange(0.0):
            return events.NoOpDpEvent()
        case Subsampled(inner, rate):
            return events.PoissonSampledDpEvent(rate, _event(events, inner))
        case ZeroConcentratedDP(rho, xi, delta=0.0):
            return events.ZCDpEvent(rho, max(xi, 0.0))  # they take no other
        case BoundedRange() | DiscreteGaussian() | ConcentratedDP():
            return _concentrated_event(events, guarantee)
        case _:
            raise Unsupported(
                f"no event states {guarantee!r:.60}; to_dp_accounting may state it as a "
                "distribution"
            )


@in_balls
def _concentrated_event(events: Any, guarantee: Guarantee) -> Any:
    pair = loss_of(guarantee).zero_concentrated()
    assert pair is not None
    return events.ZCDpEvent(up(pair[1]), max(0.0, up(pair[0])))
