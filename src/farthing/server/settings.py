"""The settings in farthing.toml. Paths in it are relative to the file.

listen = "127.0.0.1:8410"
workers = 2
ledger = "budget.db"
release_every = 0

[datasets.events]
data = "events.parquet"

[limits]
requests_per_minute = 600

[logs]
audit = "audit.jsonl"

[oidc]
issuer = "https://login.example"
audience = "farthing"

[postgres]
listen = "127.0.0.1:5433"
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from farthing.engine.sources.files import is_path_for_spark
from farthing.errors import InvalidInput, did_you_mean, require_count, require_real
from farthing.ledger.records import require_name
from farthing.mechanisms.protocol import DEFAULT_CONFIDENCE, require_confidence

T = TypeVar("T")

#: The file for tokens and jobs beside a ledger file.
ACCESS = "access.db"


@dataclass(frozen=True, slots=True)
class DatasetSettings:
    """Where the rows of a dataset are; it has the name of the ledger."""

    data: str
    table: str | None = None
    spark: str | None = None
    memory: str | None = None


@dataclass(frozen=True, slots=True)
class Protections:
    """Limits for one caller, in seconds, bytes and numbers."""

    requests_per_minute: int = 600
    unpaid_seconds_per_minute: float = 20.0
    body_bytes: int = 1 << 20
    time_limit: float = 300.0
    answer_within: float = 20.0
    jobs_at_once: int = 4
    threads: int = 16
    grace: float = 20.0

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "body_bytes", "jobs_at_once", "threads"):
            require_count(name, getattr(self, name), at_least=1)
        for name in ("unpaid_seconds_per_minute", "time_limit"):
            require_real(name, getattr(self, name), above=0)
        require_real("answer_within", self.answer_within, at_least=0)
        require_real("grace", self.grace, at_least=0)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Files of the audit log and of engine errors, which may quote data; None: no file."""

    audit: str | None = None
    engine: str | None = None


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """An OpenID provider whose tokens are accepted, and what their claims mean.

    The value of `name_claim` is the name of a purse: take one that people cannot choose. With a
    `datasets_claim` a token is for those datasets alone; `required` claims must have these values.
    """

    issuer: str
    audience: str
    name_claim: str = "sub"
    role_claim: str = "role"
    owner_values: Sequence[str] = ("owner",)
    analyst_values: Sequence[str] = ("analyst",)
    datasets_claim: str | None = None
    required: Mapping[str, Any] = field(default_factory=dict)
    leeway: float = 30.0

    def __post_init__(self) -> None:
        for name in ("issuer", "audience", "name_claim", "role_claim"):
            require_name(f"oidc.{name}", getattr(self, name))
        parts = urlsplit(self.issuer)
        if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
            raise InvalidInput(f"oidc.issuer must be an https address, got {self.issuer!r:.60}")
        for name in ("owner_values", "analyst_values"):
            values = getattr(self, name)
            if isinstance(values, str) or not all(isinstance(one, str) for one in values):
                raise InvalidInput(f"oidc.{name} must be a list of values of {self.role_claim}")
        if set(self.owner_values) & set(self.analyst_values):
            raise InvalidInput("one role's value must not be the other's in oidc")
        if not isinstance(self.required, Mapping):
            raise InvalidInput("oidc.required must be a table of claims and their values")
        require_real("oidc.leeway", self.leeway, at_least=0)


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """Where SQL clients connect, and the files of a certificate for TLS.

    Without a certificate only clients on the same machine are let in.
    """

    listen: str
    certificate: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        _address(self.listen)
        if (self.certificate is None) != (self.key is None):
            raise InvalidInput("postgres must have a certificate and its key, or neither")

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return _address(self.listen)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a service."""

    ledger: str
    access: str
    host: str = "127.0.0.1"
    port: int = 8410
    workers: int = 1
    #: Answers leave at whole multiples of so many seconds; 0: at once.
    release_every: float = 0.0
    confidence: float = DEFAULT_CONFIDENCE
    datasets: Mapping[str, DatasetSettings] = field(default_factory=dict)
    limits: Protections = Protections()  # frozen
    logs: LogSettings = LogSettings()  # frozen
    oidc: OidcSettings | None = None
    postgres: PostgresSettings | None = None

    def __post_init__(self) -> None:
        require_count("workers", self.workers, at_least=1)
        require_real("release_every", self.release_every, at_least=0)
        require_confidence(self.confidence)
        if require_count("the port", self.port) > 65535:
            raise InvalidInput(f"the port must be at most 65535, got {self.port}")
        for name in self.datasets:
            require_name("a dataset's name", name)
        object.__setattr__(self, "datasets", MappingProxyType(dict(self.datasets)))

    def at(self, listen: str) -> Settings:
        """The same settings with another HOST:PORT."""
        host, port = _address(listen)
        return replace(self, host=host, port=port)


def read_settings(path: str | os.PathLike[str]) -> Settings:
    """The settings in a TOML file."""
    file = Path(path)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput(
            f"there is no configuration {path}; `farthing serve` without one makes a sample"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} is not a readable configuration: {error}") from None
    return settings_from(data, file.absolute().parent)


def settings_from(data: Mapping[str, Any], folder: Path) -> Settings:
    """The settings in plain data; what is a path is relative to `folder`."""
    given = dict(data)
    if not isinstance(given.get("ledger"), str):
        raise InvalidInput("the configuration must say where the ledger is: ledger = …")
    given["ledger"] = ledger = _placed(given["ledger"], folder)
    if given.get("access") is None:
        given["access"] = ledger if "://" in ledger else str(Path(ledger).with_name(ACCESS))
    given["access"] = _placed(given["access"], folder)
    if "listen" in given:
        given["host"], given["port"] = _address(given.pop("listen"))
    datasets = given.get("datasets", {})
    if not isinstance(datasets, Mapping):
        raise InvalidInput("datasets must be a table of tables")
    given["datasets"] = {name: _dataset(name, one, folder) for name, one in datasets.items()}
    given["limits"] = _of(Protections, given.get("limits", {}), "limits")
    logs = _of(LogSettings, given.get("logs", {}), "logs")
    named = {name: log for name, log in asdict(logs).items() if log is not None}
    given["logs"] = LogSettings(**{name: _placed(log, folder) for name, log in named.items()})
    given["oidc"] = _of(OidcSettings, given["oidc"], "oidc") if "oidc" in given else None
    if "postgres" in given:
        door = _of(PostgresSettings, given["postgres"], "postgres")
        files = {name: getattr(door, name) for name in ("certificate", "key")}
        placed = {name: file and _placed(file, folder) for name, file in files.items()}
        given["postgres"] = replace(door, **placed)
    return _of(Settings, given, "the configuration")


def _dataset(name: str, given: Any, folder: Path) -> DatasetSettings:
    """Where the rows are; tables of Spark's catalogue have names, not paths."""
    one = _of(DatasetSettings, given, f"datasets.{name}")
    if one.spark is not None and isinstance(one.data, str) and not is_path_for_spark(one.data):
        return one
    return replace(one, data=_placed(one.data, folder))


def _of(made: type[T], given: Any, where: str) -> T:
    """A dataclass from a table; InvalidInput for names that it does not have."""
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{where} must be a table")
    known = [one.name for one in fields(made)]  # type: ignore[arg-type] # only dataclasses
    for name in given:
        if name not in known:
            raise InvalidInput(f"{where} has no {name!s:.60}{did_you_mean(name, known)}")
    try:
        return made(**given)
    except TypeError:
        raise InvalidInput(f"{where} must have {known[0]}") from None


def _address(listen: object) -> tuple[str, int]:
    host, colon, port = str(listen).rpartition(":")
    if not colon or not port.isdigit():
        raise InvalidInput(f'listen must be "HOST:PORT", got {listen!r:.60}')
    return host.strip("[]"), int(port)


def _placed(path: object, folder: Path) -> str:
    """An address as it is; a path from the folder of the configuration."""
    if not isinstance(path, str) or not path:
        raise InvalidInput(f"a path or an address must be text, got {path!r:.60}")
    return path if "://" in path else str(folder / path)
