"""A real Ctrl-C at several moments, also while the compiled loops are loaded or compiled.

It ends a command with code 130 and one line, and reaches Python as KeyboardInterrupt.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from farthing.numerics.compiled import _interruptible, interrupts_waiting

COMMAND = """
import sys
from farthing.cli import main
print("ready", flush=True)
sys.argv = ["farthing", "epsilon", "3000xbr:0.0931", "--delta", "1e-6", "--tolerance", "1e-5"]
main.run()
"""
IN_PYTHON = """
import farthing as fa
print("ready", flush=True)
try:
    fa.compose([(fa.BoundedRange(0.0931), 3000)], tolerance=1e-5).epsilon_at(1e-6)
except KeyboardInterrupt:
    raise SystemExit(130) from None
"""


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Who starts the tests in the background has them ignore SIGINT, and what they start too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(code: str, cache: Path, moment: float) -> tuple[int, str]:
    """Exit code and standard error of a process that hears SIGINT so long after it is ready."""
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        time.sleep(moment)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate()
    assert out == ""
    return running.returncode, err


@pytest.fixture(scope="module")
def full_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = tmp_path_factory.mktemp("cache")
    told = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-m", "farthing.numerics.compiled"], env=told, check=True)
    return cache


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0.01, 0.1, 0.2, 0.4, 0.6, 0.9, 1.4, 2.2])
@pytest.mark.parametrize("cached", [True, False])
def test_it_ends_like_any_other_interrupt(
    moment: float, cached: bool, full_cache: Path, tmp_path: Path
) -> None:
    words = "farthing: interrupted\n"
    for name, code, said in (("command", COMMAND, words), ("python", IN_PYTHON, "")):
        cache = full_cache if cached else tmp_path / name
        assert interrupted(code, cache, moment) == (130, said)


def test_an_interrupt_waits_until_the_end() -> None:
    done = []

    def work() -> None:
        with interrupts_waiting():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            done.append("whole")
        done.append("not reached")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["whole"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_a_kernel_makes_of_an_interrupt_is_one_again() -> None:
    def hands_on(code: str) -> None:
        if code:
            try:
                exec(code)
            except KeyboardInterrupt as stop:
                raise SystemError("a kernel returned a result with an exception set") from stop

    kernel = _interruptible(hands_on)
    kernel("")
    with pytest.raises(KeyboardInterrupt):
        kernel("raise KeyboardInterrupt")
    with pytest.raises(SystemError, match="out of order"):
        kernel("raise SystemError('out of order')")


def test_threads_and_processes_that_ignore_it_are_left_alone() -> None:
    seen = []

    def elsewhere() -> None:
        with interrupts_waiting():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_waiting():
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
