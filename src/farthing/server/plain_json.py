"""JSON as it may come in: finite numbers, text that can be written again, not nested too deeply."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from farthing.server.problems import Refused

#: No question is nested more deeply.
DEEPEST = 40


def require_plain_json(value: object, depth: int = 0) -> None:
    """Refused if something in it could not be written back."""
    if depth > DEEPEST:
        raise _unreadable(f"at most {DEEPEST} levels deep")
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise _unreadable("text that is UTF-8") from None
    elif isinstance(value, float) and not math.isfinite(value):
        raise _unreadable("of finite numbers")
    elif isinstance(value, dict):
        for key, inner in value.items():
            require_plain_json(key, depth + 1)
            require_plain_json(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            require_plain_json(inner, depth + 1)


def _unreadable(what: str) -> Refused:
    return Refused(400, "invalid", f"the body must be JSON, {what}")


class PlainRequest(Request):
    """A request whose JSON was looked at."""

    async def json(self) -> Any:
        if not hasattr(self, "_json"):  # as in the class above
            try:
                found = json.loads(await self.body())
            except (ValueError, RecursionError):
                raise _unreadable("readable") from None
            require_plain_json(found)
            self._json = found
        return self._json


class PlainRoute(APIRoute):
    """A route that reads its body through `PlainRequest`."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        handle = super().get_route_handler()

        async def read_plainly(request: Request) -> Response:
            response: Response = await handle(PlainRequest(request.scope, request.receive))
            return response

        return read_plainly
