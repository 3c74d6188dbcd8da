"""The same notebook runs on `fa.open` and on `fa.connect`, and says the same in form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import farthing as fa
from farthing.client import ServiceRefused
from farthing.client.http_backend import HttpBackend
from farthing.engine import query_from
from farthing.errors import InvalidInput
from farthing.interactive import ConversationOver
from farthing.ledger import DoesNotFit, Limits, NotInLedger, Unavailable
from tests.client.lossy import lossy_proxy
from tests.server.deployment import TARIFF, Deployment, free_port

COUNT = {"kind": "count", "where": {"country": "NO"}}


@pytest.fixture(scope="module")
def local(deployed: Deployment, certificate: fa.Certificate) -> Iterator[fa.Session]:
    """The same rows and the same terms, in a ledger of their own."""
    with fa.open(
        deployed.folder / "events.parquet",
        ledger=deployed.folder / "local.db",
        unit="member",
        analyst="ann",
        dataset="events",
        tariff=certificate,
        farthings=150,
        limits=Limits(contribution_limit=3, per_key_limit=2),
    ) as session:
        yield session


@pytest.fixture(scope="module")
def remote(deployed: Deployment) -> Iterator[fa.Session]:
    with fa.connect(deployed.url, token=deployed.tokens["ann"], dataset="events") as session:
        yield session


def form_of(shown: object) -> str:
    """Text without what is random: numbers, how wide a column is, and what others spent."""
    text = re.sub(r"(everything so far|so far ).*", r"\1", str(shown))
    text = re.sub(r"[-−]?\d[\d,.]*", "0", text)
    return re.sub(r"[━─═ ░▒▓█▏▎▍▌▋▊▉▕●├┤│╸╺]+", " ", text)


#: One cell each.
CELLS: dict[str, Callable[[Any], object]] = {
    "count": lambda data: data.count(where="country == 'NO'").run(),
    "again": lambda data: data.count(where="country == 'NO'").run(),
    "paid again": lambda data: data.count(where="country == 'NO'").run(again=True).cached,
    "plan": lambda data: data.count(where={"country": "SE"}).plan(),
    "plan known": lambda data: data.count(where="country == 'NO'").plan().known,
    "plan data": lambda data: sorted(data.count().plan().to_json()),
    "expectation": lambda data: data.count().plan().expectation,
    "narrow": lambda data: data.count().plan(half_width=15).query,
    "histogram": lambda data: data.histogram(by="country", categories=["NO", "SE", "DK"]).run(),
    "shares": lambda data: (
        data.histogram(by="country", categories=["NO", "SE", "DK"]).run().shares()
    ),
    "computed in SQL": lambda data: data.sql(
        "SELECT country, 100 * COUNT(DISTINCT member) / SUM(COUNT(DISTINCT member)) AS part "
        "FROM events WHERE country IN ('NO', 'SE', 'DK') GROUP BY country ORDER BY 1 DESC"
    ).run(),
    "table": lambda data: (
        data.histogram(by="country", categories=["NO", "SE"]).run().to_pandas().dtypes
    ),
    "quantile": lambda data: data.quantile("age", 0.5, lower=0, upper=100).plan(),
    "quartiles": lambda data: data.quantile(
        "age", [0.25, 0.5, 0.75], lower=0, upper=100, per_key_limit=1
    ).run(),
    "largest": lambda data: data.max("age", lower=0, upper=100, per_key_limit=1).run(),
    "found bounds": lambda data: data.mean("age", upper="auto", lower=0, per_key_limit=1).plan(),
    "with found bounds": lambda data: data.sum("age", upper="auto", lower=0).run().caption,
    "found before": lambda data: data.sum("age", upper="auto", lower=0).run().cached,
    "sql": lambda data: data.sql("SELECT COUNT(DISTINCT member) FROM events"),
    "sql back": lambda data: data.count(where={"country": "DK"}).to_sql(),
    "batch": lambda data: data.batch({"a": data.count(), "b": COUNT}).run(),
    "batch plan": lambda data: data.batch({"a": data.count(), "b": COUNT}).plan(),
    "ask": lambda data: data.ask(query_from(COUNT)).run(),
    "ask a batch": lambda data: data.ask({"kind": "batch", "queries": {"n": COUNT}}).to_json(),
    "watch plan": lambda data: data.watch().plan(),
    "guess plan": lambda data: data.watch_guesses(tolerance=200).plan().accuracy,
    "remaining": lambda data: data.remaining(),
    "purse": lambda data: data.purse(),
    "schema": lambda data: data.schema,
    "name": lambda data: data.name,
    "people": lambda data: data.per_unit(n=fa.rows()).count(where="n > 1").run(),
    "regression": lambda data: (
        data.regression("age", "least(greatest(age, 1), 50) * 2", lower=0, upper=100).run().labels
    ),
    "people plan": lambda data: (
        data.per_unit(n=fa.rows()).histogram(fa.bins("n", [0, 2, 9])).plan().price
    ),
    "people in SQL": lambda data: data.sql(
        "SELECT COUNT(*) FROM (SELECT member, COUNT(*) AS n FROM events GROUP BY member) t "
        "WHERE n > 1"
    ).run(),
    "wrong expression": lambda data: refusal(lambda: data.count(where="country * 2 > 1").run()),
    "wrong column": lambda data: refusal(lambda: data.count(where={"nothing": 1}).run()),
    "wrong item": lambda data: refusal(lambda: data.count(count="nothing").run()),
    "wrong SQL": lambda data: refusal(lambda: data.sql("SELECT * FROM events")),
    "no such conversation": lambda data: refusal(lambda: data.conversation("0" * 32))[0],
}


def refusal(cell: Callable[[], object]) -> tuple[type[BaseException], str]:
    with pytest.raises(fa.FarthingError) as caught:
        cell()
    return type(caught.value), str(caught.value)


def test_every_cell_says_the_same_in_form(local: fa.Session, remote: fa.Session) -> None:
    for name, cell in CELLS.items():
        here, there = cell(local), cell(remote)
        assert form_of(there) == form_of(here), name
        assert type(there).__name__ == type(here).__name__, name
    assert remote.remaining() == local.remaining()


def test_everything_that_a_session_has_is_there(local: fa.Session, remote: fa.Session) -> None:
    pairs: list[tuple[Any, Any]] = [
        (local.count(), remote.count()),
        (local.count().plan(), remote.count().plan()),
        (local.batch({"a": COUNT}), remote.batch({"a": COUNT})),
        (local.watch(), remote.watch()),
    ]
    for here, there in pairs:
        assert type(here) is type(there)


def test_history_is_everything_that_was_told(
    local: fa.Session, remote: fa.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for data in (local, remote):
        data.count(where={"country": "NO"}).run()
        data.count(where={"age": 5}).run()
        data.batch({"a": data.count(where={"age": 3}), "b": data.count(where={"age": 4})}).run()
        past = data.history()
        together = next(one for one in past if one.query["kind"] == "batch")
        assert list(together.query["queries"]) == ["a", "b"]
        words = "The number of distinct `member`, where `country` is NO"
        alone = next(one for one in past if one.asked == words)
        assert alone.price.farthings == TARIFF.price("count").farthings
        assert alone.asked in repr(alone)
        assert data.ask(alone.query).run().cached
        assert len(data.history()) == len(past), "seeing it again is no release"
        times = [one.time for one in past]
        assert times == sorted(times, reverse=True)
    get = HttpBackend.get

    def by_twos(self: HttpBackend, path: str, **params: Any) -> dict[str, Any]:
        return get(self, path, **params, **({"limit": 2} if path == "releases" else {}))

    whole = remote.history()
    monkeypatch.setattr(HttpBackend, "get", by_twos)
    assert len(whole) > 2
    assert remote.history() == whole, "page by page"


def test_an_automatic_limit_is_sent_as_it_was_asked(
    remote: fa.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once its limit is known, an answer still says if that was the largest one tried."""
    query = query_from(
        {"kind": "histogram", "by": ["country"], "categories": ["NO", "SE"],
         "contribution_limit": "auto"}
    )  # fmt: skip # one query
    sent: list[dict[str, Any]] = []

    def paid(_: HttpBackend, __: str, body: dict[str, Any], ___: object) -> dict[str, Any]:
        sent.append(body)
        return {"answers": {}}

    remote.ask(query).run()
    monkeypatch.setattr(HttpBackend, "_paid", paid)
    remote.batch({"a": query, "b": COUNT}).run()
    assert sent[0]["batch"]["a"] == query.to_json()
    assert sent[0]["batch"]["b"]["count"] is not None, "items are named as they were planned"


