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

from farthing.engine.compiling import compile_query
from farthing.engine.on_duckdb import open_file
from farthing.engine.on_spark import ensure_java
from farthing.engine.queries import HistogramQuery, query_to_json
from farthing.engine.sources import labels_and_counts
from tests.engine.rows import TEXTS, difficult

QUERY = HistogramQuery(by=("text", "day"), contribution_limit=2, per_key_limit=2)
CLIENT = """
import json, sys
from farthing.engine.compiling import compile_query
from farthing.engine.on_spark import open_spark
from farthing.engine.queries import query_from_json
from farthing.engine.sources import labels_and_counts
path, address, query = sys.argv[1:]
source = open_spark(path, address, name=None, version=None)
sql = compile_query(
    query_from_json(json.loads(query)), source, unit="member", secret="key", candidates=None
).sql
labels, counts = labels_and_counts(source.run(sql))
source.shut()
print(json.dumps(dict(zip(labels.tolist(), counts.tolist()))))
"""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    ensure_java()
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
    deadline = time.monotonic() + 180
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
    pq.write_table(difficult(600, texts=TEXTS), path)
    here = open_file(str(path), table=None, name=None, version="1", memory="1GB")
    sql = compile_query(QUERY, here, unit="member", secret="key", candidates=None).sql
    labels, counts = labels_and_counts(here.run(sql))
    here.shut()
    query = query_to_json(QUERY)
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(path), address, json.dumps(query)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == dict(zip(labels.tolist(), counts.tolist(), strict=True))
