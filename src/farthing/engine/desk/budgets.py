"""Budgets: tariffs that are proved and signed, purses, registered lists, and who may ask."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from farthing.composition.planning import largest_repeats
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.prices import EpsilonDelta, large_delta
from farthing.composition.tariffs.tariff import Price, Tariff, tariff_from_json
from farthing.composition.tariffs.verification import (
    certificate_from_json,
    certificate_in,
    tariff_in,
    verify_document,
)
from farthing.engine.contribution_limits import with_loss_questions
from farthing.engine.desk.data import purse_data
from farthing.engine.desk.operations import ABSENT, Given, Office, operation, plain_data
from farthing.engine.kinds import query_from
from farthing.engine.kinds.completed import completed_query
from farthing.engine.purchase import buy
from farthing.errors import InvalidInput, require_count, require_real
from farthing.guarantees.notation import parse_item
from farthing.ledger import Account, Dataset, Limits, NotInLedger, Purse
from farthing.ledger.records import require_name
from farthing.ledger.registered_lists import RegisteredBatch, RegisteredSet
from farthing.wording import many

#: A tariff, its certificate, plain data of either, or the file it is in.
TariffLike = Tariff | Certificate | Mapping[str, Any] | str | os.PathLike[str]
#: Questions in one registered list at most, and items that are planned at once.
MOST_QUESTIONS, MOST_ITEMS = 500, 50


def certificate_of(given: TariffLike) -> Certificate:
    """What is to be signed: a certificate as it is, a document or a file proved here."""
    _require_tariff(given)
    if isinstance(given, Certificate):
        return given
    if isinstance(given, Mapping) and "format" in given:
        return verify_document(given)
    if isinstance(given, Mapping):
        return tariff_from_json(dict(given)).certify()
    return given.certify() if isinstance(given, Tariff) else certificate_in(given)


def tariff_of(given: TariffLike) -> Tariff:
    """The tariff that is meant."""
    _require_tariff(given)
    if isinstance(given, Tariff):
        return given
    if isinstance(given, Mapping):
        return tariff_from_json(dict(given))
    return given.tariff if isinstance(given, Certificate) else tariff_in(given)


def _require_tariff(given: object) -> None:
    document = isinstance(given, Mapping) and bool(given.keys() & {"format", "items"})
    if not document and not isinstance(given, Tariff | Certificate | str | os.PathLike):
        raise InvalidInput(
            "tariff must be a Tariff, a Certificate or the path of a file with one, got "
            f"{type(given).__name__}; fa.Tariff(items, farthings=…) makes one from a table of items"
        )


def matching_tariff(in_force: Tariff, given: TariffLike, dataset: str) -> None:
    """Opening signs nothing: a tariff may be named again, another one is refused."""
    if in_force.to_json() != tariff_of(given).to_json():
        raise InvalidInput(
            f"another tariff is in force for {dataset}; leave tariff out, or let the owner sign it"
        )


_FILE = "A tariff in TOML, or a certificate in JSON."
_TARIFF = {
    "tariff": Given(
        _FILE,
        argument="[FILE]",
        typed=Path | None,
        read=certificate_of,
        sent=dict[str, Any] | None,
        plain=lambda given: plain_data(
            given if isinstance(given, Certificate | Mapping) else tariff_of(given)
        ),
    ),
    "certificate": Given("As plain data.", typed=ABSENT, sent=dict[str, Any] | None),
}


def proved(
    tariff: TariffLike | None,
    certificate: Mapping[str, Any] | None,
    epsilon: float | None,
    delta: float | None,
) -> Certificate:
    """A budget in two numbers, what a tariff proves, or a certificate, proved again."""
    budget = EpsilonDelta.of(epsilon, delta)
    if sum(one is not None for one in (budget, tariff, certificate)) != 1:
        raise InvalidInput("give one, not both: epsilon and delta, or a tariff or certificate")
    if budget is not None:
        return budget.certificate()
    return verify_document(certificate) if tariff is None else certificate_of(tariff)


def _account_data(office: Office, given: Mapping[str, Any], account: Account) -> dict[str, Any]:
    document = office.reader.document(given["dataset"], account.number)
    signed = certificate_from_json(document) if account.mode == "tariff" else None
    return {
        "dataset": given["dataset"],
        "account": account.number,
        **asdict(account),
        "epsilon_at": document["epsilon_at"],
        "digest": None if signed is None else signed.digest,
        "warning": None if signed is None else large_delta(signed),
    }


@operation(
    "POST /tariffs",
    answer=lambda _, __, proof: proof.to_json(),
    back=certificate_from_json,
    fields=_TARIFF,
    slow=True,
)
def certify(
    _: Office,
    tariff: TariffLike | None = None,
    certificate: Mapping[str, Any] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Certificate:
    """Prove a budget and sign nothing: the certificate, to be checked. Takes seconds."""
    return proved(tariff, certificate, epsilon, delta)


@operation(
    "POST /datasets/{dataset}/tariffs",
    command="owner sign",
    busy="proving",
    said="{dataset}: account {account} with {farthings} farthings is in force",
    answer=_account_data,
    fields=_TARIFF,
    once=True,
    slow=True,
)
def sign(
    office: Office,
    dataset: str,
    tariff: TariffLike | None = None,
    certificate: Mapping[str, Any] | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    name: str = "tariff",
) -> Account:
    """Prove a budget and put it in force: two numbers, a tariff or a certificate.

    A tariff that was in force is retired, and the two accounts compose.
    """
    return office.owner.sign(dataset, proved(tariff, certificate, epsilon, delta), name=name)


@operation(
    command="owner init",
    busy="proving",
    said="{dataset}: {farthings} farthings in force, certificate {digest}",
    fields={"tariff": Given(_FILE, argument="FILE", typed=Path, read=certificate_of)},
    creates=True,
    answer=_account_data,
)
def init(
    office: Office,
    dataset: str,
    tariff: TariffLike,
    unit: str,
    owner: str,
    contribution_limit: int | None = None,
) -> Account:
    """Add a dataset that is read elsewhere and put a tariff in force; creates the ledger."""
    limits = Limits(contribution_limit=contribution_limit)
    office.owner.add(Dataset(dataset, unit=unit, owner=owner, limits=limits))
    return office.owner.sign(dataset, certificate_of(tariff))


def _granted(office: Office, given: Mapping[str, Any], purse: Purse) -> dict[str, Any]:
    dataset = given["dataset"]
    cap = office.ledger.analyst(dataset, purse.analyst).terms().tariff.farthings
    purses = office.reader.purses(dataset)
    held = sum(one.farthings for one in purses if one.account == purse.account and one.open)
    warning = (
        f"the purses of {dataset} hold {many(held, 'farthing')} together, and its budget is "
        f"{many(cap, 'farthing')}: what exceeds it is refused to whoever asks last"
    )
    warned = warning if held > cap else None
    return {"dataset": dataset, **purse_data(purse), "budget": cap, "warning": warned}


def _granted_words(answer: dict[str, Any]) -> str:
    return (
        f"{answer['analyst']} holds {many(answer['farthings'], 'farthing')} and "
        f"{many(answer['delta_units'], 'δ unit')} of {answer['dataset']}"
        f"{' a month' if answer['renewal'] else ''}; "
        f"the budget is {many(answer['budget'], 'farthing')} for everybody together"
    )


@operation(
    "POST /datasets/{dataset}/grants",
    command="owner grant",
    answer=_granted,
    said=_granted_words,
    once=True,
    fields={"renewal": Given("Renew by calendar month (UTC).", "Renewed", choices=("monthly",))},
)
def grant(
    office: Office,
    dataset: str,
    analyst: str,
    *,
    farthings: int,
    delta_units: int | None = None,
    renewal: str | None = None,
) -> Purse:
    """Give an analyst farthings; a second grant adds to the first."""
    return office.owner.grant(
        dataset, analyst, farthings=farthings, delta_units=delta_units, renewal=renewal
    )


def _revoked(office: Office, given: Mapping[str, Any], taken: Price) -> dict[str, Any]:
    tokens = [] if office.access is None else office.access.valid_for(**given)
    return {**given, **asdict(taken), "taken": asdict(taken), "tokens_still_valid": tokens}


@operation(
    "DELETE /datasets/{dataset}/grants/{analyst}",
    command="owner revoke",
    answer=_revoked,
    said="{analyst} can spend nothing of {dataset} any more; {farthings} farthings were left\n"
    "tokens of a service stay valid and show what was released: `farthing tokens list` and "
    "`withdraw` end them",
)
def revoke(office: Office, dataset: str, analyst: str) -> Price:
    """Take back what is left of an analyst's purse, and say how much it was.

    The purse stays, and a grant opens it again. Tokens of a service stay valid and show what was
    released; withdrawing a token ends it.
    """
    return office.owner.revoke(dataset, analyst)


@operation("GET /datasets/{dataset}/grants", under="grants")
def purses(office: Office, dataset: str) -> list[dict[str, Any]]:
    """Every purse, of the oldest tariff first."""
    return [purse_data(purse) for purse in office.reader.purses(dataset)]


@operation("GET /datasets/{dataset}/accounts", under="accounts")
def accounts(office: Office, dataset: str) -> list[dict[str, Any]]:
    """Tariffs and registered lists, the oldest first."""
    return [asdict(account) for account in office.reader.accounts(dataset)]


@operation(
    "POST /datasets/{dataset}/lists",
    once=True,
    slow=True,
    fields={
        "name": Given("Analysts run it by this name.", "Name of the list", "monday"),
        "queries": Given(
            "Each with a name, as in a batch.",
            "Questions as JSON",
            {"all": {"kind": "count"}},
            sent=dict[str, dict[str, Any]],
            most=MOST_QUESTIONS,
        ),
        "analyst": Given("The analyst's name.", "Who may run it", "ann"),
    },
    answer=_account_data,
)
def register(
    office: Office, dataset: str, name: str, queries: Mapping[str, Any], *, analyst: str
) -> Account:
    """An account for exactly these questions, outside the tariff, which this analyst may run.

    Nothing about the list depends on answers, so it gets the bound for lists that are fixed in
    advance. It adds to what the dataset gives away, and runs once.
    """
    if not queries:
        raise InvalidInput("a list must have at least one question, got none")
    about = office.reader.dataset(dataset)
    tariff = office.ledger.analyst(dataset, analyst).terms().tariff
    asked = {
        require_name("a question's name", key): completed_query(
            query_from(given), about.declared_schema, about.unit, about.limits
        )
        for key, given in queries.items()
    }
    listed = {}
    for key, query in with_loss_questions(asked).items():
        purchase = buy(query, tariff)
        listed[purchase.listed_as(key)] = purchase.mechanism().guarantees
    return office.owner.register(dataset, name, RegisteredBatch(listed), analyst=analyst)


@operation(
    command="owner register",
    busy="proving",
    said="{dataset}: {name} is registered as account {account} for {analyst}",
    fields={
        "file": Given(
            'TOML: [queries] name = ["10xbr:0.1", …] for a batch, '
            '[items] name = "20xbr:0.1" for set-wise use.',
            argument="FILE",
        ),
        "mode": Given("How the list is used.", choices=("batch", "setwise")),
    },
    answer=_account_data,
)
def register_items(
    office: Office, dataset: str, analyst: str, file: Path, name: str, mode: str = "batch"
) -> Account:
    """Open an account for a list of mechanisms that is fixed in advance."""
    try:
        data = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from None
    key = "queries" if mode == "batch" else "items"
    listed = data.get(key)
    if set(data) != {key} or not isinstance(listed, dict):
        raise InvalidInput(f"{file} must have one table [{key}]")
    registered: RegisteredBatch | RegisteredSet
    if mode == "batch":
        registered = RegisteredBatch({k: [parse_item(one) for one in v] for k, v in listed.items()})
    else:
        registered = RegisteredSet({key: parse_item(text) for key, text in listed.items()})
    return office.owner.register(dataset, name, registered, analyst=analyst)


@operation(
    "POST /datasets/{dataset}/retire",
    command="owner retire",
    under="retired",
    back=lambda answer: tuple(answer["retired"]),
    said=lambda answer: (
        f"nothing can be spent of {', '.join(answer['retired'])} of "
        f"{answer['dataset']} any more; what was spent stays spent"
    ),
)
def retire(office: Office, dataset: str, account: str | None = None) -> tuple[str, ...]:
    """End a tariff, a list, or a whole dataset: nothing more can be spent; the book stays."""
    return office.owner.retire(dataset, account)


@operation(
    "POST /planner",
    fields={
        "items": Given(
            "What one question buys.", example=["10xbr:0.1"], sent=list[str], most=MOST_ITEMS
        )
    },
)
def largest_number(
    _: Office, items: Sequence[str], epsilon: float, delta: float, months: int = 1
) -> dict[str, Any]:
    """How often such a question fits into a budget, at least: found at once, by moments."""
    require_count("months", months, at_least=1)
    times = largest_repeats([parse_item(one) for one in items], epsilon=epsilon, delta=delta)
    return {"questions": times, "a_month": times // months, "by": "moments; at least"}


def _in_days(days: float) -> datetime:
    return datetime.now(UTC) + timedelta(days=require_real("--days", days, at_least=0, below=1e5))


def _token_lines(answer: dict[str, Any]) -> str:
    lines = []
    for one in answer["tokens"]:
        ends = f", until {one['expires']}" if one["expires"] else ""
        state = f", withdrawn {one['revoked']}" if one["revoked"] else ends
        lines.append(f"{one['id']}  {one['role']} {one['name']}, since {one['created']}{state}")
    return "\n".join(lines) or "there are no tokens"


@operation("GET /tokens", command="tokens list", under="tokens", said=_token_lines)
def tokens(office: Office) -> list[dict[str, Any]]:
    """Every token, the latest first; never the tokens themselves."""
    return list(office.tokens.listed())


@operation(
    "POST /tokens",
    command="tokens mint",
    said="{token}",
    fields={
        "role": Given(
            "owner: decides. analyst: asks.",
            example="analyst",
            argument="ROLE",
            choices=("owner", "analyst"),
        ),
        "name": Given("An analyst's name is that of their purse.", "For", "ann", argument="NAME"),
        "datasets": Given(
            "Only this dataset; may be repeated.",
            option="--dataset",
            typed=list[str] | None,
            read=lambda given: given or None,
            sent=list[str] | None,
            most=1000,
        ),
        "expires": Given(
            "How long it is valid. Empty: for ever.",
            option="--days",
            typed=float | None,
            read=_in_days,
        ),
    },
)
def mint_token(
    office: Office,
    role: str,
    name: str,
    datasets: Sequence[str] | None = None,
    expires: datetime | None = None,
) -> dict[str, Any]:
    """Make a token. It is shown here and never again."""
    return dict(office.tokens.mint(role, name, datasets=datasets, expires=expires))


@operation(
    "DELETE /tokens/{identity}",
    command="tokens withdraw",
    said="the token {id} of {name} was withdrawn",
)
def withdraw_token(office: Office, identity: str) -> dict[str, Any]:
    """Refuse the token from now on. Its id is the part after fth_."""
    if not (identity.isascii() and identity.isalnum() and len(identity) <= 32):
        raise NotInLedger("there is no token with this id")
    return dict(office.tokens.withdraw(identity))