def test_a_conversation(remote: fa.Session) -> None:
    talk = remote.watch(positives=1).open()
    everybody = remote.count()
    assert not talk.exceeds(everybody, 10**9).positive
    found = remote.conversation(talk.id)
    answers = found.exceeds_many([(everybody, 10**9), (everybody, -(10**9)), (everybody, 0)])
    assert [one.positive for one in answers] == [False, True]
    assert not found.standing().open
    assert [one.told.positive for one in found.transcript()] == [False, False, True]
    assert talk.id in [one.id for one in remote.conversations()]
    with pytest.raises(ConversationOver):
        talk.exceeds(everybody, 1)


def test_what_does_not_fit_carries_both_sides(remote: fa.Session) -> None:
    plan = remote.count(repeats=60).plan()
    assert not plan.fits
    with pytest.raises(DoesNotFit, match="left") as caught:
        plan.run()
    assert caught.value.requested == plan.price
    assert caught.value.remaining == remote.remaining()


def test_tokens_and_datasets(deployed: Deployment) -> None:
    tokens = deployed.tokens
    with pytest.raises(InvalidInput, match="events, slow"):
        fa.connect(deployed.url, token=tokens["ann"])
    with fa.connect(deployed.url, token=tokens["narrow"]) as session:
        assert session.name == "slow"
    with pytest.raises(NotInLedger, match="granted to ann: events, slow"):
        fa.connect(deployed.url, token=tokens["ann"], dataset="private")
    with pytest.raises(InvalidInput, match="owner's"):
        fa.connect(deployed.url, token=tokens["team"], dataset="events")
    with pytest.raises(ServiceRefused) as caught:
        fa.connect(deployed.url, token=tokens["revoked"])
    assert (caught.value.status, caught.value.kind) == (401, "unauthorized")
    with pytest.raises(InvalidInput, match="https"):
        fa.connect("data.example", token="fth_a_b")
    with pytest.raises(Unavailable, match="no service answers"):
        fa.connect(f"http://127.0.0.1:{free_port()}", token="fth_a_b", patience=0.5)


def test_a_slow_run_is_followed_as_a_job(deploy: Callable[..., Deployment]) -> None:
    one = deploy(limits={"answer_within": 0, "time_limit": 10})
    with fa.connect(one.url, token=one.tokens["ann"], dataset="events") as session:
        before = session.remaining().farthings
        assert isinstance(session.count().run().value, int)
        assert session.remaining().farthings == before - TARIFF.price("count").farthings
    with fa.connect(one.url, token=one.tokens["ann"], dataset="slow") as session:
        with pytest.raises(ServiceRefused, match="stays spent") as caught:
            session.count().run()
        assert caught.value.kind == "time_limit"


def test_a_lost_answer_is_charged_once(deployed: Deployment) -> None:
    with (
        lossy_proxy(deployed.port) as (port, lost),
        fa.connect(
            f"http://127.0.0.1:{port}", token=deployed.tokens["bob"], dataset="events"
        ) as session,
    ):
        before = session.remaining().farthings
        for age in range(5):
            session.count(where={"age": {"below": 20 + age}}).run()
        price = TARIFF.price("count").farthings
        assert session.remaining().farthings == before - 5 * price
        assert [path for path in lost if path.endswith("/run")]  # or nothing was tested
