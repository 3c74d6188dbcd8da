"""What one mechanism promises: frozen facts without any mathematics in them.

The meaning of a kind never changes. Neighbours are add/remove of one unit, except where a kind
says otherwise. Most kinds promise the same with the unit and without it; those that do not are
`Subsampled` and `TwoWayLoss`. What is known about a kind's worst case is in `guarantees/losses`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, TypeAlias

from farthing.errors import InvalidInput, Unsupported, require_count, require_real
from farthing.numerics.rounding import float_down, float_up

_RANGE = (
    "bounded range cannot be subsampled: its worst pair depends on t, and no pair "
    "dominates all of them; sample PureDP({0.epsilon!r}), which it implies"
)
_MOMENTS = (
    "a guarantee that only bounds moments cannot be subsampled: it has no pair of "
    "distributions that dominates; sample the mechanism itself, such as Gaussian(σ)"
)
_DISCRETISED = "a discretised loss cannot be subsampled; sample the mechanism and discretise then"


#: Limits of a field, as `require_real` takes them.
_FINITE: dict[str, dict[str, float]] = {"limits": {}}
_NOT_NEGATIVE: dict[str, dict[str, float]] = {"limits": {"at_least": 0}}
_POSITIVE: dict[str, dict[str, float]] = {"limits": {"above": 0}}
_PROBABILITY: dict[str, dict[str, float]] = {"limits": {"at_least": 0, "below": 1}}


class Kind:
    """Checks every number that a kind declares with limits.

    `notation` names the kind in short text. `not_sampled` says why a mechanism of this kind cannot
    be subsampled. Both are given where the class is defined.
    """

    __slots__ = ()
    notation: ClassVar[str | None] = None
    not_sampled: ClassVar[str | None] = None

    def __init_subclass__(
        cls, *, notation: str | None = None, not_sampled: str | None = None
    ) -> None:
        if notation is not None:
            cls.notation = notation
        if not_sampled is not None:
            cls.not_sampled = not_sampled

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type] # every kind is a dataclass
            if "limits" in one.metadata:
                value = require_real(one.name, getattr(self, one.name), **one.metadata["limits"])
                object.__setattr__(self, one.name, value)


@dataclass(frozen=True, slots=True)
class PureDP(Kind, notation="dp"):
    """ε-differential privacy: every privacy loss lies in [−ε, ε]."""

    epsilon: float = field(metadata=_NOT_NEGATIVE)


@dataclass(frozen=True, slots=True)
class BoundedRange(Kind, notation="br", not_sampled=_RANGE):
    """ε-bounded range: for each pair of neighbours the losses lie in [t − ε, t], 0 ≤ t ≤ ε.

    Corollary 2.1 of [DDR20]. The exponential mechanism has it; it holds for mechanisms
    that answer once, not for interactive ones.
    """

    epsilon: float = field(metadata=_NOT_NEGATIVE)


@dataclass(frozen=True, slots=True)
class ApproximateDP(Kind, notation="adp"):
    """(ε, δ)-differential privacy."""

    epsilon: float = field(metadata=_NOT_NEGATIVE)
    delta: float = field(metadata=_PROBABILITY)


@dataclass(frozen=True, slots=True)
class Laplace(Kind, notation="lap"):
    """The Laplace mechanism itself, with scale sensitivity/ε: more is known than ε-DP."""

    epsilon: float = field(metadata=_NOT_NEGATIVE)

    @classmethod
    def from_scale(cls, scale: float, sensitivity: float = 1.0) -> Laplace:
        """Noise of this scale on a result that one unit changes by at most `sensitivity` in ℓ1."""
        return cls(float_up(1 / _noise_ratio(scale, sensitivity)))


@dataclass(frozen=True, slots=True)
class Gaussian(Kind, notation="gauss"):
    """The Gaussian mechanism, with standard deviation noise_multiplier × ℓ2-sensitivity."""

    noise_multiplier: float = field(metadata=_POSITIVE)

    @classmethod
    def from_scale(cls, scale: float, sensitivity: float = 1.0) -> Gaussian:
        """Standard deviation `scale`, for a result that one unit changes by `sensitivity` in ℓ2."""
        return cls(float_down(_noise_ratio(scale, sensitivity)))


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(Kind, notation="dgauss"):
    """Discrete Gaussian noise on a whole number that a unit changes by at most `sensitivity`.

    Pr[Z = z] ∝ e^{−z²/2s²} on the whole numbers, s = noise_multiplier × sensitivity. Its profile
    is close to that of `Gaussian` but exceeds it in places, so the two are kept apart.
    """

    noise_multiplier: float = field(metadata=_POSITIVE)
    sensitivity: int = 1

    def __post_init__(self) -> None:
        Kind.__post_init__(self)
        whole: object = self.sensitivity
        if isinstance(whole, float) and whole.is_integer():
            whole = int(whole)
        object.__setattr__(self, "sensitivity", require_count("sensitivity", whole, at_least=1))

    @classmethod
    def from_scale(cls, scale: float, sensitivity: int = 1) -> DiscreteGaussian:
        """Noise ∝ e^{−z²/2·scale²} on a number that one unit changes by at most `sensitivity`."""
        return cls(float_down(_noise_ratio(scale, sensitivity)), sensitivity)


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(Kind, notation="pf"):
    """The permute-and-flip mechanism itself, ε per range of the score: more is known than ε-DP.

    Its losses lie in an interval of length 2·ln(2e^{ε/2} − 1) inside [−ε, ε]
    (docs/theory/mechanisms.md, "Permute-and-flip"). It is not ε-bounded range.
    """

    epsilon: float = field(metadata=_NOT_NEGATIVE)


@dataclass(frozen=True, slots=True)
class ConcentratedDP(Kind, notation="cdp", not_sampled=_MOMENTS):
    """(μ, τ)-concentrated DP: mean loss at most μ, centred loss τ-subgaussian [CR22, Def. 2.6]."""

    mu: float = field(metadata=_NOT_NEGATIVE)
    tau: float = field(metadata=_NOT_NEGATIVE)


@dataclass(frozen=True, slots=True)
class ZeroConcentratedDP(Kind, notation="zcdp", not_sampled=_MOMENTS):
    """δ-approximate (ξ, ρ)-zero-concentrated DP: D_α ≤ ξ + ρα for α > 1 [CR22, Def. 2.7]."""

    rho: float = field(metadata=_NOT_NEGATIVE)
    xi: float = field(default=0.0, metadata=_FINITE)
    delta: float = field(default=0.0, metadata=_PROBABILITY)

    def __post_init__(self) -> None:
        Kind.__post_init__(self)
        if self.xi < -self.rho:
            raise InvalidInput(f"xi must be at least -rho = {-self.rho:g}, got {self.xi:g}")


@dataclass(frozen=True, slots=True)
class TruncatedConcentratedDP(Kind, notation="tcdp", not_sampled=_MOMENTS):
    """(ρ, ω)-truncated concentrated DP: D_α ≤ ρα for 1 < α < ω [Lyu22, Def. 5]."""

    rho: float = field(metadata=_NOT_NEGATIVE)
    omega: float = field(metadata={"limits": {"above": 1}})


@dataclass(frozen=True, slots=True)
class RenyiDP(Kind, not_sampled=_MOMENTS):
    """Rényi DP by a curve: D_α ≤ curve(α) for every α with 1 < α < `orders_below`.

    `curve` must return a valid upper bound for each order it is asked for; it may return
    infinity where nothing is known. Two curves are equal only if they are the same object.
    """

    curve: Callable[[float], float]
    orders_below: float = field(default=float("inf"))

    def __post_init__(self) -> None:
        if not callable(self.curve):
            raise InvalidInput(f"curve must be a function of the order alpha, got {self.curve!r}")
        if not isinstance(self.orders_below, float | int) or not self.orders_below > 1:
            raise InvalidInput(f"orders_below must be greater than 1, got {self.orders_below!r}")


@dataclass(frozen=True, slots=True, repr=False)
class LossDistribution(Kind, not_sampled=_DISCRETISED):
    """A discrete privacy loss that dominates the mechanism in both directions of neighbours.

    Mass `masses[i]` at loss `losses[i]` (increasing), and `infinity` where the loss has no bound.
    With V(x) the profile of this loss, the promise is δ(x) ≤ V(x) for every real x, whichever of
    the two datasets holds the unit. The loss of one direction of an asymmetric mechanism does not
    promise that; the larger of its two profiles does (docs/theory/directions.md).
    """

    losses: tuple[float, ...]
    masses: tuple[float, ...]
    infinity: float = 0.0

    def __post_init__(self) -> None:
        losses = tuple(require_real("losses", loss) for loss in self.losses)
        masses = tuple(require_real("masses", mass, at_least=0) for mass in self.masses)
        infinity = require_real("infinity", self.infinity, at_least=0, below=1)
        if len(losses) != len(masses) or not losses:
            raise InvalidInput(
                f"losses and masses must have one equal length, got {len(losses)}, {len(masses)}"
            )
        if any(a >= b for a, b in pairwise(losses)):
            raise InvalidInput("losses must increase")
        finite = math.fsum(masses)
        if not -1e-12 <= finite + infinity - 1 <= 1e-6:  # rounding up is welcome, leaving out not
            total = finite + infinity
            raise InvalidInput(f"masses and infinity must add up to 1, got {total!r}")
        if finite < 1e-9:
            raise InvalidInput(f"at least 1e-9 must lie at finite losses, got {finite!r}")
        _set_all(self, losses, masses, infinity)
        if self.mirrored_mass > 1 + 1e-6:
            raise InvalidInput(
                f"masses times e^-loss must add up to at most 1, got {self.mirrored_mass!r}"
            )

    @property
    def mirrored_mass(self) -> float:
        """Σ mass·e^−loss: what the finite losses weigh under the other neighbour."""
        pairs = zip(self.losses, self.masses, strict=True)
        logs = (math.log(mass) - loss for loss, mass in pairs if mass > 0)
        return math.fsum(math.exp(min(log, 700.0)) for log in logs)

    def finite_part(self) -> LossDistribution:
        """The finite losses alone, scaled as if infinite loss did not happen.

        If the mirrored mass and `infinity` exceed 1 together this is no loss by itself, only a
        factor in a profile; so it is not checked again.
        """
        part = object.__new__(LossDistribution)
        _set_all(part, self.losses, tuple(mass / (1 - self.infinity) for mass in self.masses), 0.0)
        return part

    def __repr__(self) -> str:
        low, high = self.losses[0], self.losses[-1]
        return (
            f"LossDistribution({len(self.losses)} losses from {low:.6g} to {high:.6g}, "
            f"infinity={self.infinity:.6g})"
        )


def _set_all(
    loss: LossDistribution,
    losses: tuple[float, ...],
    masses: tuple[float, ...],
    infinity: float,
) -> None:
    object.__setattr__(loss, "losses", losses)
    object.__setattr__(loss, "masses", masses)
    object.__setattr__(loss, "infinity", infinity)


@dataclass(frozen=True, slots=True)
class _Sampled(Kind, not_sampled="a sample of a sample is one sample: multiply the rates"):
    """Common to both ways to draw a sample."""

    guarantee: PureDP | ApproximateDP | Laplace | Gaussian | DiscreteGaussian | PermuteAndFlip
    rate: float = field(metadata=_POSITIVE)

    def __post_init__(self) -> None:
        given: object = self.guarantee
        if not isinstance(given, Guarantee):
            raise InvalidInput(f"a guarantee is needed to be sampled, got {given!r:.60}")
        if given.not_sampled is not None:
            raise Unsupported(given.not_sampled.format(given))
        Kind.__post_init__(self)
        if self.rate > 1:
            raise InvalidInput(f"rate must be at most 1, got {self.rate:g}")


@dataclass(frozen=True, slots=True)
class Subsampled(_Sampled, notation="poisson"):
    """A mechanism that sees a Poisson sample: each unit is in it with probability `rate`.

    Units are sampled independently of each other, of the data and of all other steps, and the
    sample stays secret. Neighbours are add/remove. With the unit the outcome is a mixture, without
    it it is not, so the two directions have different losses (docs/theory/subsampling.md).
    """


@dataclass(frozen=True, slots=True)
class SubsampledWithoutReplacement(_Sampled, notation="subset"):
    """A mechanism that sees a sample of fixed size, the share `rate` of all units.

    Every such sample is equally likely. Neighbours are **replace-one**, of equal and public size,
    here and in `guarantee`; so it composes only with guarantees of its own kind. Rate 1 is a
    mechanism that is not sampled, with replace-one neighbours.
    """


@dataclass(frozen=True, slots=True)
class TwoWayLoss(Kind, not_sampled=_DISCRETISED):
    """Discrete losses for both directions of add/remove neighbours, each valid in its own only.

    `with_unit` bounds the outcomes with the unit against those without it, `without_unit` the
    reverse. A `LossDistribution` by itself is valid in both.
    """

    with_unit: LossDistribution
    without_unit: LossDistribution

    def __post_init__(self) -> None:
        for loss in (self.with_unit, self.without_unit):
            if not isinstance(loss, LossDistribution):
                raise InvalidInput(f"both losses must be LossDistribution, got {loss!r:.60}")


Guarantee: TypeAlias = (
    PureDP
    | BoundedRange
    | ApproximateDP
    | Laplace
    | Gaussian
    | DiscreteGaussian
    | PermuteAndFlip
    | ConcentratedDP
    | ZeroConcentratedDP
    | TruncatedConcentratedDP
    | RenyiDP
    | LossDistribution
    | Subsampled
    | SubsampledWithoutReplacement
    | TwoWayLoss
)


def replaces_one(guarantee: Guarantee) -> bool:
    """Whether a guarantee is about replace-one neighbours."""
    return isinstance(guarantee, SubsampledWithoutReplacement)


def _noise_ratio(scale: object, sensitivity: object) -> Fraction:
    """scale / sensitivity, exactly."""
    noise = require_real("scale", scale, above=0)
    return Fraction(noise) / Fraction(require_real("sensitivity", sensitivity, above=0))
