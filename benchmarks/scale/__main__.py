"""`make scale`: runs of growing size; their tables go into docs/scale.md.

python -m benchmarks.scale [growth] [spark] [year]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

from benchmarks.findings import markdown_table
from benchmarks.machine import BUSY, ROOT, commit, machine, taken_by_others
from benchmarks.scale import growth, on_spark, year

PAGE = ROOT / "docs" / "scale.md"


def growth_table() -> str:
    """Exponents."""
    rows = [one.cells for one in growth.all_growths()]
    return markdown_table(["what", "grows with", "seconds", "exponent"], rows)


def spark_tables() -> str:
    """The plan, and skew."""
    plan = "\n".join(f"    {line}" for line in on_spark.plan())
    skew = markdown_table(on_spark.HEADER, [one.cells for one in on_spark.measured()])
    return f"{plan}\n\n{skew}"


def year_table() -> str:
    """A day run, a year computed."""
    found = year.budget()
    rows = year.rows(found, year.one_day(found), growth.seconds_per_row())
    return markdown_table(["", "", "how"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "growth": growth_table,
    "spark": spark_tables,
    "year": year_table,
}


def main(chosen: list[str]) -> None:
    """Each table into its place, with where and when it was measured."""
    for name in chosen or TABLES:
        others = taken_by_others()
        where = f"{commit()}, {machine()['processors']}"
        if others > BUSY:
            where += f"; provisional: others used {others:.0%} of the processors"
        measured = f"{TABLES[name]()}\nMeasured at {where}.\n"
        place = re.compile(f"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page, times = place.subn(
            lambda found, text=measured: f"{found[1]}\n{text}\n{found[2]}",
            PAGE.read_text(encoding="utf-8"),
        )
        assert times == 1, f"docs/scale.md has no place for {name}"
        PAGE.write_text(page, encoding="utf-8")
        print(measured, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
