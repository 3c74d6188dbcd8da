"""schemathesis over the description: whatever fits it, or nearly, is answered without failing."""

from __future__ import annotations

import json
import os
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

from tests.server.deployment import Deployment
from tests.waiting import HANGS

#: Requests of each kind for each operation.
EXAMPLES = int(os.environ.get("FARTHING_DESCRIBED", "5"))
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


@pytest.fixture(scope="module")
def deployed(deployed_apart: Deployment) -> Deployment:
    """What is asked here may be anything."""
    return deployed_apart


@pytest.mark.parametrize("who", ["ann", "team"])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: str(mode.name).lower())
def test_no_server_errors(deployed: Deployment, who: str, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_url(f"{deployed.url}/openapi.json")
    headers = {"Authorization": f"Bearer {deployed.tokens[who]}"}
    failed: list[str] = []
    for found in schema.get_all_operations():
        operation = found.ok()
        is_owners = operation.path.startswith("/v1/owner")
        if is_owners != (who == "team") and operation.path.startswith("/v1/"):
            continue

        @settings(
            max_examples=EXAMPLES,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: Any) -> None:
            _in_events(case)
            answer = case.call(headers=headers, timeout=HANGS)
            if answer.status_code >= 500:
                failed.append(f"{answer.status_code} {case.as_curl_command()}")

        try:
            ask()
        except (
            schemathesis.errors.SchemathesisError,
            Unsatisfiable,
        ):  # nothing can be wrong with this one
            assert mode == GenerationMode.NEGATIVE
    assert not failed


def _in_events(case: Any) -> None:
    """Half of the time about a dataset that is there."""
    parameters = case.path_parameters or {}
    if "dataset" in parameters and hash(str(case.body)) % 2:
        parameters["dataset"] = "events"


def test_the_description_has_examples_and_refusals(deployed: Deployment) -> None:
    page = httpx.get(f"{deployed.url}/openapi.json").json()
    for name, schema in page["components"]["schemas"].items():
        if name.endswith("Body") and name != "PriceBody":  # a part of others
            assert schema.get("examples"), name
            assert schema["additionalProperties"] is False, name
    for path, operations in page["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), (path, method)
            if path.startswith("/v1"):
                assert {"401", "403", "422", "429"} <= set(operation["responses"]), (path, method)
    assert "0" * 32 not in json.dumps(page)
