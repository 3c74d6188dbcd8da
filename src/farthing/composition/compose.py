"""What a list of mechanisms proves, in both directions of neighbours: `compose`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from flint import arb

from farthing.composition.adaptive.moments_beside_others import (
    moments_as_loss,
    moments_as_noise,
    moments_first,
)
from farthing.composition.adaptive.optimum import by_example, by_operators
from farthing.composition.adaptive.profiles import Curves, curves
from farthing.composition.bounds import Bound, Bracket, Sides
from farthing.composition.bounds.closed_forms import basic, closed_forms, fixed_in_advance
from farthing.composition.bounds.moments import moment_bounds, renyi, subgaussian_bounds
from farthing.composition.bounds.tradeoff import Profile, Tradeoff
from farthing.composition.items import Items, Leaky, Losses, items_from, take_out_leaks
from farthing.errors import NotCertified, Unattainable, Unsupported, require_choice, require_real
from farthing.guarantees.kinds import Guarantee
from farthing.guarantees.notation import format_guarantee
from farthing.numerics.ball import Ball, down, in_balls, up
from farthing.numerics.rounding import shown_up
from farthing.progress import about, tell_between

#: Interactive mechanisms whose conversations are interleaved. One whose guarantee has a dominating
#: pair is a post-processing of one draw made when it is opened, so it counts as a fixed loss and
#: the set-wise adaptive optimum holds, with one-shot bounded-range answers between. Where only
#: moments are known these add up. Proofs: docs/theory/concurrency.md.
ONE_DRAW = "conversations are one draw each [VZ23]"
MOMENTS = "moments of conversations add up [Lyu22, Thm 2, Cor. 1]"
#: none: everything is chosen in advance. adaptive: mechanisms are chosen from earlier answers,
#: parameters and order are fixed. setwise: the order too is chosen as you go. concurrent:
#: interactive mechanisms, their conversations interleaved.
ADAPTIVITIES = ("none", "adaptive", "setwise", "concurrent")

#: Relative width that often shows that a direction is not the worst one.
COARSE = 0.05
#: A trade-off is read at so many ε, up to where δ is tiny or e^ε beyond any use; off a grid that is
#: so fine, or finer where that leaves a wider δ.
POINTS, TINY, NEAREST, FARTHEST, FINE = 96, 1e-7, 1e-9, 50.0, (2e-3, 2e-4)


@dataclass(frozen=True, slots=True)
class OneDirection:
    """What a list proves in one direction of neighbours, or in both if it is symmetric."""

    items: Losses
    adaptivity: str
    tolerance: float
    leaky: Leaky

    def epsilon_at(self, delta: float) -> Bracket:
        """The smallest ε ≥ 0 for which everything together is (ε, δ)-DP."""
        low, high = self._inner_delta(delta)
        return self._tightest(
            "ε",
            lambda bound: (bound.epsilon_at(high)[0], bound.epsilon_at(low)[1]),
            f"no finite epsilon is proved at delta = {delta}",
        )

    def delta_at(self, epsilon: float) -> Bracket:
        """The smallest δ for which everything together is (ε, δ)-DP."""
        epsilon = require_real("epsilon", epsilon, at_least=0)
        return self._with_leak(self._inner(epsilon))

    def bounds_at(self, delta: float) -> dict[str, Bracket]:
        """Every bound that applies, by name, as ε at this δ."""
        low, high = self._inner_delta(delta)
        brackets = {}
        settled = False
        for bound in self._bounds(all_of_them=True):
            if settled and bound.on_grid:
                continue
            upper = bound.epsilon_at(low)[1]
            if upper < math.inf:
                lower = min(bound.epsilon_at(high)[0], upper)
                brackets[bound.name] = Bracket(lower, upper, self._named(bound))
                settled = settled or self._settled(bound, lower, upper)
        return brackets

    def profile(self) -> Profile:
        """δ at many ε, both sides: off one grid unless there is a closed form; quickly by moments
        where only these are known."""
        items, points = self.leaky.items, POINTS
        how = "setwise" if self.adaptivity == "concurrent" else self.adaptivity
        closed = not items.pairs or any(form.optimal for form in closed_forms(items, how))
        grid = None
        if items.known and not closed and all(loss.in_range for loss, _ in items):
            for fineness in FINE:
                finer = curves(items, how, fineness, TINY, whole=True)
                grid = grid if finer is None else finer
                if grid is not None and _widest(grid) <= fineness:
                    break
        read: Callable[[float], Sides]
        if grid is not None:
            far, read = _end(grid), partial(_read_off, grid)
        elif items.known:
            far = self.epsilon_at(up(self.leaky.leak + TINY * (1 - self.leaky.leak))).upper
            read = partial(_sides_of, self._inner)
        else:
            above, below = renyi(items), by_example(items, how, COARSE, witnesses=False)
            far, points = above.epsilon_at(TINY)[1], POINTS // 4
            read = partial(_between, above, below)
        if (total := items.epsilon_sum()) is not None and up(total) <= 2 * far:
            far = up(total)  # the losses end here
        far = min(max(far, NEAREST), FARTHEST)
        profile = []
        for x in (far * i / points for i in range(points + 1)):
            low, high = read(x)
            whole = self._with_leak(Bracket(min(low, high), high, ""))
            profile.append((x, whole.lower, whole.upper))
        x, _, high = profile.pop()
        return [*profile, (x, max(0.0, down(self.leaky.attained)), high)]

    def _inner(self, epsilon: float) -> Bracket:
        """δ without the leaks."""
        return self._tightest(
            "δ", lambda bound: bound.delta_at(epsilon), f"no delta is proved at epsilon = {epsilon}"
        )

    def _tightest(self, what: str, read: Callable[[Bound], Sides], failure: str) -> Bracket:
        lower, upper, theorem = 0.0, math.inf, ""
        for bound in self._bounds(all_of_them=False):
            low, high = read(bound)
            lower = max(lower, low)
            if high < upper:
                upper, theorem = high, self._named(bound)
            tell_between(what, lower, upper)
            if self._settled(bound, lower, upper):
                break
        if upper == math.inf:
            raise Unattainable(failure)
        if lower > upper:
            raise NotCertified(f"two bounds contradict each other: {lower} > {upper}")
        items = self.leaky.items  # if the optimum is known only cost and floats limit the width
        known = items.known and all(loss.attained for loss, _ in items)
        if known and upper - lower > self.tolerance * upper:
            width = shown_up(100 * (upper - lower) / upper, digits=2)
            theorem += f"; limit reached: {width} % wide, {100 * self.tolerance:g} % was asked"
        return Bracket(lower, upper, theorem)

    def _settled(self, bound: Bound, lower: float, upper: float) -> bool:
        """Whether the bound is optimal and the bracket as narrow as was asked."""
        return bound.optimal and upper < math.inf and upper - lower <= self.tolerance * upper

    def _bounds(self, *, all_of_them: bool) -> Iterable[Bound]:
        """Cheap bounds first; bounds that another one always beats only for `all_of_them`."""
        items = self.leaky.items
        if not items.pairs:
            yield Bound("basic", "nothing is revealed", lambda _: (0, 0), lambda _: (0, 0), True)
            return
        if self.adaptivity != "concurrent":
            yield from self._bounds_of(items, self.adaptivity, all_of_them)
        elif items.known:
            yield from self._bounds_of(items, "setwise", all_of_them)
        else:
            yield renyi(items)
            attained = by_example(items, "setwise", self.tolerance)
            if attained is not None:
                yield attained

    def _bounds_of(self, items: Losses, adaptivity: str, all_of_them: bool) -> Iterable[Bound]:
        forms = closed_forms(items, adaptivity)
        if (simple := basic(items)) is not None:
            yield simple
        yield from forms
        if all_of_them:
            yield from subgaussian_bounds(items)
            yield from moment_bounds(items)
        if any(form.optimal for form in forms):
            return
        sampled = any(loss.on_lattice(count) for loss, count in items)
        if not all_of_them and not sampled:
            yield renyi(items)
        if (before := moments_first(items, adaptivity)) is not None:
            yield before
        if (beside := moments_as_loss(items, adaptivity)) is not None:
            yield beside
        if (noise := moments_as_noise(items, adaptivity)) is not None:
            yield noise
        in_advance = fixed_in_advance(items)
        if in_advance is not None:
            yield in_advance
        engine = by_operators(items, adaptivity, self.tolerance)
        engine = engine or by_example(items, adaptivity, self.tolerance)
        if engine is not None:
            yield engine
        if not all_of_them and sampled:  # moments of samples take longer than all of this
            yield renyi(items)

    def _named(self, bound: Bound) -> str:
        if self.adaptivity != "concurrent":
            return bound.theorem
        return f"{bound.theorem}; {ONE_DRAW if self.items.known else MOMENTS}"

    @in_balls
    def _inner_delta(self, delta: float) -> Sides:
        """The δ left for the mechanisms without their leaks, rounded down and up."""
        delta = require_real("delta", delta, at_least=0, below=1)
        leak, attained = self.leaky.leak, self.leaky.attained
        if leak == 0:
            return delta, delta
        rest = (arb(delta) - leak) / (1 - leak)
        if not rest >= 0 and not self.leaky.at_most(delta):
            raise Unattainable(
                f"delta must be at least {shown_up(up(leak))}, which the mechanisms leak whatever "
                f"epsilon is, got {delta}"
            )
        most = (arb(delta) - attained) / (1 - attained)
        return max(0.0, down(rest)), max(0.0, up(most))

    @in_balls
    def _with_leak(self, inner: Bracket) -> Bracket:
        leak, attained = self.leaky.leak, self.leaky.attained
        low = attained + (1 - attained) * arb(inner.lower)
        high = leak + (1 - leak) * arb(inner.upper)
        return Bracket(max(0.0, down(low)), min(1.0, up(high)), inner.theorem)


def _sides_of(read: Callable[[float], Bracket], epsilon: float) -> Sides:
    return (found := read(epsilon)).lower, found.upper


def _read_off(grid: Curves, epsilon: float) -> Sides:
    return grid.lower.at(epsilon), grid.upper.at(epsilon)


def _end(grid: Curves) -> float:
    """Where δ is tiny, or the grid ends."""
    return grid.upper.first_below(TINY) or grid.upper.grid.above * grid.upper.grid.step


def _widest(grid: Curves) -> float:
    sides = (_read_off(grid, _end(grid) * i / POINTS) for i in range(POINTS))
    return max(high - low for low, high in sides)


def _between(above: Bound, below: Bound | None, epsilon: float) -> Sides:
    low = 0.0 if below is None else below.delta_at(epsilon)[0]
    return low, above.delta_at(epsilon)[1]


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
        each = [direction.bounds_at(delta) for direction in self.directions]
        return {
            name: worse([bounds[name] for bounds in each])
            for name in each[0]
            if all(name in bounds for bounds in each)
        }

    def tradeoff(self) -> Tradeoff:
        """How well anybody can guess whether the unit is in the data, or which record it has."""
        return Tradeoff.of(self.directions[0].profile(), self.directions[-1].profile())

    @in_balls
    def rho(self) -> float:
        """A ρ for which everything together is ρ-zCDP, rounded up; Unsupported if none is known.

        Σρ, and Σξ if that is positive, as D_α ≤ ξ + ρα. ε-DP is ε²/2-zCDP, whatever it is besides.
        """
        rho, xi = arb(0), arb(0)
        for loss, count in self.items.facing():
            pair = loss.zero_concentrated() if loss.leak == 0 else None
            if pair is None and loss.pure_epsilon is not None:
                pair = arb(0), arb(loss.pure_epsilon) ** 2 / 2
            if pair is None:
                text = format_guarantee(loss.guarantee)
                raise Unsupported(f"{text:.60} is not rho-zCDP for a known rho")
            xi += count * pair[0]
            rho += count * pair[1]
        return up(rho + xi.max(arb(0)))

    @in_balls
    def mu(self) -> float:
        """A μ for which everything together is μ-GDP, rounded up; Unsupported if none is known.

        μ² adds up [DRS22, Cor. 3.3].
        """
        square = arb(0)
        for loss, count in self.items.facing():
            if (variance := loss.gaussian_variance()) is not None:
                square += count / variance
            elif loss.pure_epsilon is not None:
                square += count * _mu_of_pure(loss.pure_epsilon) ** 2
            else:
                text = format_guarantee(loss.guarantee)
                raise Unsupported(f"{text:.60} is not mu-GDP for a known mu")
        return up(square.sqrt())

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
    if adaptivity == "concurrent":  # `farthing.interactive` sells no conversation as bounded range
        for loss, _ in given.facing():
            if (why := loss.why_not_concurrent()) is not None:
                raise Unsupported(why)
    directions = tuple(
        OneDirection(one, adaptivity, tolerance, take_out_leaks(one)) for one in given.directions()
    )
    return Composition(given, adaptivity, tolerance, directions)


def _mu_of_pure(epsilon: float) -> Ball:
    """ε-DP is μ-GDP exactly from −2Φ⁻¹(1/(1 + e^ε)) on.

    The trade-off curve of randomized response has its one corner at type I = type II =
    1/(1 + e^ε), and a convex curve through the same ends lies below it if it does there; that of
    two normals at distance μ has equal errors Φ(−μ/2).
    """
    return 2 * arb(2).sqrt() * (2 / (1 + arb(epsilon).exp())).erfcinv()  # Φ⁻¹(p) = −√2·erfc⁻¹(2p)
