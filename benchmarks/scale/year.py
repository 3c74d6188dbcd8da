"""A year of a company: a day is run as it is, with a real ledger; the year is 250 such days.

200 analysts ask 20 questions on each of 250 working days, 10^6 in all, about 10^8 members. Twelve
of the twenty are a dashboard that stays the same; the data get a new version every fifth day, and
in between an answer is given again, for nothing. Each day has an account of its own, with the same
certificate, so that what a day can reveal is proved once and the year is 250 of them composed.
"""

from __future__ import annotations

import math
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import farthing as fa
from farthing.canonical import canonical, sha256
from farthing.composition.accounts.account_profiles import epsilon_of, profiles_when_spent
from farthing.ledger import Dataset, Ledger, verify

ANALYSTS, DAYS, EACH, SAVED = 200, 250, 20, 12
MEMBERS, ROWS_EACH = 10**8, 10
VERSION_DAYS = 5
EPSILON, DELTA = 3.0, 1e-9
#: What questions buy, how many of each kind there are in ten, and the items of one.
KINDS = (
    ("count or histogram", 5, {"count": 1}),
    ("sum", 3, {"count": 1}),
    ("top-10", 2, {"select": 10}),
)
SELECT, COUNT = 1, 4


@dataclass(frozen=True, slots=True)
class Day:
    """What a day of the busiest kind (a new version) did, and what it took."""

    asked: int
    charged: int
    farthings: int
    reserve_seconds: float
    kept_seconds: float
    megabytes: float
    verify_seconds: float


@dataclass(frozen=True, slots=True)
class Budget:
    """The items of a day, and what a year of such days proves."""

    each: float
    certificate: fa.Certificate
    quiet_farthings: int
    certify_seconds: float
    year: float
    compose_seconds: float

    @property
    def farthings(self) -> int:
        """Of a day on which the data are new."""
        return self.certificate.tariff.farthings


def charged_on(day: int) -> int:
    """How many questions a day pays for: the dashboard only when its data are new."""
    own = EACH - SAVED + (SAVED if day % VERSION_DAYS == 0 else 0)
    return ANALYSTS * own


def price_of(items: dict[str, int]) -> int:
    """In farthings."""
    return sum({"select": SELECT, "count": COUNT}[item] * n for item, n in items.items())


def budget() -> Budget:
    """Items so large that a year of days, all spent in full, is just within (ε, δ)."""
    mean = sum(share * price_of(items) for _, share, items in KINDS) / 10
    # the mix of a day varies by a few per cent
    busy, quiet = (math.ceil(1.05 * mean * charged_on(day)) for day in (0, 1))
    days = [busy if day % VERSION_DAYS == 0 else quiet for day in range(DAYS)]
    # what Gaussian counts alone could have; the rest is for the choice between items
    each = 0.975 / (fa.gaussian_noise_multiplier(EPSILON, DELTA) * math.sqrt(sum(days) / COUNT))
    tariff = _tariff(each, busy)
    start = time.process_time()
    certificate = tariff.certify(tolerance=0.05, deltas=(DELTA,), epsilons=(0.1,))
    certified = time.process_time() - start
    start = time.process_time()
    profiles = profiles_when_spent(tariff, frozenset({busy, quiet}), DELTA / DAYS)
    year = epsilon_of([profiles[farthings] for farthings in days], DELTA)
    composed = time.process_time() - start
    return Budget(each, certificate, quiet, certified, year, composed)


def _tariff(each: float, farthings: int) -> fa.Tariff:
    items: dict[str, tuple[fa.Guarantee, int]] = {
        "select": (fa.BoundedRange(each), SELECT),
        "count": (fa.Gaussian(1 / each), COUNT),
    }
    return fa.Tariff(items, farthings=farthings)


def one_day(found: Budget) -> Day:
    """All questions of a day with a new version, one after the other, on SQLite."""
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "budget.db"
        with Ledger.open(path) as ledger:
            ledger.owner().add(Dataset("events", unit="member", owner="team"))
            ledger.owner().sign("events", found.certificate)
            for number in range(ANALYSTS):
                share = found.farthings // ANALYSTS
                ledger.owner().grant("events", f"analyst {number}", farthings=share)
            paid, kept, farthings = [], [], 0
            for analyst, question, items in _questions(draw):
                who = ledger.analyst("events", analyst)
                start = time.perf_counter()
                known = who.release_of(question)
                kept.append(time.perf_counter() - start)
                if known is None:
                    start = time.perf_counter()
                    taken = who.reserve(items, question=question)
                    answer = {"counts": [draw.randrange(MEMBERS)]}
                    who.close(taken, sha256(canonical(answer)), release=answer)
                    paid.append(time.perf_counter() - start)
                    farthings += price_of(items)
            start = time.process_time()
            verify(ledger.reader())
            checked = time.process_time() - start
        size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
    return Day(
        len(kept),
        len(paid),
        farthings,
        statistics.median(paid),
        statistics.median(kept),
        size,
        checked,
    )


def _questions(draw: random.Random) -> Iterator[tuple[str, dict[str, str], dict[str, int]]]:
    """Everybody's dashboard, then questions of their own, in a mixed order."""
    kinds = [(name, items) for name, share, items in KINDS for _ in range(share)]
    asked = []
    for number in range(ANALYSTS):
        for which in range(EACH):
            # of every ten of an analyst's questions as many of a kind as the mix says
            name, items = kinds[(number + which) % len(kinds)]
            asked.append((f"analyst {number}", {"kind": name, "number": str(which)}, items))
    draw.shuffle(asked)
    yield from asked


def rows(found: Budget, day: Day, seconds_per_row: float) -> list[list[str]]:
    """The page's table: what was run, what follows from it and how."""
    charged = sum(charged_on(one) for one in range(DAYS))
    core = charged * MEMBERS * ROWS_EACH * seconds_per_row / 3600
    growth = charged / day.charged
    sold = found.farthings, found.quiet_farthings
    one = found.certificate.epsilon_at(DELTA)
    return [
        ["questions asked", f"{ANALYSTS * EACH * DAYS:,}", "given"],
        ["questions that are paid for", f"{charged:,}", "the rest is given again"],
        ["farthings of a day, new version and not", f"{sold[0]:,}, {sold[1]:,}", "computed"],
        ["certificate of a day", f"{found.certify_seconds:.0f} s", "run"],
        [f"ε of one day with a new version, δ = {DELTA:g}", f"{one:.3f}", "certified"],
        [f"ε of the year, {DAYS} days spent in full", f"{found.year:.3f}", "certified"],
        ["composing the year", f"{found.compose_seconds:.0f} s", "run"],
        ["noise of a count, σ", f"{1 / found.each:,.0f} members", "computed"],
        ["… of all members, at 95 %", f"± {1.96 / found.each / MEMBERS:.4%}", "computed"],
        ["a paid question in the ledger", f"{1e3 * day.reserve_seconds:.1f} ms", "run, median"],
        ["is it kept already?", f"{1e3 * day.kept_seconds:.1f} ms", "run, median"],
        ["one day's ledger", f"{day.megabytes:.1f} MB", f"run, {day.charged:,} paid"],
        ["the year's ledger", f"{day.megabytes * growth:,.0f} MB", "× paid questions"],
        ["proof of one day's chain", f"{day.verify_seconds:.1f} s", "run"],
        ["proof of the year's chain", f"{day.verify_seconds * growth:,.0f} s", "× paid questions"],
        ["reading 10^9 rows for each", f"{core:,.0f} core hours", "× rows, × paid questions"],
    ]
