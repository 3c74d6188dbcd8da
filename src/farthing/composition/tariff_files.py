"""Tariffs as plain data and as TOML files."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

from farthing.composition.tariff import Tariff, tariff_to_json
from farthing.errors import InvalidInput
from farthing.guarantees.notation import parse_guarantee
from farthing.whole_files import whole_file


def tariff_from_json(data: object) -> Tariff:
    """A tariff from plain data, as in a TOML file or a certificate."""
    if not isinstance(data, dict):
        raise InvalidInput("a tariff must be a table with farthings and items")
    unknown = set(data) - {"farthings", "items", "delta_units", "delta_unit"}
    if unknown:
        raise InvalidInput(f"a tariff has no {', '.join(sorted(map(str, unknown)))}")
    items = data.get("items")
    if not isinstance(items, dict):
        raise InvalidInput("a tariff needs [items.NAME] tables with guarantee and price")
    parsed = {}
    for name, entry in items.items():
        if not isinstance(entry, dict) or set(entry) != {"guarantee", "price"}:
            raise InvalidInput(f"item {name} must have exactly a guarantee and a price")
        if not isinstance(entry["guarantee"], str):
            raise InvalidInput(f'the guarantee of {name} must be text such as "br:0.1"')
        parsed[name] = parse_guarantee(entry["guarantee"]), entry["price"]
    if "farthings" not in data:
        raise InvalidInput("a tariff must say how many farthings there are")
    return Tariff(
        parsed,
        farthings=data["farthings"],
        delta_units=data.get("delta_units", 0),
        delta_unit=data.get("delta_unit", 1e-12),
    )


def read_tariff(path: str | os.PathLike[str]) -> Tariff:
    """A tariff from a TOML file."""
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not a readable tariff: {error}") from None
    return tariff_from_json(data)


def tariff_to_toml(tariff: Tariff) -> str:
    """The text that `read_tariff` reads back as the same tariff."""
    data = tariff_to_json(tariff)
    items = data.pop("items")
    assert isinstance(items, dict)
    lines = [f"{key} = {value!r}" for key, value in data.items()]
    for name, entry in items.items():
        # a string of TOML's basic kind is written like one of JSON, except for DEL
        quoted = json.dumps(name).replace("\x7f", "\\u007f")
        lines += ["", f"[items.{quoted}]"]
        lines += [f'guarantee = "{entry["guarantee"]}"', f"price = {entry['price']}"]
    return "\n".join(lines) + "\n"


def write_tariff(tariff: Tariff, path: str | os.PathLike[str]) -> None:
    """A TOML file that `read_tariff` reads back as the same tariff."""
    with whole_file(path) as file:
        file.write(tariff_to_toml(tariff))
