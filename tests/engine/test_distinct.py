"""A kind of question is one file and one line: Python, plain data and the command line follow."""

from __future__ import annotations

import ast
import json
import math
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import farthing as fa
from farthing.cli.query import query
from farthing.engine import kinds
from farthing.engine.conversation import _require_plain
from farthing.engine.kinds import query_from
from farthing.engine.kinds.counts import DistinctQuery
from farthing.errors import InvalidInput
from farthing.mechanisms import KnownCounts, ThresholdedCounts
from tests.engine.rows import naive_histogram

FOLDER = Path(kinds.__file__).parent
ROWS = pa.table(
    {
        "member": [i // 4 for i in range(4000)],
        "k": [None if i % 50 == 0 else f"v{i % 37}" for i in range(4000)],
        "x": [1.5] * 4000,
    }
)


def test_the_number_is_that_of_the_values_kept(opened) -> None:
    session = opened(ROWS)
    for limit in (1, 2, 4):
        answer = session.distinct("k", contribution_limit=limit, count="fine").run()
        secret = session.backend._context.analyst.secret()
        present = ROWS.filter(pa.compute.is_valid(ROWS["k"]))
        kept = naive_histogram(present, "member", ["k"], secret=secret, limit=limit, per_key=1)
        assert abs(answer.value - len(kept)) <= 3 * answer.half_width
    assert session.distinct("k", contribution_limit=1).plan().price.farthings == 4


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcdef")), max_size=30),
    st.integers(1, 3),
)
def test_one_unit_more_adds_at_most_its_limit(pairs, limit) -> None:
    def kept(rows) -> int:
        table = pa.table({"u": [u for u, _ in rows], "k": [k for _, k in rows]})
        return len(naive_histogram(table, "u", ["k"], secret="s", limit=limit, per_key=1))

    others = [(u, k) for u, k in pairs if u != 0]
    assert 0 <= kept(pairs) - kept(others) <= limit


