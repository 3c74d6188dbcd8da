"""A question about limits names the noise of its counts: whatever it names, nothing may break.

A noise so small that a ratio overflows, or so large that floats skip numbers, must not make the
answer, or whether there is one, depend on a unit by more than is paid for.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import farthing as fa
from farthing.engine.kinds.limit import PARTS, LimitQuery, total_error
from farthing.errors import InvalidInput


@pytest.mark.parametrize("noise", [5e-324, 1e-300, 1e-160, 1e-20])
def test_whether_there_is_an_answer_does_not_depend_on_a_unit(tmp_path, noise):
    for place, pairs in enumerate(([(1, "a")], [(1, "a"), (2, "a"), (2, "b")])):
        rows = pa.table({"member": [m for m, _ in pairs], "k": [k for _, k in pairs]})
        with fa.open(
            rows,
            ledger=tmp_path / f"{place}.db",
            dataset="rows",
            unit="member",
            epsilon=1,
            delta=1e-6,
        ) as session:
            query = {"kind": "limit", "by": ["k"], "limits": [1, 2], "labels": 1}
            answer = session.ask({**query, "noise": [noise, noise]}).run()
            assert answer.value in (1, 2)


@pytest.mark.parametrize("numbers", [1, 7, 10**6, 10**9])
@pytest.mark.parametrize("share", [0.0, 1e-12, 1e-6, 1e-3, 1.0])
def test_a_pair_moves_a_total_by_one_pair(numbers, share):
    error = share * (1 << 40) / numbers
    for lost in [0, 1, 5, 999, 10**6, 123456789, 10**9, 10**12, (1 << 40) - 3, 1 << 60]:
        for more in (0, 1, 2, 100):
            moved = total_error(lost + more, error, numbers) - total_error(lost, error, numbers)
            assert -1 <= moved <= PARTS * more + 2


def test_noise_that_floats_cannot_count_is_refused():
    with pytest.raises(InvalidInput, match="noise"):
        LimitQuery(by=("k",), limits=(1, 2), noise=(1e30, 1e30), labels=1)
    with pytest.raises(InvalidInput, match="noise"):
        LimitQuery(by=("k",), limits=(1, 2), noise=(1e30, 1e30))
