"""A statement in Markdown."""

from __future__ import annotations

from typing import Any

from farthing.ledger.records import BATCH, TARIFF
from farthing.numerics.rounding import shown_up
from farthing.wording import many


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
        *_rows(
            ["to whom", "accounts", "ε at most", "δ", "if"],
            [
                *(_lifetime(_plain(row["analyst"]), row) for row in data["per_analyst"]),
                _lifetime("all analysts colluding, as granted", data["colluding"]),
                *(
                    _lifetime("the dataset as a whole, to its caps", row)
                    for row in data["lifetime"]
                ),
            ],
        ),
        "",
        data["above_the_signed"],
        "",
        "## Released so far, all analysts together",
        "",
        *_reached(data["so_far"]),
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


def _lifetime(who: str, row: dict[str, Any]) -> list[str]:
    accounts = ", ".join(map(_plain, row["accounts"])) if "accounts" in row else "all"
    return [who, accounts, shown_up(row["epsilon"]), str(row["delta"]), row["if"]]


def _reached(reading: dict[str, Any]) -> list[str]:
    if reading["epsilon"] is None:
        return [f"Not stated: {reading['why']}"]
    assuming = "" if reading["assuming"] is None else f" It holds if {reading['assuming']}."
    return [
        f"ε ≤ {shown_up(reading['epsilon'])} at δ = {reading['delta']}, at the level "
        f"reached: {reading['farthings_spent']} of {reading['cap']} farthings spent. By the "
        f"{reading['theorem']}.{assuming}"
    ]


def _used(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return ["Nothing was run yet."]
    return _rows(
        ["what was run", "of each unit at most", "guarantees", "times"],
        [
            [
                *(_plain(r[name]) for name in ("what", "contribution", "guarantees")),
                str(r["times"]),
            ]
            for r in rows
        ],
    )


def _conversations(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    header = ["conversation", "analyst", "charged when opened", "farthings", "asked", "state"]
    return [
        "## Conversations, each charged in full when it was opened",
        "",
        *_rows(
            header,
            [
                [
                    *(_plain(r[name]) for name in ("mechanism", "analyst", "guarantees")),
                    str(r["farthings"]),
                    "" if r["asked"] is None else str(r["asked"]),
                    _plain(r["outcome"]),
                ]
                for r in rows
            ],
        ),
        "",
    ]


def _account_lines(account: dict[str, Any]) -> list[str]:
    state = "in force" if account["in_force"] else "retired"
    title = f"{_plain(account['number'])}: {_plain(account['name'])}"
    lines = [
        f"## Account {title} ({account['mode']}, {state})",
        "",
        f"- Certificate: {account['digest']}",
        f"- Computed by: {', '.join(f'{k} {v}' for k, v in account['versions'].items())}",
        "",
        *_rows(
            ["δ", "ε at most, this account spent to the end", "by"],
            [[str(c["delta"]), shown_up(c["epsilon"]), c["theorem"]] for c in account["claims"]],
        ),
    ]
    if account["mode"] != TARIFF:
        who = _plain(account["analyst"])
        listed = "; ".join(
            f"{_plain(name)}: {_items(what if account['mode'] == BATCH else [what])}"
            for name, what in account["list"]
        )
        return [*lines, "", f"Run by {who}, adaptivity {account['adaptivity']}: {listed}"]
    separate = "" if account["purses_are_separate"] else (
        " The purses together exceed the cap or renew, so a refusal can depend on what others "
        "spent: each analyst's lifetime is that of all together."
    )  # fmt: skip # one sentence
    if account["restored"]:
        separate = (
            " The book went on from a copy. What was granted and spent after the copy was made is "
            "not known, so all of this account counts, for everybody."
        )
    together, month = account["colluding"], account["everybody_in_one_month"]
    return [
        *lines,
        "",
        *_rows(
            ["query item", "guarantee", "farthings", "δ units"],
            [
                [_plain(i["item"]), i["guarantee"], str(i["farthings"]), str(i["delta_units"])]
                for i in account["per_query"]
            ],
        ),
        "",
        *_rows(
            [
                "analyst",
                "farthings",
                "spent",
                "period",
                "ε of what is reserved in one period",
                "ε of this account in a lifetime",
            ],
            [_analyst_row(row) for row in account["per_analyst"]],
        ),
        "",
        f"Cap: {account['farthings']} farthings, {account['farthings_spent']} spent; "
        f"{account['delta_units']} δ units of {account['delta_unit']}, "
        f"{account['delta_units_spent']} spent.{separate}",
        "",
        f"All analysts colluding, {together['farthings']} farthings of this account: "
        f"ε ≤ {shown_up(together['epsilon'])}; {together['theorem']}.",
        "",
        f"All analysts, reserved in any one month, {month['farthings']} farthings: "
        f"ε ≤ {shown_up(month['epsilon'])}; {month['if']}.",
    ]


def _analyst_row(row: dict[str, Any]) -> list[str]:
    month = row.get("in_one_month")
    period = "none" if row["renewal"] is None else f"{row['renewal']} ({row['month']})"
    return [
        _plain(row["analyst"]) + _revoked(row),
        str(row["farthings"]),
        str(row["farthings_spent"]),
        period,
        "" if month is None else _month(month),
        shown_up(row["lifetime"]["epsilon"]),
    ]


def _revoked(row: dict[str, Any]) -> str:
    """What was taken back of a purse; it is no part of what was spent."""
    if row["farthings_revoked"]:
        return f" ({row['farthings_revoked']} revoked)"
    return " (revoked)" if row["revoked"] else ""


def _month(month: dict[str, Any]) -> str:
    """A month of an analyst's own or, where the cap can refuse them, everything there is."""
    shown = shown_up(month["epsilon"])
    return shown if month["alone"] else f"{shown} (as in a lifetime: refusals tell of others)"


def _rows(header: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(r) + " |" for r in [header, ["---"] * len(header), *rows]]


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
