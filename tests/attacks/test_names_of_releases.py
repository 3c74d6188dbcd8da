"""One analyst ran a question twice at once, and was told the name of the other release in 9 of 586
answers: a name was looked up by the question, after both were there."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from farthing.ledger import Analyst
from tests.server.in_process import prepared, served
from tests.waiting import HANGS

EVENTS = "/v1/datasets/events"


def test_a_name_is_that_of_the_answer_that_came_with_it(tmp_path, monkeypatch) -> None:
    deployed = prepared(tmp_path)
    both, close = threading.Barrier(2, timeout=HANGS), Analyst.close

    def close_together(*given, **more):
        entry = close(*given, **more)
        both.wait()  # nobody goes on before both are in the book
        return entry

    monkeypatch.setattr(Analyst, "close", close_together)
    asked = {"query": {"kind": "count"}, "again": True}
    with served(deployed) as ann, ThreadPoolExecutor(2) as pool:
        told = list(pool.map(lambda _: ann.post(f"{EVENTS}/run", json=asked).json(), range(2)))
        assert len({one["id"] for one in told}) == 2
        listed = ann.get(f"{EVENTS}/releases").json()["releases"]
        assert {one["id"] for one in listed} == {one["id"] for one in told}
        for one in told:
            kept = ann.get(f"{EVENTS}/releases/{one['id']}").json()["release"][""]
            assert kept["counts"] == one["answer"]["counts"]
        first = ann.get(f"{EVENTS}/releases", params={"limit": 1}).json()
        assert first == {"releases": listed[:1], "more": True}
        last = {"limit": 1, "before": first["releases"][0]["id"]}
        assert ann.get(f"{EVENTS}/releases", params=last).json()["releases"] == listed[1:]
        with deployed.client("bob") as bob:
            for one in told:
                assert bob.get(f"{EVENTS}/releases/{one['id']}").status_code == 404
                before = {"before": one["id"]}
                assert bob.get(f"{EVENTS}/releases", params=before).status_code == 404
        for wrong in ("0" * 32, told[0]["id"][:-1], "x" * 32, told[0]["id"].upper(), "1"):
            if wrong != told[0]["id"]:
                assert ann.get(f"{EVENTS}/releases/{wrong}").status_code == 404
