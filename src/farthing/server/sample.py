"""Data to try the service on: engagements of members with articles, made up, and a budget for it.

Articles and companies are Zipf-shaped; each member has a company, a seniority and a country, and
each engagement a day. The same every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from farthing.engine import Declaration, Desk, open_source
from farthing.engine.first_budget import EpsilonDelta
from farthing.ledger import Ledger, Limits
from farthing.server.access.store import AccessStore
from farthing.server.access.tokens import ANALYST, OWNER, mint

ROWS = 1_000_000
DATASET, UNIT = "engagements", "member_id"
EPSILON, DELTA = 3.0, 1e-6
ANALYSTS = ("ann", "bob")
#: Rows for each member, and members for each article, roughly.
_ROWS_EACH, _MEMBERS_EACH = 10, 20
_CONFIGURATION = """\
# Made by `farthing serve`; change what you like.
listen = "127.0.0.1:8410"
workers = 1
ledger = "budget.db"

[datasets.engagements]
data = "engagements.parquet"

[logs]
audit = "audit.jsonl"
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was made: where its configuration is, and tokens by name, shown now and never again."""

    configuration: Path
    tokens: dict[str, str]


def make_sample(folder: Path, rows: int = ROWS) -> Sample:
    """Data, ledger with a signed tariff, an owner and two analysts, in a new folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    data = folder / "engagements.parquet"
    write_engagements(data, rows)
    source = open_source(data)
    with Ledger.open(folder / "budget.db") as ledger:
        desk = Desk(ledger, owner=OWNER)
        declared = Declaration(unit=UNIT, limits=Limits(contribution_limit=20, per_key_limit=10))
        desk.add(source, declared, name=DATASET)
        source.shut()
        cap = desk.sign(DATASET, EpsilonDelta(EPSILON, DELTA).certificate())
        share = cap.farthings // (len(ANALYSTS) + 1)  # some is left to grant
        for name in ANALYSTS:
            desk.grant(DATASET, name, farthings=share)
    access = AccessStore(str(folder / "access.db"))
    made = {OWNER: mint(access, OWNER, OWNER)[0]}
    made |= {name: mint(access, ANALYST, name)[0] for name in ANALYSTS}
    access.shut()
    # last: where it is, everything is
    configuration = folder / "farthing.toml"
    configuration.write_text(_CONFIGURATION, encoding="utf-8")
    return Sample(configuration, made)


def write_engagements(path: Path, rows: int) -> None:
    """The table, with fixed pseudo-randomness."""
    import duckdb

    members = max(rows // _ROWS_EACH, 10)
    articles = max(members // _MEMBERS_EACH, 20)
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.42)")
        connection.execute("SET threads = 1")
        connection.execute(
            f"""
            CREATE TABLE members AS SELECT i AS member_id,
                'company ' || (1 + floor(pow(2000, random())))::INTEGER AS company,
                ['entry', 'senior', 'manager', 'director'][1 + floor(4 * pow(random(), 2))::INTEGER]
                    AS seniority,
                ['NO', 'SE', 'DK', 'FI', 'IS'][1 + floor(5 * pow(random(), 1.5))::INTEGER]
                    AS country
            FROM range({members}) t(i)
            """
        )
        connection.execute(
            f"""
            COPY (
                SELECT member_id, 'article ' || floor(pow({articles}, shape))::INTEGER AS article,
                    company, seniority, country,
                    DATE '2026-01-01' + floor(181 * pow(late, 0.8))::INTEGER AS day
                FROM (SELECT floor({members} * pow(random(), 1.3))::BIGINT AS who,
                        random() AS shape, random() AS late FROM range({rows}))
                JOIN members ON member_id = who
            ) TO '{path}' (FORMAT parquet)
            """
        )
