"""`farthing epsilon`, `delta`, `tradeoff`, `plan`, `calibrate`, `convert`, `tariff …`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.table import Column, Table

import farthing as fa
from farthing import checker
from farthing.cli import options
from farthing.cli.options import bracketed, console, patience, print_json, spread
from farthing.composition.bounds import Bracket
from farthing.composition.tariffs.tariff import USUAL_DELTAS, read_tariff
from farthing.composition.tariffs.verification import verify
from farthing.errors import InvalidInput, NotCertified, Unattainable
from farthing.guarantees.losses import loss_of
from farthing.guarantees.notation import parse_guarantee, parse_item, split_item
from farthing.numerics.rounding import shown_down, shown_up
from farthing.progress import tell
from farthing.wording import ALL_SOLD, guess_words

WITH_EPSILON: dict[str, type[fa.PureDP] | type[fa.BoundedRange] | type[fa.Laplace]] = {
    "dp": fa.PureDP,
    "br": fa.BoundedRange,
    "lap": fa.Laplace,
}
WITH_NOISE = ("gauss", "dgauss")
#: What is read off a composition.
Read = TypeVar("Read")
#: False alarms at which `tradeoff` shows the misses.
ALARMS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
Units = Annotated[int, typer.Option("--units", help="For groups of so many units together.")]


def epsilon(
    items: options.ItemTexts,
    delta: options.Delta,
    adaptivity: options.HowChosen = options.Adaptivity.adaptive,
    tolerance: options.Tolerance = 1e-3,
    as_json: options.AsJson = False,
) -> None:
    """The smallest ε that everything together satisfies, for a given δ."""
    composition = _composed(items, adaptivity, tolerance)
    with patience("composing"):
        best = composition.epsilon_at(delta)
        bounds = {} if as_json else composition.bounds_at(delta)
    title = f"{' '.join(items)} at δ = {delta}, adaptivity {adaptivity.value}"
    table = Table("bound", Column("ε", justify="right"), "theorem", title=title)
    for name, bound in sorted(bounds.items(), key=lambda pair: pair[1].upper):
        mark, style = ("➤ ", "bold green") if bound.upper == best.upper else ("  ", "")
        table.add_row(mark + name, shown_up(bound.upper), bound.theorem, style=style)
    inputs = {"items": items, "delta": delta, "tolerance": tolerance}
    _print(
        as_json,
        {"epsilon": best.upper, **_shown(best, adaptivity), **inputs},
        table,
        f"ε is in {bracketed(best)}, {spread(best)}: charge the upper end.",
    )


def delta(
    items: options.ItemTexts,
    epsilon: options.Epsilon,
    adaptivity: options.HowChosen = options.Adaptivity.adaptive,
    tolerance: options.Tolerance = 1e-3,
    as_json: options.AsJson = False,
) -> None:
    """The smallest δ that everything together satisfies, for a given ε."""
    with patience("composing"):
        best = _composed(items, adaptivity, tolerance).delta_at(epsilon)
    inputs = {"items": items, "epsilon": epsilon, "tolerance": tolerance}
    _print(
        as_json,
        {"delta": best.upper, **_shown(best, adaptivity), **inputs},
        f"{' '.join(items)} at ε = {epsilon}, adaptivity {adaptivity.value}",
        f"δ is in {bracketed(best)}, {spread(best)}",
        f"by {best.theorem}",
    )


def tradeoff(
    items: options.ItemTexts,
    prior: Annotated[
        float, typer.Option("--prior", help="Probability that the unit is there, beforehand.")
    ] = 0.5,
    records: Annotated[
        int, typer.Option("--records", min=1, help="Records among which one is guessed.")
    ] = 100,
    adaptivity: options.HowChosen = options.Adaptivity.adaptive,
    tolerance: options.Tolerance = 1e-3,
    as_json: options.AsJson = False,
) -> None:
    """What ε means: how well anybody can guess whether a unit is in the data, or its record."""
    with patience("composing"):
        found = _composed(items, adaptivity, tolerance).tradeoff()
        rows = {
            "membership": (
                f"right about one unit, {prior:g} before",
                found.guess_membership(prior),
            ),
            "record": (f"right about one of {records} records", found.guess_record(1 / records)),
            "advantage": ("advantage, total variation", found.advantage),
            "mu": ("μ of Gaussian DP", _or_none(found.mu)),
        }
    misses = [(alarms, found.beta_at(alarms)) for alarms in ALARMS]
    table = Table("false alarms", "misses", title=" ".join(items))
    for alarms, bracket in misses:
        table.add_row(f"{alarms:g}", bracketed(bracket))
    numbers = Table("", "between")
    for words, between in rows.values():
        numbers.add_row(words, "none" if between is None else bracketed(between))
    answer: dict[str, object] = {
        name: None if between is None else [between.lower, between.upper]
        for name, (_, between) in rows.items()
    }
    curve = [[alarms, bracket.lower, bracket.upper] for alarms, bracket in misses]
    inputs = {"items": items, "prior": prior, "records": records, "adaptivity": adaptivity.value}
    even = guess_words(found.guess_membership().upper, "unit", "everything that is released")
    _print(as_json, {**answer, "misses": curve, **inputs}, table, numbers, even)


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
    budget = {"epsilon": epsilon, "delta": delta}
    how: dict[str, Any] = {**budget, "adaptivity": adaptivity.value, "tolerance": tolerance}
    with patience("planning"):
        if parameters is None:
            planned = _parameter(kind, count, how)
        else:
            planned, _ = parse_item(item)
            if item.partition(":")[0] != kind:
                raise InvalidInput(
                    f"a plan takes either a count or a parameter, got {item!r} with both"
                )
            count = fa.largest_count(planned, **how)
        best = Bracket(0.0, 0.0, "nothing is revealed")
        if count > 0:
            whole = fa.compose([(planned, count)], adaptivity=adaptivity.value, tolerance=tolerance)
            best = whole.epsilon_at(delta)
    described = fa.format_guarantee(planned)
    target = f"({epsilon}, {delta})-DP, adaptivity {adaptivity.value}"
    if count == 0:
        words = f"Not one {described} fits into {target}."
    elif parameters is None:
        words = f"{count} mechanisms fit into {target} with [bold]{described}[/bold] each."
    else:
        words = f"[bold]{count}[/bold] × {described} fit into {target}."
    inputs = {"item": item, **budget, "tolerance": tolerance}
    _print(
        as_json,
        {"count": count, "guarantee": described, **_shown(best, adaptivity), **inputs},
        words,
        f"Together they give ε ≤ {shown_up(best.upper)}, by {best.theorem}.",
    )


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
        amount = fa.noise_for(
            lambda amount: [parse_item(item) for item in written(amount)],
            epsilon=epsilon,
            delta=delta,
            adaptivity=adaptivity.value,
            tolerance=tolerance,
        )
        chosen = written(amount)
        best = _composed(chosen, adaptivity, tolerance).epsilon_at(delta)
    inputs = {"epsilon": epsilon, "delta": delta, "tolerance": tolerance}
    _print(
        as_json,
        {"items": chosen, **_shown(best, adaptivity), **inputs},
        f"[bold]{chosen[items.index(free[0])]}[/bold] makes everything together "
        f"({epsilon}, {delta})-DP.",
        f"Together they give ε ≤ {shown_up(best.upper)}, by {best.theorem}.",
    )


def convert(
    items: options.ItemTexts,
    delta: options.Delta = 1e-6,
    units: Units = 1,
    tolerance: options.Tolerance = 1e-3,
    as_json: options.AsJson = False,
) -> None:
    """What everything together is as pure, zero-concentrated, Gaussian and (ε, δ)-DP."""
    parsed = [parse_item(item) for item in items]
    grouped = [(fa.group_privacy(guarantee, units), count) for guarantee, count in parsed]
    composition = fa.compose(grouped, tolerance=tolerance)
    rows: dict[str, tuple[str, Callable[[], float]]] = {
        "epsilon": ("ε of pure DP", lambda: composition.epsilon_at(0.0).upper),
        "rho": ("ρ of zero-concentrated DP", composition.rho),
        "mu": ("μ of Gaussian DP", composition.mu),
        "epsilon_at_delta": (f"ε at δ = {delta}", lambda: composition.epsilon_at(delta).upper),
    }
    with patience("composing"):
        found = {name: _or_none(read) for name, (_, read) in rows.items()}
    group = "" if units == 1 else f" for groups of {units}"
    table = Table("as", "at most", title=" ".join(items) + group)
    for name, (words, _) in rows.items():
        table.add_row(words, "none" if found[name] is None else shown_up(found[name]))
    _print(as_json, {**found, "items": items, "delta": delta, "units": units}, table)


def _composed(items: list[str], adaptivity: options.Adaptivity, tolerance: float) -> fa.Composition:
    listed = [parse_item(item) for item in items]
    return fa.compose(listed, adaptivity=adaptivity.value, tolerance=tolerance)


def _print(as_json: bool, answer: dict[str, object], *shown: str | Table) -> None:
    if as_json:
        print_json(answer)
    else:
        for one in shown:
            console().print(one)


def _parameter(kind: str, count: int, how: dict[str, Any]) -> fa.Guarantee:
    """The largest ε each, or for Gaussian noise the smallest noise multiplier."""
    if kind in WITH_EPSILON:
        return WITH_EPSILON[kind](fa.largest_epsilon(WITH_EPSILON[kind], count=count, **how))
    if kind == "gauss":
        noise = fa.gaussian_noise_multiplier(how["epsilon"], how["delta"], count=count)
        return fa.Gaussian(noise)
    raise InvalidInput(
        f"a parameter can be planned for dp, br, lap and gauss, got {kind!r}; give "
        f"{kind} its parameters to plan the count instead, or use `farthing calibrate`"
    )


def _shown(best: Bracket, adaptivity: options.Adaptivity) -> dict[str, object]:
    return {
        "lower": best.lower,
        "upper": best.upper,
        "theorem": best.theorem,
        "adaptivity": adaptivity.value,
    }


def _or_none(read: Callable[[], Read]) -> Read | None:
    """What is read, or None where a definition does not cover the list."""
    try:
        return read()
    except (fa.Unsupported, fa.Unattainable):
        return None


tariff = typer.Typer(
    name="tariff",
    help="Price lists: certify what one proves, check a certificate, propose prices.",
    no_args_is_help=True,
)

TariffFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A tariff in TOML.", show_default=False)
]
CertificateFile = Annotated[Path, typer.Argument(metavar="FILE", help="A certificate in JSON.")]
Width = Annotated[float, typer.Option("--tolerance", help="Relative width of ε that is aimed at.")]


@tariff.command("certify")
def certify_command(
    file: TariffFile,
    delta: options.Delta = 1e-6,
    tolerance: Width = 5e-3,
    output: options.Output = None,
    as_json: options.AsJson = False,
) -> None:
    """Prove what a tariff guarantees, however it is spent."""
    read = read_tariff(file)
    with patience("certifying"):
        certificate = read.certify(tolerance=tolerance, deltas=(delta, *USUAL_DELTAS))
    claim = dict(certificate.epsilons).get(delta)
    if claim is None:
        raise InvalidInput(
            f"delta must exceed the {read.leak:g} that the delta units add, got {delta:g}"
        )
    if output is not None:
        certificate.write(output)
    if as_json:
        print_json(
            {
                "epsilon_upper": claim.upper,
                "epsilon_lower": claim.lower,
                "delta": delta,
                "farthings": read.farthings,
                "delta_units": read.delta_units,
                "theorem": certificate.theorem,
                "digest": certificate.digest,
                "output": None if output is None else str(output),
            }
        )
        return
    table = Table(title=f"{read.farthings} farthings, spent in any way")
    for column in ("δ", "ε at most", "some analyst reaches", "width"):
        table.add_column(column, justify="right")
    for at, bracket in certificate.epsilons:
        style = "bold green" if at == delta else ""
        sides = shown_up(bracket.upper), shown_down(bracket.lower)
        table.add_row(f"{at!r}", *sides, spread(bracket), style=style)
    console().print(table)
    console().print(guess_words(certificate.guess, "unit", ALL_SOLD))
    console().print(f"by the {certificate.theorem}\ndigest {certificate.digest}")
    if output is not None:
        console().print(f"written to {output}")


@tariff.command("verify")
def verify_command(
    file: CertificateFile,
    as_json: options.AsJson = False,
) -> None:
    """Prove every number of a certificate again, from scratch."""
    with patience("verifying"):
        certificate = verify(file)
    claims = len(certificate.epsilons) + len(certificate.deltas)
    held, digest = certificate.tariff.farthings, certificate.digest
    _print(
        as_json,
        {"verified": True, "claims": claims, "farthings": held, "digest": digest},
        f"[bold green]verified[/bold green]: {claims} claims proved again",
        f"digest {digest}",
    )


@tariff.command("check")
def check_command(file: CertificateFile, as_json: options.AsJson = False) -> None:
    """Prove every number of a certificate with an independent program, in whole numbers.

    It shares no code with what made the certificate, and takes minutes where that takes seconds:
    farthing/checker.py, which also runs alone, without anything installed.
    """
    try:
        with patience("checking"):
            data = checker.read(file.read_text(encoding="utf-8"))
            claims = checker.check(data, tell)
    except (checker.Refused, OSError, UnicodeDecodeError) as error:
        raise NotCertified(f"{file} is refused: {error}") from None
    words = f"[bold green]checked[/bold green]: {claims} claims follow from the tariff"
    _print(as_json, {"checked": True, "claims": claims}, words)


@tariff.command("propose")
def propose_command(
    items: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=GUARANTEE...", help="e.g. select=br:0.1 count=dp:0.1", show_default=False
        ),
    ],
    epsilon: options.Epsilon,
    delta: options.Delta,
    finest: Annotated[int, typer.Option("--finest", help="Price of the cheapest item.")] = 1,
    output: options.Output = None,
    as_json: options.AsJson = False,
) -> None:
    """Prices in proportion to ρ, and the largest number of farthings within (ε, δ).

    If an item has a δ, the smallest one is the unit, and half of the overall δ buys units.
    """
    guarantees: dict[str, fa.Guarantee] = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals:
            raise InvalidInput(f"an item must look like select=br:0.1, got {item!r}")
        guarantees[name] = parse_guarantee(text)
    prices = fa.propose_prices(guarantees, finest=finest)
    priced = {name: (guarantee, prices[name]) for name, guarantee in guarantees.items()}
    leaks = [leak for g in guarantees.values() if (leak := loss_of(g).leak) > 0]
    unit = min(leaks, default=1e-12)
    units = int(min(delta / 2 / unit * (1 + 1e-9), 1e15)) if leaks else 0
    if leaks and units < 1:
        raise Unattainable(f"half of delta = {delta:g} must pay for an item of {unit:g} at least")
    with patience("certifying"):
        farthings = fa.largest_farthings(
            priced, epsilon=epsilon, delta=delta, delta_units=units, delta_unit=unit
        )
    if farthings == 0:
        raise Unattainable(f"not even one item fits epsilon = {epsilon:g} at delta = {delta:g}")
    proposed = fa.Tariff(priced, farthings, units, unit)
    if output is not None:
        proposed.write(output)
    if as_json:
        sold = {"farthings": farthings, "delta_units": units, "delta_unit": unit, "prices": prices}
        print_json({**sold, "epsilon": epsilon, "delta": delta})
        return
    console().print(proposed.to_toml(), markup=False)
