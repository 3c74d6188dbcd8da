"""Data to try things on: a made-up table of engagements, and the words of Macbeth."""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path

ROWS = 1_000_000
UNIT = "member_id"


def members_and_articles(rows: int) -> tuple[int, int]:
    """Ten rows for each member, and twenty members for each article, roughly."""
    members = max(rows // 10, 10)
    return members, max(members // 20, 20)


def write_engagements(path: Path, rows: int) -> None:
    """The table, with fixed pseudo-randomness."""
    import duckdb

    members, articles = members_and_articles(rows)
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


def macbeth_word_counts() -> tuple[list[str], list[int]]:
    """The words of Macbeth and how often each occurs, most frequent first."""
    text = files("farthing.lab").joinpath("macbeth_word_counts.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    return [row["word"] for row in rows], [int(row["count"]) for row in rows]
