"""The front door: what a list of mechanisms proves, whichever way neighbours face."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from flint import arb

from farthing.composition.items import Items, Losses, items_from, take_out_leaks
from farthing.composition.one_direction import OneDirection
from farthing.errors import Unsupported, require_choice, require_real
from farthing.guarantees.bracket import Bracket
from farthing.guarantees.kinds import Guarantee
from farthing.guarantees.notation import format_guarantee
from farthing.numerics.ball import Ball, in_balls, larger, up
from farthing.progress import about

#: none: everything is chosen in advance. adaptive: mechanisms are chosen from earlier answers,
#: parameters and order are fixed. setwise: the order too is chosen as you go. concurrent:
#: interactive mechanisms, their conversations interleaved.
ADAPTIVITIES = ("none", "adaptive", "setwise", "concurrent")

#: Relative width that often shows that a direction is not the worst one.
COARSE = 0.05


@dataclass(frozen=True, slots=True)
class Composition:
    """What a list of mechanisms proves together. Made by `compose`.

    `directions` are one if the list is the same with the unit and without it, else both, each
    composed whole; the larger number counts (docs/theory/directions.md).
    """

    items: Items
    adaptivity: str
    tolerance: float
    directions: tuple[OneDirection, ...] = field(repr=False, compare=False)

    def epsilon_at(self, delta: float) -> Bracket:
        """The smallest ε ≥ 0 for which everything together is (ε, δ)-DP."""
        return self._worst(lambda direction: direction.epsilon_at(delta))

    def delta_at(self, epsilon: float) -> Bracket:
        """The smallest δ for which everything together is (ε, δ)-DP."""
        return self._worst(lambda direction: direction.delta_at(epsilon))

    def bounds_at(self, delta: float) -> dict[str, Bracket]:
        """Every bound that applies, by name, as ε at this δ."""
        found = [direction.bounds_at(delta) for direction in self.directions]
        return {
            name: worse([bounds[name] for bounds in found])
            for name in found[0]
            if all(name in bounds for bounds in found)
        }

    def rho(self) -> float:
        """A ρ for which everything together is ρ-zCDP, rounded up; Unsupported if there is none."""
        return _total_rho(self.items.facing())

    def mu(self) -> float:
        """A μ for which everything together is μ-GDP, rounded up; Unsupported if none is known."""
        return _total_mu(self.items.facing())

    def _worst(self, read: Callable[[OneDirection], Bracket]) -> Bracket:
        first, *others = self.directions
        if not others:
            return read(first)
        with about("with the unit"):
            answers = [read(first)]
        for other in others:
            for tolerance in sorted({max(COARSE, self.tolerance), self.tolerance}, reverse=True):
                with about("without the unit"):
                    answer = read(replace(other, tolerance=tolerance))
                if answer.upper <= answers[0].lower:
                    break
            answers.append(answer)
        return worse(answers)


def worse(answers: list[Bracket]) -> Bracket:
    """The larger of several numbers."""
    worst = max(answers, key=lambda answer: answer.upper)
    return replace(worst, lower=max(answer.lower for answer in answers))


def compose(
    items: Iterable[Guarantee | tuple[Guarantee, int]],
    *,
    adaptivity: str = "adaptive",
    tolerance: float = 1e-3,
) -> Composition:
    """What these mechanisms prove together.

    `items` are guarantees or pairs (guarantee, count), in the order of use. `adaptivity` is one
    of ADAPTIVITIES. `tolerance` is the relative width that brackets are refined to.
    """
    adaptivity = require_choice("adaptivity", adaptivity, ADAPTIVITIES)
    tolerance = require_real("tolerance", tolerance, above=0, below=1)
    given = items_from(items)
    if adaptivity == "concurrent":
        _require_concurrent(given.facing())
    directions = tuple(
        OneDirection(one, adaptivity, tolerance, take_out_leaks(one)) for one in given.directions()
    )
    return Composition(given, adaptivity, tolerance, directions)


def _require_concurrent(items: Losses) -> None:
    """Unsupported for what no concurrent composition theorem covers.

    A bounded-range item is one answer, given while conversations are open; that a conversation
    is not sold as one is seen to where it is opened.
    """
    for loss, _ in items:
        if (why := loss.why_not_concurrent()) is not None:
            raise Unsupported(why)


@in_balls
def _total_rho(items: Losses) -> float:
    """The whole list is ρ-zCDP for this ρ: Σρ, and Σξ if that is positive, as D_α ≤ ξ + ρα."""
    rho, xi = arb(0), arb(0)
    for loss, count in items:
        pair = loss.zero_concentrated() if loss.leak == 0 else None
        if pair is None:
            raise Unsupported(f"{format_guarantee(loss.guarantee):.60} is not rho-zCDP for any rho")
        xi += count * pair[0]
        rho += count * pair[1]
    return up(rho + larger(xi, arb(0)))


@in_balls
def _total_mu(items: Losses) -> float:
    """The whole list is μ-GDP for this μ: μ² adds up [DRS22, Cor. 3.3]."""
    square = arb(0)
    for loss, count in items:
        if (variance := loss.gaussian_variance()) is not None:
            square += count / variance
        elif loss.pure_epsilon is not None:
            square += count * _mu_of_pure(loss.pure_epsilon) ** 2
        else:
            text = format_guarantee(loss.guarantee)
            raise Unsupported(f"{text:.60} is not mu-GDP for a known mu")
    return up(square.sqrt())


def _mu_of_pure(epsilon: float) -> Ball:
    """ε-DP is μ-GDP exactly from −2Φ⁻¹(1/(1 + e^ε)) on.

    The trade-off curve of randomized response has its one corner at type I = type II =
    1/(1 + e^ε), and a convex curve through the same ends lies below it if it does there; that of
    two normals at distance μ has equal errors Φ(−μ/2).
    """
    return 2 * arb(2).sqrt() * (2 / (1 + arb(epsilon).exp())).erfcinv()  # Φ⁻¹(p) = −√2·erfc⁻¹(2p)
