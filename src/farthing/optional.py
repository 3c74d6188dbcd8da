"""Optional libraries, and the extra that installs each."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from farthing.errors import Unsupported

#: module → the extra of farthing that installs it
EXTRAS = {
    "argon2": "service",
    "autodp": "autodp",
    "dp_accounting": "dp-accounting",
    "duckdb": "engine",
    "fastapi": "service",
    "grpc": "spark",
    "httpx": "client",
    "ibis": "engine",
    "jwt": "service",
    "matplotlib": "figures",
    "opendp": "opendp",
    "prometheus_client": "service",
    "psycopg": "ledger",
    "pyarrow": "engine",
    "pyspark": "spark",
    "sqlalchemy": "ledger",
    "sqlglot": "engine",
    "starlette": "service",
    "uvicorn": "service",
}


def required(module: str) -> Any:
    """The module, or Unsupported that names the extra to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        refusal = explained(error)
        if refusal is None:
            raise
        raise refusal from None


class Later:
    """A module that is loaded when it is used: it takes long to load, or may not be installed."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # looking at us loads nothing
        self.__dict__[name] = getattr(required(self._module), name)  # the next time without us
        return self.__dict__[name]


def explained(error: ModuleNotFoundError) -> Unsupported | None:
    """What to install, if one of our extras brings the library."""
    name = (error.name or "").partition(".")[0]
    if name not in EXTRAS:
        return None
    return Unsupported(f"{name} is not installed; {installing(EXTRAS[name])}")


def installing(extra: str) -> str:
    """How to install this extra."""
    return f"in the checkout of farthing run: pip install '.[{extra}]'"
