"""Schemas as TOML, for an owner to look at and change.

[[columns]]
name = "age"
kind = "integer"
lower = 0
upper = 120

[[columns]]
name = "region"
kind = "text"
lookup = { table = "cities.parquet", by = "city", key = "name" }
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

from farthing.errors import InvalidInput
from farthing.schema import Column, Schema, schema_from_json


def read_schema(path: str | os.PathLike[str]) -> Schema:
    """A schema from a TOML file with a list [[columns]]."""
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{os.fspath(path)} is not a readable schema: {error}") from None
    if set(data) != {"columns"}:
        raise InvalidInput(f"{os.fspath(path)} must have one list [[columns]]")
    return schema_from_json(data["columns"])


def columns_to_toml(columns: tuple[Column, ...]) -> str:
    """Columns as TOML that `read_schema` reads."""
    blocks = []
    for column in columns:
        lines = [f"{key} = {_toml(value)}" for key, value in column.to_json().items()]
        blocks.append("\n".join(["[[columns]]", *lines]))
    return "\n\n".join(blocks) + "\n"


def _toml(value: object) -> str:
    """Text and lists as in JSON, which TOML reads the same; DEL is the one exception."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
