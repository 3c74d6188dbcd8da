"""The forms that the service describes: everything that can be asked, and nothing twice."""

from __future__ import annotations

import json

import httpx

from farthing.engine.desk.operations import OPERATIONS
from farthing.engine.kinds import KINDS

CONTROLS = {"yes", "whole", "number", "text", "choice", "column", "number column", "columns"}
CONTROLS |= {"list", "numbers", "json", "date"}


def test_every_kind_of_question_and_every_field(ann: httpx.Client) -> None:
    found = ann.get("/v1/forms").json()
    assert "operations" not in found  # those are an owner's
    assert set(found["questions"]) == set(KINDS)
    for name, kind in KINDS.items():
        form = found["questions"][name]
        assert [one["name"] for one in form["fields"]] == list(kind.field_names())
        assert form["help"].endswith(".")
    assert {"threshold", "guess"} <= set(found["conversations"])
    shown = [one for part in found.values() for form in part.values() for one in form["fields"]]
    for one in shown:
        assert one["kind"] in CONTROLS, one
        assert one["label"], one
        assert one["needed"] is False or one["group"] == "first", one


def test_a_form_that_is_sent_as_it_stands_is_a_question(ann: httpx.Client) -> None:
    """What stands in the form first is what the engine takes when nothing is said."""
    for form, query in (("count", {}), ("top_k", {"by": "country", "k": 2})):
        fields = ann.get("/v1/forms").json()["questions"][form]["fields"]
        start = {one["name"]: one["start"] for one in fields if one["start"] is not None}
        prices = [
            ann.post("/v1/datasets/events/plan", json={"query": {"kind": form, **asked}}).json()
            for asked in (query, {**start, **query})
        ]
        assert prices[0]["price"] == prices[1]["price"]


def test_every_operation_for_an_owner(team: httpx.Client) -> None:
    found = team.get("/v1/forms").json()["operations"]
    assert set(found) == {name for name, one in OPERATIONS.items() if one.path}
    for name, form in found.items():
        assert form["help"], name
        for one in form["fields"]:
            assert one["kind"] in CONTROLS, one
            assert one["help"], one
            assert f"{{{one['name']}}}" not in form["path"]
    assert next(one for one in found["mint_token"]["fields"] if one["name"] == "role")[
        "choices"
    ] == ["owner", "analyst"]
    assert len(json.dumps(found)) < 30_000
