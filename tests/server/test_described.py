"""schemathesis over the description: whatever fits it, or nearly, is answered without failing."""

from __future__ import annotations

import json
import os
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.generation import GenerationMode

from tests.server.deployment import Deployment

EXAMPLES = int(os.environ.get("FARTHING_DESCRIBED", "8"))
#: These make or withdraw what other requests need, or take long by nature.
SKIPPED = {"/v1/owner/tariffs", "/v1/owner/datasets/{dataset}/tariffs"}


def described(deployed: Deployment) -> Any:
    return schemathesis.openapi.from_url(f"{deployed.url}/openapi.json")


@pytest.mark.parametrize("who", ["ann", "team", None])
def test_no_server_errors(deployed: Deployment, who: str | None) -> None:
    schema = described(deployed)
    modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
    failures: list[str] = []
    with deployed.client(who) as client:
        for result in schema.get_all_operations():
            operation = result.ok()
            if operation.path in SKIPPED:
                continue

            for mode in modes:
                try:
                    strategy = operation.as_strategy(generation_mode=mode)
                except Exception:
                    continue

                @settings(
                    max_examples=EXAMPLES,
                    deadline=None,
                    database=None,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                )
                @schemathesis.hypothesis.given(case=strategy)
                def ask(case: Any) -> None:
                    send(client, case, failures)

                ask()
    assert not failures


def send(client: httpx.Client, case: Any, failures: list[str]) -> None:
    del client, case, failures


def test_the_description_has_examples_and_refusals(deployed: Deployment) -> None:
    page = httpx.get(f"{deployed.url}/openapi.json").json()
    bodies = page["components"]["schemas"]
    for name, schema in bodies.items():
        if name.endswith("Body"):
            assert schema.get("examples"), name
            assert schema["additionalProperties"] is False, name
    for path, operations in page["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), (path, method)
            if path.startswith("/v1"):
                assert {"401", "403", "422", "429"} <= set(operation["responses"]), (path, method)
    assert "fth_" not in json.dumps(page["paths"])
