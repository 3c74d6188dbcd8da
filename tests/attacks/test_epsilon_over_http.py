"""The whole path, from outside: a real service, two neighbouring tables, and an analyst who
measures how far the answers tell them apart. What is measured stays below the price; a service that
forgets its limits is caught by the same measurement."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pyarrow as pa
import pyarrow.parquet
import pytest

import farthing as fa
from farthing.engine import Declaration, Desk, open_source
from farthing.engine import context as compiling
from farthing.engine.kinds.counts import CountQuery
from farthing.engine.sql import bounding
from farthing.lab.audit import Audit, audit
from farthing.ledger import Ledger
from farthing.server.access import AccessStore, mint
from tests.server.deployment import Deployment
from tests.server.in_process import served

pytestmark = pytest.mark.slow

#: What one answer costs, and how many there are about each table.
EPSILON, TRIALS, TOGETHER = 0.5, 1200, 400
#: Rows of the unit that only one of the tables has.
ROWS = 4


class Answers:
    """A count over HTTP, as a mechanism of the name of a dataset."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._told: dict[str, Iterator[float]] = {}
        self._asked = 0

    def run(self, dataset: str) -> float:
        for count in self._told.get(dataset, iter(())):
            return count
        self._told[dataset] = self._more(dataset)
        return self.run(dataset)

    def _more(self, dataset: str) -> Iterator[float]:
        """Many answers about the same rows: no two filters are the same, and all keep every row."""
        batch = {}
        for _ in range(TOGETHER):
            self._asked += 1
            batch[f"q{self._asked}"] = {"kind": "count", "where": {"x": {"above": -self._asked}}}
        response = self._client.post(f"/v1/datasets/{dataset}/run", json={"batch": batch})
        assert response.status_code == 200, response.text
        told = response.json()["answers"].values()
        assert {one["price"]["farthings"] for one in told} == {1}
        return iter([one["counts"][0] for one in told])


@pytest.fixture
def neighbours(tmp_path) -> Deployment:
    """Two datasets of a service; one has a unit that the other has not."""
    tariff = fa.Tariff({"count": (fa.PureDP(EPSILON), 1)}, farthings=TRIALS)
    certificate = tariff.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))
    deployed = Deployment(tmp_path, str(tmp_path / "budget.db"))
    with Ledger.open(deployed.ledger) as ledger:
        for name, units in (("without", ["a"]), ("with", ["a"] + ["b"] * ROWS)):
            rows = pa.table({"unit": units, "x": [0] * len(units)})
            pyarrow.parquet.write_table(rows, tmp_path / f"{name}.parquet")
            desk, source = Desk(ledger), open_source(tmp_path / f"{name}.parquet")
            desk.add(source, Declaration(unit="unit"), name=name)
            source.shut()
            desk.sign(name, certificate)
            desk.grant(name, "ann", farthings=TRIALS)
    store = AccessStore(deployed.access)
    deployed.tokens["ann"] = mint(store, "analyst", "ann")[0]
    store.shut()
    return deployed


def measured(neighbours: Deployment) -> Audit:
    datasets = {name: {"data": f"{name}.parquet"} for name in ("without", "with")}
    limits = {"answer_within": 3600.0, "time_limit": 3600.0, "unpaid_seconds_per_minute": 1e6}
    with served(neighbours, datasets, **limits) as ann:
        ann.timeout = httpx.Timeout(None)
        return audit(Answers(ann), "with", "without", trials=TRIALS, confidence=0.999)


def test_the_price_is_what_is_told_over_http(neighbours) -> None:
    found = measured(neighbours)
    assert found.epsilon <= EPSILON
    with Ledger.open(neighbours.ledger) as ledger:
        for name in ("with", "without"):
            assert ledger.analyst(name, "ann").purse().farthings_spent == TRIALS, "all was paid for"


def test_a_service_without_limits_is_caught(neighbours, monkeypatch) -> None:
    """The statement counts every row of a unit; nothing else is changed."""

    def everything(_, rows):
        return bounding.counted_rows(rows.table, rows.owner, 10**6)

    monkeypatch.setattr(CountQuery, "bounded", everything)
    monkeypatch.setattr(compiling.Contribution, "within", lambda *_: True)
    assert measured(neighbours).epsilon > EPSILON
