"""One direction of neighbours: every bound that applies to a list, and the tightest of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from flint import arb

from farthing.composition.adaptive.moments_beside_others import moments_as_loss, moments_first
from farthing.composition.adaptive.optimum import by_example, by_operators
from farthing.composition.bounds.bound import Bound, Sides
from farthing.composition.bounds.closed_forms import basic, closed_forms, fixed_in_advance
from farthing.composition.bounds.moments import moment_bounds, renyi
from farthing.composition.bounds.subgaussian import subgaussian_bounds
from farthing.composition.items import Leaky, Losses, take_out_leaks
from farthing.errors import NotCertified, Unattainable, require_real
from farthing.guarantees.bracket import Bracket
from farthing.numerics.ball import down, in_balls, up
from farthing.numerics.rounding import shown_up
from farthing.progress import tell_between

#: Interactive mechanisms whose conversations are interleaved. One whose guarantee has a dominating
#: pair is a post-processing of one draw made when it is opened, so it counts as a fixed loss and
#: the set-wise adaptive optimum holds, with one-shot bounded-range answers between. Where only
#: moments are known these add up. Proofs: docs/theory/concurrency.md.
ONE_DRAW = "conversations are one draw each [VZ23]"
MOMENTS = "moments of conversations add up [Lyu22, Thm 2, Cor. 1]"


@dataclass(frozen=True, slots=True)
class OneDirection:
    """What a list proves for neighbours that face one way, or either way if it is symmetric."""

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
        inner = self._tightest(
            "δ", lambda bound: bound.delta_at(epsilon), f"no delta is proved at epsilon = {epsilon}"
        )
        return self._with_leak(inner)

    def bounds_at(self, delta: float) -> dict[str, Bracket]:
        """Every bound that applies, by name, as ε at this δ."""
        low, high = self._inner_delta(delta)
        found = {}
        settled = False
        for bound in self._bounds(all_of_them=True):
            if settled and bound.on_grid:
                continue
            upper = bound.epsilon_at(low)[1]
            if upper < math.inf:
                lower = min(bound.epsilon_at(high)[0], upper)
                found[bound.name] = Bracket(lower, upper, self._named(bound))
                settled = settled or self._settled(bound, lower, upper)
        return found

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
        if self._optimum_is_known() and upper - lower > self.tolerance * upper:
            width = shown_up(100 * (upper - lower) / upper, digits=2)
            theorem += f"; limit reached: {width} % wide, {100 * self.tolerance:g} % was asked"
        return Bracket(lower, upper, theorem)

    def _optimum_is_known(self) -> bool:
        """Whether only cost and floats stand between the bracket and the tolerance."""
        if self.adaptivity == "concurrent" and take_out_leaks(self.items).items != self.leaky.items:
            return False
        items = self.leaky.items
        return items.known and all(loss.attained for loss, _ in items)

    def _settled(self, bound: Bound, lower: float, upper: float) -> bool:
        """Whether nothing better exists and the bracket is as narrow as was asked."""
        return bound.optimal and upper < math.inf and upper - lower <= self.tolerance * upper

    def _bounds(self, *, all_of_them: bool) -> Iterable[Bound]:
        """Cheap ones first; those that another one always beats only for `all_of_them`."""
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
