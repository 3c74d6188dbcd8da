"""JSON as it may come in: finite numbers, text that can be written again, not nested too deeply."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

#: No question is nested more deeply.
DEEPEST = 40


def require_plain_json(value: object, depth: int = 0) -> None:
    """ValueError if something in it could not be written back."""
    if depth > DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a finite number")
    elif isinstance(value, dict):
        for key, inner in value.items():
            key.encode("utf-8")
            require_plain_json(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            require_plain_json(inner, depth + 1)


class PlainRequest(Request):
    """A request whose JSON was looked at; what cannot be read is refused with status 400."""

    async def json(self) -> Any:
        found = json.loads(await self.body())
        require_plain_json(found)
        return found


class PlainRoute(APIRoute):
    """A route that reads its body through `PlainRequest`."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        handle = super().get_route_handler()

        async def read_plainly(request: Request) -> Response:
            response: Response = await handle(PlainRequest(request.scope, request.receive))
            return response

        return read_plainly
