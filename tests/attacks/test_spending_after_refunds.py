"""A batch that gets something back tells what it paid, and never less than nothing before it."""

from __future__ import annotations

import pyarrow as pa

import farthing as fa


def test_a_batch_tells_what_was_paid(tmp_path):
    rows = pa.table({"member": [1, 2, 3], "k": ["a", "b", "c"]})
    with fa.open(
        rows, ledger=tmp_path / "ledger.db", dataset="rows", unit="member", epsilon=1, delta=1e-6
    ) as session:
        plan = session.batch({"few": session.top_k("k", 5, contribution_limit=3)}).plan()
        answer = plan.run()["few"]
        assert answer.price.farthings < plan.price.farthings, "nothing stands out among three rows"
        granted = session.purse().farthings
        assert answer.spending.share == answer.price.farthings / granted
        assert answer.spending.epsilon_before == 0


def test_no_question_is_called_like_what_is_measured_beside_another(tmp_path):
    rows = pa.table({"member": [1, 2, 3], "k": ["a", "b", "c"]})
    with fa.open(
        rows, ledger=tmp_path / "ledger.db", dataset="rows", unit="member", epsilon=1, delta=1e-6
    ) as session:
        asked = {
            "a": session.histogram("k", contribution_limit=1),
            "a above the limit": session.count(),
        }
        try:
            answers = session.batch(asked).run()
        except fa.FarthingError:
            assert session.purse().farthings_spent == 0
        else:
            assert set(answers) == set(asked)
