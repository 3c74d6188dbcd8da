"""Other packages: optional libraries with the extra that installs each, and extensions.

An extension is an object that an installed package offers to farthing as an entry point. The
package declares it in its pyproject.toml, by group and name:

    [project.entry-points."farthing.kinds"]
    ratio = "my_package.ratio:RatioQuery"

Installing a package is the operator's decision, so its code is trusted. Built-in names always
come first: whoever uses a group looks there before it looks here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from farthing.errors import Unsupported

#: The libraries that each extra of farthing installs.
_LIBRARIES = {
    "autodp": ("autodp",),
    "client": ("httpx",),
    "dp-accounting": ("dp_accounting",),
    "engine": ("duckdb", "ibis", "pyarrow", "sqlglot"),
    "figures": ("matplotlib",),
    "ledger": ("psycopg", "sqlalchemy"),
    "opendp": ("opendp",),
    "service": ("argon2", "fastapi", "jwt", "prometheus_client", "starlette", "uvicorn"),
    "spark": ("grpc", "pyspark"),
}
EXTRAS = {library: extra for extra, libraries in _LIBRARIES.items() for library in libraries}


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


class Extensions(Mapping[str, object]):
    """The objects of one group by name. Each is imported when it is first asked for.

    A name that is broken, or that two packages declare, raises Unsupported when it is asked for.
    The other names are not affected.
    """

    def __init__(self, group: str, points: Mapping[str, tuple[EntryPoint, ...]]) -> None:
        self.group, self._points = group, points

    def __getitem__(self, name: str) -> object:
        points = self._points[name]
        if len(points) > 1:
            packages = " and ".join(sorted(map(_package, points)))
            raise Unsupported(f"{name} of {self.group} is declared twice, by {packages}")
        try:
            return points[0].load()
        except Exception as error:
            raise self.refused(name, f"{type(error).__name__}: {error}") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._points)

    def __len__(self) -> int:
        return len(self._points)

    def refused(self, name: str, why: str) -> Unsupported:
        """The error about an extension that cannot be used, which names its package."""
        packages = " and ".join(sorted(map(_package, self._points[name])))
        return Unsupported(f"{name} of {self.group}, from {packages}, cannot be used: {why}")


@cache
def load(group: str) -> Extensions:
    """What installed packages offer in a group. Installed packages are read once per process."""
    points: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=group):
        points[point.name] = (*points.get(point.name, ()), point)
    return Extensions(group, points)


def _package(point: EntryPoint) -> str:
    return "an unnamed package" if point.dist is None else f"the package {point.dist.name}"
