"""A PostgreSQL with ICU, for collations that take one spelling for another.

The one from PyPI is built without. `make test` brings Debian's (tests/bring.sh).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class IcuServer:
    """A server of its own on a socket of its own, ordering text by a language unless told."""

    def __init__(self, folder: Path) -> None:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        if not found:
            raise RuntimeError("PostgreSQL with ICU is missing; run tests/bring.sh")
        self._programs = found[-1]
        self._folder = folder
        folder.mkdir()
        self._as_root = os.geteuid() == 0
        if self._as_root:  # a server is not run by root
            subprocess.run(["chown", "postgres", str(folder)], check=True)
        icu = ["--locale-provider=icu", "--icu-locale=en-US", "--encoding=UTF8"]
        self._run("initdb", "-D", str(folder / "data"), "-U", "postgres", "-A", "trust", *icu)
        socket = f"-c listen_addresses= -c unix_socket_directories={folder}"
        self._run("pg_ctl", "-D", str(folder / "data"), "-w", "-o", socket, "start")

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self._folder}"

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", "immediate", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        user = {"user": "postgres"} if self._as_root else {}
        subprocess.run(
            [str(self._programs / program), *arguments],
            check=True,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **user,
        )