GROUPED = pa.table(
    {
        "member": [i // 6 for i in range(3000)],
        "c": ["NO" if i % 3 else "SE" for i in range(3000)],
        "k": [None if i % 50 == 0 else f"v{i % 97}" for i in range(3000)],
    }
)


def kept_of_each(rows: pa.Table, secret: str, limit: int) -> Counter[str]:
    """By brute force: the first pairs of each unit, then the different values of each label."""
    present = rows.filter(pa.compute.is_valid(rows["k"]))
    kept = naive_histogram(present, "member", ["c", "k"], secret=secret, limit=limit, per_key=1)
    return Counter(text.split("|")[0] for text in kept)


def test_by_group_it_is_the_number_of_the_pairs_kept(opened) -> None:
    session = opened(GROUPED)
    for limit, categories in ((1, None), (2, ["NO", "SE", "DK"]), (9, ["SE"])):
        asked = session.distinct(
            "k", by="c", contribution_limit=limit, categories=categories, count="fine"
        )
        rows = GROUPED
        if categories:
            rows = rows.filter(pa.compute.is_in(rows["c"], pa.array(categories)))
        kept = kept_of_each(rows, session.backend._context.analyst.secret(), limit)
        answer = asked.run()
        assert set(answer.labels) == set(categories or ["NO", "SE"])
        for label, number in zip(answer.labels, answer.counts, strict=True):
            assert abs(number - kept[f"s{label}"]) <= 60 * limit, (label, limit)
        assert all(low >= 0 for low, _ in answer.intervals)
        one = session.distinct("k", contribution_limit=limit, count="fine").plan()
        assert asked.plan().price.farthings == one.price.farthings + (categories is None)


def test_by_group_in_sql_and_as_plain_data(opened) -> None:
    session = opened(GROUPED)
    text = "SELECT c, COUNT(DISTINCT k) FROM t GROUP BY c OPTIONS (contribution_limit = 2)"
    asked = session.sql(text.replace("FROM t", f"FROM {session.backend._context.about.name}"))
    assert asked.query == DistinctQuery("k", by="c", contribution_limit=2)
    assert query_from(asked.query.to_json()) == asked.query
    assert "The number of distinct values of `k` for each `c`" in str(asked.run())


def test_limits_that_follow_from_the_columns(opened) -> None:
    """One country for each member does not mean one value: the limit is on pairs."""
    session = opened(GROUPED).per_unit(home=fa.max("c"), last=fa.max("k"))
    with pytest.raises(InvalidInput, match="contribution_limit must be given"):
        session.distinct("k", by="home").plan()
    assert session.distinct("last", by="home").plan().query.contribution_limit == 1


def test_what_a_key_needs(opened) -> None:
    session = opened(GROUPED)
    with pytest.raises(InvalidInput, match="need by"):
        session.distinct("k", contribution_limit=1, categories=["NO"])
    with pytest.raises(InvalidInput, match="repeats needs categories"):
        session.distinct("k", by="c", contribution_limit=1, repeats=2)
    with pytest.raises(InvalidInput, match="one number"):
        _require_plain(session.distinct("k", by="c", contribution_limit=1).query)


def test_no_discrete_gaussian_item_pays_for_several_numbers() -> None:
    """Its noise has directions: a change of several numbers is not that of one."""
    whole = DistinctQuery("k", by="c", contribution_limit=2, categories=["NO"])
    assert not whole.suits("count", fa.DiscreteGaussian(1.0, 2))
    assert replace(whole, by=None, categories=None).suits("count", fa.DiscreteGaussian(1.0, 2))
    for made in (KnownCounts, partial(ThresholdedCounts, delta=1e-6)):
        limits = {"contribution_limit": 2, "per_key_limit": 2, "in_all": True}
        with pytest.raises(InvalidInput, match="all counts together"):
            made(coordinate=fa.DiscreteGaussian(1.0, 2), **limits)
        assert made(coordinate=fa.PureDP(1.0), **limits).guarantees[0] == (fa.PureDP(1.0), 1)


@pytest.mark.parametrize("shift", [(2, 0), (1, 1), (0, 1)])
def test_numbers_that_change_together_cost_one_coordinate(shift) -> None:
    """By enumeration: the loss of a shift of several numbers is at most ε in each direction."""
    noise = KnownCounts(
        coordinate=fa.PureDP(0.7), contribution_limit=2, per_key_limit=2, in_all=True
    ).noise
    mass = {z: float(noise.tail(z).mid() - noise.tail(z + 1).mid()) for z in range(-9, 10)}
    for one, other in product(range(-6, 7), repeat=2):
        moved = mass[one - shift[0]] * mass[other - shift[1]]
        assert abs(math.log(mass[one] * mass[other] / moved)) <= 0.7 + 1e-9


def test_from_everywhere(opened, tmp_path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(ROWS, path)
    session = opened(str(path))
    asked = session.ask({"kind": "distinct", "column": "k", "contribution_limit": 2})
    assert asked.query == DistinctQuery("k", contribution_limit=2)
    first = asked.run()
    shell = CliRunner().invoke(
        query,
        [
            *("distinct", str(path), "--ledger", str(tmp_path / "budget.db")),
            *("--column", "k", "--contribution-limit", "2", "--json"),
        ],
        catch_exceptions=False,
    )
    again = json.loads(shell.stdout)
    assert again["cached"]
    assert again["counts"] == list(first.counts)
    assert "The number of distinct values of `k`" in str(first)


def test_what_it_refuses(opened) -> None:
    session = opened(ROWS, limits=fa.Limits(contribution_limit=2))
    with pytest.raises(InvalidInput, match="at most 2"):
        session.distinct("k", contribution_limit=3).plan()
    with pytest.raises(InvalidInput, match="must be integer or decimal or text"):
        session.distinct("x", contribution_limit=1).plan()
    with pytest.raises(InvalidInput, match="unit of privacy"):
        session.distinct("member").plan()


def test_kinds_do_not_know_each_other() -> None:
    files = {kind.__module__.rsplit(".", 1)[1] for kind in kinds.KINDS.values()}
    for name in files:
        tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
        imported = {
            node.module.rsplit(".", 1)[1]
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module
            if node.module.startswith("farthing.engine.kinds.")
        }
        assert not imported & files, name


def test_a_kind_is_named_in_one_line() -> None:
    """Outside its own file, one import and one line of the registry."""
    source = FOLDER.parents[1]
    named = [
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if "istinct" in path.read_text(encoding="utf-8") and path.name != "counts.py"
        if "DistinctQuery" in path.read_text(encoding="utf-8")
    ]
    assert named == ["engine/kinds/__init__.py"]
