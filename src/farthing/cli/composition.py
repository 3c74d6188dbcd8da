"""`farthing epsilon`, `farthing delta`, `farthing plan`, `farthing calibrate`."""

from __future__ import annotations

from rich.table import Table

import farthing as fa
from farthing.cli import options
from farthing.cli.output import bracketed, console, patience, print_json, spread
from farthing.composition.bounds import Bracket
from farthing.errors import InvalidInput
from farthing.guarantees.notation import parse_item, split_item
from farthing.numerics.rounding import shown_up

WITH_EPSILON: dict[str, type[fa.PureDP] | type[fa.BoundedRange] | type[fa.Laplace]] = {
    "dp": fa.PureDP,
    "br": fa.BoundedRange,
    "lap": fa.Laplace,
}
WITH_NOISE = ("gauss", "dgauss")


def epsilon(
    items: options.ItemTexts,
    delta: options.Delta,
    adaptivity: options.HowChosen = options.Adaptivity.adaptive,
    tolerance: options.Tolerance = 1e-3,
    as_json: options.AsJson = False,
) -> None:
    """The smallest ε that everything together satisfies, for a given δ."""
    composition = fa.compose(
        [parse_item(item) for item in items], adaptivity=adaptivity.value, tolerance=tolerance
    )
    with patience("composing"):
        best = composition.epsilon_at(delta)
        bounds = {} if as_json else composition.bounds_at(delta)
    if as_json:
        inputs = {"items": items, "delta": delta, "tolerance": tolerance}
        print_json({"epsilon": best.upper, **_shown(best, adaptivity), **inputs})
        return
    table = Table(title=f"{' '.join(items)} at δ = {delta}, adaptivity {adaptivity.value}")
    for column in ("bound", "ε", "theorem"):
        table.add_column(column, justify="right" if column == "ε" else "left")
    for name, bound in sorted(bounds.items(), key=lambda pair: pair[1].upper):
        mark = bound.upper == best.upper
        style = "bold green" if mark else ""
        table.add_row(
            ("➤ " if mark else "  ") + name, shown_up(bound.upper), bound.theorem, style=style
        )
    console().print(table)
    console().print(f"ε is in {bracketed(best)}, {spread(best)}: charge the upper end.")


def delta(
    items: options.ItemTexts,
    epsilon: options.Epsilon,
    adaptivity: options.HowChosen = options.Adaptivity.adaptive,
    tolerance: options.Tolerance = 1e-3,
    as_json: options.AsJson = False,
) -> None:
    """The smallest δ that everything together satisfies, for a given ε."""
    composition = fa.compose(
        [parse_item(item) for item in items], adaptivity=adaptivity.value, tolerance=tolerance
    )
    with patience("composing"):
        best = composition.delta_at(epsilon)
    if as_json:
        inputs = {"items": items, "epsilon": epsilon, "tolerance": tolerance}
        print_json({"delta": best.upper, **_shown(best, adaptivity), **inputs})
        return
    console().print(f"{' '.join(items)} at ε = {epsilon}, adaptivity {adaptivity.value}")
    console().print(f"δ is in {bracketed(best)}, {spread(best)}")
    console().print(f"by {best.theorem}")


def plan(
    item: options.OneItemText,
    epsilon: options.Epsilon,
    delta: options.Delta,
    adaptivity: options.HowChosen = options.Adaptivity.adaptive,
    tolerance: options.Tolerance = 1e-3,
    as_json: options.AsJson = False,
) -> None:
    """How many mechanisms a budget affords (br:0.1), or which parameter each (100xbr)."""
    kind, count, parameters = split_item(item)
    with patience("planning"):
        if parameters is None:
            planned = _parameter(kind, count, epsilon, delta, adaptivity.value, tolerance)
        else:
            guarantee, _ = parse_item(item)
            if item.partition(":")[0] != kind:
                raise InvalidInput(
                    f"a plan takes either a count or a parameter, got {item!r} with both"
                )
            count = fa.largest_count(
                guarantee,
                epsilon=epsilon,
                delta=delta,
                adaptivity=adaptivity.value,
                tolerance=tolerance,
            )
            planned = guarantee
        best = _what_it_gives(planned, count, delta, adaptivity.value, tolerance)
    described = fa.format_guarantee(planned)
    if as_json:
        inputs = {"item": item, "epsilon": epsilon, "delta": delta, "tolerance": tolerance}
        print_json({"count": count, "guarantee": described, **_shown(best, adaptivity), **inputs})
        return
    target = f"({epsilon}, {delta})-DP, adaptivity {adaptivity.value}"
    if count == 0:
        console().print(f"Not one {described} fits into {target}.")
    elif parameters is None:
        console().print(f"{count} mechanisms fit into {target} with [bold]{described}[/bold] each.")
    else:
        console().print(f"[bold]{count}[/bold] × {described} fit into {target}.")
    console().print(f"Together they give ε ≤ {shown_up(best.upper)}, by {best.theorem}.")


