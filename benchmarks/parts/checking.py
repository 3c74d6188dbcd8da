"""The checker beside the engine: CPU seconds to make, to verify and to check what people sign."""

from __future__ import annotations

import time
from itertools import pairwise

import farthing as fa
from benchmarks.findings import Findings, Table
from farthing import checker
from farthing.composition.tariffs.certificate import Proof
from farthing.composition.tariffs.prices import ladder
from farthing.composition.tariffs.verification import verify_document

README = fa.Tariff(
    {"select": (fa.BoundedRange(0.1), 1), "count": (fa.PureDP(0.1), 4)}, farthings=400
)


def measure() -> Findings:
    """The tariff of the README, and a ladder of (1, 10⁻⁶)."""
    rows = []
    for name, make in (
        ("the README's, 400 farthings", README.certify),
        ("ladder of (1, 1e-6)", lambda: ladder(epsilon=1.0, delta=1e-6)),
    ):
        times = [time.process_time()]
        document = make().to_json()
        times.append(time.process_time())
        Proof.of.cache_clear()
        verify_document(document)
        times.append(time.process_time())
        claims = checker.check(document)
        times.append(time.process_time())
        took = [f"{later - sooner:.1f} s" for sooner, later in pairwise(times)]
        rows.append([name, str(claims), *took])
    header = ["certificate", "claims", "made", "verified", "checked"]
    caption = "Seconds of one processor: the engine, the engine again, and the checker alone."
    return Findings("Checking certificates", (Table(caption, header, rows),))
