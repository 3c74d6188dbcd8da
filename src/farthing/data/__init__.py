"""Public counts for examples, benchmarks and tests."""

from __future__ import annotations

import csv
from importlib.resources import files


def macbeth_word_counts() -> tuple[list[str], list[int]]:
    """The words of Macbeth and how often each occurs, most frequent first."""
    text = files("farthing.data").joinpath("macbeth_word_counts.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    return [row["word"] for row in rows], [int(row["count"]) for row in rows]
