"""How often a question looks into the ledger: a plan reads one moment, a run is two writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

from farthing.ledger.store.connection import Store

READS = ("ask", "look_up", "read")
WRITES = ("write", "write_fast")


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """How many transactions begin in here."""
    found = {"reads": 0, "writes": 0}

    def counting(name: str, kind: str):
        real = getattr(Store, name)

        def method(self, *given, **more):
            found[kind] += 1
            return real(self, *given, **more)

        return method

    with monkeypatch.context() as during:
        for kind, names in (("reads", READS), ("writes", WRITES)):
            for name in names:
                during.setattr(Store, name, counting(name, kind))
        yield found


def test_a_run_takes_five_transactions_and_two_of_them_write(opened, monkeypatch) -> None:
    rows = {"member": list(range(60)), "article": [f"a{i % 3}" for i in range(60)]}
    events = opened(pa.table(rows))
    events.top_k("article", k=2).run()  # what never changes is looked up once
    question = events.top_k("article", k=3)
    with counted(monkeypatch) as planning:
        plan = question.plan()
    assert planning == {"reads": 2, "writes": 0}
    with counted(monkeypatch) as running:
        plan.run()
    assert running == {"reads": 1, "writes": 2}
    with counted(monkeypatch) as again:
        assert question.run().cached
    assert again == {"reads": 2, "writes": 0}
