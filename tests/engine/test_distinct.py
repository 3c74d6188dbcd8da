"""A kind of question is one file and one line: Python, plain data and the command line follow."""

from __future__ import annotations

import ast
import json
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
from farthing.engine.kinds.counts import DistinctQuery
from farthing.errors import InvalidInput
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
