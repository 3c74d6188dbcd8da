"""64 clients race for one cap: exactly that is spent, and nothing fails.

Until each was refused once; FARTHING_RACE_SECONDS=60 makes it longer, with more to race for.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import pytest

from farthing.engine import Desk
from farthing.ledger import Ledger, verify
from tests.server.deployment import CAP, TARIFF, Deployment

SECONDS = float(os.environ.get("FARTHING_RACE_SECONDS", "5"))
#: What is raced for when there is more time.
LONGER = 2_000
CLIENTS = 64
EVENTS = "/v1/datasets/events"


def race(deployed: Deployment, number: int, until: float) -> Counter[str]:
    """One client: the same kind of question as fast as it can, paid anew each time."""
    found: Counter[str] = Counter()
    with deployed.client("ann" if number % 2 else "bob") as client:
        while time.monotonic() < until or not found["402 does_not_fit"]:
            query = {"kind": "count", "where": {"age": number}}
            body = {"query": query, "again": True}
            try:
                answer = client.post(f"{EVENTS}/run", json=body)
            except httpx.TransportError as error:
                found[type(error).__name__] += 1
                break
            kind = "" if answer.status_code == 200 else answer.json()["error"]["kind"]
            found[f"{answer.status_code} {kind}".strip()] += 1
            if answer.status_code >= 500 or (kind == "does_not_fit" and SECONDS <= 5):
                break
    return found


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_the_cap_is_spent_exactly(deploy, database: str, request) -> None:
    target = None if database == "sqlite" else request.getfixturevalue("postgres_url")
    limits = {"requests_per_minute": 10**7, "jobs_at_once": CLIENTS, "answer_within": 100}
    deployed: Deployment = deploy(target, limits, workers=2)
    cap = CAP if SECONDS <= 5 else LONGER
    with Ledger.open(deployed.ledger) as ledger:
        if SECONDS > 5:
            tariff = replace(TARIFF, farthings=LONGER)
            coarse = tariff.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))
            Desk(ledger, owner="team").sign("events", coarse, name="longer")
        for name in ("ann", "bob"):
            ledger.owner().grant("events", name, farthings=cap)  # together more than the cap
    until = time.monotonic() + SECONDS
    with ThreadPoolExecutor(CLIENTS) as pool:
        found = sum(pool.map(lambda n: race(deployed, n, until), range(CLIENTS)), Counter())
    if SECONDS > 5:
        print(dict(found))
    assert set(found) <= {"200", "402 does_not_fit"}, found
    assert found["200"] == cap // 4, found
    with Ledger.open(deployed.ledger) as ledger:
        account = ledger.reader().accounts("events")[-1]
        assert account.farthings_spent == cap
        spent = [purse.farthings_spent for purse in ledger.reader().purses("events")]
        assert sum(spent) == cap
        assert not ledger.reader().open_reservations("events")
        verify(ledger.reader())
