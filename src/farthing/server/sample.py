"""Made-up data with a budget, to try the service with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from farthing.composition.tariffs.prices import EpsilonDelta
from farthing.engine import Declaration, Desk, open_source
from farthing.lab.example_data import ROWS, UNIT, write_engagements
from farthing.ledger import Ledger, Limits
from farthing.server.access import ANALYST, OWNER, AccessStore, mint

DATASET = "engagements"
EPSILON, DELTA = 3.0, 1e-6
ANALYSTS = ("ann", "bob")
_CONFIGURATION = """\
# Made by `farthing serve`; change what you like.
listen = "127.0.0.1:8410"
workers = 1
ledger = "budget.db"

[datasets.engagements]
data = "engagements.parquet"

[logs]
audit = "audit.jsonl"
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample: the place of its configuration, and its tokens by name, shown once."""

    configuration: Path
    tokens: dict[str, str]


def make_sample(folder: Path, rows: int = ROWS) -> Sample:
    """Make data, a ledger with a signed tariff, an owner and two analysts in a new folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    data = folder / "engagements.parquet"
    write_engagements(data, rows)
    source = open_source(data)
    with Ledger.open(folder / "budget.db") as ledger:
        desk = Desk(ledger, owner=OWNER)
        declared = Declaration(unit=UNIT, limits=Limits(contribution_limit=20, per_key_limit=10))
        desk.add(source, declared, name=DATASET)
        source.shut()
        cap = desk.sign(DATASET, EpsilonDelta(EPSILON, DELTA).certificate())
        share = cap.farthings // (len(ANALYSTS) + 1)  # some is left to grant
        for name in ANALYSTS:
            desk.grant(DATASET, name, farthings=share)
    access = AccessStore(str(folder / "access.db"))
    made = {OWNER: mint(access, OWNER, OWNER)[0]}
    made |= {name: mint(access, ANALYST, name)[0] for name in ANALYSTS}
    access.shut()
    # last: where it is, everything is
    configuration = folder / "farthing.toml"
    configuration.write_text(_CONFIGURATION, encoding="utf-8")
    return Sample(configuration, made)
