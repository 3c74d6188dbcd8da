"""A statement in Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from farthing.ledger.records import BATCH, TARIFF
from farthing.numerics.rounding import shown_up
from farthing.wording import many

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
    lines = [
        f"# Privacy statement for {_plain(data['dataset'])}",
        "",
        f"- Owner: {_plain(data['owner'])}",
        f"- Unit of privacy: {_plain(data['unit_of_privacy'])}",
        f"- Neighbouring datasets: {data['neighbouring_relation']}",
        f"- Contribution of one unit: {_limits(data['limits'])}",
        *_beside(data["beside"]),
        f"- Version of the rows: {_plain(data['version'] or 'live')}",
        f"- Made by farthing {data['farthing_version']} at {data['made']}, for δ = {data['delta']}",
        *(
            f"- Book of {_plain(name)}: {head['entries']} entries, head {head['hash']}"
            for name, head in data["heads"].items()
        ),
        "",
        "## Everything that can ever be released, over all accounts",
        "",
        *_table(
            "to whom | accounts | ε at most | δ | if",
            [
                *(_lifetime(_plain(row["analyst"]), row) for row in data["per_analyst"]),
                _lifetime("all analysts colluding, as granted", data["colluding"]),
                *(_lifetime("the dataset as a whole, to its caps", r) for r in data["lifetime"]),
            ],
        ),
        "",
        data["above_the_signed"],
        "",
        "## Released so far, all analysts together",
        "",
        _reached(data["so_far"]),
        "",
        *_used(data["used_so_far"]),
        "",
        *_conversations(data["conversations"]),
        f"## Rows: {data['growing_rows']['case']}",
        "",
        data["growing_rows"]["says"],
    ]
    for account in data["accounts"]:
        lines += ["", *_account_lines(account)]
    for title, key in (
        ("Trust", "trust_model"),
        ("Assumptions", "assumptions"),
        ("Numerical measures", "numerical_measures"),
    ):
        lines += ["", f"## {title}", "", *(f"- {line}" for line in data[key])]
    return "\n".join(lines) + "\n"


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


def _used(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return ["Nothing was run yet."]
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
    return [title, "", *_table(header, cells), ""]


def _account_lines(account: dict[str, Any]) -> list[str]:
    state = "in force" if account["in_force"] else "retired"
    title = f"{_plain(account['number'])}: {_plain(account['name'])}"
    claims = ([c["delta"], shown_up(c["epsilon"]), c["theorem"]] for c in account["claims"])
    lines = [
        f"## Account {title} ({account['mode']}, {state})",
        "",
        f"- Certificate: {account['digest']}",
        f"- Computed by: {', '.join(f'{k} {v}' for k, v in account['versions'].items())}",
        "",
        *_table("δ | ε at most, this account spent to the end | by", claims),
        "",
    ]
    if account["mode"] != TARIFF:
        listed = "; ".join(
            f"{_plain(name)}: {_items(what if account['mode'] == BATCH else [what])}"
            for name, what in account["list"]
        )
        who, adaptivity = _plain(account["analyst"]), account["adaptivity"]
        return [*lines, f"Run by {who}, adaptivity {adaptivity}: {listed}"]
    note = "" if account["purses_are_separate"] else _EXCEEDED
    if account["restored"]:
        note = _RESTORED
    together, month = account["colluding"], account["everybody_in_one_month"]
    return [
        *lines,
        *_table(
            "query item | guarantee | farthings | δ units",
            (
                [_plain(item["item"]), item["guarantee"], item["farthings"], item["delta_units"]]
                for item in account["per_query"]
            ),
        ),
        "",
        *_table(
            "analyst | farthings | spent | period | ε of what is reserved in one period | "
            "ε of this account in a lifetime",
            map(_analyst_row, account["per_analyst"]),
        ),
        "",
        f"Cap: {account['farthings']} farthings, {account['farthings_spent']} spent; "
        f"{account['delta_units']} δ units of {account['delta_unit']}, "
        f"{account['delta_units_spent']} spent.{note}",
        "",
        f"All analysts colluding, {together['farthings']} farthings of this account: "
        f"ε ≤ {shown_up(together['epsilon'])}; {together['theorem']}.",
        "",
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


def _table(header: str, rows: Iterable[list[Any]]) -> list[str]:
    rule = " | ".join(["---"] * (header.count(" | ") + 1))
    return [f"| {line} |" for line in (header, rule, *(" | ".join(map(str, r)) for r in rows))]


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
    return [f"- On the same data: {others}. What is said over all accounts counts theirs too."]


def _plain(text: str) -> str:
    """Names come from people; keep them from being read as Markdown."""
    for mark in "\\`*_|[]<>#":
        text = text.replace(mark, "\\" + mark)
    return text
