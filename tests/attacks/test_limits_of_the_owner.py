"""No way of asking counts more of a unit than the owner allows."""

from __future__ import annotations

import pyarrow as pa
import pytest

import farthing as fa


@pytest.mark.parametrize("measure_loss", [False, True])
def test_a_limit_that_is_looked_for_stays_below_that_of_the_owner(tmp_path, measure_loss):
    rows = pa.table({"member": [1, 2, 3], "k": ["a", "b", "c"]})
    with fa.open(
        rows,
        ledger=tmp_path / "ledger.db",
        dataset="rows",
        unit="member",
        epsilon=1,
        delta=1e-6,
        limits=fa.Limits(contribution_limit=4),
    ) as session:
        asked = session.top_k("k", 2, contribution_limit="auto", measure_loss=measure_loss)
        plan = asked.plan()
        limits = [
            one.query.contribution_limit
            for one in plan.details.searches[""].automatic.choices.values()
        ]
        assert limits == [1, 4]
        assert plan.run().query.contribution_limit in limits
