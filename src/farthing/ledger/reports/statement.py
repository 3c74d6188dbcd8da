"""The statement of a deployment: the items that NIST SP 800-226 asks for, with numbers.

It is plain data; `markdown` shows it to people. Every number in it is proved by the certificates
or the odometer.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata
from typing import Any

from farthing.canonical import canonical
from farthing.composition.accounts.account_profiles import guess_of, proved
from farthing.composition.tariffs.certificate import ASSUMPTIONS
from farthing.errors import FarthingError, require_real
from farthing.guarantees.notation import format_guarantee
from farthing.ledger.entries.analyst import OpenConversation
from farthing.ledger.entries.owner import Declaration
from farthing.ledger.records import BATCH, TARIFF, Purse
from farthing.ledger.reports.budget import PLANNED, Lifetimes, ListAccount, TariffAccount, odometer
from farthing.ledger.reports.budget import THEOREM as ODOMETER
from farthing.ledger.reports.history import conversations_held, usage
from farthing.ledger.roles.reader import Reader
from farthing.numerics.rounding import shown_up
from farthing.wording import guess_words, many

FORMAT = "farthing statement 4"
TRUST = (
    "A trusted curator holds the raw data and runs the mechanisms; analysts see releases only.",
    "An analyst learns what is left of their own purse; entry numbers, times and the other "
    "analysts' entries are for the owner.",
    "The noise of open conversations is in the database, in a table that no export, statement or "
    "analyst reads; the chain holds commitments to it.",
    "Whoever can write to the database can forge it; the hash chain shows it to anybody who kept "
    "an earlier head.",
)
NUMERICS = (
    "Closed forms are enclosed in ball arithmetic; profiles are bounded from above on grids, with "
    "rounding errors added on the safe side.",
    "Prices and balances are whole numbers.",
    "Noise is drawn exactly, without floating point.",
)

#: Why several analysts count as one.
COALITION = (
    "a coalition is one analyst who spends the sum (docs/theory/tariffs.md), and its "
    "conversations, however interleaved, are what was paid for when they were opened "
    "(docs/theory/concurrency.md, section 4)"
)
#: Why a number here may lie above the ε of a certificate.
ABOVE_THE_SIGNED = (
    "The numbers over all accounts and so far keep a hundredth of δ for readings at any moment, "
    "and are computed on a coarser grid. So they may lie a little above the ε that an account was "
    "signed for, which holds for that account by itself."
)
#: What a month's own number means.
IN_A_MONTH = (
    "an answer counts in the month in which it was reserved and a conversation in the month in "
    "which it was opened, whenever they are told; this bounds what those answers add to all others "
    "(docs/theory/odometer.md, Months)"
)


def statement(reader: Reader, dataset: str, *, delta: float = 1e-6) -> dict[str, Any]:
    """Everything somebody needs to judge what is released about this dataset.

    Datasets beside it are on the same data: every number over all accounts counts theirs too.
    """
    delta = require_real("delta", delta, above=0, below=1)
    about = reader.dataset(dataset)
    lifetimes = Lifetimes(reader, dataset, delta)
    together = reader.beside(dataset)
    heads = {name: reader.head(name) for name in together}
    return {
        "format": FORMAT,
        "made": reader.now(),
        "heads": {n: {"entries": head.number, "hash": head.hash} for n, head in heads.items()},
        "dataset": about.name,
        "beside": [name for name in together if name != dataset],
        "owner": about.owner,
        "unit_of_privacy": about.protects,
        "neighbouring_relation": about.relation,
        "limits": about.limits.to_json(),
        "version": about.version,
        "delta": delta,
        "above_the_signed": ABOVE_THE_SIGNED,
        "lifetime": lifetimes.whole(),
        "guess": {
            "right_at_most": proved(
                lambda: guess_of([one.profile(one.cap, delta) for one in lifetimes.accounts])
            ),
            "before": 0.5,
            "if": lifetimes.resting_on(PLANNED),
        },
        "per_analyst": lifetimes.per_analyst(),
        "colluding": lifetimes.colluding(),
        "so_far": _so_far(reader, dataset, delta),
        "used_so_far": usage(reader, dataset),
        "conversations": conversations_held(reader, dataset),
        "growing_rows": growth(reader, dataset),
        "accounts": [_account(lifetimes, account) for account in lifetimes.accounts],
        "trust_model": list(TRUST),
        "assumptions": list(ASSUMPTIONS),
        "numerical_measures": list(NUMERICS),
        "farthing_version": metadata.version("farthing"),
    }


def _so_far(reader: Reader, dataset: str, delta: float) -> dict[str, Any]:
    try:
        reading = odometer(reader, dataset, delta=delta)
    except FarthingError as error:
        return {"epsilon": None, "delta": delta, "why": str(error), "theorem": ODOMETER}
    return {**reading.to_json(), "who": "all analysts together"}


def _account(lifetimes: Lifetimes, account: TariffAccount | ListAccount) -> dict[str, Any]:
    """One account by itself."""
    document = account.document
    claims = [
        {
            "delta": claim["delta"],
            "epsilon": claim["upper"],
            "theorem": claim.get("theorem") or document["theorem"],
        }
        for claim in document["epsilon_at"]
    ]
    common = {
        "number": lifetimes.label(account),
        "name": account.record.name,
        "mode": account.record.mode,
        "in_force": account.record.open,
        "restored": account.restored,
        "digest": document["digest"],
        "versions": document["versions"],
        "claims": claims,
    }
    if isinstance(account, ListAccount):
        return {
            **common,
            "analyst": account.record.analyst,
            "adaptivity": document["adaptivity"],
            "list": document["list"],
            "whole": _epsilon(lifetimes, account, account.cap),
        }
    return {
        **common,
        "farthings": account.record.farthings,
        "delta_units": account.record.delta_units,
        "delta_unit": account.tariff.delta_unit,
        "farthings_spent": account.record.farthings_spent,
        "delta_units_spent": account.record.delta_units_spent,
        "per_query": [
            {
                "item": name,
                "guarantee": format_guarantee(guarantee),
                "farthings": price,
                "delta_units": account.tariff.price(name).delta_units,
            }
            for name, (guarantee, price) in account.tariff.items.items()
        ],
        "per_analyst": [_analyst(lifetimes, account, purse) for purse in account.purses],
        "purses_are_separate": account.purses_are_separate,
        "colluding": {
            **_epsilon(lifetimes, account, account.reach),
            "farthings": account.reach,
            "theorem": COALITION,
        },
        "everybody_in_one_month": {
            **_epsilon(lifetimes, account, account.reach_in_a_month),
            "farthings": account.reach_in_a_month,
            "if": IN_A_MONTH,
        },
    }


def _analyst(lifetimes: Lifetimes, account: TariffAccount, purse: Purse) -> dict[str, Any]:
    """What one analyst can learn through one tariff; all analysts if refusals depend on others."""
    alone = min(purse.farthings, account.record.farthings)
    row = {
        "analyst": purse.analyst,
        "farthings": purse.farthings,
        "delta_units": purse.delta_units,
        "farthings_spent": purse.farthings_spent,
        "farthings_revoked": purse.farthings_revoked,
        "renewal": purse.renewal,
        "revoked": not purse.open,
        "lifetime": {
            **_epsilon(lifetimes, account, alone if account.purses_are_separate else account.reach),
            "if": PLANNED,
        },
    }
    if purse.renewal is None:
        return row
    by_now = account.purses_are_separate_by_now
    return {
        **row,
        "month": purse.month,
        "in_one_month": {
            **_epsilon(lifetimes, account, alone if by_now else account.reach),
            "alone": by_now,
            "if": f"{PLANNED}; {IN_A_MONTH}",
        },
    }


def _epsilon(
    lifetimes: Lifetimes, account: TariffAccount | ListAccount, farthings: int
) -> dict[str, Any]:
    return {"epsilon": lifetimes.of([(account, farthings)]), "delta": lifetimes.delta}


FIXED = "rows do not change"
MAY_DEPEND = "rows change, and may depend on releases"
_SAYS = {
    FIXED: "One version of the rows was declared. Neighbouring datasets are two tables.",
    MAY_DEPEND: (
        "Rows arrive, change and go between answers, of questions and of conversations. A unit is "
        "protected with all its rows, past and future. The guarantee compares two worlds that "
        "differ by one unit and in which everybody follows the same rule in answering releases "
        "(docs/theory/concurrency.md, Theorem 6); if the owner knows that rows do not depend on "
        "releases, it is that of one table with everything in it from the start (Theorem 5)."
    ),
}
_TOTALS = (
    " For running totals it holds if one unit changes what is added to them by at most what was "
    "stated, over all updates: rows of a unit that were counted do not go and come again."
)


def growth(reader: Reader, dataset: str) -> dict[str, Any]:
    """The case that a statement names, and how many versions of the rows were declared."""
    versions = {fact.declared.dataset.version for _, fact in reader.facts(dataset, Declaration)}
    fixed = None not in versions and len(versions) == 1
    case = FIXED if fixed else MAY_DEPEND
    opened = (canonical(fact.mechanism) for _, fact in reader.facts(dataset, OpenConversation))
    says = _SAYS[case] + (_TOTALS if any('"running_total"' in one for one in opened) else "")
    return {"case": case, "says": says, "versions": len(versions)}


_EXCEEDED = (
    " The purses together exceed the cap or renew, so a refusal can depend on what others spent: "
    "each analyst's lifetime is that of all together."
)
_RESTORED = (
    " The book went on from a copy. What was granted and spent after the copy was made is not "
    "known, so all of this account counts, for everybody."
)


def markdown(data: dict[str, Any]) -> str:
    """The statement for people."""
    about = [
        f"Owner: {_plain(data['owner'])}",
        f"Unit of privacy: {_plain(data['unit_of_privacy'])}",
        f"Neighbouring datasets: {data['neighbouring_relation']}",
        f"Contribution of one unit: {_limits(data['limits'])}",
        *_beside(data["beside"]),
        f"Version of the rows: {_plain(data['version'] or 'live')}",
        f"Made by farthing {data['farthing_version']} at {data['made']}, for δ = {data['delta']}",
        *(
            f"Book of {_plain(name)}: {head['entries']} entries, head {head['hash']}"
            for name, head in data["heads"].items()
        ),
    ]
    lifetimes = [
        *(_lifetime(_plain(row["analyst"]), row) for row in data["per_analyst"]),
        _lifetime("all analysts colluding, as granted", data["colluding"]),
        *(_lifetime("the dataset as a whole, to its caps", row) for row in data["lifetime"]),
    ]
    paragraphs = [
        f"# Privacy statement for {_plain(data['dataset'])}",
        _bullets(about),
        "## Everything that can ever be released, over all accounts",
        _table("to whom | accounts | ε at most | δ | if", lifetimes),
        *_guess(data),
        data["above_the_signed"],
        "## Released so far, all analysts together",
        _reached(data["so_far"]),
        _used(data["used_so_far"]),
        *_conversations(data["conversations"]),
        f"## Rows: {data['growing_rows']['case']}",
        data["growing_rows"]["says"],
        *(part for account in data["accounts"] for part in _account_paragraphs(account)),
        "## Trust",
        _bullets(data["trust_model"]),
        "## Assumptions",
        _bullets(data["assumptions"]),
        "## Numerical measures",
        _bullets(data["numerical_measures"]),
    ]
    return "\n\n".join(paragraphs) + "\n"


def _guess(data: dict[str, Any]) -> list[str]:
    """What ε means, in a sentence."""
    right = data["guess"]["right_at_most"]
    if right is None:
        return []
    words = guess_words(
        right, _plain(data["unit_of_privacy"]), "everything that can ever be released"
    )
    return [f"{words} This holds if {data['guess']['if']} (docs/theory/tradeoff.md)."]


def _lifetime(who: str, row: dict[str, Any]) -> list[Any]:
    accounts = ", ".join(map(_plain, row["accounts"])) if "accounts" in row else "all"
    return [who, accounts, shown_up(row["epsilon"]), row["delta"], row["if"]]


def _reached(reading: dict[str, Any]) -> str:
    if reading["epsilon"] is None:
        return f"Not stated: {reading['why']}"
    assuming = "" if reading["assuming"] is None else f" It holds if {reading['assuming']}."
    return (
        f"ε ≤ {shown_up(reading['epsilon'])} at δ = {reading['delta']}, at the level "
        f"reached: {reading['farthings_spent']} of {reading['cap']} farthings spent. By the "
        f"{reading['theorem']}.{assuming}"
    )


def _used(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "Nothing was run yet."
    words = ("what", "contribution", "guarantees")
    return _table(
        "what was run | of each unit at most | guarantees | times",
        ([*(_plain(row[name]) for name in words), row["times"]] for row in rows),
    )


def _conversations(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    cells = [
        [
            *(_plain(row[name]) for name in ("mechanism", "analyst", "guarantees")),
            row["farthings"],
            "" if row["asked"] is None else row["asked"],
            _plain(row["outcome"]),
        ]
        for row in rows
    ]
    header = "conversation | analyst | charged when opened | farthings | asked | state"
    title = "## Conversations, each charged in full when it was opened"
    return [title, _table(header, cells)]


def _account_paragraphs(account: dict[str, Any]) -> list[str]:
    state = "in force" if account["in_force"] else "retired"
    title = f"{_plain(account['number'])}: {_plain(account['name'])}"
    claims = ([c["delta"], shown_up(c["epsilon"]), c["theorem"]] for c in account["claims"])
    versions = ", ".join(f"{name} {version}" for name, version in account["versions"].items())
    common = [
        f"## Account {title} ({account['mode']}, {state})",
        _bullets([f"Certificate: {account['digest']}", f"Computed by: {versions}"]),
        _table("δ | ε at most, this account spent to the end | by", claims),
    ]
    if account["mode"] != TARIFF:
        listed = "; ".join(
            f"{_plain(name)}: {_items(what if account['mode'] == BATCH else [what])}"
            for name, what in account["list"]
        )
        who, adaptivity = _plain(account["analyst"]), account["adaptivity"]
        return [*common, f"Run by {who}, adaptivity {adaptivity}: {listed}"]
    note = "" if account["purses_are_separate"] else _EXCEEDED
    if account["restored"]:
        note = _RESTORED
    together, month = account["colluding"], account["everybody_in_one_month"]
    return [
        *common,
        _table(
            "query item | guarantee | farthings | δ units",
            (
                [_plain(item["item"]), item["guarantee"], item["farthings"], item["delta_units"]]
                for item in account["per_query"]
            ),
        ),
        _table(
            "analyst | farthings | spent | period | ε of what is reserved in one period | "
            "ε of this account in a lifetime",
            map(_analyst_row, account["per_analyst"]),
        ),
        f"Cap: {account['farthings']} farthings, {account['farthings_spent']} spent; "
        f"{account['delta_units']} δ units of {account['delta_unit']}, "
        f"{account['delta_units_spent']} spent.{note}",
        f"All analysts colluding, {together['farthings']} farthings of this account: "
        f"ε ≤ {shown_up(together['epsilon'])}; {together['theorem']}.",
        f"All analysts, reserved in any one month, {month['farthings']} farthings: "
        f"ε ≤ {shown_up(month['epsilon'])}; {month['if']}.",
    ]


def _analyst_row(row: dict[str, Any]) -> list[Any]:
    """One analyst. What was revoked of a purse is no part of what was spent."""
    revoked = f" ({row['farthings_revoked']} revoked)" if row["farthings_revoked"] else ""
    if row["revoked"] and not revoked:
        revoked = " (revoked)"
    period, in_period = "none", ""
    if row["renewal"] is not None:
        period, month = f"{row['renewal']} ({row['month']})", row["in_one_month"]
        alone = "" if month["alone"] else " (as in a lifetime: refusals tell of others)"
        in_period = shown_up(month["epsilon"]) + alone
    return [
        _plain(row["analyst"]) + revoked,
        row["farthings"],
        row["farthings_spent"],
        period,
        in_period,
        shown_up(row["lifetime"]["epsilon"]),
    ]


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _table(header: str, rows: Iterable[list[Any]]) -> str:
    rule = " | ".join(["---"] * (header.count(" | ") + 1))
    lines = (header, rule, *(" | ".join(map(str, row)) for row in rows))
    return "\n".join(f"| {line} |" for line in lines)


def _items(pairs: list[list[Any]]) -> str:
    return ", ".join(f"{times} x {guarantee}" for guarantee, times in pairs)


def _limits(limits: dict[str, int | None]) -> str:
    keys, rows = limits["contribution_limit"], limits["per_key_limit"]
    said = [
        *([] if keys is None else [f"at most {many(keys, 'key')}"]),
        *([] if rows is None else [f"at most {many(rows, 'row')} of a key"]),
    ]
    return ", ".join(said) or "as each question says"


def _beside(names: list[str]) -> list[str]:
    """Datasets on the same data, if there are any."""
    if not names:
        return []
    others = ", ".join(map(_plain, names))
    return [f"On the same data: {others}. What is said over all accounts counts theirs too."]


def _plain(text: str) -> str:
    """Names come from people; keep them from being read as Markdown."""
    for mark in "\\`*_|[]<>#":
        text = text.replace(mark, "\\" + mark)
    return text
