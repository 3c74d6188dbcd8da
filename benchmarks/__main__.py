"""`make benchmark`: run everything and write benchmarks/report.md."""

from __future__ import annotations

from pathlib import Path

from benchmarks import (
    adaptive,
    checking,
    composition,
    conversations,
    corners,
    engine,
    ledger,
    limits,
    measures,
    mechanisms,
    peers,
    service,
    subsampling,
)


def main() -> None:
    """Print the report and keep it."""
    sections = (
        composition,
        adaptive,
        subsampling,
        mechanisms,
        ledger,
        conversations,
        corners,
        checking,
        engine,
        limits,
        peers,
        measures,
        service,
    )
    parts = ["# Benchmarks\n", *(section.report() for section in sections)]
    text = "\n".join(parts)
    Path(__file__).with_name("report.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
