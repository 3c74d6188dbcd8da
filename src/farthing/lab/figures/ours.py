"""Our own figures: the adaptive optimum, free choice under a tariff, and other libraries beside us.

Numbers of other libraries are drawn where the library is installed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import TypeVar

from farthing.composition.bounds import Bracket
from farthing.composition.bounds.closed_forms import epsilon_equal, gaussian_epsilon
from farthing.composition.bounds.moments import moment_bounds, subgaussian_bounds
from farthing.composition.bounds.nonadaptive import epsilon_nonadaptive
from farthing.composition.compose import compose
from farthing.composition.items import losses_of
from farthing.composition.planning import largest_count
from farthing.composition.tariffs.tariff import Tariff
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    Gaussian,
    Guarantee,
    PureDP,
    Subsampled,
    ZeroConcentratedDP,
)
from farthing.lab.figures.drawing import Axis, Curve, Panel, curves_of, figure
from farthing.numerics.search import last_whole
from farthing.optional import required

#: Grid step of dp-accounting, and the error in ε that the PRV accountant is asked for.
INTERVAL, PRV_ERROR = 1e-4, 0.02

#: count, ρ of each, δ ↦ overall ε
OfConcentrated = Callable[[int, float, float], float]
#: noise multiplier, rate, steps, δ ↦ (lower, estimate, upper)
OfSamples = Callable[[float, float, int, float], tuple[float, float, float]]
Ask = TypeVar("Ask", OfConcentrated, OfSamples)


def of_concentrated() -> dict[str, OfConcentrated]:
    """Name and version → overall ε of zero-concentrated mechanisms."""
    return _installed({"dp-accounting": _dp_accounting_zcdp, "autodp": _autodp_zcdp})


def of_samples() -> dict[str, OfSamples]:
    """Name and version → what it says about Poisson samples of the Gaussian mechanism."""
    return _installed({"dp-accounting": _dp_accounting_samples, "prv-accountant": _prv_samples})


def _installed(known: dict[str, Ask]) -> dict[str, Ask]:
    return {
        f"{package} {version(package)}": ask
        for package, ask in known.items()
        if find_spec(package.replace("-", "_"))
    }


def _dp_accounting_zcdp(count: int, rho: float, delta: float) -> float:
    accountant = required("dp_accounting.rdp").RdpAccountant()
    accountant.compose(required("dp_accounting").dp_event.ZCDpEvent(rho=rho, xi=0.0), count)
    return float(accountant.get_epsilon(delta))


def _autodp_zcdp(count: int, rho: float, delta: float) -> float:
    """Its exponential mechanism is ε²/8-zero-concentrated."""
    zoo, transformers = required("autodp.mechanism_zoo"), required("autodp.transformer_zoo")
    one = zoo.ExponentialMechanism(eps=math.sqrt(8 * rho))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # its search begins at the order 1
        return float(transformers.Composition()([one], [count]).get_approxDP(delta))


def _dp_accounting_samples(
    sigma: float, rate: float, steps: int, delta: float
) -> tuple[float, float, float]:
    distributions = required("dp_accounting.pld.privacy_loss_distribution")

    def epsilon(pessimistic: bool) -> float:
        one = distributions.from_gaussian_mechanism(
            sigma,
            sampling_prob=rate,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
            value_discretization_interval=INTERVAL,
        )
        return float(one.self_compose(steps).get_epsilon_for_delta(delta))

    upper = epsilon(pessimistic=True)
    return epsilon(pessimistic=False), upper, upper


def _prv_samples(sigma: float, rate: float, steps: int, delta: float) -> tuple[float, float, float]:
    prv = required("prv_accountant")
    accountant = prv.PRVAccountant(
        prv.PoissonSubsampledGaussianMechanism(rate, sigma),
        max_self_compositions=steps,
        eps_error=PRV_ERROR,
        delta_error=delta / 1000,
    )
    lower, estimate, upper = accountant.compute_epsilon(delta, steps)
    return float(lower), float(estimate), float(upper)


EPSILON, DELTA = 0.1, 1e-6
COUNTS = (4, 6, 8, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1000)
GAPS = {0.01: "teal", 0.1: "blue", 1.0: "violet"}
FEW_AND_MANY = (*range(4, 21), 22, 25, 28, 32, 36, 40, 50, 60, 80, 100, 140, 200, 300)
#: The noise of a standard count of a budget of (3, 10⁻⁶), and how many of them it affords.
STANDARD_NOISE = 12.5
ASKED = tuple(range(1, 62))
#: False alarms, closer together near 0.
ALARMS = tuple(sorted({(i / 40) ** 2 for i in range(41)}))
FARTHINGS = (10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 400)
BUDGETS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
RATE, SAMPLED_DELTA = 256 / 60_000, 1e-5
STEPS_PER_EPOCH = 60_000 / 256
EPOCHS = (1, 2, 5, 10, 20, 50, 100)
NOISE = {0.8: "red", 1.0: "blue", 1.3: "green"}


def several_counts(count: int) -> float:
    """ε of `count` standard counts of a budget of (3, 10⁻⁶), together."""
    return gaussian_epsilon(DELTA, noise_multiplier=STANDARD_NOISE / math.sqrt(count)).upper


@figure("Four times as many questions cost about twice as much")
def square_root_growth() -> tuple[Panel, ...]:
    """Counts of 16 farthings each from a budget of ε = 3 at δ = 10⁻⁶, which affords 61 of them.
    Look at the solid curve: one count is ε = 0.32, four are 0.66, sixteen are 1.39, all of them
    2.89. The dashed line adds up what each would be alone and leaves the budget at the tenth."""
    one = several_counts(1)
    curves = (
        Curve.of("adding up", "red", ASKED, lambda count: count * one, "dashes"),
        Curve.of("all questions; together", "blue", ASKED, several_counts),
        Curve("the budget", "grey", (1, 61), (3.0, 3.0), shape="dots"),
    )
    across, up = Axis("number of questions"), Axis("ε of all of them", limits=(0, 6))
    return (Panel("", across, up, curves),)


@figure("Mechanisms are better than their ε and δ say")
def false_alarms_and_misses() -> tuple[Panel, ...]:
    """Guessing whether a unit is in the data from all counts that a budget of ε = 3 at δ = 10⁻⁶
    affords: the fewest misses for each share of false alarms. A coin has the grey line. Look at
    the distance between the curves: who knows only the pair (ε, δ) must fear the red one, where a
    guess from even odds is right 95.3 % of the time. The 61 counts have the blue one, 62.3 %."""
    counts = compose([(Gaussian(STANDARD_NOISE), 61)]).tradeoff()
    pair = compose([ApproximateDP(3.0, DELTA)]).tradeoff()
    curves = (
        Curve("a coin", "grey", (0.0, 1.0), (1.0, 0.0), shape="dots"),
        Curve.of("61 counts", "blue", ALARMS, counts.beta_at),
        Curve.of("(3, 10⁻⁶)-DP", "red", ALARMS, pair.beta_at, "dashes"),
    )
    across, up = Axis("false alarms", limits=(0, 1)), Axis("misses, at least", limits=(0, 1))
    return (Panel("", across, up, curves),)


def adaptive_epsilon(epsilon: float, count: int, tolerance: float = 1e-3) -> Bracket:
    """The optimum of `count` ε-bounded-range mechanisms that are chosen adaptively."""
    return compose([(BoundedRange(epsilon), count)], tolerance=tolerance).epsilon_at(DELTA)


@figure("The adaptive optimum is known to a thousandth; every other bound is above it")
def adaptive_optimum() -> tuple[Panel, ...]:
    """k mechanisms of 0.1-bounded range, chosen adaptively, δ = 10⁻⁶: by how much each bound
    exceeds what some analyst really reaches. Look at the distance between the lowest curve, our
    certified upper side, and the next one: at k = 100 the best bound by moments is 7 % too large,
    that of the paper (MGF) 21 %, the optimum for ε-DP 112 %."""
    names = {
        "improved-drv10": ("advanced composition", "red", "line"),
        "optimal-dp": ("optimal for ε-DP [KOV15]", "red", "dashes"),
        "dr19": ("DR19", "orange", "line"),
        "optimal-kl": ("OptKL; = CDP = zCDP", "violet", "line"),
        "mgf": ("MGF", "green", "line"),
        "zcdp-tight": ("zCDP tight", "grey", "line"),
        "renyi": ("exact moments tight", "grey", "dashes"),
    }
    ours = ("our upper side", "blue", "line")

    def excess(count: int) -> dict[str, float]:
        best = adaptive_epsilon(EPSILON, count)
        bounds = compose([(BoundedRange(EPSILON), count)], adaptivity="none").bounds_at(DELTA)
        uppers = {shown: bounds[name].upper for name, (shown, _, _) in names.items()}
        uppers[ours[0]] = best.upper
        return {shown: _per_cent(upper, best.lower) for shown, upper in uppers.items()}

    looks = {shown: (ink, shape) for shown, ink, shape in (*names.values(), ours)}
    across = Axis("number of 0.1-bounded-range mechanisms k", log=True)
    up = Axis("above what some analyst reaches (%)", log=True, limits=(0.01, 400))
    return (Panel("", across, up, curves_of(COUNTS, excess, looks)),)


def _per_cent(value: float, least: float) -> float:
    """How far a value lies above the least one."""
    return 100 * (value / least - 1)


def cost_of_adaptivity_at(epsilon: float, count: int) -> tuple[float, float]:
    """Per cent by which ε grows if mechanisms are chosen adaptively: (at least, at most)."""
    fixed = epsilon_nonadaptive(DELTA, epsilon=epsilon, count=count)
    free = adaptive_epsilon(epsilon, count, tolerance=1e-4)
    return _per_cent(free.lower, fixed.upper), _per_cent(free.upper, fixed.lower)


@figure("Choosing adaptively costs about one per cent at most, and less as k grows")
def cost_of_adaptivity() -> tuple[Panel, ...]:
    """How much ε grows at δ = 10⁻⁶ when k bounded-range mechanisms may be chosen from earlier
    answers instead of in advance; both optima are certified. Look at the two ends: few mechanisms
    cost nothing more, because ε is nearly their sum in both cases; many cost a thousandth more. The
    worst lies between, 1.3 % for ε = 0.01 and k = 8; the teeth are those of the optimum in advance,
    whose best choice moves in steps."""
    curves = []
    for epsilon, ink in GAPS.items():
        sides = [cost_of_adaptivity_at(epsilon, count) for count in FEW_AND_MANY]
        low, high = tuple(side[0] for side in sides), tuple(side[1] for side in sides)
        curves.append(Curve(f"ε = {epsilon:g}", ink, FEW_AND_MANY, high, low, high))
    across = Axis("number of mechanisms k", log=True)
    up = Axis("how much ε grows (%)", limits=(0, 1.5))
    return (Panel("", across, up, tuple(curves)),)


def three_items(farthings: int) -> Tariff:
    """Three items at their natural prices."""
    items: dict[str, tuple[Guarantee, int]] = {
        "select": (BoundedRange(0.1), 1),
        "count": (PureDP(0.1), 4),
        "wide": (BoundedRange(0.2), 4),
    }
    return Tariff(items, farthings)


def any_way_to_spend(farthings: int) -> Bracket:
    """What that tariff proves at δ = 1e-6."""
    certificate = three_items(farthings).certify(tolerance=1e-3, deltas=(DELTA,), epsilons=())
    return dict(certificate.epsilons)[DELTA]


@figure("Free choice of what to buy costs less than one per cent")
def cost_of_choice() -> tuple[Panel, ...]:
    """A tariff sells br:0.1 for 1 farthing, dp:0.1 for 4 and br:0.2 for 4. How far ε at δ = 10⁻⁶
    lies above that of the plainest use, which buys br:0.1 only, if the analyst chooses what to buy
    and when to stop. Look at the curve at the bottom: every way to spend is certified within 1 %,
    where a filter of zCDP pays 7 to 10 % with the tight conversion and 18 to 33 % with that of the
    textbook."""
    fixed = {n: adaptive_epsilon(EPSILON, n, tolerance=2e-4) for n in FARTHINGS}

    def by_filter(name: str, farthings: int) -> float:
        bounds = compose([ZeroConcentratedDP(farthings * EPSILON**2 / 8)]).bounds_at(DELTA)
        return _per_cent(bounds[name].upper, fixed[farthings].lower)

    free = {n: any_way_to_spend(n) for n in FARTHINGS}
    most = tuple(_per_cent(free[n].upper, fixed[n].lower) for n in FARTHINGS)
    least = tuple(_per_cent(free[n].lower, fixed[n].upper) for n in FARTHINGS)
    curves = (
        Curve.of("zCDP filter; textbook", "orange", FARTHINGS, partial(by_filter, "zcdp")),
        Curve.of("zCDP filter; tight", "grey", FARTHINGS, partial(by_filter, "zcdp-tight")),
        Curve("tariff certificate", "blue", FARTHINGS, most, least, most),
    )
    across = Axis("farthings", log=True)
    up = Axis("ε above that of one fixed use (%)", limits=(-1, 40))
    return (Panel("", across, up, curves),)


def how_many(epsilon_of: Callable[[int], float], budget: float) -> int:
    """The largest count whose ε is within the budget, 0 if there is none."""
    high = 1
    while epsilon_of(high) <= budget:
        high *= 2
    return last_whole(lambda count: epsilon_of(count) <= budget, high // 2, high)


@cache
def quick_bounds(count: int) -> dict[str, float]:
    """Bounds by name on ε of `count` selections; those that need no grid."""
    items = losses_of([(BoundedRange(EPSILON), count)])
    optimal = epsilon_equal(DELTA, epsilon=EPSILON, count=count).upper
    others = {
        b.name: b.epsilon_at(DELTA)[1] for b in (*moment_bounds(items), *subgaussian_bounds(items))
    }
    return {"optimal-dp": optimal, **others}


def selections(budget: float) -> int:
    """How many selections of 0.1-bounded range, chosen adaptively, are certified to fit."""
    one = BoundedRange(EPSILON)
    return largest_count(one, epsilon=budget, delta=DELTA, tolerance=2e-4)


@figure("More questions for the same budget")
def questions_per_budget() -> tuple[Panel, ...]:
    """How many selections of 0.1-bounded range fit a budget (ε, 10⁻⁶), chosen adaptively. Read it
    upwards from one ε: at ε = 4, 281 of them fit, 248 by the libraries (the marks, where
    installed), which know bounded range as ε²/8-zCDP, 204 by the bound of the paper, and 74 for
    those who read a selection as ε-DP."""

    def by_bound(name: str, count: int) -> float:
        return quick_bounds(count)[name]

    def by_library(ask: OfConcentrated, count: int) -> float:
        return ask(count, EPSILON**2 / 8, DELTA)

    asked: list[tuple[str, str, str, Callable[[int], float]]] = [
        ("MGF [DDR20]", "green", "line", partial(by_bound, "mgf")),
        ("read as ε-DP:; optimal [KOV15]", "red", "line", partial(by_bound, "optimal-dp")),
        ("advanced; composition [DRV10]", "orange", "line", partial(by_bound, "drv10")),
    ]
    looks = (("grey", "marks"), ("violet", "crosses"))
    for (name, ask), (ink, shape) in zip(of_concentrated().items(), looks, strict=False):
        asked.append((name, ink, shape, partial(by_library, ask)))
    curves = [Curve.of("farthing; (adaptive optimum)", "blue", BUDGETS, selections)]
    for name, ink, shape, epsilon_of in asked:
        curves.append(Curve.of(name, ink, BUDGETS, partial(how_many, epsilon_of), shape))
    across, up = Axis("budget ε at δ = 10⁻⁶"), Axis("selections of 0.1-bounded range")
    return (Panel("", across, up, tuple(curves)),)


def sampled_epsilon_at(noise: float, epochs: int) -> Bracket:
    """ε at δ = 1e-5 of DP-SGD with batches of 256 from 60 000 examples."""
    steps = round(epochs * STEPS_PER_EPOCH)
    return compose([(Subsampled(Gaussian(noise), RATE), steps)]).epsilon_at(SAMPLED_DELTA)


@figure("DP-SGD: a bracket as narrow as a line")
def dp_sgd() -> tuple[Panel, ...]:
    """DP-SGD with Poisson batches of 256 from 60 000 examples, by epochs. Above, ε for three noise
    multipliers, with what other accountants say about noise 1 where they are installed: bars from
    their lower to their upper side. Look below: ours are 0.04 % apart at every length. Nobody is
    wrong here: the upper side of dp-accounting agrees with ours to less than that (its lower one
    comes from the optimistic mode, grid 10⁻⁴), and the PRV accountant's estimate too (its sides are
    the error of 0.02 that it was asked for)."""
    curves = [
        Curve.of(f"noise {noise:g}", ink, EPOCHS, partial(sampled_epsilon_at, noise))
        for noise, ink in NOISE.items()
    ]
    beside = [replace(next(one for one in curves if one.name == "noise 1"), name="farthing")]
    looks = (("orange", "marks"), ("violet", "crosses"))
    for (name, ask), (ink, shape) in zip(of_samples().items(), looks, strict=False):
        sides = [ask(1.0, RATE, round(n * STEPS_PER_EPOCH), SAMPLED_DELTA) for n in EPOCHS]
        low, estimate, high = (tuple(side[i] for side in sides) for i in range(3))
        beside.append(Curve(name, ink, EPOCHS, estimate, low, high, shape))
    widths = []
    for one in beside:
        width = [100 * (top - low) / top for low, top in zip(one.low, one.high, strict=True)]
        widths.append(Curve(one.name, one.ink, EPOCHS, tuple(width)))
    across, share = Axis("epochs", log=True), Axis("per cent of ε", log=True, limits=(0.01, 100))
    return (
        Panel("ε at δ = 10⁻⁵", across, Axis("ε", log=True), (*curves, *beside[1:])),
        Panel("noise 1: distance between the two sides", across, share, tuple(widths)),
    )
