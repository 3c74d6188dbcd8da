"""Conversations and registered lists, in a browser."""

from __future__ import annotations

import json

from playwright.sync_api import expect

from tests.console.conftest import Visit


def test_a_watch_is_opened_asked_and_over(visit: Visit) -> None:
    visitor = visit()
    page = visitor.enter("ann")
    page.get_by_role("link", name="Watch").click()
    expect(page.get_by_text("No conversation yet")).to_be_visible()
    visitor.looked_at("analyst-watch-empty")
    page.get_by_role("button", name="Open for").click()
    talk = page.get_by_role("region", name="Conversation of")
    expect(talk).to_contain_text("Open · opened")
    talk.get_by_label("At least").fill("1000000000")
    talk.get_by_role("button", name="Ask").click()
    expect(talk.get_by_role("row", name="1,000,000,000")).to_contain_text("No")
    talk.get_by_label("where").fill("country == 'NO'")
    talk.get_by_label("At least").fill("-1000000000")
    visitor.looked_at("analyst-watch")
    talk.get_by_role("button", name="Ask").click()
    expect(talk.get_by_role("row", name="`country` is NO")).to_contain_text("Yes, at least that")
    expect(talk).to_contain_text("Over · opened")
    expect(talk.get_by_role("button")).to_have_count(0)
    visitor.looked_at("analyst-watch-over")


def test_a_median_and_a_sum_are_watched(visit: Visit) -> None:
    visitor = visit(refusals=True)
    page = visitor.enter("cy")
    page.get_by_role("link", name="Watch").click()
    page.get_by_label("Of which numbers").select_option("false")
    page.get_by_role("button", name="Open for 1 farthing").click()
    talk = page.get_by_role("region", name="Conversation of")
    talk.get_by_label("Number", exact=True).select_option("quantile")
    talk.get_by_label("At least").fill("60")
    talk.get_by_role("button", name="Ask").click()
    expect(talk).to_contain_text("Column: choose something first")
    talk.get_by_label("Column").select_option("amount")
    talk.get_by_label("Smallest value").fill("0")
    talk.get_by_label("Largest value").fill("100")
    talk.get_by_text("Limits").click()
    talk.get_by_label("Rows of one unit").fill("1")
    visitor.looked_at("analyst-watch-median")
    talk.get_by_role("button", name="Ask").click()
    expect(talk.get_by_role("row", name="amount")).to_contain_text("No")
    talk.get_by_label("At least").fill("20")
    talk.get_by_role("button", name="Ask").click()
    expect(talk.get_by_role("row", name="amount").first).to_contain_text("Yes, at least that")
    expect(talk).to_contain_text("Over · opened")

    page.get_by_label("Of which numbers").select_option("true")
    page.get_by_label("What one unit may change").fill("100")
    page.get_by_role("button", name="Open for 1 farthing").click()
    talk = page.get_by_role("region", name="Conversation of").first
    expect(talk).to_contain_text("Open · opened")
    kinds = talk.get_by_label("Number", exact=True).locator("option")
    expect(kinds).to_have_count(3)  # no quantile: a unit can lower its rank
    talk.get_by_label("Number", exact=True).select_option("sum")
    talk.get_by_label("Column").select_option("amount")
    talk.get_by_label("Smallest sum").fill("0")
    talk.get_by_label("Largest sum").fill("100")
    talk.get_by_label("At least").fill("100000")
    talk.get_by_role("button", name="Ask").click()
    expect(talk.get_by_role("row", name="amount")).to_contain_text("No")


def test_guesses_on_a_phone_in_the_dark_and_closed_early(visit: Visit) -> None:
    visitor = visit(dark=True, phone=True, refusals=True)
    page = visitor.enter("bob")
    visitor.go("engagements/watch")
    page.get_by_label("What", exact=True).select_option("guess")
    page.get_by_label("Right within").fill("-5")
    expect(page.get_by_role("alert")).to_contain_text("tolerance")
    page.get_by_label("Right within").fill("1000")
    page.get_by_role("button", name="Open for").click()
    talk = page.get_by_role("region", name="Conversation of")
    talk.get_by_label("where").fill("country =")
    talk.get_by_label("My guess").fill("3000000")
    talk.get_by_role("button", name="Ask").click()
    expect(talk.get_by_role("alert")).to_contain_text("cannot be read")
    visitor.looked_at("analyst-guess-phone-dark")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "no sideways scroll"
    talk.get_by_role("button", name="Close").click()
    expect(talk).to_contain_text("Over · opened")


def test_a_list_is_registered_and_run_once(visit: Visit) -> None:
    batch = {"no": {"kind": "count", "where": "country == 'NO'"}, "all": {"kind": "count"}}
    owner = visit()
    owner.people.token("ann")  # it has a purse
    page = owner.enter("owner")
    owner.go("engagements/budget")
    page.get_by_label("Name of the list").fill("monday")
    page.get_by_label("Who may run it").fill(owner.people.name("ann"))
    page.get_by_label("Questions as JSON").fill(json.dumps(batch))
    page.get_by_role("button", name="Prove and register").click()
    expect(page.get_by_role("row", name="monday")).to_contain_text("may be run")
    owner.looked_at("owner-lists")

    analyst = visit()
    page = analyst.enter("ann")
    left = page.locator(".purse strong")
    before = left.inner_text()
    page.get_by_text("Plain data", exact=True).click()
    page.get_by_label("A query as JSON").fill(json.dumps(batch))
    page.get_by_label("Paid by").select_option("monday")
    expect(page.get_by_text("Paid by the registered list monday")).to_be_visible()
    analyst.looked_at("analyst-list")
    page.get_by_role("button", name="Run the list").click()
    expect(page.get_by_role("article")).to_have_count(2)
    expect(left).to_have_text(before)  # no part of a purse
