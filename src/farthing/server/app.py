"""The application: routes, errors in one shape, protection around all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from farthing import __version__
from farthing.server.problems import handle_errors
from farthing.server.protection import AuditLog, Metrics, Protection
from farthing.server.routes.analysts import analyst_router, light_router
from farthing.server.routes.conversations import conversation_router
from farthing.server.routes.everybody import health_router, job_router
from farthing.server.routes.forms import forms_router
from farthing.server.routes.owners import owner_router
from farthing.server.service import Service
from farthing.server.settings import Settings

#: The console, which is in the wheel: no build step, nothing from elsewhere.
CONSOLE = Path(__file__).parent / "console"
ROUTERS = (
    light_router,
    analyst_router,
    conversation_router,
    job_router,
    owner_router,
    forms_router,
    health_router,
)


class ConsoleFiles(StaticFiles):
    """Served with an ETag and revalidated each time, so that versions never mix."""

    def __init__(self) -> None:
        super().__init__(directory=CONSOLE, html=True)

    def file_response(self, *given: Any, **options: Any) -> Response:
        response = super().file_response(*given, **options)
        response.headers["cache-control"] = "no-cache"
        return response


def make_app(settings: Settings) -> FastAPI:
    """The service of these settings. Whoever runs it puts what was opened into `state.service`; it
    is given back when the application stops."""
    metrics, audit = Metrics(), AuditLog(settings.logs.audit)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service: Service = app.state.service
        metrics.watch_runs(lambda: service.runner.active)
        try:
            yield
        finally:
            await run_in_threadpool(service.shut)
            audit.shut()

    app = FastAPI(
        title="farthing",
        version=__version__,
        description="Private answers, and a budget that is never overspent.",
        docs_url=None,  # it would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.metrics = metrics
    handle_errors(app)
    for router in ROUTERS:
        app.include_router(router)
    # Nothing but these files, which are everybody's: how far an answer can be compressed tells
    # what is in it to whoever sees its size, and lets them try what else is.
    app.mount("/", GZipMiddleware(ConsoleFiles()), name="console")
    app.add_middleware(Protection, settings=settings, audit=audit, metrics=metrics)
    return app
