"""Conversations in the book: charged at opening, written before they are told, drawn once."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import DBAPIError

import farthing as fa
from farthing.canonical import canonical, sha256
from farthing.errors import InvalidInput, Unsupported
from farthing.interactive import (
    Concurrent,
    ConversationOver,
    Exceeds,
    Guess,
    GuessAndCheck,
    SparseVector,
    Verdict,
)
from farthing.interactive import stored as growing
from farthing.ledger import (
    AlreadySettled,
    Answered,
    Damaged,
    Dataset,
    DoesNotFit,
    Ledger,
    NotInLedger,
    RowsChanged,
    Sealed,
    TariffChanged,
    Use,
    coalition,
    export_lines,
    history,
    import_lines,
    markdown,
    move,
    odometer,
    statement,
    verify,
)
from farthing.ledger import transfer as moving
from farthing.ledger.entries.fact import linked, start_of
from farthing.ledger.roles import conversations as talking
from farthing.ledger.store.fast_path import _interrupted
from farthing.ledger.store.tables import conversations, secrets, turns
from farthing.ledger.transfer import WITHOUT_NOISE
from tests.ledger import workers
from tests.ledger.server import Server
from tests.ledger.test_races import start

Context = multiprocessing.context.ForkServerContext

#: So much ε that the answers are certain.
SURE = 60.0
WATCH = SparseVector.from_epsilon(SURE, positives=2, monotone=True)
LOW, HIGH = Exceeds(0, 1000), Exceeds(2000, 1000)


@pytest.fixture(scope="session")
def certificate() -> fa.Certificate:
    items = {
        "sure": (fa.PureDP(SURE), 20),
        "small": (fa.PureDP(0.1), 1),
        "select": (fa.BoundedRange(0.1), 1),
    }
    return fa.Tariff(items, farthings=100).certify(tolerance=0.9, deltas=(1e-3,), epsilons=(1.0,))


def fill(ledger: Ledger, certificate: fa.Certificate) -> None:
    owner = ledger.owner()
    owner.add(Dataset("events", unit="member", owner="team", version="1"))
    owner.sign("events", certificate)
    owner.grant("events", "ann", farthings=60)
    owner.grant("events", "bob", farthings=40)


@pytest.fixture
def ledger(target: str, certificate: fa.Certificate) -> Iterator[Ledger]:
    with Ledger.open(target) as opened:
        fill(opened, certificate)
        yield opened


def noise_of(ledger: Ledger) -> dict[str, Any]:
    """What nobody may see."""
    with ledger.book.store.read() as connection:
        rows = connection.execute(select(secrets)).all()
    return {row.conversation: json.loads(row.state) for row in rows}


class TestALife:
    def test_it_is_charged_in_full_when_it_is_opened(self, ledger: Ledger) -> None:
        ann = ledger.analyst("events", "ann")
        held = ann.open_conversation(WATCH, question={"watch": 2})
        assert ann.remaining().farthings == 40
        (account,) = ledger.reader().accounts("events")
        assert account.farthings_spent == 20
        assert held.ask({"n": 1}, LOW) == Verdict(positive=False)
        held.close()
        assert ann.remaining().farthings == 40  # nothing comes back
        verify(ledger.reader())

    def test_the_cheapest_item_for_each_use_is_bought(self, ledger: Ledger) -> None:
        ann = ledger.analyst("events", "ann")
        small = SparseVector.from_epsilon(0.1, positives=3)
        ann.open_conversation(replace(small, value_epsilon=0.05))
        assert ann.remaining().farthings == 56  # one threshold, three numbers
        verify(ledger.reader())

    def test_items_must_pay_for_the_mechanism(self, ledger: Ledger) -> None:
        ann = ledger.analyst("events", "ann")
        for items in ({"small": 1}, {"small": 10}, {"sure": 2}, {"select": 1}):
            with pytest.raises(InvalidInput, match=r"do not pay|more items"):
                ann.open_conversation(WATCH, items=items)
        with pytest.raises(InvalidInput, match="no item nothing"):
            ann.open_conversation(WATCH, items={"nothing": 1})
        assert ann.remaining().farthings == 60
        ann.open_conversation(WATCH, items={"sure": 1})

    def test_another_tariff_with_the_same_names_is_never_charged(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ann = ledger.analyst("events", "ann")
        weaker = fa.Tariff({"sure": (fa.PureDP(0.1), 1)}, farthings=100)
        signed = weaker.certify(tolerance=0.9, deltas=(1e-3,), epsilons=(1.0,))
        checked = talking.require_paid

        def then_signs(*given: Any) -> None:
            checked(*given)
            ledger.owner().sign("events", signed, name="weaker")
            ledger.owner().grant("events", "ann", farthings=60)

        monkeypatch.setattr(talking, "require_paid", then_signs)
        with pytest.raises(TariffChanged):
            ann.open_conversation(WATCH, items={"sure": 1})
        assert noise_of(ledger) == {}
        verify(ledger.reader())

    def test_what_does_not_fit_draws_and_writes_nothing(self, ledger: Ledger) -> None:
        bob = ledger.analyst("events", "bob")
        bob.open_conversation(WATCH)
        bob.open_conversation(WATCH)
        with pytest.raises(DoesNotFit):
            bob.open_conversation(WATCH)
        assert len(noise_of(ledger)) == len(bob.conversations()) == 2
        verify(ledger.reader())

    def test_it_halts_by_itself_and_says_so_in_the_book(self, ledger: Ledger) -> None:
        held = ledger.analyst("events", "ann").open_conversation(WATCH)
        asked = [LOW, HIGH, LOW, HIGH, HIGH, LOW]
        told = held.ask_many(({"n": i}, one) for i, one in enumerate(asked))
        assert [one.positive for one in told] == [False, True, False, True]
        with pytest.raises(ConversationOver):
            held.ask({}, LOW)
        with pytest.raises(ConversationOver):
            held.ask_many([({}, LOW)])
        with pytest.raises(AlreadySettled):
            held.close()
        assert not held.standing().open
        (end,) = ledger.reader().entries("events", "end")
        assert (end.fact.asked, end.fact.reason) == (4, talking.HALTED)
        verify(ledger.reader())

    def test_the_transcript_has_public_words_and_answers_only(self, ledger: Ledger) -> None:
        held = ledger.analyst("events", "ann").open_conversation(WATCH)
        held.ask({"threshold": 1000}, Exceeds(271828, 1000))
        assert held.transcript() == [Answered({"threshold": 1000}, Verdict(positive=True))]
        with ledger.book.store.read() as connection:
            written = [row.said for row in connection.execute(select(turns))]
        written += [e.fact.written() for e in ledger.reader().entries("events")]
        assert not any("271828" in text or "threshold_noise" in text for text in written)

    def test_long_lists_are_written_in_pieces_and_noted(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(talking, "MOST_IN_A_TURN", 10)
        monkeypatch.setattr(talking, "NOTED_EVERY", 25)
        held = ledger.analyst("events", "ann").open_conversation(WATCH)
        assert len(held.ask_many([({"n": n}, LOW) for n in range(60)])) == 60
        noted = [e.fact.asked for e in ledger.reader().entries("events", "said")]
        assert noted == [30, 50]
        assert [one.asked["n"] for one in held.transcript()] == list(range(60))
        # the last question of a piece is the one with which it halts
        rest = [*[LOW] * 8, HIGH, HIGH, LOW]
        assert len(held.ask_many([({}, one) for one in rest])) == 10
        verify(ledger.reader())

    def test_guess_and_check_and_several_at_once(self, ledger: Ledger) -> None:
        checks = GuessAndCheck(epsilon=SURE / 3.1, corrections=1, tolerance=50)
        both = Concurrent((checks, WATCH))
        held = ledger.analyst("events", "ann").open_conversation(both)
        assert held.mechanism == both
        assert not held.ask({}, (0, Guess(1000, 1010))).positive
        assert held.ask({}, (1, HIGH)).positive
        wrong = held.ask({}, (0, Guess(1000, 0)))
        assert wrong.positive
        assert wrong.value == pytest.approx(1000, abs=20)
        with pytest.raises(ConversationOver, match="part 0"):
            held.ask({}, (0, Guess(1000, 0)))
        assert held.ask({}, (1, HIGH)).positive
        assert not held.standing().open
        verify(ledger.reader())

    def test_a_question_that_is_wrong_changes_nothing(self, ledger: Ledger) -> None:
        held = ledger.analyst("events", "ann").open_conversation(WATCH)
        before = noise_of(ledger)
        with pytest.raises(AttributeError):
            held.ask({}, "nonsense")
        with pytest.raises(InvalidInput):
            held.ask({1: "no text"}, LOW)
        with pytest.raises(InvalidInput, match="at least one"):
            held.ask_many([])
        assert noise_of(ledger) == before
        assert held.transcript() == []

    def test_bounded_range_is_refused_with_the_reason(self, ledger: Ledger) -> None:
        class Sold:
            """A mechanism that calls itself bounded range."""

            guarantees = ((fa.BoundedRange(0.1), 1),)

        with pytest.raises(Unsupported, match="bounded range is about one answer"):
            ledger.analyst("events", "ann").open_conversation(Sold())
        assert ledger.analyst("events", "ann").remaining().farthings == 60


class TestRoles:
    def test_only_who_opened_it_talks_to_it(self, ledger: Ledger) -> None:
        held = ledger.analyst("events", "ann").open_conversation(WATCH)
        with pytest.raises(NotInLedger):
            ledger.analyst("events", "bob").conversation(held.id)
        assert ledger.analyst("events", "bob").conversations() == []
        again = ledger.analyst("events", "ann").conversation(held.id)
        assert again.ask({}, HIGH).positive
        assert held.standing().asked == 1

    def test_an_owner_ends_it_and_a_reader_sees_it(self, ledger: Ledger) -> None:
        held = ledger.analyst("events", "ann").open_conversation(WATCH, question="q")
        held.ask({"n": 1}, LOW)
        (seen,) = ledger.reader().conversations("events")
        assert (seen.analyst, seen.asked, seen.open, seen.question) == ("ann", 1, True, "q")
        assert len(ledger.reader().transcript("events", held.id)) == 1
        ledger.owner().add(Dataset("visits", unit="member", owner="team"))
        with pytest.raises(NotInLedger):
            ledger.owner().end_conversation("visits", held.id, reason="the wrong book")
        ledger.owner().end_conversation("events", held.id, reason="the study is over")
        with pytest.raises(ConversationOver):
            held.ask({}, LOW)
        verify(ledger.reader())

    def test_nothing_that_is_shown_holds_noise(self, ledger: Ledger) -> None:
        held = ledger.analyst("events", "ann").open_conversation(WATCH)
        held.ask({}, LOW)
        held.close()
        salt = noise_of(ledger)[held.id]["salt"]
        shown = [
            *export_lines(ledger.reader()),
            json.dumps(statement(ledger.reader(), "events", delta=1e-3)),
            repr(held),
            repr(ledger.reader().conversations("events")),
        ]
        assert not any(salt in text or "threshold_noise" in text for text in shown)


class TestStatements:
    def test_a_coalition_pays_for_its_conversations(self, ledger: Ledger) -> None:
        for name in ("ann", "bob"):
            ledger.analyst("events", name).open_conversation(WATCH)
        reader = ledger.reader()
        assert odometer(reader, "events", delta=1e-3, analysts=["ann"]).farthings_spent == 20
        both = odometer(reader, "events", delta=1e-3, analysts=["ann", "bob"])
        assert both.farthings_spent == 40
        assert both.epsilon >= odometer(reader, "events", delta=1e-3, analysts=["bob"]).epsilon

    def test_several_analysts_as_one_statement(self, ledger: Ledger) -> None:
        for name in ("ann", "bob"):
            ledger.analyst("events", name).open_conversation(WATCH)
        ledger.owner().grant("events", "eve", farthings=0)
        reader = ledger.reader()
        both = coalition(reader, "events", ["bob", "ann"], delta=1e-3)
        assert both.so_far == odometer(reader, "events", delta=1e-3, analysts=["ann", "bob"])
        assert [one["analyst"] for one in both.conversations] == ["ann", "bob"]
        alone = coalition(reader, "events", ["bob"], delta=1e-3)
        assert len(alone.conversations) == 1
        whole = statement(reader, "events", delta=1e-3)
        (bob,) = (row for row in whole["per_analyst"] if row["analyst"] == "bob")
        assert alone.epsilon == bob["epsilon"]
        assert alone.epsilon < both.epsilon == whole["colluding"]["epsilon"]
        assert both.so_far.epsilon <= both.epsilon * (1 + 1e-9)
        assert "conversations" in whole["accounts"][0]["colluding"]["theorem"]
        assert coalition(reader, "events", ["eve"], delta=1e-3).epsilon == 0
        with pytest.raises(NotInLedger):
            coalition(reader, "events", ["nobody"], delta=1e-3)
        with pytest.raises(InvalidInput):
            coalition(reader, "events", [], delta=1e-3)

    def test_the_statement_lists_them_and_names_the_case(self, ledger: Ledger) -> None:
        use = Use("watch over counts", "1 of each count", (("dp:60", 1),))
        held = ledger.analyst("events", "ann").open_conversation(WATCH, use=use)
        held.ask({}, LOW)
        said = statement(ledger.reader(), "events", delta=1e-3)
        (row,) = said["conversations"]
        assert (row["analyst"], row["mechanism"], row["outcome"]) == (
            "ann",
            "sparse vector",
            "open",
        )
        assert said["used_so_far"][0]["what"] == "watch over counts"
        assert said["growing_rows"]["case"] == "rows do not change"
        ledger.owner().declare_version("events", "2")
        held.close()
        said = statement(ledger.reader(), "events", delta=1e-3)
        assert (said["conversations"][0]["asked"], said["conversations"][0]["outcome"]) == (
            1,
            "closed",
        )
        assert said["growing_rows"]["case"] == "rows change, and may depend on releases"
        page = markdown(said)
        assert "Conversations, each charged in full" in page
        assert "Theorem 6" in page
        (asked,) = history(ledger.reader(), "events")
        assert (asked.outcome, asked.price.farthings) == ("end", 20)


class TestRowsThatChange:
    def test_the_sparse_vector_goes_on_and_says_about_which_rows(self, ledger: Ledger) -> None:
        held = ledger.analyst("events", "ann").open_conversation(WATCH)
        held.ask({}, LOW)
        ledger.owner().declare_version("events", "2")
        held.ask({}, LOW)
        with ledger.book.store.read() as connection:
            said = connection.scalars(select(turns.c.said).order_by(turns.c.number))
            assert [json.loads(words)["version"] for words in said] == ["1", "2"]
        verify(ledger.reader())

    def test_one_that_was_not_proved_for_it_ends(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(growing, "COVERED", (GuessAndCheck,))
        held = ledger.analyst("events", "ann").open_conversation(WATCH)
        held.ask({}, LOW)
        ledger.owner().describe(ledger.reader().dataset("events"))
        held.ask({}, LOW)  # declared again, and the version is the same
        ledger.owner().declare_version("events", "2")
        with pytest.raises(RowsChanged, match="another version"):
            held.ask({}, HIGH)
        with pytest.raises(ConversationOver):
            held.ask({}, HIGH)
        (end,) = ledger.reader().entries("events", "end")
        assert (end.fact.asked, end.fact.reason) == (2, talking.ROWS_CHANGED)
        verify(ledger.reader())

    def test_live_rows_change_without_a_word(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ledger.owner().declare_version("events", None)
        ann = ledger.analyst("events", "ann")
        assert ann.open_conversation(WATCH).ask({}, HIGH).positive
        monkeypatch.setattr(growing, "COVERED", ())
        with pytest.raises(RowsChanged, match="without notice"):
            ann.open_conversation(WATCH).ask({}, HIGH)
        verify(ledger.reader())


class TestTampering:
    @pytest.fixture
    def held(self, ledger: Ledger) -> Any:
        held = ledger.analyst("events", "ann").open_conversation(WATCH)
        held.ask({"n": 1}, HIGH)
        held.ask({"n": 2}, LOW)
        verify(ledger.reader())
        return held

    def write(self, ledger: Ledger, *work: Any) -> None:
        with ledger.book.store.engine.begin() as connection:
            for one in work:
                connection.execute(one)

    def test_noise_that_was_changed(self, ledger: Ledger, held: Any) -> None:
        state = noise_of(ledger)[held.id]
        state["conversation"]["state"]["positives_left"] = 2
        self.write(ledger, update(secrets).values(state=canonical(state)))
        with pytest.raises(Damaged, match="noise"):
            verify(ledger.reader())
        with pytest.raises(Damaged, match="committed"):
            held.ask({}, LOW)

    def test_noise_that_is_gone(self, ledger: Ledger, held: Any) -> None:
        self.write(ledger, delete(secrets))
        with pytest.raises(Damaged):
            verify(ledger.reader())
        with pytest.raises(Damaged, match="missing"):
            held.ask({}, LOW)

    @pytest.mark.usefixtures("held")
    def test_an_answer_that_was_changed(self, ledger: Ledger) -> None:
        with ledger.book.store.read() as connection:
            said = connection.scalar(select(turns.c.said).filter_by(number=1))
        forged = said.replace('"positive":true', '"positive":false')
        assert forged != said
        self.write(ledger, update(turns).filter_by(number=1).values(said=forged))
        with pytest.raises(Damaged, match="turn 1"):
            verify(ledger.reader())

    def test_a_transcript_that_was_written_anew_after_it_ended(
        self, ledger: Ledger, held: Any
    ) -> None:
        held.close()
        head, rows = None, []
        with ledger.book.store.read() as connection:
            for turn in connection.execute(select(turns).order_by(turns.c.number)).all():
                said = turn.said.replace('"n":1', '"n":9')
                previous = head or start_of(held.id)
                head = linked(previous, sha256(said))
                rows.append({**turn._asdict(), "said": said, "hash": head})
        self.write(
            ledger,
            delete(turns),
            insert(turns).values(rows),
            update(conversations).values(head=head),
        )
        with pytest.raises(Damaged, match="the book tells of"):
            verify(ledger.reader())

    def test_a_conversation_that_is_opened_again(self, ledger: Ledger, held: Any) -> None:
        held.close()
        self.write(ledger, update(conversations).values(open=1))
        with pytest.raises(Damaged, match="whether it has ended"):
            verify(ledger.reader())

    @pytest.mark.usefixtures("held")
    def test_a_conversation_that_is_removed(self, ledger: Ledger) -> None:
        self.write(ledger, delete(secrets), delete(turns), delete(conversations))
        with pytest.raises(Damaged, match="not here"):
            verify(ledger.reader())


class TestMoving:
    def test_conversations_move_with_their_noise(self, ledger: Ledger, tmp_path: Path) -> None:
        ann = ledger.analyst("events", "ann")
        held, ended = ann.open_conversation(WATCH), ann.open_conversation(WATCH)
        held.ask({"n": 1}, HIGH)
        ended.close()
        before = noise_of(ledger)
        with Ledger.open(tmp_path / "new.db") as new:
            move(ledger, new)
            assert noise_of(new) == before
            assert noise_of(ledger) == {}
            with pytest.raises(Sealed):
                held.ask({}, HIGH)
            there = new.analyst("events", "ann").conversation(held.id)
            assert [one.asked for one in there.transcript()] == [{"n": 1}]
            assert there.ask({"n": 2}, HIGH).positive
            assert not there.standing().open  # two positive answers in all, not three
            verify(new.reader())
            verify(ledger.reader())
            move(ledger, new)  # there is nothing left to do
            with Ledger.open(tmp_path / "third.db") as third:
                move(new, third)
                verify(third.reader())
                assert len(third.reader().conversations("events")) == 2

    @pytest.mark.parametrize("point", ["import_lines", "_forget_noise"])
    def test_a_move_that_is_interrupted(
        self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
    ) -> None:
        held = ledger.analyst("events", "ann").open_conversation(WATCH)
        held.ask({}, HIGH)

        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with Ledger.open(tmp_path / "new.db") as new:
            with monkeypatch.context() as during:
                during.setattr(moving, point, interrupted)
                with pytest.raises(KeyboardInterrupt):
                    move(ledger, new)
            with pytest.raises(Sealed):
                held.ask({}, HIGH)
            assert set(noise_of(ledger)) == {held.id}
            move(ledger, new)
            assert noise_of(ledger) == {}
            there = new.analyst("events", "ann").conversation(held.id)
            assert len(there.ask_many([({}, HIGH)] * 5)) == 1
            verify(new.reader())

    def test_a_book_that_comes_back(self, ledger: Ledger, tmp_path: Path) -> None:
        held = ledger.analyst("events", "ann").open_conversation(WATCH)
        with Ledger.open(tmp_path / "new.db") as new:
            move(ledger, new)
            new.analyst("events", "ann").conversation(held.id).ask({}, HIGH)
            move(new, ledger)
            assert held.ask({}, HIGH).positive
            assert not held.standing().open
            verify(ledger.reader())
            verify(new.reader())

    def test_without_its_noise_a_conversation_ends(self, ledger: Ledger, tmp_path: Path) -> None:
        held = ledger.analyst("events", "ann").open_conversation(WATCH)
        held.ask({}, LOW)
        with Ledger.open(tmp_path / "new.db") as new:
            seal = ledger.owner().seal("events", successor=new.reader().identity())
            import_lines(new, export_lines(ledger.reader()), take_over=[seal.hash])
            (end,) = new.reader().entries("events", "end")
            assert end.fact.reason == WITHOUT_NOISE
            assert new.analyst("events", "ann").remaining().farthings == 40
            verify(new.reader())
            with pytest.raises(NotInLedger):
                new.analyst("events", "ann").conversation(held.id)

    def test_a_copy_for_reading_verifies(self, ledger: Ledger, tmp_path: Path) -> None:
        held = ledger.analyst("events", "ann").open_conversation(WATCH)
        held.ask({}, LOW)
        with Ledger.open(tmp_path / "copy.db") as copy:
            import_lines(copy, export_lines(ledger.reader()))
            verify(copy.reader())
            assert noise_of(copy) == {}


def test_what_nobody_acknowledged_is_read_and_not_drawn_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every write takes effect, and then the connection is lost."""
    real, ann = ledger.book.store._insist, ledger.analyst("events", "ann")

    def lossy(attempt: Any, done: Any, seconds: float) -> Any:
        tries: list[Any] = []

        def lost_the_first_time() -> Any:
            tries.append(attempt())
            if len(tries) == 1:
                raise DBAPIError(None, None, _interrupted(), connection_invalidated=True)
            return tries[-1]

        return real(lost_the_first_time, done, seconds)

    monkeypatch.setattr(ledger.book.store, "_insist", lossy)
    held = ann.open_conversation(WATCH)
    assert ann.remaining().farthings == 40
    assert held.ask({"n": 1}, HIGH).positive
    assert [one.asked for one in held.transcript()] == [{"n": 1}]
    held.close()
    monkeypatch.undo()
    assert len(ann.conversations()) == 1
    verify(ledger.reader())


