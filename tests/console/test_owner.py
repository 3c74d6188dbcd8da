"""The whole journey of an owner, in a browser."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.console.conftest import Visit
from tests.waiting import HANGS


def test_where_the_budget_went_and_who_may_spend(visit: Visit) -> None:
    visitor = visit()
    visitor.people.ask("ann", "NO")
    page = visitor.enter("owner")
    expect(page.get_by_role("heading", level=1, name="Datasets")).to_be_visible()
    visitor.looked_at("owner-datasets")
    page.get_by_role("main").get_by_role("link", name="engagements").click()
    expect(page.get_by_role("img", name="Farthings spent over time")).to_be_visible()
    expect(page.get_by_text("What everybody together has learned")).to_be_visible()
    page.get_by_role("textbox", name="Analyst").fill("cleo")
    page.get_by_role("textbox", name="Farthings").fill("7")
    page.get_by_role("button", name="Grant").click()
    expect(page.get_by_role("row", name="cleo")).to_contain_text("7")
    visitor.looked_at("owner-budget")
    page.get_by_role("button", name="Revoke the purse of cleo").click()
    visitor.looked_at("owner-revoke")
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("row", name="cleo")).to_have_accessible_name("cleo 7 0 closed")


def test_what_the_book_says(visit: Visit) -> None:
    visitor = visit()
    visitor.people.ask("ann", "NO")
    visitor.people.ask("bob", "SE")
    ann, bob = visitor.people.name("ann"), visitor.people.name("bob")
    page = visitor.enter("owner")
    visitor.go("engagements/profile")
    expect(page.get_by_role("img", name="δ against ε")).to_be_visible()
    expect(page.get_by_text("is right at most")).to_be_visible()
    visitor.looked_at("owner-profile")
    visitor.go("engagements/history")
    page.get_by_label("Asked by").select_option(bob)
    expect(page.get_by_role("row", name="`country` is SE")).to_contain_text(bob)
    expect(page.get_by_role("row", name="`country` is SE")).to_contain_text("answered")
    page.get_by_label("Asked by").select_option(ann)
    expect(page.get_by_role("row", name="`country` is SE")).to_have_count(0)
    visitor.looked_at("owner-history")
    visitor.go("engagements/statement")
    expect(page.get_by_role("heading", name="Privacy statement")).to_be_visible()
    visitor.looked_at("owner-statement")
    visitor.go("engagements/verify")
    page.get_by_role("button", name="Verify", exact=True).click()
    expect(page.get_by_text("Sound.")).to_be_visible()
    visitor.looked_at("owner-verify")
    visitor.go("+planner")
    number = page.locator(".plan .big")
    expect(number).to_be_visible()
    before = number.inner_text()
    page.get_by_label("ε", exact=True).fill("6")
    expect(number).not_to_have_text(before)
    visitor.looked_at("owner-planner")


def test_a_token_is_shown_once(visit: Visit) -> None:
    visitor = visit()
    page = visitor.enter("owner")
    page.get_by_role("link", name="Tokens").click()
    page.get_by_label("For", exact=True).fill("dora")
    page.get_by_role("button", name="Make a token").click()
    token = page.locator("code.token").inner_text()
    visitor.looked_at("owner-tokens")
    me = f"{visitor.served.url}/v1/me"
    bearer = {"Authorization": f"Bearer {token}"}
    assert httpx.get(me, headers=bearer, timeout=HANGS).json()["name"] == "dora"
    page.reload()
    expect(page.get_by_role("row", name="dora")).to_be_visible()
    assert token not in page.content()
    page.get_by_role("button", name="Withdraw the analyst token of dora").click()
    page.get_by_role("dialog").get_by_role("button", name="Withdraw").click()
    expect(page.get_by_role("row", name="dora")).to_contain_text("withdrawn")
    assert httpx.get(me, headers=bearer, timeout=HANGS).status_code == 401


def test_on_a_phone(visit: Visit) -> None:
    visitor = visit(phone=True)
    page = visitor.enter("owner")
    visitor.go("engagements")
    expect(page.get_by_text("What everybody together has learned")).to_be_visible()
    visitor.looked_at("owner-phone")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "no sideways scroll"


@pytest.mark.parametrize("dark", [False, True])
def test_statement_and_profile_on_a_phone(visit: Visit, dark: bool) -> None:
    """Every word is read without moving the page or a table sideways."""
    visitor = visit(phone=True, dark=dark)
    page = visitor.enter("owner")
    for where, seen in (("profile", "Certified profile"), ("statement", "Privacy statement")):
        visitor.go(f"engagements/{where}")
        expect(page.get_by_role("heading", name=seen)).to_be_visible(timeout=60_000)
        visitor.looked_at(f"owner-{where}-phone{'-dark' if dark else ''}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        wide = "all => all.filter(e => e.scrollWidth > e.clientWidth).map(e => e.ariaLabel)"
        assert page.locator(".scroll").evaluate_all(wide) == []
        assert re.search(r"\d\.\d{7,}", page.locator("main").inner_text()) is None


def test_in_the_dark(visit: Visit) -> None:
    visitor = visit(dark=True)
    page = visitor.enter("owner")
    visitor.go("engagements/profile")
    expect(page.get_by_role("img", name="δ against ε")).to_be_visible()
    visitor.looked_at("owner-profile-dark")
    visitor.go("engagements")
    expect(page.get_by_text("What everybody together has learned")).to_be_visible()
    visitor.looked_at("owner-budget-dark")


def test_a_dataset_from_declaration_to_a_purse(visit: Visit) -> None:
    visitor = visit()
    page = visitor.enter("owner")
    page.get_by_role("main").get_by_role("link", name="visits").click()
    page.get_by_label("Unit of privacy").select_option("member_id")
    page.get_by_label("Labels of one unit that count").fill("5")
    visitor.looked_at("owner-declare")
    page.get_by_role("button", name="Declare").click()
    expect(page.get_by_role("heading", name="Sign a budget")).to_be_visible()
    visitor.looked_at("owner-sign")
    page.get_by_role("button", name="Prove and sign").click()
    expect(page.get_by_role("heading", name="Grant")).to_be_visible()
    page.get_by_role("textbox", name="Analyst").fill("eve")
    page.get_by_role("textbox", name="Farthings").fill("9")
    page.get_by_role("button", name="Grant").click()
    expect(page.get_by_role("row", name="eve")).to_contain_text("9")


def test_a_new_version_of_the_rows(visit: Visit) -> None:
    visitor = visit()
    page = visitor.enter("owner")
    visitor.go("renewed/versions")
    page.get_by_label("New version").fill("2")
    page.get_by_role("button", name="Declare").click()
    page.get_by_role("dialog").get_by_role("button", name="Declare").click()
    expect(page.get_by_text("The rows are version 2 now")).to_be_visible()
    visitor.looked_at("owner-versions")
