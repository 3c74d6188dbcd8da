"""`farthing owner …`: what the owner of the data decides.

Needs no data source; what does is added to the group `owner` by the module that reads data.
"""

from __future__ import annotations

import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from farthing.cli import options
from farthing.cli.ledger_options import Analyst, Name, reading, say, warn
from farthing.cli.output import patience
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.prices import EpsilonDelta, large_delta
from farthing.composition.tariffs.verification import certificate_in
from farthing.errors import InvalidInput
from farthing.guarantees.notation import parse_item
from farthing.ledger import Dataset, Ledger, Limits, RegisteredBatch, RegisteredSet
from farthing.wording import many


class InOrderOfUse(TyperGroup):
    """Data is added first, by commands of a module that is read later."""

    def list_commands(self, ctx: Any) -> list[str]:
        first = ("schema", "add")
        return [*first, *(name for name in super().list_commands(ctx) if name not in first)]


owner = typer.Typer(
    name="owner",
    cls=InOrderOfUse,
    help="Decide about a budget: add data, sign tariffs, grant and revoke purses, move the book.",
    no_args_is_help=True,
)

_FILE = "A tariff in TOML, or a certificate in JSON."
Epsilon = Annotated[
    float | None, typer.Option("--epsilon", help="The budget: what everything may cost.")
]
Delta = Annotated[
    float | None, typer.Option("--delta", help="The budget: the chance that it fails.")
]
Farthings = Annotated[int, typer.Option("--farthings", help="How many.", show_default=False)]


class Mode(StrEnum):
    """How a registered list is used."""

    batch = "batch"
    setwise = "setwise"


