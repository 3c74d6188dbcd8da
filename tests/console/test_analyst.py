"""The whole journey of an analyst, in a browser."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.console.conftest import Visit
from tests.waiting import until


def _plan(page: Page) -> str:
    """What the price panel says once it has come to rest."""
    panel = page.get_by_role("region", name="Price and accuracy")
    expect(panel.locator("[aria-busy]")).to_have_count(0)
    expect(panel.get_by_role("button", name="Run for")).to_be_visible()
    return " ".join(panel.inner_text().split())


def test_from_the_form_to_a_chart_and_home_with_it(
    visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = visit()
    page = visitor.enter("ann")
    expect(page.get_by_role("heading", level=1, name="engagements")).to_be_visible()
    page.get_by_label("For each").fill("country")
    page.get_by_label("How many").fill("3")
    words = ("The 3 ", "farthings and 1 δ unit", "of the dataset's budget", "ε ≤")
    until(lambda: all(word in _plan(page) for word in words))
    wide = _plan(page)
    page.get_by_label("Each number within ±").fill("30")
    until(lambda: _plan(page) != wide)  # the price follows the accuracy
    visitor.looked_at("analyst-form")

    page.get_by_role("button", name="Run for").click()
    answer = page.get_by_role("article")
    expect(answer.get_by_role("img")).to_be_visible()
    expect(answer).to_contain_text("What was limited")
    expect(answer).to_contain_text("Paid ")
    assert page.locator(".error").count() == 3, "every bar has its error bar"
    visitor.looked_at("analyst-answer")

    with page.expect_download() as table:
        answer.get_by_role("button", name="Download CSV").click()
    table.value.save_as(tmp_path / "a.csv")
    header, *rows = csv.reader((tmp_path / "a.csv").read_text().splitlines())
    assert header == ["label", "number", "lower", "upper"]
    assert len(rows) == 3
    with page.expect_download() as data:
        answer.get_by_role("button", name="Download JSON").click()
    data.value.save_as(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text())["query"]["k"] == 3
    answer.get_by_role("button", name="Copy notebook cell").click()
    cell = page.evaluate("navigator.clipboard.readText()")
    assert "fth_" not in cell, "a notebook is shared; a token is not"
    monkeypatch.setenv("FARTHING_TOKEN", visitor.people.token("ann"))
    notebook: dict[str, Any] = {}
    exec(cell, notebook)
    with notebook["data"]:
        assert notebook["answer"].cached, "what was released already is free"
        assert [row[0] for row in rows] == list(notebook["answer"].labels)

    expect(page.get_by_role("button", name="Show again, free")).to_be_visible()
    page.get_by_role("link", name="History").click()
    page.get_by_role("button", name="Show", exact=True).first.click()
    expect(page.locator(".releases").get_by_role("article").get_by_role("img")).to_be_visible()
    expect(page.get_by_role("button", name="Earlier ones")).to_be_hidden()
    visitor.looked_at("analyst-history")
    page.get_by_role("link", name="Change it and ask").first.click()
    expect(page.get_by_label("How many")).to_have_value("3")
    page.get_by_role("link", name="About the data").click()
    expect(page.get_by_role("heading", name="What is proved")).to_be_visible()
    visitor.looked_at("analyst-about")
    assert re.search(r"\d\.\d{7,}", page.locator("main").inner_text()) is None


def test_what_the_owner_declared_of_the_values(visit: Visit) -> None:
    visitor = visit(refusals=True)  # the tariff of orders has no item for what a form begins with
    page = visitor.enter("cy")
    visitor.go("orders/about")
    expect(page.get_by_role("row", name="age")).to_contain_text("18 to 100")
    expect(page.get_by_role("row", name="region")).to_contain_text("2 declared: north, south")
    expect(page.get_by_role("row", name="amount")).to_contain_text("not declared")
    visitor.looked_at("analyst-about-declared")


def test_sql_and_a_batch(visit: Visit) -> None:
    visitor = visit()
    page = visitor.enter("bob")
    page.get_by_text("SQL", exact=True).click()
    page.get_by_label("One SELECT").fill("SELECT COUNT(DISTINCT member_id) FROM engagements")
    page.get_by_role("button", name="Run for").click()
    expect(page.get_by_role("article")).to_contain_text("at 95 %")
    visitor.looked_at("analyst-sql")
    page.get_by_text("Plain data", exact=True).click()
    both = {"no": {"kind": "count", "where": "country == 'NO'"}, "all": {"kind": "count"}}
    page.get_by_label("A query as JSON").fill(json.dumps(both))
    page.get_by_role("button", name="Run for").click()
    expect(page.get_by_role("article")).to_have_count(3)


def test_nothing_runs_before_its_price_is_shown(visit: Visit) -> None:
    """A button ran the question before, while the price of the next one was on its way."""
    page = visit().enter("bob")
    _plan(page)
    held: list[Route] = []
    page.route("**/plan", lambda route: held.append(route))
    page.get_by_label("Only rows where").fill("country == 'NO'")
    until(lambda: page.wait_for_timeout(50) or held)
    expect(page.get_by_role("button", name="Run for")).to_be_disabled()
    held[0].continue_()
    assert "NO" in _plan(page)
    expect(page.get_by_role("button", name="Run for")).to_be_enabled()


def test_what_cannot_be_asked_is_said_where_it_is_asked(visit: Visit) -> None:
    visitor = visit(refusals=True)
    page = visitor.enter("bob")
    page.get_by_label("Only rows where").fill("country =")
    panel = page.get_by_role("region", name="Price and accuracy")
    expect(panel).to_contain_text("cannot be read")
    visitor.looked_at("analyst-refused")
    page.get_by_label("Only rows where").fill("")
    page.get_by_label("Each number within ±").fill("0.5")
    expect(panel.get_by_role("button", name="Run for")).to_have_count(0)
    visitor.go("nothing-like-it")
    expect(page.get_by_role("heading", name="Nothing here")).to_be_visible()
    visitor.looked_at("nothing-here")


def test_on_a_phone_in_the_dark(visit: Visit) -> None:
    visitor = visit(dark=True, phone=True)
    page = visitor.enter("ann")
    page.get_by_label("For each").fill("seniority")
    page.get_by_label("Each number within ±").fill("200")
    _plan(page)
    page.get_by_role("button", name="Run for").click()
    expect(page.get_by_role("article").get_by_role("img")).to_be_visible()
    visitor.looked_at("analyst-phone-dark")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "no sideways scroll"


def test_by_keyboard_alone(visit: Visit) -> None:
    visitor = visit()
    page = visitor.page
    page.goto(visitor.served.url)
    page.keyboard.type(visitor.people.token("bob"))
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="engagements").wait_for()
    until(lambda: page.evaluate("document.activeElement.tagName") == "H1")
    _plan(page)
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.innerText || document.activeElement.id"))
        if str(seen[-1]).startswith("Run for"):
            break
    assert seen[-1].startswith("Run for"), seen
    page.get_by_role("button", name="farthings").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#meaning-farthing")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#meaning-farthing")).to_be_hidden()


def test_a_token_that_is_none(visit: Visit) -> None:
    visitor = visit(dark=True, refusals=True)
    page = visitor.page
    page.goto(visitor.served.url)
    visitor.looked_at("sign-in-dark")
    page.get_by_label("Token").fill("fth_0000_1111")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("This token is not valid")).to_be_visible()
