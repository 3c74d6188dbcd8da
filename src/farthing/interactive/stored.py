"""Interactive mechanisms as plain data, so that an open conversation survives its process."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from farthing.errors import InvalidInput
from farthing.interactive.composer import Concurrent, Part
from farthing.interactive.guess_and_check import GuessAndCheck
from farthing.interactive.protocol import Json, require_keys
from farthing.interactive.sparse_vector import SparseVector

#: The name in stored data → the mechanism. A new mechanism is one line here.
KINDS: dict[str, type[SparseVector] | type[GuessAndCheck]] = {
    "sparse_vector": SparseVector,
    "guess_and_check": GuessAndCheck,
}


def mechanism_to_json(mechanism: Part) -> Json:
    """Its name and its parameters."""
    if isinstance(mechanism, Concurrent):
        return {"concurrent": [mechanism_to_json(part) for part in mechanism.parts]}
    for name, kind in KINDS.items():
        if type(mechanism) is kind:
            return {name: {key: getattr(mechanism, key) for key in _parameters(kind)}}
    raise InvalidInput(f"{type(mechanism).__name__} has no name in stored data")


def mechanism_from_json(data: Json) -> Part:
    """Back from plain data; the parameters are checked like any others."""
    if not isinstance(data, dict) or len(data) != 1:
        raise InvalidInput("a stored mechanism must have one key, its name")
    (name, stored), *_ = data.items()
    if name == "concurrent":
        if not isinstance(stored, list):
            raise InvalidInput("a stored concurrent mechanism must be a list of mechanisms")
        return Concurrent(tuple(mechanism_from_json(part) for part in stored))
    if name not in KINDS:
        known = ", ".join((*KINDS, "concurrent"))
        raise InvalidInput(f"a stored mechanism must be one of {known}, got {name!r}")
    require_keys(stored, *_parameters(KINDS[name]))
    parameters: dict[str, Any] = stored
    return KINDS[name](**parameters)


def _parameters(kind: type[SparseVector] | type[GuessAndCheck]) -> list[str]:
    return [parameter.name for parameter in fields(kind) if parameter.init]
