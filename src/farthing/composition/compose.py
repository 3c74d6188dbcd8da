"""The front door: what a list of mechanisms proves, whichever way neighbours face."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from farthing.composition.concurrent import require_concurrent
from farthing.composition.items import Items, items_from, take_out_leaks
from farthing.composition.list_conversions import total_mu, total_rho
from farthing.composition.one_direction import OneDirection
from farthing.errors import require_choice, require_real
from farthing.guarantees.bracket import Bracket
from farthing.guarantees.kinds import Guarantee
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
        return total_rho(self.items.facing())

    def mu(self) -> float:
        """A μ for which everything together is μ-GDP, rounded up; Unsupported if none is known."""
        return total_mu(self.items.facing())

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
        require_concurrent(given.facing())
    directions = tuple(
        OneDirection(one, adaptivity, tolerance, take_out_leaks(one)) for one in given.directions()
    )
    return Composition(given, adaptivity, tolerance, directions)
