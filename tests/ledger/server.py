"""A PostgreSQL server for tests, from the `pgserver` package."""

from __future__ import annotations

import os
import resource
import subprocess
import warnings
from pathlib import Path


class Server:
    """One server. `largest_file` makes every file it writes end there, as on a full disk."""

    def __init__(self, data: Path, *, largest_file: int | None = None) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it looks for a runtime folder that root lacks
            import pgserver
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        if largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, before[1]))
        try:
            self._server = pgserver.get_server(data, cleanup_mode="delete")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        self._data = data
        self._program = Path(pgserver.__file__).parent / "pginstall" / "bin" / "pg_ctl"

    def url(self, database: str = "postgres") -> str:
        return str(self._server.get_uri(database=database))

    def restart(self, mode: str) -> None:
        """fast: connections are cut. immediate: the server crashes and recovers."""
        self._control("restart", "-m", mode)

    def halt(self, mode: str) -> None:
        """Until `begin`, nobody answers."""
        self._control("stop", "-m", mode)

    def begin(self) -> None:
        """After `halt`, as before it."""
        self._control("restart")  # `start` would forget the options

    def _control(self, *words: str) -> None:
        user = {"user": "pgserver"} if os.geteuid() == 0 else {}
        subprocess.run(
            [
                self._program,
                "-D",
                self._data,
                "-w",
                "-l",
                self._data / "log",
                *words,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            **user,
        )

    def stop(self) -> None:
        self._server.cleanup()
