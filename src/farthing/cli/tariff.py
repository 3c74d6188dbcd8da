"""`farthing tariff certify | verify | check | propose`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import farthing as fa
from farthing import checker
from farthing.cli import options
from farthing.cli.output import console, patience, print_json, spread
from farthing.composition.tariffs.tariff import USUAL_DELTAS, read_tariff
from farthing.composition.tariffs.verification import verify
from farthing.errors import InvalidInput, NotCertified, Unattainable
from farthing.guarantees.losses import loss_of
from farthing.guarantees.notation import parse_guarantee
from farthing.numerics.rounding import shown_down, shown_up
from farthing.progress import tell

tariff = typer.Typer(
    name="tariff",
    help="Price lists: certify what one proves, check a certificate, propose prices.",
    no_args_is_help=True,
)

TariffFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A tariff in TOML.", show_default=False)
]
CertificateFile = Annotated[Path, typer.Argument(metavar="FILE", help="A certificate in JSON.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the result to this file.")
]
Width = Annotated[float, typer.Option("--tolerance", help="Relative width of ε that is aimed at.")]


@tariff.command("certify")
def certify_command(
    file: TariffFile,
    delta: options.Delta = 1e-6,
    tolerance: Width = 5e-3,
    output: Output = None,
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
    if as_json:
        print_json(
            {
                "verified": True,
                "claims": len(certificate.epsilons) + len(certificate.deltas),
                "farthings": certificate.tariff.farthings,
                "digest": certificate.digest,
            }
        )
        return
    claims = len(certificate.epsilons) + len(certificate.deltas)
    console().print(f"[bold green]verified[/bold green]: {claims} claims proved again")
    console().print(f"digest {certificate.digest}")


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
    if as_json:
        print_json({"checked": True, "claims": claims})
        return
    console().print(f"[bold green]checked[/bold green]: {claims} claims follow from the tariff")


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
    output: Output = None,
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