def calibrate(
    items: options.FreeItemTexts,
    epsilon: options.Epsilon,
    delta: options.Delta,
    adaptivity: options.HowChosen = options.Adaptivity.adaptive,
    tolerance: options.Tolerance = 1e-3,
    as_json: options.AsJson = False,
) -> None:
    """The parameter that is written as ? so that everything together is (ε, δ)-DP."""
    free = [item for item in items if "?" in item]
    if len(free) != 1 or free[0].count("?") != 1:
        raise InvalidInput(
            "exactly one parameter must be written as ?, as in 1000xpoisson:0.01/gauss:?, got "
            f"{' '.join(items)}"
        )
    # the first parameter of every kind is its noise or its ε
    kind = free[0].partition("?")[0].rpartition("/")[2].rpartition(":")[0].rpartition("x")[2]
    if kind not in WITH_NOISE and kind not in WITH_EPSILON:
        known = ", ".join((*WITH_NOISE, *WITH_EPSILON))
        raise InvalidInput(f"the parameter of one of {known} can be ?, got {free[0]!r}")

    def written(amount: float) -> list[str]:
        value = amount if kind in WITH_NOISE else 1 / amount
        return [item.replace("?", repr(value)) for item in items]

    with patience("calibrating"):
        found = fa.noise_for(
            lambda amount: [parse_item(item) for item in written(amount)],
            epsilon=epsilon,
            delta=delta,
            adaptivity=adaptivity.value,
            tolerance=tolerance,
        )
        listed = [parse_item(item) for item in written(found)]
        best = fa.compose(listed, adaptivity=adaptivity.value, tolerance=tolerance)
        bracket = best.epsilon_at(delta)
    if as_json:
        inputs = {"epsilon": epsilon, "delta": delta, "tolerance": tolerance}
        print_json({"items": written(found), **_shown(bracket, adaptivity), **inputs})
        return
    chosen = written(found)[items.index(free[0])]
    console().print(f"[bold]{chosen}[/bold] makes everything together ({epsilon}, {delta})-DP.")
    console().print(f"Together they give ε ≤ {shown_up(bracket.upper)}, by {bracket.theorem}.")


def _parameter(
    kind: str, count: int, epsilon: float, delta: float, adaptivity: str, tolerance: float
) -> fa.Guarantee:
    """The largest ε each, or for Gaussian noise the smallest noise multiplier."""
    match kind:
        case "dp" | "br" | "lap":
            each = fa.largest_epsilon(
                WITH_EPSILON[kind],
                count=count,
                epsilon=epsilon,
                delta=delta,
                adaptivity=adaptivity,
                tolerance=tolerance,
            )
            return WITH_EPSILON[kind](each)
        case "gauss":
            return fa.Gaussian(fa.gaussian_noise_multiplier(epsilon, delta, count=count))
        case _:
            raise InvalidInput(
                f"a parameter can be planned for dp, br, lap and gauss, got {kind!r}; give "
                f"{kind} its parameters to plan the count instead, or use `farthing calibrate`"
            )


def _what_it_gives(
    guarantee: fa.Guarantee, count: int, delta: float, adaptivity: str, tolerance: float
) -> Bracket:
    if count == 0:
        return Bracket(0.0, 0.0, "nothing is revealed")
    composition = fa.compose([(guarantee, count)], adaptivity=adaptivity, tolerance=tolerance)
    return composition.epsilon_at(delta)


def _shown(best: Bracket, adaptivity: options.Adaptivity) -> dict[str, object]:
    return {
        "lower": best.lower,
        "upper": best.upper,
        "theorem": best.theorem,
        "adaptivity": adaptivity.value,
    }
