"""Groups of commands that are imported when they are used: the rest starts without them.

What they need may not be installed, and takes time to load.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group


def lazy_group(name: str, module: str, words: str) -> typer.Typer:
    """The Typer called `name` in `module`, as a group that is loaded when it is looked into."""

    class Lazy(TyperGroup):
        def _group(self) -> Any:
            return get_group(getattr(import_module(module), name))

        def list_commands(self, ctx: Any) -> list[str]:
            return list(self._group().list_commands(ctx))

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            return self._group().resolve_command(ctx, args)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return self._group().get_command(ctx, cmd_name)

    return typer.Typer(name=name, help=words, cls=Lazy, no_args_is_help=True)
