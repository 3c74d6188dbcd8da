"""Libraries that are there only if somebody wanted them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from farthing.errors import Unsupported


def required(module: str, extra: str) -> Any:
    """The module, or Unsupported that names the extra which brings it."""
    try:
        return import_module(module)
    except ImportError:
        raise Unsupported(
            f"{extra} is not installed; run: pip install 'farthing[{extra}]'"
        ) from None
