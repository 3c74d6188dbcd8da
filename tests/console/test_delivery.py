"""How the console comes to the browser: all of it from here, small, under a strict policy."""

from __future__ import annotations

import re

import httpx

from farthing.server.serving import CONSOLE
from tests.console.conftest import Served, Visit
from tests.waiting import HANGS

LARGEST = 300_000


def test_first_view_is_small(visit: Visit) -> None:
    visitor = visit()
    sizes: list[int] = []
    visitor.page.on("response", lambda one: sizes.append(len(one.body())))
    visitor.page.goto(visitor.served.url, wait_until="networkidle")
    assert len(sizes) >= len(list(CONSOLE.iterdir()))
    assert sum(sizes) < LARGEST


def test_policy_and_caching(served: Served) -> None:
    for file in CONSOLE.iterdir():
        response = httpx.get(f"{served.url}/{file.name}", timeout=HANGS)
        assert response.headers["content-security-policy"].startswith("default-src 'self';")
        assert "unsafe" not in response.headers["content-security-policy"]
        assert response.headers["cache-control"] == "no-cache"
        tag = {"If-None-Match": response.headers["etag"]}
        again = httpx.get(f"{served.url}/{file.name}", headers=tag, timeout=HANGS)
        assert again.status_code == 304


def test_files_are_compressed_and_answers_are_not(served: Served) -> None:
    """How far an answer can be compressed would tell what is in it to whoever sees its size."""
    token = {"Authorization": f"Bearer {served.owner}"}
    for path, way in (("/console.css", "gzip"), ("/main.js", "gzip"), ("/v1/owner/datasets", None)):
        headers = {**token, "Accept-Encoding": "gzip"}
        response = httpx.get(served.url + path, headers=headers, timeout=HANGS)
        assert len(response.content) > 1000
        assert response.headers.get("content-encoding") == way


def test_nothing_inline_and_nothing_from_elsewhere() -> None:
    page = (CONSOLE / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|style=|\son\w+=|<script(?! type=\"module\" src=)", page)
    for file in CONSOLE.glob("*.js"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|eval\(|new Function", text)
        addresses = set(re.findall(r"https?://[^\"\s]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}, file.name


def test_every_module_is_announced() -> None:
    """Else modules come one after the other, each asked for by the one before."""
    page = (CONSOLE / "index.html").read_text(encoding="utf-8")
    named = set(re.findall(r'href="(\w+\.js)"|src="(\w+\.js)"', page))
    assert {one or other for one, other in named} == {file.name for file in CONSOLE.glob("*.js")}
