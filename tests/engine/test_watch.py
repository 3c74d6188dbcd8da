"""Conversations about a table: planned, opened, asked, and audited over the whole way."""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as fa
from farthing import engine
from farthing.composition.tariffs.tariff import Price
from farthing.engine import ConversationAnswer
from farthing.engine.conversation_kinds import GuessWatch, ThresholdWatch
from farthing.engine.errors import ChargeMismatch, EngineFailure
from farthing.engine.kinds.counts import CountQuery
from farthing.errors import InvalidInput, Unsupported
from farthing.interactive import ConversationOver, SparseVector, require_paid
from farthing.lab.audit import audit
from farthing.ledger import DoesNotFit, Ledger, NotInLedger, statement, verify
from farthing.ledger.declared_data import Limits
from farthing.ledger.roles import conversations as talking
from farthing.mechanisms import Contribution
from tests.engine.conftest import TARIFF, Opened

COUNT = 400
ROWS = pa.table(
    {
        "member": list(range(COUNT)) * 2,
        "country": ["NO" if i % 4 else "SE" for i in range(COUNT)] * 2,
        "spend": [i % 10 for i in range(COUNT)] * 2,
    }
)
SURE = fa.Tariff({"sure": (fa.PureDP(50.0), 10), "select": (fa.BoundedRange(0.1), 1)}, farthings=60)


@pytest.fixture(scope="module")
def sure_certificate() -> fa.Certificate:
    """So much ε that the answers are certain."""
    return SURE.certify(tolerance=0.9, deltas=(1e-3,), epsilons=(1.0,))


@pytest.fixture
def sure(opened: Opened, sure_certificate: fa.Certificate) -> engine.Session:
    return opened(ROWS, tariff=sure_certificate)


class TestPlan:
    def test_price_and_accuracy_are_known_before(self, opened: Opened) -> None:
        plan = opened(ROWS).watch(positives=3, item="fine").plan(questions=1000)
        assert dict(plan.items) == {"fine": 1}
        assert (plan.price, plan.fits) == (Price(100), True)
        mechanism = SparseVector.from_epsilon(0.5, positives=3, monotone=True)
        assert plan.accuracy == mechanism.accuracy(1000, 0.95)
        assert "right beyond" in str(plan)
        assert plan.to_json()["accuracy"]["threshold_error"] == plan.accuracy.threshold_error

    def test_the_cheapest_item_is_taken_and_numbers_are_bought_apart(self, opened: Opened) -> None:
        session = opened(ROWS)
        assert dict(session.watch(positives=2).plan().items) == {"count": 1}
        more = session.watch(positives=4, refresh_after=2, item="count", value_item="fine").plan()
        assert dict(more.items) == {"count": 2, "fine": 4}
        assert more.accuracy.value_error is not None
        same = session.watch(positives=4, item="count", value_item="count").plan()
        assert dict(same.items) == {"count": 5}

    def test_the_item_called_pure_is_the_standard(self) -> None:
        sold = {"pure-0.1": (fa.PureDP(0.1), 4), "pure": (fa.PureDP(0.4), 64)}
        ladder = fa.Tariff(sold, 100)
        assert ThresholdWatch(positives=1).items_for(ladder) == {"pure": 1}
        assert ThresholdWatch(positives=1, item="pure-0.1").items_for(ladder) == {"pure-0.1": 1}

    def test_what_runs_costs_what_is_bought(self) -> None:
        for kind in (
            ThresholdWatch(positives=3, item="count"),
            ThresholdWatch(positives=5, item="fine", refresh_after=2, value_item="count"),
            ThresholdWatch(positives=5, item="fine", monotone=False, per_unit=7),
            GuessWatch(tolerance=10, corrections=3, item="fine", value_item="count"),
            GuessWatch(tolerance=10, corrections=2, item="count"),
        ):
            uses = kind.mechanism_for(TARIFF).guarantees
            require_paid(TARIFF, kind.items_for(TARIFF), uses)

    def test_items_that_cannot_pay(self, opened: Opened) -> None:
        session = opened(ROWS)
        with pytest.raises(Unsupported, match="bounded range is about one answer"):
            session.watch(item="select").plan()
        with pytest.raises(InvalidInput, match="pure-DP item"):
            session.watch(item="leak").plan()
        with pytest.raises(InvalidInput, match="item must be one of"):
            session.watch(item="nothing").plan()
        with pytest.raises(InvalidInput, match="item must be one of"):
            session.watch(value_item="").plan()
        with pytest.raises(InvalidInput, match="value_item must be a text"):
            session.watch(value_item=[])
        with pytest.raises(InvalidInput, match="positives"):
            session.watch(positives=0).plan()
        for too_much in ({"per_unit": 10**400}, {"positives": 10**400}, {"per_unit": 10**30}):
            with pytest.raises(InvalidInput, match="noise"):
                session.watch(**too_much).plan()

    def test_a_watch_that_does_not_fit_is_not_opened(self, sure: engine.Session) -> None:
        plan = sure.watch(positives=3, refresh_after=1, value_item="sure").plan()
        plan.open()
        assert not sure.watch().plan().fits
        with pytest.raises(DoesNotFit):
            sure.watch().open()

    def test_a_charge_that_is_not_the_mechanism_s_is_refused(
        self, sure: engine.Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ThresholdWatch, "items_for", lambda *_: {"sure": 2})
        with pytest.raises(ChargeMismatch):
            sure.watch().open()
        assert sure.remaining() == Price(60)


