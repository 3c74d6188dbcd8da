"""The console's files, which are in the wheel: no build step, nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.staticfiles import StaticFiles

CONSOLE = Path(__file__).parent / "console"


class ConsoleFiles(StaticFiles):
    """Served with an ETag, and asked for each time: modules of two versions never meet."""

    def __init__(self) -> None:
        super().__init__(directory=CONSOLE, html=True)

    def file_response(self, *given: Any, **options: Any) -> Response:
        response = super().file_response(*given, **options)
        response.headers["cache-control"] = "no-cache"
        return response
