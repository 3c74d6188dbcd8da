"""A failure that nobody foresaw was answered without its words, and then printed with them by the
server that runs the application: on stderr, with whatever it quotes of the data."""

from __future__ import annotations

import asyncio
import json

import pytest
from fastapi.responses import StreamingResponse

from farthing.server.serving import make_app
from farthing.server.settings import read_settings

CELL = "Zeisig 17"


@pytest.fixture
def app(tmp_path):
    (tmp_path / "farthing.toml").write_text('ledger = "budget.db"\n', encoding="utf-8")
    made = make_app(read_settings(tmp_path / "farthing.toml"))
    routes = len(made.router.routes)

    @made.get("/v1/fails")
    def fails() -> None:
        raise RuntimeError(f"Conversion Error: {CELL}")

    @made.get("/v1/fails-later")
    def fails_later() -> StreamingResponse:
        def parts():
            yield "begun"
            raise RuntimeError(CELL)

        return StreamingResponse(parts())

    made.router.routes[:0] = made.router.routes[routes:]  # before the files of the console
    return made


def answers(app, path):
    """What the server is sent; whatever is raised here, it would print."""
    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": [],
        "query_string": b"", "scheme": "http", "http_version": "1.1", "server": ("here", 80),
        "client": ("there", 1), "root_path": "",
    }  # fmt: skip # as a server writes it
    sent = []

    async def receive():
        await asyncio.Event().wait()  # nobody sends anything, and nobody goes away

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent


def test_what_it_says_goes_nowhere(app, caplog):
    start, body = answers(app, "/v1/fails")
    assert start["status"] == 500
    assert json.loads(body["body"])["error"]["kind"] == "failed"
    assert (b"x-frame-options", b"DENY") in start["headers"]
    assert "RuntimeError at" in caplog.text
    assert CELL not in caplog.text + str(body)


def test_an_answer_that_has_begun_is_not_begun_again(app, caplog):
    sent = answers(app, "/v1/fails-later")
    assert [one["type"] for one in sent].count("http.response.start") == 1
    assert CELL not in caplog.text + str(sent)