class TestAsking:
    def test_tell_me_when_a_count_reaches_a_threshold(
        self, sure: engine.Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        watch = sure.watch(positives=2).open()
        assert sure.remaining() == Price(50)
        norway = sure.count(where={"country": "NO"})
        assert not watch.exceeds(norway, 320).positive
        assert watch.exceeds(norway, 280).positive
        assert watch.exceeds(CountQuery(where={"country": "SE"}), 90).positive
        monkeypatch.setattr(
            type(sure.backend._context.source), "run", lambda *_: pytest.fail("rows")
        )
        with pytest.raises(ConversationOver):
            watch.exceeds(norway, 1)
        assert sure.remaining() == Price(50)  # asking costs nothing more

    def test_several_questions_at_once_halt_where_single_ones_would(
        self, sure: engine.Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One statement for each query, one transaction, and no answer after the last positive."""
        watch, source = sure.watch(positives=2).open(), sure.backend._context.source
        ran, run = [], type(source).run
        monkeypatch.setattr(type(source), "run", lambda self, s: ran.append(s) or run(self, s))
        norway, sweden = sure.count(where={"country": "NO"}), sure.count(where={"country": "SE"})
        steps = [
            (norway, 320),
            (sweden, 90),
            (norway, 310),
            (norway, 280),
            (sweden, 1),
            (norway, 1),
        ]
        answers = watch.exceeds_many(steps)
        assert [one.positive for one in answers] == [False, True, False, True]
        assert len(ran) == 2
        assert [x.asked["threshold"] for x in watch.transcript()] == [320, 90, 310, 280]
        assert not watch.standing().open
        with pytest.raises(ConversationOver):
            watch.exceeds_many(steps)

    def test_several_guesses_at_once(self, sure: engine.Session) -> None:
        checks = sure.watch_guesses(tolerance=20, corrections=1).open()
        told = checks.check_many([(sure.count(), 400), (sure.count(), 300), (sure.count(), 1)])
        assert [one.positive for one in told] == [False, True]

    def test_a_batch_is_refused_whole(self, sure: engine.Session) -> None:
        watch = sure.watch(positives=2).open()
        good = (sure.count(), 1)
        for pairs, reason in (
            ([], "at least one"),
            (None, "pairs"),
            ([good, sure.count()], "pairs"),
            ([good, (sure.count(), 1, 2)], "pairs"),
            ([good, ("country", 1)], "a query"),
            ([good, (sure.count(), math.nan)], "threshold"),
            ([good, (sure.count(), True)], "threshold"),
            ([good, (sure.count(), 10**400)], "threshold"),
            ([good, (sure.count(per_key_limit=2), 1)], "per_unit"),
        ):
            with pytest.raises(InvalidInput, match=reason):
                watch.exceeds_many(pairs)
        assert watch.transcript() == []
        assert watch.standing().open

    def test_thresholds_are_kept_as_they_were_compared(self, sure: engine.Session) -> None:
        watch = sure.watch(positives=9).open()
        for threshold in (Fraction(801, 2), Decimal("1e300"), 1e308, -1e308, 400.00001, 10**30):
            watch.exceeds(sure.count(), threshold)
        kept = [(x.asked["threshold"], x.told.positive) for x in watch.transcript()]
        assert kept == [
            (400.5, False),
            (1e300, False),
            (1e308, False),
            (-1e308, True),
            (400.00001, False),
            (10**30, False),
        ]

    def test_what_the_owner_declares_anew_counts_at_once(
        self, sure: engine.Session, tmp_path: Any
    ) -> None:
        """A statement that was compiled before is not run under limits that changed."""
        watch = sure.watch(positives=2, per_unit=3).open()
        rows = sure.count(per_key_limit=2)
        assert not watch.exceeds(rows, 900).positive
        with Ledger.open(tmp_path / "budget.db") as ledger:
            about = ledger.analyst("events", "analyst").about()
            ledger.owner().describe(replace(about, limits=Limits(per_key_limit=1)))
        with pytest.raises(InvalidInput, match="at most 1"):
            watch.exceeds(rows, 900)

    def test_sums_with_decimals_and_numbers(self, sure: engine.Session) -> None:
        watch = sure.watch(value_item="sure", per_unit=1000, positives=2).open()
        total = sure.sum("spend", lower=0, upper=10, places=2)
        found = watch.exceeds(total, 2400.5)  # 3000 but 20 of each unit's two fives and more
        assert found.positive
        truth = sum(min(2 * (i % 10), 10) for i in range(COUNT))
        assert found.value == pytest.approx(truth, abs=10)
        assert isinstance(found.value, float)

    def test_tell_me_when_the_median_reaches_a_value(self, sure: engine.Session) -> None:
        """Members 0 to 399 with i mod 10: #{x ≥ 5} = #{x < 5}, so the median is at least 5."""
        watch = sure.watch(positives=2, monotone=False, value_item="sure").open()
        median = sure.quantile("spend", lower=0, upper=9, per_key_limit=1)
        assert not watch.exceeds(median, 6).positive
        assert not watch.exceeds(median, 5.5).positive
        assert watch.exceeds(median, 4.2) == ConversationAnswer(
            positive=True, value=pytest.approx(0, abs=3)
        )
        reached = watch.exceeds(sure.quantile("spend", lower=0, upper=9, per_key_limit=1), 3)
        assert reached.positive
        assert reached.value == pytest.approx(200 - 120, abs=3)

    def test_a_quantile_is_charged_for_the_most_that_a_unit_moves_its_rank(
        self, sure: engine.Session
    ) -> None:
        watch = sure.watch(positives=2, monotone=False, per_unit=8).open()
        for options, most in (
            ({"probability": 0.9, "per_key_limit": 1}, 9),
            ({"probability": 0.1, "per_key_limit": 1}, 9),
            ({"probability": 0.75, "per_key_limit": 3}, 9),
            ({"per_key_limit": 9}, 9),
        ):
            with pytest.raises(InvalidInput, match=f"change this quantile by {most}"):
                watch.exceeds(sure.quantile("spend", lower=0, upper=9, **options), 5)
        watch.exceeds(
            sure.quantile("spend", 0.875, lower=0, upper=9, per_key_limit=1), 9
        )  # 7/8: by 7
        for bad in (-1, 9.5, 1e300):
            with pytest.raises(InvalidInput, match="between 0 and 9"):
                watch.exceeds(sure.quantile("spend", lower=0, upper=9, per_key_limit=1), bad)
        with pytest.raises(InvalidInput, match="leave select out"):
            watch.exceeds(
                sure.quantile("spend", lower=0, upper=9, per_key_limit=1, select="select"), 5
            )
        checks = sure.watch_guesses(tolerance=5).open()
        with pytest.raises(InvalidInput, match="watched over thresholds"):
            checks.check(sure.quantile("spend", lower=0, upper=9, per_key_limit=1), 5)

    def test_guesses(self, sure: engine.Session) -> None:
        checks = sure.watch_guesses(tolerance=20, corrections=1, per_unit=2).open()
        rows = sure.count(per_key_limit=2, where={"country": "NO"})
        assert not checks.check(rows, 605).positive
        wrong = checks.check(rows, 100)
        assert wrong.positive
        assert wrong.value == pytest.approx(600, abs=15)
        with pytest.raises(ConversationOver):
            checks.check(rows, 100)

    def test_a_conversation_is_found_again(self, sure: engine.Session) -> None:
        watch = sure.watch(positives=2).open()
        watch.exceeds(sure.count(), 1)
        again = sure.conversation(watch.id)
        assert again.standing().asked == 1
        assert [x.asked["threshold"] for x in again.transcript()] == [1]
        assert again.exceeds(sure.count(), 1).positive
        assert [one.open for one in sure.conversations()] == [False]
        with pytest.raises(NotInLedger):
            sure.conversation("0" * 32)

    def test_queries_that_are_refused_before_a_row_is_read(
        self, sure: engine.Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        watch, checks = sure.watch().open(), sure.watch_guesses(tolerance=5).open()
        monkeypatch.setattr(
            type(sure.backend._context.source), "run", lambda *_: pytest.fail("rows")
        )
        for query, reason in (
            (sure.count(per_key_limit=2), "change this count by 2"),
            (sure.sum("spend", lower=-1, upper=1), "monotone=False"),
            (sure.sum("spend", lower=0, upper=5), "by 5"),
            (sure.histogram("country", categories=["NO"]), "about one number"),
            (sure.quantile("spend", lower=0, upper=9, per_key_limit=1), "monotone=False"),
            (sure.count(count="sure"), "leave count out"),
            (sure.count(repeats=2), "leave repeats out"),
            (sure.count(where={"member": 1}), "unit of privacy"),
        ):
            with pytest.raises(InvalidInput, match=reason):
                watch.exceeds(query, 1)
        with pytest.raises(InvalidInput, match="watch over guesses"):
            checks.exceeds(sure.count(), 1)
        with pytest.raises(InvalidInput, match="watch over thresholds"):
            watch.check(sure.count(), 1)
        for bad in (math.nan, math.inf, "many"):
            with pytest.raises(InvalidInput, match="threshold"):
                watch.exceeds(sure.count(), bad)
        assert watch.transcript() == []

    def test_the_question_of_another_session(self, opened: Opened, tmp_path: Any) -> None:
        session, other = opened(ROWS), opened(ROWS, ledger=tmp_path / "other.db")
        watch = session.watch().open()
        with pytest.raises(InvalidInput, match="data of the conversation"):
            watch.exceeds(other.count(), 1)

    def test_a_failure_ends_it(self, sure: engine.Session, monkeypatch: pytest.MonkeyPatch) -> None:
        watch = sure.watch(positives=5).open()

        def fails(*_: object) -> None:
            raise EngineFailure

        with monkeypatch.context() as broken:
            broken.setattr(type(sure.backend._context.source), "run", fails)
            with pytest.raises(EngineFailure):
                watch.exceeds(sure.count(), 1)
            with pytest.raises(ConversationOver):  # a second failure would tell for nothing
                watch.exceeds(sure.count(), 1)

    def test_rows_that_change(
        self, opened: Opened, sure_certificate: fa.Certificate, tmp_path: Path
    ) -> None:
        pq.write_table(ROWS, tmp_path / "events.parquet")
        sure = opened(tmp_path / "events.parquet", tariff=sure_certificate)
        watch = sure.watch(positives=2).open()
        watch.exceeds(sure.count(), 1)
        with Ledger.open(tmp_path / "budget.db") as ledger:
            ledger.owner().declare_version("events", "2")
            assert watch.exceeds(sure.count(), 1).positive
            verify(ledger.reader())
            said = statement(ledger.reader(), "events", delta=1e-3)
        assert said["growing_rows"]["versions"] == 2
        assert said["used_so_far"][0]["what"] == "watch over thresholds"


class Played:
    """An adversary over the whole way: open, ask around the truth from what was heard, look."""

    def __init__(self, per_key_limit: int) -> None:
        self.query = {"where": {"country": "NO"}, "per_key_limit": per_key_limit}
        self.threshold = 3 + (per_key_limit + 1) // 2

    def run(self, session: engine.Session) -> tuple[bool, ...]:
        watch, threshold, said = session.watch(positives=2).open(), self.threshold, []
        with contextlib.suppress(ConversationOver):
            for _ in range(4):
                said.append(watch.exceeds(session.count(**self.query), threshold).positive)
                threshold += 2 if said[-1] else -1
        return tuple(said)


class PlayedMedian:
    """The same about medians, which may fall when a unit is added."""

    def __init__(self, per_key_limit: int) -> None:
        self.limit = per_key_limit

    def run(self, session: engine.Session) -> tuple[bool, ...]:
        watch, said = session.watch(positives=2, monotone=False).open(), []
        median = session.quantile("worth", lower=0, upper=50, per_key_limit=self.limit)
        with contextlib.suppress(ConversationOver):
            for threshold in (1, 1, 2, 2):
                said.append(watch.exceeds(median, threshold).positive)
        return tuple(said)


@pytest.mark.slow
class TestAudit:
    """Measured on neighbours, of which one has one more unit, with forty rows."""

    EPSILON, TRIALS = 1.0, 150

    @pytest.fixture(scope="class")
    @classmethod
    def neighbours(cls) -> Iterator[tuple[engine.Session, engine.Session]]:
        """On a file system in memory where there is one: thousands of flushes."""
        tariff = fa.Tariff({"one": (fa.PureDP(cls.EPSILON), 1)}, farthings=5 * cls.TRIALS)
        certificate = tariff.certify(tolerance=0.9, deltas=(1e-3,), epsilons=(1.0,))
        memory = Path("/dev/shm")
        with (
            tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder,
            contextlib.ExitStack() as stack,
        ):
            sessions = [
                stack.enter_context(
                    engine.open(
                        pa.table(
                            {
                                "member": members,
                                "country": ["NO"] * len(members),
                                "worth": [0, 0, 0, *range(1, 41)][: len(members)],
                            }
                        ),
                        unit="member",
                        ledger=Path(folder) / f"{len(members)}.db",
                        dataset="events",
                        tariff=certificate,
                        farthings=5 * cls.TRIALS,
                    )
                )
                for members in ([1, 2, 3], [1, 2, 3, *[4] * 40])
            ]
            yield sessions[0], sessions[1]

    def measured(self, neighbours: Any, per_key_limit: int) -> float:
        return self.measured_of(Played(per_key_limit), neighbours)

    def measured_of(self, played: Played | PlayedMedian, neighbours: Any) -> float:
        return audit(played, *neighbours, trials=self.TRIALS, confidence=0.999).epsilon

    def test_it_is_below_the_price(self, neighbours: Any) -> None:
        assert self.measured(neighbours, per_key_limit=1) <= self.EPSILON

    def test_and_would_show_a_number_that_changes_by_more_than_was_paid_for(
        self, neighbours: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Contribution, "within", lambda *_: True)
        assert self.measured(neighbours, per_key_limit=40) > self.EPSILON

    def test_medians_are_below_the_price_too(self, neighbours: Any) -> None:
        assert self.measured_of(PlayedMedian(1), neighbours) <= self.EPSILON

    def test_and_a_unit_with_forty_values_would_show(
        self, neighbours: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Contribution, "within", lambda *_: True)
        assert self.measured_of(PlayedMedian(40), neighbours) > self.EPSILON


def test_what_is_kept_of_a_conversation_is_bounded(opened: Opened, monkeypatch) -> None:
    """What is answered with no costs nothing, and every turn is kept."""
    session = opened(ROWS)
    talk = session.watch().open()
    few = [(session.count(), 10**9)] * 10
    assert talk.exceeds_many(few) == [ConversationAnswer(False, None)] * 10
    monkeypatch.setattr(talking, "MOST_KEPT", 1000)
    with pytest.raises(ConversationOver, match="at most 1000 characters; open another"):
        talk.exceeds_many(few)
    assert len(talk.transcript()) == 10