class TestProcesses:
    """Real processes, which end where they must not."""

    @pytest.mark.parametrize("moment", ["drawn", "written", "told"])
    def test_killed_between_drawing_writing_and_telling(
        self, target: str, certificate: fa.Certificate, processes: Context, moment: str
    ) -> None:
        with Ledger.open(target) as ledger:
            fill(ledger, certificate)
            held = ledger.analyst("events", "ann").open_conversation(WATCH)
            held.ask({"n": 0}, LOW)
            before = noise_of(ledger)[held.id]
        process, pipe = start(processes, workers.ask_and_die, target, held.id, moment)
        assert pipe.poll(60)
        if moment == "told":
            assert pipe.recv() is True
        with pytest.raises(EOFError):
            pipe.recv()
        process.join()
        assert process.exitcode == -9
        with Ledger.open(target, upgrade=False) as ledger:
            verify(ledger.reader())
            again = ledger.analyst("events", "ann").conversation(held.id)
            written = again.transcript()[1:]
            assert len(written) == (0 if moment == "drawn" else 1)
            after = noise_of(ledger)[held.id]["conversation"]["state"]
            state = before["conversation"]["state"]
            assert after["threshold_noise"] == state["threshold_noise"]  # drawn once
            assert after["positives_left"] == state["positives_left"] - len(written)
            rest = again.ask_many([({}, HIGH)] * 5)
            assert len(rest) == state["positives_left"] - len(written)

    def test_killed_while_opening(
        self, target: str, certificate: fa.Certificate, processes: Context
    ) -> None:
        with Ledger.open(target) as ledger:
            fill(ledger, certificate)
        process, pipe = start(processes, workers.open_and_die, target)
        with pytest.raises(EOFError):
            pipe.recv()
        process.join()
        with Ledger.open(target, upgrade=False) as ledger:
            assert ledger.analyst("events", "ann").remaining().farthings == 60
            assert noise_of(ledger) == {}
            verify(ledger.reader())

    @pytest.mark.slow
    def test_forty_kills_forget_no_answer(
        self, target: str, certificate: fa.Certificate, processes: Context
    ) -> None:
        watch = SparseVector.from_epsilon(SURE, positives=200, monotone=True)
        with Ledger.open(target) as ledger:
            fill(ledger, certificate)
            held = ledger.analyst("events", "ann").open_conversation(watch)
        told: list[int] = []
        for turn in range(40):
            process, pipe = start(processes, workers.ask_forever, target, held.id, turn)
            told.append(pipe.recv())
            process.kill()
            process.join()
            try:
                while True:
                    told.append(pipe.recv())
            except (EOFError, OSError):
                pipe.close()
        with Ledger.open(target, upgrade=False) as ledger:
            verify(ledger.reader())
            again = ledger.analyst("events", "ann").conversation(held.id)
            asked = [one.asked for one in again.transcript() if one.told.positive]
            known = [one for one in told if one >= 0]
            assert set(known) <= set(asked)
            assert len(known) == len(set(known))
            assert len(asked) <= 200

    def test_two_clients_are_served_one_after_the_other(
        self, target: str, certificate: fa.Certificate, processes: Context
    ) -> None:
        watch = SparseVector.from_epsilon(SURE, positives=30, monotone=True)
        with Ledger.open(target) as ledger:
            fill(ledger, certificate)
            held = ledger.analyst("events", "ann").open_conversation(watch)
        running = [start(processes, workers.ask_until_over, target, held.id) for _ in range(3)]
        for _, pipe in running:
            assert pipe.recv() == "ready"
        for _, pipe in running:
            pipe.send("go")
        results = [pipe.recv() for _, pipe in running]
        for process, pipe in running:
            process.join()
            pipe.close()
        assert [strange for _, strange in results] == [[], [], []]
        assert sum(positive for positive, _ in results) == 30  # exactly what was paid for
        with Ledger.open(target, upgrade=False) as ledger:
            verify(ledger.reader())
            assert len(ledger.analyst("events", "ann").conversation(held.id).transcript()) == 60

    @pytest.mark.parametrize("mode", ["fast", "immediate"])
    def test_the_server_restarts_under_questions(
        self,
        postgres: Server,
        postgres_url: str,
        certificate: fa.Certificate,
        processes: Context,
        mode: str,
    ) -> None:
        watch = SparseVector.from_epsilon(SURE, positives=10**6, monotone=True)
        with Ledger.open(postgres_url) as ledger:
            fill(ledger, certificate)
            held = ledger.analyst("events", "ann").open_conversation(watch)
            jobs = [(postgres_url, held.id, number) for number in range(2)]
            running = [start(processes, workers.ask_until_told, *job) for job in jobs]
            for _, pipe in running:
                assert pipe.recv() == "ready"
            while held.standing().asked < 20:
                time.sleep(0.02)
            postgres.restart(mode)
            while held.standing().asked < 60:
                time.sleep(0.02)
            told: list[list[int]] = []
            for process, pipe in running:
                pipe.send("stop")
                answered, strange = pipe.recv()
                assert strange == []  # every process waited and went on
                told += answered
                process.join()
                pipe.close()
            asked = [one.asked for one in held.transcript()]
            # what was cut off in its commit was found again: nothing lost, nothing twice
            assert sorted(asked) == sorted(told)
            verify(ledger.reader())
