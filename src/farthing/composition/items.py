"""Lists of guarantees, and of losses, with multiplicities, in one normal form.

Multiplicity is handled here and nowhere else. The leak (the δ of approximate kinds) is
taken out here too: what follows sees losses without δ only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, Self, TypeVar

from flint import arb

from farthing.errors import InvalidInput, Unsupported, require_count
from farthing.guarantees.kinds import Guarantee, replaces_one
from farthing.guarantees.losses import loss_of
from farthing.guarantees.losses.base import Loss
from farthing.numerics.ball import Ball, in_balls

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Counted(Generic[Entry]):
    """An ordered list of (entry, count), counts positive, equal neighbours merged."""

    pairs: tuple[tuple[Entry, int], ...]

    def __iter__(self) -> Iterator[tuple[Entry, int]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def total(self) -> int:
        """How many mechanisms there are."""
        return sum(count for _, count in self.pairs)

    def unordered(self) -> Self:
        """The same multiset with equal entries merged wherever they stand."""
        merged: dict[Entry, int] = {}
        for entry, count in self.pairs:
            merged[entry] = merged.get(entry, 0) + count
        return type(self)(tuple(merged.items()))


@dataclass(frozen=True, slots=True)
class Losses(Counted[Loss]):
    """Losses in one direction of neighbours."""

    @property
    def kinds(self) -> set[type]:
        """The kinds of the guarantees."""
        return {type(loss.guarantee) for loss, _ in self.pairs}

    def only(self, *kinds: type) -> bool:
        """Whether every guarantee is one of `kinds`."""
        return self.kinds <= set(kinds)

    @property
    def known(self) -> bool:
        """Whether every worst case is known, so that the engine loses nothing."""
        return all(loss.known for loss, _ in self.pairs)

    @property
    def ranges(self) -> list[float]:
        """The ε of every bounded-range entry, in order."""
        return [epsilon for epsilon, _ in self.choices()]

    def choices(self) -> tuple[tuple[float, int], ...]:
        """The bounded-range entries as (ε, count)."""
        ranges = [(loss.chosen_range, count) for loss, count in self.pairs]
        return tuple((epsilon, count) for epsilon, count in ranges if epsilon is not None)

    def split(self) -> tuple[list[tuple[Loss, int]], list[tuple[Loss, int]]]:
        """Entries that leave the adversary a choice, and those that do not."""
        choices = [pair for pair in self.pairs if pair[0].chosen_range is not None]
        return choices, [pair for pair in self.pairs if pair[0].chosen_range is None]

    def epsilon_sum(self) -> Ball | None:
        """Σ ε, if every mechanism is ε-DP for some ε."""
        total = arb(0)
        for loss, count in self.pairs:
            if loss.pure_epsilon is None:
                return None
            total += count * arb(loss.pure_epsilon)
        return total


@dataclass(frozen=True, slots=True)
class Items(Counted[Guarantee]):
    """Guarantees as they were given."""

    def facing(self, *, with_unit: bool = True) -> Losses:
        """The losses of the list in one direction of neighbours."""
        faced = [(loss_of(g, with_unit=with_unit).whole(), count) for g, count in self.pairs]
        return Losses(_merged(faced))

    def directions(self) -> tuple[Losses, ...]:
        """The losses in each direction of neighbours; only one if they are the same in both.

        All items face the same way, because two neighbouring datasets are fixed for the whole
        interaction (docs/theory/directions.md).
        """
        with_unit = self.facing()
        if not any(loss.one_way for loss, _ in with_unit):
            return (with_unit,)
        return with_unit, self.facing(with_unit=False)


@dataclass(frozen=True, slots=True)
class Leaky:
    """Items without their leaks, and the probability that anything leaks at all.

    `attained` is the probability with which it does for some mechanisms of these kinds: for lower
    bounds, and the same number except beside loss distributions.

    If the items leak with δ_i independently, the whole is `leak + (1 − leak)·V` with V the
    profile of the rest: the operator of an (ε, δ) item is δ + (1 − δ)T_ε, and constants pass
    through every operator. For zCDP this is [CR22, Lemma 3.4] with its last line not rounded.
    """

    items: Losses
    leak: Ball
    attained: Ball
    sum_of_deltas: Fraction

    def at_most(self, delta: float) -> bool:
        """Whether the leak is certainly at most `delta`, by the union bound in exact numbers."""
        return self.sum_of_deltas <= Fraction(delta)


def items_from(given: Iterable[Guarantee | tuple[Guarantee, int]]) -> Items:
    """The items that a caller passes as guarantees or as pairs of a guarantee and a count."""
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
    replaced = {replaces_one(guarantee) for guarantee, _ in pairs}
    if len(replaced) > 1:
        raise Unsupported(
            "samples without replacement have replace-one neighbours, everything else has "
            "add/remove; put a mechanism that holds for replace-one beside them as "
            "SubsampledWithoutReplacement(mechanism, 1)"
        )
    return Items(_merged(pairs))


def losses_of(given: Iterable[Guarantee | tuple[Guarantee, int]]) -> Losses:
    """The losses of a list, with the unit against without it."""
    return items_from(given).facing()


def _merged(pairs: Iterable[tuple[Entry, int]]) -> tuple[tuple[Entry, int], ...]:
    """Adjacent equal entries merged."""
    kept: list[tuple[Entry, int]] = []
    for entry, count in pairs:
        if kept and kept[-1][0] == entry:
            kept[-1] = (entry, kept[-1][1] + count)
        else:
            kept.append((entry, count))
    return tuple(kept)


@in_balls
def take_out_leaks(losses: Losses) -> Leaky:
    """Split off every δ, and drop mechanisms that reveal nothing."""
    log_survival, log_attained, deltas = arb(0), arb(0), Fraction(0)
    kept: list[tuple[Loss, int]] = []
    for loss, count in losses:
        log_survival += count * (-arb(loss.leak)).log1p()
        log_attained += count * (-arb(loss.attained_leak)).log1p()
        deltas += count * Fraction(loss.leak)
        rest = loss.without_leak()
        if rest.pure_epsilon != 0:
            kept.append((rest, count))
    return Leaky(Losses(_merged(kept)), -log_survival.expm1(), -log_attained.expm1(), deltas)
