"""Checks everything that the service needs, one by one; nothing is changed.

Each finding says what was found and, where it is a problem, what to do.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sqlalchemy import Connection, text

from farthing.engine.desk import Desk
from farthing.engine.sources.misfits import Misfits
from farthing.engine.sources.opening import open_source
from farthing.engine.sources.spark_session import java_home
from farthing.errors import FarthingError
from farthing.ledger import Ledger
from farthing.ledger.declared_data import places_in
from farthing.server.access import AccessStore, listed
from farthing.server.callers import Issuer
from farthing.server.settings import DatasetSettings, Settings, read_settings
from farthing.wording import many

#: Clocks may differ by this much: months and expiry depend on them.
APART = timedelta(seconds=30)
_ENGINES = ("duckdb", "ibis-framework", "pyarrow", "sqlalchemy", "fastapi", "uvicorn")


@dataclass(frozen=True, slots=True)
class Finding:
    """What was checked, whether it is right, what was found, and what to do if it is wrong."""

    about: str
    ok: bool
    found: str
    advice: str = ""


def examine(configuration: Path) -> Iterator[Finding]:
    """Every finding about the service of this configuration, one after the other."""
    try:
        settings = read_settings(configuration)
    except FarthingError as error:
        yield Finding("configuration", False, str(error), f"correct {configuration}")
        return
    served = ", ".join(settings.datasets) or "no dataset"
    yield Finding("configuration", True, f"{configuration}: {served}")
    yield from _libraries(settings)
    yield _java(settings)
    yield from _permissions(configuration, settings)
    yield from _ledger(settings)
    yield from _access(settings)
    if settings.oidc is not None:
        issuer, name = Issuer(settings.oidc), settings.oidc.issuer
        advice = "look at oidc.issuer, and whether this machine reaches it"
        yield _attempt("OpenID", lambda: f"{many(issuer.look(), 'key')} of {name}", advice)


def _attempt(about: str, look: Callable[[], str], advice: str) -> Finding:
    """The result of `look`, or its error as a problem."""
    try:
        return Finding(about, True, look())
    except FarthingError as error:
        return Finding(about, False, str(error), advice)


def _libraries(settings: Settings) -> Iterator[Finding]:
    spark = any(one.spark is not None for one in settings.datasets.values())
    postgres = "://" in settings.ledger or any("://" in d.data for d in settings.datasets.values())
    wanted = [*_ENGINES, *(["pyspark"] if spark else []), *(["psycopg"] if postgres else [])]
    found, missing = [f"Python {'.'.join(map(str, sys.version_info[:3]))}"], []
    for name in wanted:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        extras = "service,spark" if spark else "service"
        lacks = f"{', '.join(missing)} missing"
        yield Finding("libraries", False, lacks, f"in the checkout: pip install '.[{extras}]'")
    else:
        yield Finding("libraries", True, ", ".join(found))


def _java(settings: Settings) -> Finding:
    if all(one.spark is None for one in settings.datasets.values()):
        return Finding("Java", True, "not needed: no dataset is on Spark")
    return _attempt("Java", java_home, "install Java 17 or newer")


def _permissions(configuration: Path, settings: Settings) -> Iterator[Finding]:
    """Files with secrets are private, and log files can be written."""
    secret = [str(configuration), settings.ledger, settings.access]
    logs = [one for one in (settings.logs.audit, settings.logs.engine) if one is not None]
    files = [Path(name) for name in dict.fromkeys([*secret, *logs]) if "://" not in name]
    for file in files:
        if file.exists() and _open_to_others(file):
            yield _not_private("permissions", file, file)
            return
    for file in files:
        if not os.access(file if file.exists() else file.parent, os.W_OK) and file != configuration:
            advice = "run the service as the user that owns it"
            yield Finding("permissions", False, f"{file} cannot be written", advice)
            return
    yield Finding("permissions", True, "configuration, ledger, tokens and logs are for their user")


def _open_to_others(file: Path) -> bool:
    """Whether other users may open it, by its mode and that of its folder."""
    return all(one.stat().st_mode & 0o007 for one in (file, file.absolute().parent))


def _not_private(about: str, file: Path, place: Path) -> Finding:
    told = f"others may open {file} ({stat.filemode(file.stat().st_mode)})"
    return Finding(about, False, told, f"chmod o-rwx {place}, or its folder")


def _ledger(settings: Settings) -> Iterator[Finding]:
    try:
        ledger = Ledger.open(settings.ledger, upgrade=False)
    except FarthingError as error:
        advice = "farthing owner add makes one; or correct `ledger` in the configuration"
        yield Finding("ledger", False, str(error), advice)
        return
    with ledger:
        store, reader = ledger.book.store, ledger.reader()
        kind, database, now = store.ask(_database)
        yield Finding("ledger", True, f"{kind} {database} at {store.name}")
        latest = []
        for name in reader.datasets():
            head = reader.head(name)
            written = datetime.fromisoformat(head.fact.time)
            latest.append(written if written.tzinfo is not None else written.replace(tzinfo=UTC))
            yield Finding(f"book of {name}", True, f"entry {head.number}, head {head.hash[:16]}…")
        yield _clock(now, latest)
        for name, one in settings.datasets.items():
            yield from _dataset(ledger, name, one)
            yield from _rows_are_private(ledger, name)


def _database(connection: Connection) -> tuple[str, str, datetime]:
    """The database, its version and its clock."""
    if connection.dialect.name == "sqlite":
        number = connection.scalar(text("SELECT sqlite_version()"))
        return "SQLite", str(number), datetime.now(UTC)
    number, now = connection.execute(text("SELECT current_setting('server_version'), now()")).one()
    return "PostgreSQL", str(number), now


def _clock(database: datetime, latest: list[datetime]) -> Finding:
    """The clock agrees with the database and with the ledger: months and expiry depend on it."""
    here, advice = datetime.now(UTC), "set the clock, and keep it with NTP"
    if abs(here - database) > APART:
        return Finding("clock", False, f"the database says {database}, here it is {here}", advice)
    ahead = [one for one in latest if one > here + APART]
    if ahead:
        return Finding("clock", False, f"the ledger was written at {max(ahead)}, later", advice)
    return Finding("clock", True, f"{here.isoformat(timespec='seconds')}, as the ledger has it")


def _dataset(ledger: Ledger, name: str, one: DatasetSettings) -> Iterator[Finding]:
    """The data can be opened, is the data of the ledger, and its rows are as declared."""
    advice = f"correct [datasets.{name}], or add the data: farthing owner add"
    compared: list[tuple[Misfits, ...]] = []

    def look() -> str:
        source = open_source(one.data, table=one.table, spark=one.spark, memory=one.memory)
        desk = Desk(ledger)
        try:
            known = desk.name_of(source, name)
            if known is None:
                return "can be opened; not in the ledger yet, its owner declares it"
            if known != name:
                raise FarthingError(f"the data of {name} is in the ledger as {known}")
            if desk.is_described(name):
                compared.append(desk.misfits(source, name))
        finally:
            source.shut()
        if not ledger.reader().is_writable(name):
            raise FarthingError(
                f"the book of {name} goes on in another ledger; nothing can be asked here: name "
                "that one as `ledger`"
            )
        return "can be opened, and is what the ledger says"

    yield _attempt(f"dataset {name}", look, advice)
    for misfits in compared:
        found = "; ".join(misfit.in_words() for misfit in misfits) or "as they are declared"
        useless = any(misfit.useless for misfit in misfits)
        advice = "a column has no value that fits: declare it as it is stored" if useless else ""
        yield Finding(f"rows of {name}", not useless, found, advice)


def _rows_are_private(ledger: Ledger, name: str) -> Iterator[Finding]:
    """Whether other users of the machine may open the files with the rows."""
    reader = ledger.reader()
    known = reader.places(name) if name in reader.datasets() else ()
    paths = [one for place in known for one in places_in(place) if one.startswith("file:")]
    for path in paths:
        file = Path(path.removeprefix("file:").partition("#")[0])
        inside = [file, *file.rglob("*")] if file.is_dir() and _open_to_others(file) else [file]
        for one in inside:
            if one.is_file() and _open_to_others(one):
                yield _not_private(f"files of {name}", one, file)
                return
    if paths:
        yield Finding(f"files of {name}", True, "for their user")


def _access(settings: Settings) -> Iterator[Finding]:
    advice = "farthing tokens mint owner NAME --config …"
    if "://" not in settings.access and not Path(settings.access).exists():
        yield Finding("tokens", False, f"there is no {settings.access} yet", advice)
        return

    def look() -> str:
        store = AccessStore(settings.access)
        try:
            valid = [one.role for one in listed(store) if one.is_valid]
        finally:
            store.shut()
        if "owner" not in valid:
            raise FarthingError("no owner has a valid token")
        return f"{valid.count('owner')} of owners, {valid.count('analyst')} of analysts"

    yield _attempt("tokens", look, advice)