@owner.command("init")
def init_command(
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help=_FILE, show_default=False)],
    where: options.LedgerAt,
    unit: Annotated[str, typer.Option("--unit", help="The column that says who a row is about.")],
    by: Annotated[str, typer.Option("--owner", help="Who answers for the data.")],
    keys: Annotated[
        int | None, typer.Option("--contribution-limit", help="Keys of a unit that count at most.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Add a dataset that is read elsewhere and put a tariff in force; creates the ledger."""
    dataset = Dataset(name, unit=unit, owner=by, limits=Limits(contribution_limit=keys))
    certificate = signable(file)
    with Ledger.open(where) as ledger, patience("proving the certificate"):
        ledger.owner().add(dataset)
        account = ledger.owner().sign(name, certificate)
    say(
        as_json,
        {"dataset": name, "farthings": account.farthings, "digest": certificate.digest},
        f"{name}: {account.farthings} farthings in force, certificate {certificate.digest}",
    )


@owner.command("sign")
def sign_command(
    name: Name,
    where: options.LedgerAt,
    account: Annotated[str, typer.Option("--name", help="A name for the new account.")],
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help=_FILE, show_default=False)
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    as_json: options.AsJson = False,
) -> None:
    """Sign a budget: two numbers, a tariff or a certificate.

    A tariff that was in force is retired, and the two accounts compose.
    """
    certificate = signable(file, epsilon, delta)
    with Ledger.open(where, upgrade=False) as ledger, patience("proving the certificate"):
        opened = ledger.owner().sign(name, certificate, name=account)
    say(
        as_json,
        {"dataset": name, "account": opened.number, "farthings": opened.farthings},
        f"{name}: account {opened.number} with {opened.farthings} farthings is in force",
    )


@owner.command("grant")
def grant_command(
    name: Name,
    analyst: Analyst,
    where: options.LedgerAt,
    farthings: Farthings,
    delta_units: Annotated[
        int | None,
        typer.Option("--delta-units", help="Units of δ; as many as in the tariff, in proportion."),
    ] = None,
    monthly: Annotated[
        bool, typer.Option("--monthly", help="Renew by calendar month (UTC), within the cap.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Give an analyst farthings; a second grant adds to the first."""
    renewal = "monthly" if monthly else None
    with Ledger.open(where, upgrade=False) as ledger:
        purse = ledger.owner().grant(
            name, analyst, farthings=farthings, delta_units=delta_units, renewal=renewal
        )
        cap = ledger.analyst(name, analyst).terms().tariff.farthings
        held = sum(
            one.farthings
            for one in ledger.reader().purses(name)
            if one.account == purse.account and one.open
        )
    if held > cap:
        warn(
            f"the purses of {name} hold {many(held, 'farthing')} together, and its budget is "
            f"{many(cap, 'farthing')}: what exceeds it is refused to whoever asks last"
        )
    say(
        as_json,
        {
            "dataset": name,
            "analyst": analyst,
            "farthings": purse.farthings,
            "delta_units": purse.delta_units,
        },
        f"{analyst} holds {many(purse.farthings, 'farthing')} and "
        f"{many(purse.delta_units, 'δ unit')} of {name}{' a month' if monthly else ''}; "
        f"the budget is {many(cap, 'farthing')} for everybody together",
    )


@owner.command("revoke")
def revoke_command(
    name: Name, analyst: Analyst, where: options.LedgerAt, as_json: options.AsJson = False
) -> None:
    """Take away what is left of an analyst's purse; the purse stays, and a grant opens it.

    Tokens of a service stay valid and show what was released; `farthing tokens withdraw` ends one.
    """
    with Ledger.open(where, upgrade=False) as ledger:
        taken = ledger.owner().revoke(name, analyst)
    say(
        as_json,
        {"dataset": name, "analyst": analyst, "farthings": taken.farthings},
        f"{analyst} can spend nothing of {name} any more; {taken.farthings} farthings were left\n"
        "tokens of a service stay valid and show what was released: `farthing tokens list` and "
        "`withdraw` end them",
    )


@owner.command("register")
def register_command(
    name: Name,
    analyst: Analyst,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help='TOML: [queries] name = ["10xbr:0.1", …] for a batch, '
            '[items] name = "20xbr:0.1" for set-wise use.',
        ),
    ],
    where: options.LedgerAt,
    account: Annotated[str, typer.Option("--name", help="A name for the list.")],
    mode: Annotated[Mode, typer.Option("--mode", help="How the list is used.")] = Mode.batch,
    as_json: options.AsJson = False,
) -> None:
    """Open an account for a list that is fixed in advance."""
    listed = _read_list(file, mode)
    with Ledger.open(where, upgrade=False) as ledger, patience("certifying"):
        opened = ledger.owner().register(name, account, listed, analyst=analyst)
        document = ledger.reader().document(name, opened.number)
    say(
        as_json,
        {"dataset": name, "account": opened.number, "epsilon_at": document["epsilon_at"]},
        f"{name}: {account} is registered as account {opened.number} for {analyst}",
    )


@owner.command("refresh")
def refresh_command(
    name: Name,
    where: options.LedgerAt,
    version: Annotated[
        str | None,
        typer.Argument(metavar="[VERSION]", help="What to call the state of the rows from now on."),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="The rows change without notice; nothing is told twice.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Declare that the rows have changed."""
    if (version is None) != live:
        raise InvalidInput("give a version, or --live for rows that change without notice")
    with Ledger.open(where, upgrade=False) as ledger:
        ledger.owner().declare_version(name, version)
    shown = "live" if version is None else f"version {version}"
    say(as_json, {"dataset": name, "version": version}, f"the rows of {name} are {shown}")


@owner.command("abandon")
def abandon_command(
    name: Name,
    entry: Annotated[int, typer.Argument(metavar="ENTRY", help="Number of the reservation.")],
    where: options.LedgerAt,
    reason: Annotated[str, typer.Option("--reason", help="Why nothing was released.")],
    as_json: options.AsJson = False,
) -> None:
    """Settle a reservation that a crash left open. Nothing comes back."""
    with Ledger.open(where, upgrade=False) as ledger:
        held = [r for r in ledger.reader().open_reservations(name) if r.entry == entry]
        if not held:
            raise InvalidInput(f"entry {entry} of {name} is not an open reservation")
        settled = ledger.owner().abandon(held[0], reason=reason)
    say(
        as_json,
        {"dataset": name, "abandoned": entry, "entry": settled.number},
        f"entry {entry} is abandoned; what it reserved stays spent",
    )


@owner.command("end-conversation")
def end_conversation_command(
    name: Name,
    identity: Annotated[str, typer.Argument(metavar="ID", help="`ledger show --json` lists them.")],
    where: options.LedgerAt,
    reason: Annotated[str, typer.Option("--reason", help="Why.")] = "ended by the owner",
    as_json: options.AsJson = False,
) -> None:
    """End a conversation, whoever opened it. What was paid for it stays spent."""
    with Ledger.open(where, upgrade=False) as ledger:
        ledger.owner().end_conversation(name, identity, reason=reason)
    say(
        as_json,
        {"dataset": name, "ended": identity},
        f"{identity} has ended; what was paid for it stays spent",
    )


@owner.command("retire")
def retire_command(
    name: Name,
    where: options.LedgerAt,
    account: Annotated[
        str | None,
        typer.Option("--account", help="Only this tariff or list.", show_default=False),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """End a tariff, a list, or a whole dataset: nothing more can be spent; the book stays."""
    with Ledger.open(where, upgrade=False) as ledger:
        retired = ledger.owner().retire(name, account)
    say(
        as_json,
        {"dataset": name, "retired": list(retired)},
        f"nothing can be spent of {', '.join(retired)} of {name} any more; what was spent stays "
        "spent",
    )


def signable(
    file: Path | None, epsilon: float | None = None, delta: float | None = None
) -> Certificate:
    """A budget in two numbers, what a tariff proves, or a certificate that was proved again."""
    budget = EpsilonDelta.of(epsilon, delta)
    with patience("proving the certificate"):
        if budget is not None and file is None:
            certificate = budget.certificate()
        elif budget is None and file is not None:
            certificate = certificate_in(file)
        else:
            raise InvalidInput(
                "give --epsilon and --delta, or a file with a tariff or a certificate: not both"
            )
    warn(large_delta(certificate))
    return certificate


def _read_list(file: Path, mode: Mode) -> RegisteredBatch | RegisteredSet:
    try:
        with reading(file) as lines:
            data = tomllib.loads(lines.read())
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{file} is not TOML: {error}") from None
    key = "queries" if mode is Mode.batch else "items"
    listed = data.get(key)
    if set(data) != {key} or not isinstance(listed, dict):
        raise InvalidInput(f"{file} must have one table [{key}]")
    if mode is Mode.batch:
        return RegisteredBatch(
            {name: [parse_item(text) for text in texts] for name, texts in listed.items()}
        )
    return RegisteredSet({name: parse_item(text) for name, text in listed.items()})
