"""The page of every HTTP endpoint, from the description that the service gives of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from farthing.server.serving import make_app
from farthing.server.settings import settings_from

INTRODUCTION = """\
# HTTP endpoints

Every endpoint of the service, from the description that it serves itself at `/openapi.json`. What
they are for, how requests are authorised, and the one shape of errors are in
[The service](../service.md#the-api).
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds reference/endpoints.md."""
    described = make_app(settings_from({"ledger": "budget.db"}, Path())).openapi()
    parts = [INTRODUCTION]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            parts += _section(f"{method.upper()} {path}", operation, described["components"])
    files.append(File.generated(config, "reference/endpoints.md", content="\n".join(parts)))
    return files


def _section(title: str, operation: Mapping[str, Any], components: Any) -> Iterator[str]:
    yield f"## `{title}`\n\n{operation['description']}\n"
    parameters = [one for one in operation.get("parameters", []) if one["in"] != "path"]
    if parameters:
        yield "| | |\n|---|---|"
        for one in parameters:
            yield f"| `{one['name']}` ({one['in']}) | {one.get('description', '')} |"
        yield ""
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = body.get("schema", {}).get("$ref", "").rpartition("/")[2]
    if name:
        schema = components["schemas"][name]
        yield f"Body: {', '.join(f'`{field}`' for field in schema.get('properties', ()))}.\n"
        for example in schema.get("examples", ())[:1]:
            yield f"```json\n{json.dumps(example, indent=2, ensure_ascii=False)}\n```\n"
