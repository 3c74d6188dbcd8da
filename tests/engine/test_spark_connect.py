"""A real Spark Connect server in a process of its own, and a client in another."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

from farthing.engine.sources.opening import open_source
from farthing.engine.sources.spark_session import java_home
from tests.engine.engines import histogram, proposed
from tests.engine.rows import TEXTS, difficult
from tests.waiting import HANGS

HERE = Path(__file__).parents[2]
#: Texts that a filter carries to the server as parameters.
WANTED = ["a|b", "x'y", "\\", "é", "${env:HOME}", None]
CLIENT = """
import json, sys
from farthing.engine.errors import EngineFailure
from farthing.engine.sources.opening import open_source
from farthing.engine.sources.spark_session import SETTINGS, session_of
from farthing.engine.sql.statement import Statement
from tests.engine.engines import histogram, proposed
import pyarrow as pa
path, address, wanted = sys.argv[1:]
source = open_source(path, spark=address)
found = histogram(
    source, proposed(source), ["text", "day"], limits=(2, 2), where={"text": json.loads(wanted)}
)
print(json.dumps([source.location, found]))

# each address has a session of its own: the second dataset is not read from the first server
ours, other = source._session, session_of(address + "/;user_id=somebody")
assert other is not ours and other.client._user_id == "somebody"
other.stop()
# whoever changes a setting changes it until the next statement
ours.conf.set("spark.sql.ansi.enabled", "true")
with source.ready():
    assert {name: ours.conf.get(name) for name in SETTINGS} == dict(SETTINGS)
# what fails says nothing of the rows
try:
    source.run(Statement(f"SELECT raise_error(text) FROM {source.parts[0].relation}",
                         pa.schema({"x": pa.string()})))
except EngineFailure as failure:
    assert failure.__context__ is None
else:
    raise SystemExit("it did not fail")
source.shut()
"""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    home = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": 1,
        "spark.sql.session.timeZone": "UTC",
    }
    command = [str(home / "sbin" / "start-connect-server.sh"), "--master", "local[1]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    folders = {"SPARK_LOG_DIR": str(tmp_path), "SPARK_PID_DIR": str(tmp_path)}
    folders["JAVA_HOME"] = java_home()
    with (tmp_path / "server.log").open("w") as log:
        server = subprocess.Popen(
            command,
            env={**os.environ, **folders, "SPARK_HOME": str(home), "SPARK_NO_DAEMONIZE": "1"},
            cwd=tmp_path,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        _wait_for(port, server, tmp_path / "server.log")
        yield f"sc://127.0.0.1:{port}"
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + HANGS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert server.poll() is None, log.read_text()[-2000:]
            time.sleep(0.3)
        else:
            return
    raise AssertionError(log.read_text()[-2000:])


def test_a_spark_connect_address_gives_the_same_bytes(address, tmp_path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(difficult(600, texts=(*TEXTS, "${env:HOME}")), path)
    here = open_source(path)
    wanted = histogram(here, proposed(here), ["text", "day"], limits=(2, 2), where={"text": WANTED})
    assert any("${env:HOME}" in label for label in wanted)
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(path), address, json.dumps(WANTED)],
        capture_output=True,
        text=True,
        timeout=HANGS,
        cwd=HERE,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [here.location, wanted]
    assert "USER_RAISED" not in done.stderr
    here.shut()
