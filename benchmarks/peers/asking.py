"""What every peer's script shares; the standard library alone, for every environment."""

import importlib.metadata
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

Releases = dict[str, float]


def answer_all(package: str, ask: Callable[[dict[str, Any]], Releases]) -> None:
    """Each question as often as it should be asked, one line of JSON for each question."""
    warnings.simplefilter("ignore")
    version = importlib.metadata.version(package)
    for given in json.loads(sys.argv[1]):
        told: dict[str, Any] = {"version": version, "releases": [], "seconds": 0.0, "failure": ""}
        start = time.perf_counter()
        try:
            for _ in range(given["runs"]):
                told["releases"].append(ask(given))
        except Exception as error:  # the report says why a peer has no number
            told["failure"] = f"{type(error).__name__}: {str(error).splitlines()[0]:.100}"
        told["seconds"] = (time.perf_counter() - start) / max(len(told["releases"]), 1)
        print(json.dumps(told), flush=True)
