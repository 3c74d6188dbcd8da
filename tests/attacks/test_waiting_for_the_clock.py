"""Answers leave on a clock. Who opened conversations that do not fit, for nothing, kept a thread of
every request asleep until it struck: sixty of them, and nobody else was answered."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.server.conftest import certificate, deploy  # noqa: F401 # fixtures


def test_who_waits_for_the_clock_is_one_of_a_few(deploy):  # noqa: F811 # the fixture
    deployed = deploy(release_every=4, limits={"jobs_at_once": 2})
    wanted = {
        "kind": "threshold",
        "positives": 100,
        "refresh_after": 1,
    }  # more than the purse holds

    def open_one(_: int) -> tuple[int, str]:
        with deployed.client("ann") as client:
            answer = client.post("/v1/datasets/events/conversations", json=wanted)
            return answer.status_code, answer.json()["error"]["kind"]

    with ThreadPoolExecutor(24) as pool:
        told = set(pool.map(open_one, range(24)))
    assert told == {(402, "does_not_fit"), (429, "too_many_runs")}
