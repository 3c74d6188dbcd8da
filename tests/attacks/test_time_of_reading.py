"""Texts that a parser reads in exponential time: thirty joins, or types one inside the other, in a
question of 400 characters kept a thread of the service, and all who wait for it, busy for ever."""

from __future__ import annotations

import pytest

from farthing.engine.where_text.parsing import SqlText
from farthing.engine.where_text.reading import filter_in
from farthing.errors import InvalidInput

#: What is repeated; each repetition doubled the time.
REPEATED = [
    " JOIN a",
    " LEFT JOIN (a)",
    " a JOIN",
    " STRAIGHT_JOIN a",
    " INT(",
    " DATE(",
    " TIMESTAMP(",
    " (VARCHAR2",
    " DATEMULTIRANGE(",
    " ( UNION",
]


@pytest.mark.parametrize("repeated", REPEATED)
@pytest.mark.parametrize("begin", ["SELECT COUNT(*) FROM a", "SELECT a", "a ="])
def test_what_takes_for_ever_is_refused_before_it_is_parsed(begin, repeated):
    with pytest.raises(InvalidInput, match="at most 8 words like"):
        SqlText.of(begin + 20 * repeated + " 1" + 20 * repeated.count("(") * ")")


def test_what_people_write_is_read():
    dates = ", ".join(f"DATE '2026-01-{day:02}'" for day in range(1, 31))
    assert filter_in(f"day in ({dates}) and name != 'JOIN' and not \"UNION\" = 'UNION ALL'")
    assert filter_in(" or ".join(f"(date > DATE '20{n}-01-01' and n < {n})" for n in range(10, 20)))
