"""`farthing tokens …`: who may use the service. For the machine that the service runs on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli.forms import add_operations
from farthing.engine.desk.operations import Office, Operation
from farthing.server.access.store import AccessStore
from farthing.server.access.tokens import StoredTokens
from farthing.server.settings import read_settings

tokens = typer.Typer(
    name="tokens", help="Who may use the service: mint, list, withdraw.", no_args_is_help=True
)


@dataclass(frozen=True)
class AtService:
    """Which service."""

    config: Annotated[
        Path,
        typer.Option("--config", "-c", help="The service's farthing.toml.", show_default=False),
    ]


@contextmanager
def _at_service(_: Operation, config: Path) -> Iterator[Office]:
    store = AccessStore(read_settings(config).access)
    try:
        yield Office(None, access=StoredTokens(store))
    finally:
        store.shut()


add_operations(tokens, AtService, _at_service)
