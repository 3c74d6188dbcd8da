"""Options that several commands share."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer


class Adaptivity(StrEnum):
    """How mechanisms are chosen."""

    none = "none"
    adaptive = "adaptive"
    setwise = "setwise"
    concurrent = "concurrent"


ItemTexts = Annotated[
    list[str],
    typer.Argument(
        metavar="ITEM...",
        help="Mechanisms as [COUNTx]KIND:PARAMETERS, e.g. 100xbr:0.1. Kinds: dp:ε, br:ε, adp:ε,δ, "
        "lap:ε, gauss:noise_multiplier, dgauss:noise_multiplier[,sensitivity], pf:ε, cdp:μ,τ, "
        "zcdp:ρ[,ξ[,δ]], tcdp:ρ,ω; of a sample poisson:rate/KIND:…, subset:rate/KIND:….",
        show_default=False,
    ),
]
OneItemText = Annotated[
    str,
    typer.Argument(metavar="ITEM", help="A mechanism: br:0.1 (how many?) or 100xbr (which ε?)."),
]
FreeItemTexts = Annotated[
    list[str],
    typer.Argument(
        metavar="ITEM...",
        help="Mechanisms as for `epsilon`, with one parameter written as ?: "
        "1000xpoisson:0.01/gauss:? 100xbr:0.1.",
        show_default=False,
    ),
]
Epsilon = Annotated[float, typer.Option("--epsilon", help="The overall ε.", show_default=False)]
Delta = Annotated[float, typer.Option("--delta", help="The overall δ.", show_default=False)]
HowChosen = Annotated[
    Adaptivity,
    typer.Option(
        "--adaptivity",
        help="none: all chosen in advance. adaptive: mechanisms depend on earlier answers. "
        "setwise: their order too. concurrent: interactive, interleaved.",
    ),
]
Tolerance = Annotated[
    float, typer.Option("--tolerance", help="Relative width that the bracket is refined to.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
LedgerAt = Annotated[
    str,
    typer.Option(
        "--ledger",
        "-l",
        help="A SQLite file or a postgresql:// address.",
        envvar="FARTHING_LEDGER",
        show_default=False,
    ),
]
LedgerBeside = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        "-l",
        help="A SQLite file or a postgresql:// address; a file beside the data if left out.",
        envvar="FARTHING_LEDGER",
        show_default=False,
    ),
]


def several(text: str | None) -> str | list[str] | None:
    """One place or table, or those between the commas.

    A file with a comma in its name is one, and so are addresses and patterns such as {a,b}.
    """
    if text is None or "," not in text or "://" in text or "{" in text or os.path.exists(text):
        return text
    return [part.strip() for part in text.split(",")]
