"""Lists of guarantees with multiplicities, in one normal form.

Multiplicity is handled here and nowhere else. The leak (the δ of approximate kinds) is
taken out here too: what follows sees mechanisms without δ only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from farthing.errors import InvalidInput, Unsupported, require_count
from farthing.guarantees.conversions import (
    attained_delta_of,
    delta_of,
    pure_epsilon,
    without_delta,
)
from farthing.guarantees.directions import facing, has_two_losses
from farthing.guarantees.kinds import Guarantee, SubsampledWithoutReplacement
from farthing.numerics.ball import Ball, in_balls


@dataclass(frozen=True, slots=True)
class Items:
    """An ordered list of (guarantee, count), counts positive, equal neighbours merged."""

    pairs: tuple[tuple[Guarantee, int], ...]

    def __iter__(self) -> Iterator[tuple[Guarantee, int]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def total(self) -> int:
        """How many mechanisms there are."""
        return sum(count for _, count in self.pairs)

    @property
    def kinds(self) -> set[type]:
        return {type(guarantee) for guarantee, _ in self.pairs}

    def only(self, *kinds: type) -> bool:
        """Whether every item is one of `kinds`."""
        return self.kinds <= set(kinds)

    def unordered(self) -> Items:
        """The same multiset with equal guarantees merged wherever they stand."""
        merged: dict[Guarantee, int] = {}
        for guarantee, count in self.pairs:
            merged[guarantee] = merged.get(guarantee, 0) + count
        return Items(tuple(merged.items()))

    def directions(self) -> tuple[Items, ...]:
        """What the list promises in each direction of neighbours; one if it is the same in both.

        All items face the same way: two neighbouring datasets are fixed for the whole interaction
        (docs/theory/directions.md).
        """
        ways = (True, False) if any(has_two_losses(g) for g, _ in self.pairs) else (True,)
        return tuple(
            _merged([(facing(g, with_unit=way), n) for g, n in self.pairs]) for way in ways
        )

    def epsilon_sum(self) -> Ball | None:
        """Σ ε, if every mechanism is ε-DP for some ε."""
        total = arb(0)
        for guarantee, count in self.pairs:
            epsilon = pure_epsilon(guarantee)
            if epsilon is None:
                return None
            total += count * arb(epsilon)
        return total


@dataclass(frozen=True, slots=True)
class Leaky:
    """Items without their leaks, and the probability that anything leaks at all.

    `attained` is the probability with which it does for some mechanisms of these kinds: for lower
    bounds, and the same number except beside loss distributions.

    If the items leak with δ_i independently, the whole is `leak + (1 − leak)·V` with V the
    profile of the rest: the operator of an (ε, δ) item is δ + (1 − δ)T_ε, and constants pass
    through every operator. For zCDP this is [CR22, Lemma 3.4] with its last line not rounded.
    """

    items: Items
    leak: Ball
    attained: Ball
    sum_of_deltas: Fraction

    def at_most(self, delta: float) -> bool:
        """Whether the leak is certainly at most `delta`, by the union bound in exact numbers."""
        return self.sum_of_deltas <= Fraction(delta)


def items_from(given: Iterable[Guarantee | tuple[Guarantee, int]]) -> Items:
    """Normalise what a caller passes: guarantees, or pairs of a guarantee and a count."""
    if isinstance(given, Guarantee | str) or not isinstance(given, Iterable):
        raise InvalidInput(f"items must be a list of guarantees, got {given!r}")
    pairs: list[tuple[Guarantee, int]] = []
    for entry in given:
        guarantee, count = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, 1)
        if not isinstance(guarantee, Guarantee):
            raise InvalidInput(f"an item must be a guarantee or (guarantee, count), got {entry!r}")
        pairs.append((guarantee, require_count("count", count, at_least=1)))
    if not pairs:
        raise InvalidInput("at least one guarantee is needed, got an empty list")
    replaced = {isinstance(guarantee, SubsampledWithoutReplacement) for guarantee, _ in pairs}
    if len(replaced) > 1:
        raise Unsupported(
            "samples without replacement have replace-one neighbours, everything else has "
            "add/remove; put a mechanism that holds for replace-one beside them as "
            "SubsampledWithoutReplacement(mechanism, 1)"
        )
    return _merged(pairs)


def _merged(pairs: Iterable[tuple[Guarantee, int]]) -> Items:
    """Equal neighbours as one."""
    kept: list[tuple[Guarantee, int]] = []
    for guarantee, count in pairs:
        if kept and kept[-1][0] == guarantee:
            kept[-1] = (guarantee, kept[-1][1] + count)
        else:
            kept.append((guarantee, count))
    return Items(tuple(kept))


@in_balls
def take_out_leaks(items: Items) -> Leaky:
    """Split off every δ; guarantees that promise perfect privacy disappear."""
    log_survival, log_attained, deltas = arb(0), arb(0), Fraction(0)
    kept: list[tuple[Guarantee, int]] = []
    for guarantee, count in items:
        log_survival += count * (-arb(delta_of(guarantee))).log1p()
        log_attained += count * (-arb(attained_delta_of(guarantee))).log1p()
        deltas += count * Fraction(delta_of(guarantee))
        rest = without_delta(guarantee)
        if pure_epsilon(rest) != 0:
            kept.append((rest, count))
    return Leaky(_merged(kept), -log_survival.expm1(), -log_attained.expm1(), deltas)
