"""Made-up tables that several parts ask about, the same on every machine."""

from __future__ import annotations

from pathlib import Path

import duckdb

#: Different labels of `events`, at most.
KEYS = 100_000
#: In `salaries` everybody has a row in this many of the teams.
TEAMS_EACH, TEAMS = 10, 100
UPPER = 100_000
#: In `visits` nobody has more rows.
MOST_VISITS = 20


def events(path: Path, rows: int) -> None:
    """Articles that members read: ten rows a member on average, keys with a Zipf-like shape."""
    duckdb.sql(
        f"COPY (SELECT (hash(i) % {rows // 10})::BIGINT AS member, "
        f"pow({KEYS}, (hash(7 * i + 1) % 1000003) / 1000003.0)::BIGINT AS article, "
        f"'article ' || pow({KEYS}, (hash(7 * i + 1) % 1000003) / 1000003.0)::BIGINT AS title "
        f"FROM range({rows}) t(i)) TO '{path}'"
    )


def salaries(path: Path, rows: int) -> None:
    """Amounts that differ between teams, one for each of ten teams of every member."""
    share = "(hash({} * i + {}) % 999983 + 1) / 999984.0"
    normal = f"sqrt(-2 * ln({share.format(3, 1)})) * cos(6.283185307 * {share.format(5, 2)})"
    own = f"i // {TEAMS_EACH}"
    team = f"((hash({own}) % {TEAMS} + 7 * (i % {TEAMS_EACH})) % {TEAMS})::BIGINT"
    # the alias of team is used in the same list: DuckDB allows it
    worth = f"least({UPPER}, exp(9.5 + 0.005 * team + 0.6 * {normal})::BIGINT)"
    duckdb.sql(
        f"COPY (SELECT {own} AS member, {team} AS team, {worth} AS worth "
        f"FROM range({rows}) t(i)) TO '{path}'"
    )


def visits(path: Path, rows: int) -> None:
    """What members look at and buy on some days: about ten rows of each, at most twenty."""
    number = f"(hash(3 * i + 2) % {rows // 10})"
    event = "['look', 'look', 'cart', 'buy'][(hash(5 * i + 3) % 4)::BIGINT + 1]"
    duckdb.sql(
        f"COPY (SELECT ({number})::BIGINT AS member, DATE '2024-01-01' + "
        f"(hash({number}) % 90 + hash(7 * i) % 120)::INTEGER AS day, {event} AS event, "
        f"(hash(11 * i + 1) % {UPPER})::BIGINT AS worth, (1 + hash(13 * i + 5) % 9)::BIGINT AS "
        f"pieces FROM range({rows}) t(i) "
        f"QUALIFY row_number() OVER (PARTITION BY {number} ORDER BY i) <= {MOST_VISITS} "
        f"ORDER BY i) TO '{path}'"
    )
