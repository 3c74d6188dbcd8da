"""`make benchmark`: every number in one run beside the peers, and one report.

python -m benchmarks                 what is not measured yet, then docs/benchmarks.md
python -m benchmarks engine ledger   these, whether or not they are measured
python -m benchmarks --again         everything anew
python -m benchmarks --report        the report of what is kept
"""

from __future__ import annotations

import argparse
import sys
import time

from benchmarks.keeping import PARTS, is_current, kept, measure
from benchmarks.report import write


def main(arguments: list[str]) -> int:
    """Measure what is missing; the number of parts that failed."""
    reader = argparse.ArgumentParser("benchmarks", description="Every number beside the peers.")
    reader.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}")
    reader.add_argument("--again", action="store_true", help="measure everything anew")
    reader.add_argument("--report", action="store_true", help="measure nothing")
    chosen = reader.parse_args(arguments)
    if unknown := set(chosen.parts) - set(PARTS):
        reader.error(f"parts are {', '.join(PARTS)}; got {', '.join(sorted(unknown))}")
    failures: dict[str, str] = {}
    for part in () if chosen.report else chosen.parts or PARTS:
        if not chosen.parts and not chosen.again and is_current(kept(part)):
            print(f"{part}: measured already", flush=True)
            continue
        start = time.perf_counter()
        print(f"{part} …", flush=True)
        failure = measure(part)
        if failure is not None:
            failures[part] = failure
        print(f"{part}: {failure or 'done'}, {time.perf_counter() - start:.0f} s", flush=True)
    print(f"written: {write(failures)}")
    return len(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
