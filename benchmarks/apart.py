"""`python -m benchmarks.apart PART [FILE]`: one part, alone in its process."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path


def main(part: str, file: str | None = None) -> None:
    """Measure, show, and write; a part is a module with a function `measure`."""
    found = importlib.import_module(f"benchmarks.parts.{part}").measure()
    print(found.markdown)
    if file is not None:
        Path(file).write_text(json.dumps(found.document, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
